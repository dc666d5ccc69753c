"""How TRM is taught: `python benchmarks/carry.py [--write]`, on a processor.

The documents that TRM follows claim that one step an update on slots that keep their puzzle and
notes (the carry) is a sixteenth of the work of all sixteen steps on new puzzles in every update.
One of them teaches only slots that halt. Here all three learn 6x6 boards for as many minutes. Raw
weights are scored: after few updates an average still remembers where it began.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import report
from ronri import loading, registry
from ronri.data.sources import open_set
from ronri.evaluation.trials import Puzzles, hold
from ronri.reasoner import Budget
from ronri.training.loop import train

PAGE = report.ROOT / "docs" / "trm.md"
STEPS = 16
WAYS: dict[str, dict[str, Any]] = {
    "carry, every slot taught": {},
    "carry, halted slots taught": {"supervise": "halted"},
    f"fresh, {STEPS} steps an update": {"carry": False},
}


def measure(way: str, minutes: float, folder: Path) -> dict[str, Any]:
    recipe = registry.recipe("trm-mini6")
    recipe = replace(
        recipe,
        model=replace(recipe.model, max_steps=STEPS, **WAYS[way]),
        steps=None,
        minutes=minutes,
        validate_every=10**9,
        checkpoint_every=10**9,
        log_every=10,
    )
    result = train(recipe, folder, device="cpu")
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    suite = Puzzles.of("mini6", open_set("mini6"))
    loaded = loading.load(str(folder), device="cpu", which="raw")
    scores = hold(loaded, suite, Budget(steps=STEPS), seed=0).to_json()
    return {
        "way": way,
        "minutes": result.minutes,
        "updates": result.step,
        "ms_per_update": 60_000 * result.minutes / result.step,
        "admitted": int(lines[-1]["admitted"]),
        "n": scores["n"],
        "puzzle_accuracy": scores["puzzle_accuracy"],
        "puzzle_accuracy_ci95": scores["puzzle_accuracy_ci95"],
        "cell_accuracy": scores["cell_accuracy"],
    }


def text(result: dict[str, Any]) -> str:
    head = ("training", "ms an update", "updates", "puzzles begun", "cells", "solved", "interval")
    rows: list[tuple[str, ...]] = []
    for found in result["measured"]:
        low, high = found["puzzle_accuracy_ci95"]
        rows.append(
            (
                found["way"],
                f"{found['ms_per_update']:,.0f}",
                f"{found['updates']:,}",
                f"{found['admitted']:,}",
                f"{100 * found['cell_accuracy']:.1f} %",
                f"{100 * found['puzzle_accuracy']:.1f} %",
                f"{100 * low:.1f}–{100 * high:.1f} %",
            )
        )
    many = "minute" if result["minutes"] == 1 else "minutes"
    where = f"{result['minutes']:g} {many} each on {result['threads']} threads of a processor"
    what = f"`trm-mini6` with {STEPS} steps, {where}, one seed; raw weights on `mini6`"
    tuned = "Learning rate and batch are those of the first way"
    return f"{report.table(head, rows)}\n{what}. {tuned}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result and renew the page")
    parser.add_argument("--from", dest="source", type=Path, help="a result measured elsewhere")
    options = parser.parse_args()
    if options.source:
        result = json.loads(options.source.read_text())
    else:
        torch.set_num_threads(options.threads)
        with tempfile.TemporaryDirectory() as folder:
            measured = [
                measure(way, options.minutes, Path(folder) / str(number))
                for number, way in enumerate(WAYS)
            ]
        result = {"minutes": options.minutes, "threads": options.threads, "measured": measured}
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep("carry", result)
        report.renew(PAGE, "carry", text(result))


if __name__ == "__main__":
    main()
