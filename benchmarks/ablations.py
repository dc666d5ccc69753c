"""What each choice is worth: `python benchmarks/ablations.py [ARM ...] [--seeds N ...]`, on a GPU.

Every arm is one network with something changed, trained for a short time and scored on held-out
puzzles of the training lists, one pass, averaged weights. Arms are compared at the same time, and
the clock starts when everything is compiled. Where the decision is close an arm has several seeds;
one that is no further from the plain network than seeds are apart is not called different.
"""

import argparse
import gc
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import report
from arms import ARMS, Arm, settings
from held_out import held_out
from ronri.evaluation.commit import commit
from ronri.evaluation.records import score
from ronri.evaluation.scores import wilson
from ronri.evaluation.trials import Puzzles
from ronri.nn import devices
from ronri.reasoner import Budget, Reasoner
from ronri.recipe import Data, Recipe, from_plain, to_plain
from ronri.training.distributed import World
from ronri.training.material import Material, gather
from ronri.training.run import Run

MINUTES = 1.0
BATCH = 768
LIMIT = 2000
HELD_OUT = ("hard-train", "minimal-train", "clue17-train")


# Opened and split once for all arms that learn from the same.
_gathered: dict[Data, Material] = {}


def material(recipe: Recipe[Any], arm: Arm) -> Material:
    if recipe.data not in _gathered:
        _gathered[recipe.data] = gather(recipe, print)
    found = _gathered[recipe.data]
    if arm.puzzles is None:
        return found
    few = tuple(
        type(source)(source.records[: arm.puzzles], source.weight, source.early)
        for source in found.sources
    )
    return Material(few, found.clues, found.solutions, found.counts)


def measure(
    name: str,
    seed: int,
    minutes: float,
    batch: int,
    device: torch.device,
    puzzles: list[Puzzles],
) -> dict[str, Any]:
    """Train one arm from one seed and score it."""
    arm = ARMS[name]
    torch.compiler.reset()
    gc.collect()
    recipe = settings(arm, seed, minutes, batch)
    assert recipe.batch != "auto"
    run = Run(recipe, World(0, 1, device), recipe.batch, material(recipe, arm))
    started = time.perf_counter()
    if device.type == "cuda":
        run.compile()
    # What is compiled once is not counted: all stages of the arm, and then back to the beginning.
    before = run.snapshot()
    before.tensors.update({key: value.clone() for key, value in before.tensors.items()})
    for progress in (0.0, 0.999):
        run.progress = progress
        for _ in range(5):
            run.update()
    run.restore(before)
    waited(device)
    compiling = time.perf_counter() - started
    started = time.perf_counter()
    curve: list[dict[str, float]] = []
    recent: list[Tensor] = []
    while not run.over:
        recent.append(run.update()["solved"])
        if run.step % 16 == 0:
            waited(device)
        if run.step % 500 == 0:
            solved = float(torch.stack(recent).mean())
            curve.append({"step": run.step, "seconds": run.seconds, "solved": solved})
            recent = []
        run.tick(time.perf_counter() - started)
    waited(device)
    seconds = time.perf_counter() - started
    with torch.compiler.set_stance("force_eager"), run.ema.copied_into(run.reasoner.eval()):
        scores = score_all(run.reasoner, puzzles)
    with torch.compiler.set_stance("force_eager"):
        raw = score_all(run.reasoner, puzzles)
    return {
        "arm": name,
        "minutes": minutes,
        "commit": commit(),
        "device": devices.name(device),
        "torch": torch.__version__,
        "question": arm.question,
        "recipe": to_plain(recipe),
        "puzzles": arm.puzzles,
        "parameters": sum(p.numel() for p in run.reasoner.parameters()),
        "updates": run.step,
        "seconds": seconds,
        "ms_per_update": 1000 * seconds / run.step,
        "compiling_seconds": compiling,
        "admitted": run.admitted(),
        "curve": curve,
        "scores": scores,
        "raw": raw,
    }


def score_all(reasoner: Reasoner, puzzles: list[Puzzles]) -> list[dict[str, Any]]:
    found = []
    for some in puzzles:
        for steps in (16, 64) if some.name == "hard-train" else (16,):
            solved = score(reasoner, some.clues, some.solutions, Budget(steps=steps)).solved
            found.append(
                {"data": some.name, "steps": steps, "n": len(solved), "solved": int(solved.sum())}
            )
    return found


def runs(arms: list[str], seeds: list[int] | None) -> list[tuple[str, int]]:
    """Every seed of every arm, or some: first seeds first, so that what is cut off is least."""
    every = [(arm, seed) for arm in arms for seed in range(ARMS[arm].seeds)]
    return sorted(
        [(arm, seed) for arm, seed in every if seeds is None or seed in seeds],
        key=lambda one: one[1],
    )


def waited(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def merged(before: list[dict[str, Any]], measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was measured, and what was kept of arms that are the same still and not among it."""
    if odd := [one["arm"] for one in measured if not same(one)]:
        raise ValueError(f"{odd[0]}: measured with other settings than the arm has")
    again = {_place(one) for one in measured}
    kept = [one for one in before if same(one) and _place(one) not in again]
    everything = sorted([*kept, *measured], key=_place)
    if len({tuple(found["n"] for found in one["scores"]) for one in everything}) > 1:
        raise ValueError("not all runs were scored on as many puzzles")
    return everything


def _place(one: dict[str, Any]) -> tuple[float, int, int]:
    """Where a run stands in the table: no two are at the same place."""
    return one["minutes"], list(ARMS).index(one["arm"]), one["recipe"]["seed"]


def same(one: dict[str, Any]) -> bool:
    """Whether a run is one that its arm still asks for."""
    arm, seed = ARMS.get(one["arm"]), one["recipe"]["seed"]
    if arm is None or seed >= arm.seeds or one["puzzles"] != arm.puzzles:
        return False
    now = settings(arm, seed, one["minutes"], BATCH)
    return now == from_plain(type(now.model), one["recipe"])


@dataclass(frozen=True)
class Seeds:
    """What seeds of one arm have solved of the same puzzles, in percent."""

    solved: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.solved) / len(self.solved)

    @property
    def apart(self) -> float:
        return max(self.solved) - min(self.solved)

    def against(self, plain: "Seeds") -> float | None:
        """How far above plain it is; nothing where seeds of either are as far apart."""
        difference = self.mean - plain.mean
        return difference if abs(difference) > max(self.apart, plain.apart) else None


def compared(measured: list[dict[str, Any]]) -> str:
    """A row for each arm: the mean of its seeds, how far they are apart, and what it is worth."""
    first = measured[0]["scores"]
    arms: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for one in measured:
        arms.setdefault((one["arm"], one["minutes"]), []).append(one)
    rows = []
    for (name, minutes), seeds in arms.items():
        cells = [name, f"{minutes:g}", f"{len(seeds)}"]
        for place in range(len(first)):
            found = _seeds(seeds, place)
            cell = f"{found.mean:.1f} %"
            if len(seeds) > 1:
                cell += f" ({min(found.solved):.1f}–{max(found.solved):.1f})"
            if name != "plain" and ("plain", minutes) in arms:
                worth = found.against(_seeds(arms["plain", minutes], place))
                cell += ", none" if worth is None else f", **{worth:+.1f}**"
            cells.append(cell)
        rows.append(tuple(cells))
    return report.table(("arm", "minutes", "seeds", *_columns(first)), rows)


def _seeds(runs: list[dict[str, Any]], place: int) -> Seeds:
    found = [one["scores"][place] for one in runs]
    return Seeds(tuple(100 * one["solved"] / one["n"] for one in found))


def _columns(scores: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(
        f"{found['data'].removesuffix('-train')}, {found['steps']} steps" for found in scores
    )


def each(measured: list[dict[str, Any]]) -> str:
    """A row for each run."""
    rows = []
    for one in measured:
        cells = [
            one["arm"],
            f"{one['recipe']['seed']}",
            f"{one['minutes']:g}",
            f"{one['parameters']:,}",
            f"{one['updates']:,}",
            f"{one['ms_per_update']:.1f}",
        ]
        for found in (*one["scores"], one["raw"][0]):
            low, high = (100 * bound for bound in wilson(found["solved"], found["n"]))
            cells.append(f"{100 * found['solved'] / found['n']:.1f} % ({low:.1f}–{high:.1f})")
        rows.append(tuple(cells))
    columns = _columns(measured[0]["scores"])
    name, steps = columns[0].split(", ")
    head = (
        "arm", "seed", "minutes", "parameters", "updates", "ms an update", *columns,
        f"{name} without averaging, {steps}",
    )  # fmt: skip
    return report.table(head, rows)


def text(result: dict[str, Any]) -> str:
    """The tables, and how they were made."""
    measured = result["measured"]
    counts = ", ".join(
        f"{found['n']:,} of `{found['data']}`"
        for found in measured[0]["scores"]
        if found["steps"] == 16
    )
    places = {f"{one['device']} with torch {one['torch']}" for one in measured}
    return (
        f"{compared(measured)}\n"
        f"Trained on one {' or '.join(sorted(places))}, by `python benchmarks/ablations.py`; "
        f"solved in one pass, of held-out puzzles, not of the suites: {counts}. *Plain* is the "
        "recipe `trm` as it was before this was measured (`PLAIN` in `arms.py` beside it: smaller "
        "messages, slots of 16 steps, real lists only), and each arm changes what its name says; "
        "*the recipe of the release* has its messages, slots, exploration and puzzles. Where an "
        "arm has several seeds the mean is given, and in brackets the lowest and the highest. "
        "Bold is how many points the mean lies above or below that of *plain*; *none* where that "
        "is no more than seeds of the arm, or of *plain*, are apart. None is not the same as "
        "equal, and a small difference of an arm with one seed may be chance. Where the "
        "brackets of *plain* are wide, little can be told.\n\n"
        "Every run, with its cost; in brackets the 95 % interval of that run's score:\n\n"
        f"{each(measured)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", metavar="ARM", help=f"of {', '.join(ARMS)}; or all")
    parser.add_argument("--seeds", type=int, nargs="+", help="only these, of those an arm has")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--batch", type=int, default=BATCH, help="slots; fewer only to try it out")
    parser.add_argument("--limit", type=int, default=LIMIT, help="held-out puzzles of each list")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, help="write the result here as JSON, arm by arm")
    parser.add_argument("--write", action="store_true", help="keep the result")
    parser.add_argument("--from", dest="source", type=Path, help="a result measured elsewhere")
    options = parser.parse_args()
    if unknown := set(options.arms) - set(ARMS):
        parser.error(f"there is no arm {min(unknown)!r}")
    if options.write and (options.batch, options.limit) != (BATCH, LIMIT):
        parser.error("a trial with other slots or puzzles is not kept")
    if options.source:
        result = json.loads(options.source.read_text())
    else:
        device = devices.pick(options.device)
        result = {"measured": []}
        todo = runs(options.arms or list(ARMS), options.seeds)
        if not todo:
            parser.error("none of these arms has such a seed")
        puzzles = [held_out(name, options.limit) for name in HELD_OUT]
        for arm, seed in todo:
            found = measure(arm, seed, options.minutes, options.batch, device, puzzles)
            result["measured"].append(found)
            print(json.dumps({k: v for k, v in found.items() if k != "recipe"}), flush=True)
            if options.out:
                options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        there = (report.RESULTS / "ablations.json").is_file()
        before = report.kept("ablations")["measured"] if there else []
        report.keep("ablations", {"measured": merged(before, result["measured"])})
    print(text(result))


if __name__ == "__main__":
    main()
