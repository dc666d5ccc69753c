"""What is in the test suites, and that no training list shares anything with them.

    python benchmarks/suites.py [--write]

Needs the real lists (see `ronri.data.sources`). `--write` keeps the result in
`benchmarks/results/suites.json` and renews the table in `docs/data.md`.
"""

import argparse
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import report
from ronri.data.describe import RATING_EDGES, describe
from ronri.data.sources import LISTS, SUITES, open_set
from ronri.data.splits import set_keys
from ronri.sudoku.exact import rate
from ronri.sudoku.geometry import NINE

PAGE = report.ROOT / "docs" / "data.md"
TRAINING = [name for name in LISTS if name.endswith("-train")]


def measure() -> list[dict[str, Any]]:
    training = {name: open_set(name) for name in TRAINING}
    seen = np.concatenate([set_keys(source).solutions for source in training.values()])
    found = []
    for name in SUITES:
        suite = open_set(name)
        # Small boards have nothing in common with the training lists, which are all 9x9.
        shared = None
        if suite.geometry == NINE:
            shared = int(np.isin(set_keys(suite).solutions, seen).sum())
        row = {
            "suite": name,
            **asdict(describe(suite)),
            "mean_guesses_here": float(rate(suite.puzzles(), 3).mean()),
            "shared_with_training": shared,
        }
        # The last class has no upper end, and JSON no infinity.
        row["ratings"] = [rating["n"] for rating in row["ratings"]]
        found.append(row)
    return found


def head() -> tuple[str, ...]:
    edges = [f"{low:g}" for low in RATING_EDGES[:-1]]
    classes = [f"< {high}" for high in edges[1:]] + [f"≥ {edges[-1]}"]
    return (
        "suite",
        "n",
        "mean clues",
        "mean rating",
        *classes,
        "mean guesses here",
        "in training lists",
    )


def rows(found: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    lines = []
    for row in found:
        clues = sum(int(number) * n for number, n in row["clues"].items()) / row["n"]
        lines.append(
            (
                f"`{row['suite']}`",
                f"{row['n']:,}",
                f"{clues:.1f}",
                f"{row['mean_rating']:.2f}",
                *(f"{n:,}" for n in row["ratings"]),
                f"{row['mean_guesses_here']:.2f}",
                "–" if row["shared_with_training"] is None else f"{row['shared_with_training']}",
            )
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="keep the result, renew the page")
    write = parser.parse_args().write
    found = measure()
    shown = Table(*head())
    for row in rows(found):
        shown.add_row(*row)
    Console().print(shown)
    if write:
        report.keep("suites", {"suites": found})
        report.renew(PAGE, "suites", report.table(head(), rows(report.kept("suites")["suites"])))


if __name__ == "__main__":
    main()
