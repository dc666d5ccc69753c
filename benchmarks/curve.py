"""Accuracy against thinking: `python benchmarks/curve.py [NAME] [--write]`, on a GPU.

How many hard puzzles are solved, and for how many row-steps, as thinking goes on: in one pass, and
with several symmetric views or noisy samples of which the check picks a right board. Every way may
spend as many row-steps on a puzzle as any other. `--held-out` takes the held-out puzzles of the
training list instead of the suite: that is where budgets are chosen.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import report
from ablations import held_out
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.chunks import in_chunks, usual_rows
from ronri.evaluation.commit import commit
from ronri.evaluation.figures import COLOURS, MARKERS
from ronri.loading import Loaded
from ronri.reasoner import Budget
from ronri.thinking import think

# Row-steps that a puzzle may take, and how many rows share them: samples, views.
ROW_STEPS = 1024
WAYS = ((1, 1), (1, 4), (1, 16), (4, 1), (16, 1), (4, 4))
FIGURE = report.ROOT / "docs" / "hard.svg"


def follow(
    loaded: Loaded, clues: np.ndarray, solutions: np.ndarray, budget: Budget
) -> list[dict[str, float]]:
    """What is solved, and what was spent a puzzle, after 1, 2, 4, … steps.

    In one pass a board counts when it is there, with the check as soon as it has been there.
    """
    device = loaded.reasoner.device
    marks = sorted({2**power for power in range(budget.steps.bit_length())} | {budget.steps})

    def work(part: slice) -> np.ndarray:
        truth = torch.tensor(solutions[part], device=device)
        solved = torch.zeros(len(truth), dtype=torch.bool, device=device)
        spent = torch.zeros((), dtype=torch.int64, device=device)
        found = torch.zeros(2, len(marks), dtype=torch.int64, device=device)
        for frame in think(loaded.reasoner, torch.tensor(clues[part]), budget):
            right = (frame.thought.board == truth[frame.puzzle]).all(dim=1)
            if budget.halt == "fixed":
                solved = right
            else:
                solved = solved.index_put((frame.puzzle[right],), torch.ones_like(right[right]))
            spent += len(right)
            # Where all are done, later steps change nothing.
            for place, mark in enumerate(marks):
                if frame.step <= mark:
                    found[0, place], found[1, place] = solved.sum(), spent
        return found.cpu().numpy()

    rows = budget.samples * budget.views
    parts = in_chunks(work, len(clues), rows_each=rows, max_rows=usual_rows(device))
    total = sum(parts, np.zeros((2, len(marks)), np.int64))
    return [
        {"steps": mark, "solved": int(solved), "row_steps_per_puzzle": float(spent / len(clues))}
        for mark, solved, spent in zip(marks, *total, strict=True)
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
        "reasoner": name,
        "weights_sha256": loaded.sha256,
        "device": torch.cuda.get_device_name() if place.type == "cuda" else place.type,
        "commit": commit(),
        "data": data,
        "n": len(clues),
        "row_steps": row_steps,
        "ways": [],
    }
    budgets = [Budget(steps=row_steps)] + [
        Budget(steps=row_steps // (k * v), samples=k, views=v, halt="verified") for k, v in WAYS
    ]
    for budget in budgets:
        way = {"samples": budget.samples, "views": budget.views, "halt": budget.halt}
        points = follow(loaded, clues, solutions, budget)
        result["ways"].append({**way, "points": points})
        print(way, points[-1], flush=True)
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
        rows.append(
            (
                label(way),
                f"{last['steps']:,}",
                f"{way['samples']}",
                f"{way['views']}",
                f"{100 * last['solved'] / result['n']:.2f} %",
                f"{result['n'] - last['solved']:,}",
                f"{last['row_steps_per_puzzle']:,.1f}",
            )
        )
    head = ("way", "steps", "samples", "views", "solved", "errors", "row-steps a puzzle, mean")
    return report.table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="trm")
    parser.add_argument("--held-out", action="store_true", help="where budgets are chosen")
    parser.add_argument("--row-steps", type=int, default=ROW_STEPS, help="that a puzzle may take")
    parser.add_argument("--limit", type=int, help="only the first puzzles")
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    which = "held-out" if options.held_out else "suite"
    result = measure(options.name, which, options.row_steps, options.limit, options.device)
    print(text(result))
    if options.write:
        report.keep("curve" if which == "suite" else "curve-held-out", result)


if __name__ == "__main__":
    main()
