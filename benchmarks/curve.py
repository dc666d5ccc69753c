"""Accuracy against thinking: `python benchmarks/curve.py [NAME] [--write]`, on a GPU.

How many hard puzzles are solved, and for how many row-steps, as more row-steps are allowed: in one
pass, and with several symmetric views or noisy samples of which the check picks a right board.
`--held-out` takes the held-out puzzles of the training list instead of the suite: that is where
budgets are chosen.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import report
from ablations import held_out
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.figures import COLOURS, MARKERS
from ronri.evaluation.records import score
from ronri.evaluation.scores import wilson
from ronri.reasoner import Budget, Halt

# Row-steps that a puzzle may take at most, and how they are shared: halt, samples, views. In one
# pass every puzzle takes all of them, so it gets fewer.
ROW_STEPS = 1024
ONE_PASS = 128
WAYS: tuple[tuple[Halt, int, int], ...] = (
    ("fixed", 1, 1),
    ("verified", 1, 1),
    ("verified", 1, 16),
    ("verified", 4, 1),
    ("verified", 16, 1),
    ("verified", 64, 1),
)
FIGURE = report.ROOT / "docs" / "hard.svg"


def budgets(halt: Halt, samples: int, views: int, row_steps: int) -> list[Budget]:
    """1, 2, 4, … steps, as far as they are allowed."""
    most = (min(row_steps, ONE_PASS) if halt == "fixed" else row_steps) // (samples * views)
    return [
        Budget(steps=2**power, samples=samples, views=views, halt=halt)
        for power in range(most.bit_length())
    ]


def measure(
    name: str, which: str, row_steps: int, limit: int | None, device: str | None
) -> dict[str, Any]:
    loaded = loading.load(name, device=device)
    if which == "held-out":
        data, (clues, solutions) = (
            "hard-train, held out",
            held_out(limit, ("hard-train",))["hard-train"],
        )
    else:
        suite = open_set("hard")
        data, clues, solutions = "hard", suite.puzzles(slice(limit)), suite.solutions(slice(limit))
    place = loaded.reasoner.device
    result: dict[str, Any] = {
        "reasoner": Path(name).name,
        "weights_sha256": loaded.sha256,
        "device": torch.cuda.get_device_name() if place.type == "cuda" else place.type,
        "commit": commit(),
        "data": data,
        "n": len(clues),
        "row_steps": row_steps,
        "ways": [],
    }
    # What is loaded or compiled once, at the first step of all, is nobody's thinking time.
    score(loaded.reasoner, clues[:1], solutions[:1], Budget(steps=1))
    for halt, samples, views in WAYS:
        way: dict[str, Any] = {"halt": halt, "samples": samples, "views": views, "points": []}
        for budget in budgets(halt, samples, views, row_steps):
            found = score(loaded.reasoner, clues, solutions, budget)
            way["points"].append(
                {
                    "steps": budget.steps,
                    "solved": int(found.solved.sum()),
                    "row_steps_per_puzzle": float(found.row_steps.mean()),
                    "ms_per_puzzle": 1000 * found.seconds / len(clues),
                }
            )
        result["ways"].append(way)
        print(way, flush=True)
    return result


def label(way: dict[str, Any]) -> str:
    if way["halt"] == "fixed":
        return "one pass"
    counts = {"sample": way["samples"], "view": way["views"]}
    words = [f"{n} {what}s" for what, n in counts.items() if n > 1]
    return ", ".join(["checked", *words])


def draw(result: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, way in enumerate(result["ways"]):
        axes.plot(
            [point["row_steps_per_puzzle"] for point in way["points"]],
            [point["solved"] / result["n"] for point in way["points"]],
            label=label(way),
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=5,
        )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.set_xlabel("row-steps spent on a puzzle, on average")
    axes.set_ylabel("solved")
    axes.set_title(f"{result['reasoner']} on {result['data']}, {result['n']:,} puzzles", loc="left")
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def text(result: dict[str, Any]) -> str:
    """What each way comes to in the end."""
    rows = []
    for way in result["ways"]:
        last = way["points"][-1]
        low, high = wilson(last["solved"], result["n"])
        rows.append(
            (
                label(way),
                f"{last['steps']:,}",
                f"{way['samples']}",
                f"{way['views']}",
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
    if options.row_steps < max(samples * views for _, samples, views in WAYS):
        parser.error("that is not one step for every row")
    which = "held-out" if options.held_out else "suite"
    result = measure(options.name, which, options.row_steps, options.limit, options.device)
    print(text(result))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep("curve" if which == "suite" else "curve-held-out", result)


if __name__ == "__main__":
    main()
