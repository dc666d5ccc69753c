"""Accuracy against thinking: `python benchmarks/curve.py [NAME] [--write]`, on a GPU.

How many hard puzzles are solved, and for how many row-steps, as more row-steps are allowed: in one
pass, and with several symmetric views, noisy samples or both, of which the check picks a right
board. `--held-out` takes the held-out puzzles of the training list instead of the suite: that is
where budgets are chosen.
"""

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter

import report
from held_out import held_out
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.figures import COLOURS, MARKERS
from ronri.evaluation.records import score
from ronri.evaluation.scores import wilson
from ronri.evaluation.trials import Puzzles
from ronri.nn import devices
from ronri.reasoner import Budget

# Row-steps that a puzzle may take at most. In one pass every puzzle takes all of them, so it gets
# fewer.
ROW_STEPS = 1024
ONE_PASS = 128
FIGURE = report.ROOT / "docs" / "hard.svg"


def ways(row_steps: int) -> dict[str, list[Budget]]:
    """What there may be more and more of."""
    return {
        "one pass, more steps": [Budget(steps=n) for n in _up_to(min(row_steps, ONE_PASS))],
        "checked, more steps": [Budget(steps=n, halt="verified") for n in _up_to(row_steps)],
        "checked, more views": [
            Budget(steps=64, views=n, halt="verified") for n in _up_to(row_steps // 64)
        ],
        "checked, more samples": [
            Budget(steps=64, samples=n, halt="verified") for n in _up_to(row_steps // 64)
        ],
        "checked, more views and samples": [
            Budget(steps=64, views=n, samples=n, halt="verified")
            for n in _up_to(math.isqrt(row_steps // 64))
        ],
        "checked, more short samples": [
            Budget(steps=16, samples=n, halt="verified") for n in _up_to(row_steps // 16)
        ],
    }


def _up_to(most: int) -> list[int]:
    """1, 2, 4, …"""
    return [2**power for power in range(most.bit_length())]


def measure(
    name: str, which: str, row_steps: int, limit: int | None, device: str | None
) -> dict[str, Any]:
    loaded = loading.load(name, device=device)
    if which == "held-out":
        data, puzzles = "hard-train, held out", held_out("hard-train", limit)
    else:
        data, puzzles = "hard", Puzzles.of("hard", open_set("hard"), limit)
    clues, solutions = puzzles.clues, puzzles.solutions
    result: dict[str, Any] = {
        "reasoner": Path(name).name,
        "weights_sha256": loaded.sha256,
        "device": devices.name(loaded.reasoner.device),
        "commit": commit(),
        "data": data,
        "n": len(clues),
        "row_steps": row_steps,
        "ways": {},
    }
    # What is loaded or compiled once, at the first step of all, is nobody's thinking time.
    score(loaded.reasoner, clues[:1], solutions[:1], Budget(steps=1))
    for way, budgets in ways(row_steps).items():
        points = []
        for budget in budgets:
            found = score(loaded.reasoner, clues, solutions, budget)
            points.append(
                {
                    "budget": asdict(budget),
                    "solved": int(found.solved.sum()),
                    "row_steps_per_puzzle": float(found.row_steps.mean()),
                    "ms_per_puzzle": 1000 * found.seconds / len(clues),
                }
            )
        result["ways"][way] = points
        print(way, points, flush=True)
    return result


def draw(result: dict[str, Any], path: Path) -> None:
    """What is solved, and, closer, what is not."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    solved, left = figure.subplots(1, 2)
    for number, (way, points) in enumerate(result["ways"].items()):
        spent = [point["row_steps_per_puzzle"] for point in points]
        share = [point["solved"] / result["n"] for point in points]
        style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4}
        solved.plot(spent, share, label=way, **style)
        left.plot(spent, [1 - one for one in share], **style)
    for axes, what in ((solved, "solved"), (left, "not solved")):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.set_xlabel("row-steps spent on a puzzle, on average")
        axes.set_ylabel(what)
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    solved.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    left.set_yscale("log")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter(lambda y, _: f"{100 * y:g}%")
    left.yaxis.set_minor_formatter(NullFormatter())
    solved.set_title(
        f"{result['reasoner']} on {result['data']}, {result['n']:,} puzzles", loc="left"
    )
    solved.legend(frameon=False)
    # The same result makes the same file.
    with mpl.rc_context({"svg.hashsalt": "ronri"}):
        figure.savefig(path, metadata={"Date": None})


def text(result: dict[str, Any]) -> str:
    """What each way comes to in the end."""
    rows = []
    for way, points in result["ways"].items():
        last = points[-1]
        low, high = wilson(last["solved"], result["n"])
        rows.append(
            (
                way,
                f"{last['budget']['steps']:,}",
                f"{last['budget']['samples']}",
                f"{last['budget']['views']}",
                f"{result['n']:,}",
                f"{100 * last['solved'] / result['n']:.2f} %",
                f"{100 * low:.2f}–{100 * high:.2f} %",
                f"{result['n'] - last['solved']:,}",
                f"{last['row_steps_per_puzzle']:,.1f}",
                f"{last['ms_per_puzzle']:.2f}",
            )
        )
    head = (
        "way", "steps", "samples", "views", "puzzles", "solved", "interval", "errors",
        "row-steps a puzzle", "ms",
    )  # fmt: skip
    return report.table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="trm")
    parser.add_argument("--held-out", action="store_true", help="where budgets are chosen")
    parser.add_argument("--row-steps", type=int, default=ROW_STEPS, help="that a puzzle may take")
    parser.add_argument("--limit", type=int, help="only the first puzzles")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    if options.row_steps < 64:
        parser.error("a row of 64 steps is the least")
    which = "held-out" if options.held_out else "suite"
    result = measure(options.name, which, options.row_steps, options.limit, options.device)
    print(text(result))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep("curve" if which == "suite" else "curve-held-out", result)


if __name__ == "__main__":
    main()
