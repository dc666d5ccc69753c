"""Which weights are better: `python benchmarks/held_out.py NAME [NAME ...] [--out FILE]`, on a GPU.

Released weights, or runs, on puzzles that recipes hold out: in one pass, and with all that at most
1,024 row-steps a puzzle buy. Weights are chosen here, and the suites then score what was chosen.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import report
from ablations import held_out
from release import BUDGETS
from ronri import loading
from ronri.evaluation.commit import commit
from ronri.evaluation.records import score
from ronri.evaluation.scores import wilson

SETS = ("minimal-train", "tricky-made", "clue17-train", "hard-train", "hard-bred")


def measure(names: list[str], sets: list[str], limit: int | None) -> dict[str, Any]:
    result: dict[str, Any] = {"commit": commit(), "scores": []}
    for data, (clues, solutions) in held_out(limit, tuple(sets)).items():
        for name in names:
            loaded = loading.load(name)
            for budget in BUDGETS:
                found = score(loaded.reasoner, clues, solutions, budget)
                one = {
                    "reasoner": name,
                    "weights_sha256": loaded.sha256,
                    "data": data,
                    "n": len(clues),
                    "budget": asdict(budget),
                    "solved": int(found.solved.sum()),
                    "row_steps_per_puzzle": float(found.row_steps.mean()),
                }
                print(one, flush=True)
                result["scores"].append(one)
    return result


def text(result: dict[str, Any]) -> str:
    rows = []
    for one in result["scores"]:
        low, high = wilson(one["solved"], one["n"])
        spent = one["budget"]
        rows.append(
            (
                f"`{one['data']}`",
                f"{one['n']:,}",
                spent["halt"],
                f"{spent['steps']} × {spent['samples'] * spent['views']}",
                f"`{one['reasoner']}`",
                f"{one['weights_sha256'][:12]}",
                f"{100 * one['solved'] / one['n']:.2f} %",
                f"{100 * low:.2f}–{100 * high:.2f} %",
                f"{one['n'] - one['solved']:,}",
                f"{one['row_steps_per_puzzle']:.1f}",
            )
        )
    head = (
        "held out of", "puzzles", "halt", "steps × rows", "reasoner", "weights", "solved",
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
    result = measure(options.names, options.sets, options.limit)
    print(text(result))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
