"""The document's runs of Enso: `python benchmarks/document.py [RUN] [--write]`, on a GPU.

Trains one of them for some minutes, and sets what it solves beside what the document reports of it.
Stopped by Ctrl+C (its exit status is 130 then), it goes on with training from there when it is
started again with the same settings, and begins again with scores.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import langevin
import report
from ronri import loading, registry
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.trials import Puzzles
from ronri.nn import devices
from ronri.recipe import Recipe, changed
from ronri.training.checkpoints import Checkpoints
from ronri.training.loop import train

PAGE = report.ROOT / "docs" / "enso.md"
SUITES, CHAINS, STEPS = ("everyday", "minimal", "kaggle3m"), 8, 50
# Of the document's runs 4 and 5: puzzles in a batch, and updates. Of nine million puzzles it learns
# from eight, 20 times.
BATCH, UPDATES = 2048, 78_000
ORACLE, THINKING = "oracle z, from the solution", "the chain of lowest energy"


@dataclass(frozen=True)
class Reported:
    """What is reported of a run of the document, in percent: puzzles, and empty cells."""

    hours: str
    oracle: tuple[str, str]
    thinking: tuple[str, str]

    def of(self, way: str) -> tuple[str, str]:
        """Beside one of our ways; the document has no others."""
        return {ORACLE: self.oracle, THINKING: self.thinking}.get(way, ("", ""))


DOCUMENT = {
    "enso-run4": Reported("7", ("82.5", "97.6"), ("83.5", "97.8")),
    "enso-run5": Reported("22", ("95.6", "99.3"), ("96.6", "99.4")),
}
# These come first.
ROWS = (ORACLE, "z = 0", "z from the prior", THINKING)
# What validation reads on the way, of one chain.
READINGS = {"oracle": "oracle z", "zero": "z = 0", "prior": "prior z"}
THOUGHT = "puzzle_accuracy"


def history(folder: Path) -> dict[str, Any]:
    """How a run went."""
    checkpoints = Checkpoints(folder)
    kept, last = checkpoints.ranking(), checkpoints.latest(print)
    if not kept or last is None:
        raise ValueError(f"{folder} has no validated checkpoint: train it until it has one")
    best = kept[0]
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    names = ("recipe", "batch", "commit", "device", "data")
    return {
        "step": best.step,
        "steps_in_run": last.step,
        "minutes": last.facts["seconds"] / 60,
        "admitted": last.facts["admitted"],
        **{name: last.facts[name] for name in names},
        "validations": [line for line in lines if f"validation.{THOUGHT}" in line],
    }


def planned(name: str, minutes: float, batch: int) -> Recipe[Any]:
    """A run in so little time. Smaller batches are more updates, with as many puzzles between
    validations."""
    run = changed(registry.recipe(name), {"minutes": minutes, "batch": batch})
    often = {"validate_every": run.validate_every, "checkpoint_every": run.checkpoint_every}
    return changed(run, {field: max(1, n * BATCH // batch) for field, n in often.items()})


def made(recipe: Recipe[Any], folder: Path, device: str | None) -> bool:
    """Train, or go on. False if that was interrupted."""
    return train(recipe, folder, resume=True, device=device).stopped != "interrupted"


def measure(
    folder: Path, suites: list[Puzzles], chains: int, steps: int, device: str | None
) -> dict[str, Any]:
    """How a run went, and everything that its chains solve."""
    loaded = loading.load(folder, device=device)
    return {
        "run": history(folder),
        "weights_sha256": loaded.sha256,
        "device": devices.name(loaded.reasoner.device),
        "commit": commit(),
        # Where little is solved, one suite is enough to tell what is left of that without a slope.
        "suites": [
            langevin.compare(loaded, [], one, chains, steps, few=0 if number else langevin.FEW)
            for number, one in enumerate(suites)
        ],
    }


def text(name: str, result: dict[str, Any]) -> str:
    """What it solves, beside what the document reports of other puzzles; and how it got there."""
    suites, run, theirs = result["suites"], result["run"], DOCUMENT[name]
    first = suites[0]
    lines = []
    # The document has no controls.
    for way in [*ROWS, *(way for way in first["solved"] if way not in ROWS)]:
        cells: list[str] = []
        for suite in suites:
            solved = langevin.share(suite["solved"][way], suite["n"])
            cells += solved, f"{100 * suite['cells'][way]:.2f}"
        lines.append((way, *theirs.of(way), *cells))
    for way in first["few"]["solved"]:
        few = first["few"]
        solved = f"{langevin.share(few['solved'][way], few['n'])}, of {few['n']:,}"
        lines.append((way, "", "", solved, *[""] * (2 * len(suites) - 1)))
    head: tuple[str, ...] = (f"`{name}`, in percent", "document: puzzles", "document: cells")
    for suite in suites:
        head += f"`{suite['suite']}` ({suite['n']:,})", "cells"
    readings = [
        (
            f"{one['step']:,}",
            *(f"{100 * one[f'validation.{reading}']:.1f}" for reading in (*READINGS, THOUGHT)),
            f"{100 * one['validation.cell_accuracy']:.1f}",
        )
        for one in run["validations"]
    ]
    return (
        f"{report.table(head, lines)}\nPuzzles solved, with the 95 % interval, and empty cells "
        f"that are right. The run has {run['steps_in_run']:,} updates of {run['batch']:,} puzzles "
        f"and took {run['minutes']:.1f} minutes on one {run['device']}, compilation and validation "
        f"included (the document: some {UPDATES:,} of {BATCH:,}, and {theirs.hours} hours); what "
        f"it is scored by, the best of its validations, is from update {run['step']:,}. "
        f"{first['chains']} chains of {first['steps']} steps for each puzzle, no check; the "
        f"document's are other puzzles. Weights "
        f"`{result['weights_sha256'][:12]}`, trained at commit {report.version(run['commit'])} "
        f"and scored at {report.version(result['commit'])}, by `python benchmarks/document.py "
        f"{name} --minutes {run['recipe']['minutes']:g} --batch {run['batch']} --write`. On the "
        f"way, in percent of "
        f"held-out puzzles, thinking being one chain of {run['recipe']['validation_steps']} "
        f"steps:\n\n"
        + report.table(("updates", *READINGS.values(), "thinking", "its cells"), readings)
    )


def page_text() -> str:
    """What is on the page: the runs that were kept, and which have not been made."""
    made = [name for name in DOCUMENT if (report.RESULTS / f"{name}.json").exists()]
    parts = [text(name, report.kept(name)) for name in made]
    missing = [f"`{name}`" for name in DOCUMENT if name not in made]
    if missing:
        parts.append(f"Not made yet: {' and '.join(missing)} ([log](LOG.md)).\n")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", choices=DOCUMENT, default="enso-run5")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument(
        "--batch",
        type=int,
        default=BATCH,
        help="puzzles an update; its learning rate follows by the document's rule",
    )
    parser.add_argument("--run", type=Path, help="its folder, if not runs/NAME")
    parser.add_argument("--limit", type=int, help="only the first puzzles")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    if options.write and options.limit is not None:
        parser.error("what is kept is of all puzzles: leave --limit away")
    folder = options.run or report.ROOT / "runs" / options.name
    try:
        try:
            recipe = planned(options.name, options.minutes, options.batch)
            suites = [Puzzles.of(name, open_set(name), options.limit) for name in SUITES]
            done = made(recipe, folder, options.device)
        except (ValueError, OSError) as error:
            parser.error(str(error))
        result = measure(folder, suites, CHAINS, STEPS, options.device) if done else None
    except KeyboardInterrupt:
        result = None
    if result is None:
        print(f"interrupted: start it again to go on, {folder} holds what there is")
        raise SystemExit(130)
    # It took half an hour: kept before anything else is done with it.
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep(options.name, result)
    print(text(options.name, result))


if __name__ == "__main__":
    main()
