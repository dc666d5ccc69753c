"""Which weights are better: `python benchmarks/held_out.py NAME [NAME ...] [--out FILE]`, on a GPU.

Released weights, or runs, on the puzzles that recipes hold out unless they are told otherwise: in
one pass, and with all that at most 1,024 row-steps a puzzle buy. Between weights we choose here;
the suites then score what was chosen. (Which of its weights a run keeps it chooses by some of these
puzzles, too.)
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import report
from release import BUDGETS
from ronri import loading
from ronri.data.sources import HELD_OUT, open_set
from ronri.data.splits import SplitRule, set_keys
from ronri.evaluation.trials import Puzzles, hold

SETS = ("minimal-train", "tricky-made", "clue17-train", "hard-train", "hard-bred")


def held_out(name: str, limit: int | None) -> Puzzles:
    source = open_set(name)
    keys = set_keys(source).split
    rows = np.flatnonzero(SplitRule.of(keys, validation=HELD_OUT).mask("validation", keys))[:limit]
    return Puzzles(
        name, source.geometry, source.puzzles(rows), source.solutions(rows), source.ratings(rows)
    )


def measure(names: list[str], sets: list[str], limit: int | None) -> list[dict[str, Any]]:
    found = []
    for puzzles in [held_out(name, limit) for name in sets]:
        for name in names:
            loaded = loading.load(name)
            for budget in BUDGETS:
                trial = hold(loaded, puzzles, budget, seed=0).to_json()
                print(puzzles.name, name, budget, trial["errors"], flush=True)
                found.append(trial)
    return found


def text(trials: list[dict[str, Any]]) -> str:
    rows = []
    for trial in trials:
        spent = trial["budget"]
        low, high = (100 * bound for bound in trial["puzzle_accuracy_ci95"])
        rows.append(
            (
                f"`{trial['data']}`",
                f"{trial['n']:,}",
                f"`{trial['reasoner']}`",
                (trial["weights_sha256"] or "")[:12],
                spent["halt"],
                f"{spent['steps']} × {spent['samples'] * spent['views']}",
                f"{100 * trial['puzzle_accuracy']:.2f} %",
                f"{low:.2f}–{high:.2f} %",
                f"{trial['errors']:,}",
                f"{trial['row_steps_per_puzzle']:.1f}",
            )
        )
    head = (
        "held out of", "puzzles", "reasoner", "weights", "halt", "steps × rows", "solved",
        "interval", "errors", "row-steps",
    )  # fmt: skip
    return report.table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="of which some is held out")
    parser.add_argument("--limit", type=int, help="only the first puzzles of each set")
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    options = parser.parse_args()
    trials = measure(options.names, options.sets, options.limit)
    if options.out:
        options.out.write_text(json.dumps(trials, indent=2) + "\n")
    print(text(trials))


if __name__ == "__main__":
    main()
