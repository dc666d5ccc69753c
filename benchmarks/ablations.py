"""What each choice is worth: `python benchmarks/ablations.py [ARM ...] [--write]`, on a GPU.

Every arm is one network with something changed, trained for a short time from the same seed and
scored on held-out puzzles of the training lists, one pass, averaged weights. Arms are compared
at the same time, and the clock starts when everything is compiled. Two arms that are no further
apart than seeds of the plain network are not called different.
"""

import argparse
import gc
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import report
from held_out import held_out
from ronri import registry
from ronri.evaluation.commit import commit
from ronri.evaluation.records import score
from ronri.evaluation.scores import wilson
from ronri.evaluation.trials import Puzzles
from ronri.nn import devices
from ronri.reasoner import Budget, Reasoner
from ronri.recipe import Data, Recipe, changed, from_plain, to_plain
from ronri.training.distributed import World
from ronri.training.material import Material, gather
from ronri.training.run import Run

MINUTES = 1.0
HELD_OUT = ("hard-train", "minimal-train", "clue17-train")
# The recipe `trm` as it was before this was measured.
PLAIN = {
    "model": {"message": 32, "sure": 0.5, "max_steps": 16, "exploration": 0.1},
    "data": {
        "train": ["minimal-train=0.3", "clue17-train=0.2", "hard-train=0.5"],
        "validation_puzzles": 2048,
    },
    "validation_steps": 16,
    # In short runs an average over a thousand updates would still remember the beginning.
    "optim": {"ema": 0.99},
}


@dataclass(frozen=True)
class Arm:
    """One change to the plain network."""

    question: str
    changes: dict[str, Any] = field(default_factory=dict)
    # Learn from so many puzzles of each set only.
    puzzles: int | None = None
    # So many times the slots; learning rates grow with the root of that, as they always do.
    batch: float = 1.0


def _model(**changes: Any) -> dict[str, Any]:
    return {"model": changes}


def _cells(**changes: Any) -> dict[str, Any]:
    """A network whose positions are cells, not candidates, of the size that was best in the log."""
    return _model(**{"mixer": "attention", "width": 192, "heads": 6, "inner": 512, **changes})


def _data(*train: str) -> dict[str, Any]:
    return {"data": {"train": list(train)}}


ARMS: dict[str, Arm] = {
    "plain": Arm("what others are compared with"),
    "plain, another seed": Arm("how far seeds are apart", {"seed": 1}),
    "plain, a third seed": Arm("how far seeds are apart", {"seed": 2}),
    "cells, heads for units": Arm("how do cells find each other?", _cells(unit_heads=6)),
    "cells, heads for units, positions": Arm(
        "how do cells find each other?", _cells(unit_heads=6, positions="both")
    ),
    "cells, heads for all, positions": Arm(
        "how do cells find each other?", _cells(positions="both")
    ),
    "cells, mlp": Arm("how do cells find each other?", _cells(mixer="mlp")),
    "loss on halted slots": Arm("loss on all slots or halted ones?", _model(supervise="halted")),
    "stablemax": Arm("which cross-entropy?", _model(cross_entropy="stablemax")),
    "H 1, L 5": Arm("how deep?", _model(h_cycles=1, l_cycles=5)),
    "H 2, L 3": Arm("how deep?", _model(h_cycles=2, l_cycles=3)),
    "H 3, L 3": Arm("how deep?", _model(h_cycles=3, l_cycles=3)),
    "H 3, L 5": Arm("how deep?", _model(h_cycles=3, l_cycles=5)),
    "one layer": Arm("how deep?", _model(layers=1)),
    "width 32": Arm("how large?", _model(width=32, message=16, inner=64)),
    "message 64": Arm("how large?", _model(message=64)),
    "inner 256": Arm("how large?", _model(inner=256)),
    "half the batch": Arm("how many slots?", batch=0.5),
    "twice the batch": Arm("how many slots?", batch=2.0),
    "slower learning": Arm("how fast?", {"optim": {"matrix_lr": 0.0028}}),
    "faster learning": Arm("how fast?", {"optim": {"matrix_lr": 0.0056}}),
    "32 steps": Arm("how long may a puzzle stay?", _model(max_steps=32)),
    "first third shallow": Arm("deeper by and by?", _model(shallow=0.33)),
    "easy first": Arm(
        "harder by and by?",
        {"data": {"early": ["minimal-train=0.6", "clue17-train=0.4"], "early_part": 0.33}},
    ),
    "three quarters hard": Arm(
        "which puzzles?", _data("minimal-train=0.15", "clue17-train=0.1", "hard-train=0.75")
    ),
    "bred puzzles, too": Arm(
        "which puzzles?",
        _data("minimal-train=0.3", "clue17-train=0.2", "hard-train=0.25", "hard-bred=0.25"),
    ),
    "1,000 puzzles": Arm("few puzzles or all?", puzzles=1000),
}


# Opened and split once for all arms that learn from the same.
_gathered: dict[Data, Material] = {}


def settings(arm: Arm, minutes: float, batch: int) -> Recipe[Any]:
    recipe = changed(changed(registry.recipe("trm"), PLAIN), arm.changes)
    return changed(recipe, {"minutes": minutes, "batch": round(batch * arm.batch)})


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
    minutes: float,
    batch: int,
    device: torch.device,
    puzzles: list[Puzzles],
) -> dict[str, Any]:
    """Train one arm and score it."""
    arm = ARMS[name]
    torch.compiler.reset()
    gc.collect()
    recipe = settings(arm, minutes, batch)
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
        "device": torch.cuda.get_device_name() if device.type == "cuda" else device.type,
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


def waited(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def merged(result: dict[str, Any]) -> dict[str, Any]:
    """The result, and what was kept of arms that are the same still and not measured again."""
    if not (report.RESULTS / "ablations.json").is_file():
        return result
    again = {(one["arm"], one["minutes"]) for one in result["measured"]}
    before = report.kept("ablations")["measured"]
    kept = [one for one in before if (one["arm"], one["minutes"]) not in again and same(one)]
    order = list(ARMS)
    everything = [*kept, *result["measured"]]
    return {
        "measured": sorted(everything, key=lambda one: (one["minutes"], order.index(one["arm"])))
    }


def same(one: dict[str, Any]) -> bool:
    """Whether an arm is what it was when it was measured."""
    arm = ARMS.get(one["arm"])
    if arm is None:
        return False
    batch = round(one["recipe"]["batch"] / arm.batch)
    now = settings(arm, one["minutes"], batch)
    return now == from_plain(type(now.model), one["recipe"])


def text(result: dict[str, Any]) -> str:
    """The table, and how it was made."""
    rows = []
    for one in result["measured"]:
        cells = [
            f"{one['arm']}",
            f"{one['minutes']:g}",
            f"{one['parameters']:,}",
            f"{one['updates']:,}",
            f"{one['ms_per_update']:.1f}",
        ]
        for found in (*one["scores"], one["raw"][0]):
            low, high = (100 * bound for bound in wilson(found["solved"], found["n"]))
            cells.append(f"{100 * found['solved'] / found['n']:.1f} % ({low:.1f}–{high:.1f})")
        rows.append(tuple(cells))
    first = result["measured"][0]["scores"]
    head = (
        "arm", "minutes", "parameters", "updates", "ms an update",
        *(f"{found['data'].removesuffix('-train')}, {found['steps']} steps" for found in first),
        f"{first[0]['data'].removesuffix('-train')} without averaging, {first[0]['steps']} steps",
    )  # fmt: skip
    counts = ", ".join(
        f"{found['n']:,} of `{found['data']}`" for found in first if found["steps"] == 16
    )
    places = {f"{one['device']} with torch {one['torch']}" for one in result["measured"]}
    there = " or ".join(sorted(places))
    return (
        f"{report.table(head, rows)}\n"
        f"Trained on one {there}, by `python "
        f"benchmarks/ablations.py`; solved in one pass, of held-out puzzles, not of the suites: "
        f"{counts}. In brackets the 95 % interval. *Plain* is the recipe `trm` as it was before "
        "this was measured (`PLAIN` in that file: smaller messages, slots of 16 steps, real lists "
        "only), and each arm changes what its name says. Arms no further apart than seeds of the "
        "plain network are not called different.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", metavar="ARM", help=f"of {', '.join(ARMS)}; or all")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--batch", type=int, default=768, help="slots; fewer only to try it out")
    parser.add_argument("--limit", type=int, default=2000, help="held-out puzzles of each list")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, help="write the result here as JSON, arm by arm")
    parser.add_argument("--write", action="store_true", help="keep the result")
    parser.add_argument("--from", dest="source", type=Path, help="a result measured elsewhere")
    options = parser.parse_args()
    if unknown := set(options.arms) - set(ARMS):
        parser.error(f"there is no arm {min(unknown)!r}")
    if options.source:
        result = json.loads(options.source.read_text())
    else:
        device = devices.pick(options.device)
        result = {"measured": []}
        puzzles = [held_out(name, options.limit) for name in HELD_OUT]
        for name in options.arms or list(ARMS):
            found = measure(name, options.minutes, options.batch, device, puzzles)
            result["measured"].append(found)
            print(json.dumps({k: v for k, v in found.items() if k != "recipe"}), flush=True)
            if options.out:
                options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep("ablations", merged(result))
    print(text(result))


if __name__ == "__main__":
    main()
