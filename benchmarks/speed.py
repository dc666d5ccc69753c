"""How long an answer takes: `python benchmarks/speed.py [NAME] [--write]`.

On a processor: milliseconds a puzzle, one at a time and 64 together, from clues to boards. On a
GPU: puzzles a second over a hundred thousand and more. Thinking ends when the network says so (own)
or when a board passes the check (verified), so easy puzzles are cheap.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import report
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.records import score
from ronri.loading import Loaded
from ronri.nn import devices
from ronri.reasoner import Budget, Halt
from ronri.thinking import answer

SUITES = ("everyday", "minimal", "hard")
STEPS = 64
HALTS: tuple[Halt, ...] = ("own", "verified")
# Puzzles a second that we hold ourselves to, on one H200.
WANTED = 5_000


def on_a_processor(loaded: Loaded, count: int) -> list[dict[str, Any]]:
    """Every suite, one puzzle at a time and 64 together."""
    found = []
    for suite in SUITES:
        puzzles = open_set(suite)
        clues, solutions = puzzles.puzzles(slice(count)), puzzles.solutions(slice(count))
        for halt in HALTS:
            for batch in (1, 64):
                # The first call loads and chooses what all later ones use.
                answer(loaded.reasoner, torch.tensor(clues[:batch]), Budget(steps=1))
                times, right = [], 0
                for first in range(0, len(clues), batch):
                    part = slice(first, first + batch)
                    begun = time.perf_counter()
                    budget = Budget(steps=STEPS, halt=halt)
                    board = answer(loaded.reasoner, torch.tensor(clues[part]), budget).board
                    spent = 1000 * (time.perf_counter() - begun)
                    times += [spent / len(board)] * len(board)
                    right += int((board.numpy() == solutions[part]).all(axis=1).sum())
                found.append(
                    {
                        "suite": suite,
                        "halt": halt,
                        "batch": batch,
                        "n": len(clues),
                        "solved": right,
                        "ms_mean": float(np.mean(times)),
                        "ms_median": float(np.median(times)),
                        "ms_95": float(np.percentile(times, 95)),
                    }
                )
                print(found[-1], flush=True)
    return found


def on_a_gpu(loaded: Loaded, count: int) -> list[dict[str, Any]]:
    """As many minimal puzzles as there are; most of them were learned from, so none is scored."""
    puzzles = open_set("minimal-train")
    clues, solutions = puzzles.puzzles(slice(count)), puzzles.solutions(slice(count))
    found = []
    for halt in HALTS:
        budget = Budget(steps=STEPS, halt=halt)
        score(loaded.reasoner, clues[:64], solutions[:64], budget)
        records = score(loaded.reasoner, clues, solutions, budget)
        found.append(
            {
                "data": "minimal-train",
                "halt": halt,
                "n": len(clues),
                "seconds": records.seconds,
                "row_steps_per_puzzle": float(records.row_steps.mean()),
            }
        )
        print(found[-1], flush=True)
    return found


def text(result: dict[str, Any]) -> str:
    parts = []
    rows: list[tuple[str, ...]]
    head: tuple[str, ...]
    if there := result.get("cpu"):
        rows = [
            (
                f"`{one['suite']}`",
                one["halt"],
                str(one["batch"]),
                f"{one['n']}",
                f"{one['ms_mean']:.0f}",
                f"{one['ms_median']:.0f}",
                f"{one['ms_95']:.0f}",
                f"{one['solved']}",
            )
            for one in there["measured"]
        ]
        head = (
            "suite", "halt", "together", "puzzles", "ms, mean", "median", "95 of 100", "solved",
        )  # fmt: skip
        parts.append(
            f"On {there['threads']} processor cores, float32, up to {STEPS} steps, milliseconds a "
            f"puzzle:\n\n{report.table(head, rows)}"
        )
    if there := result.get("cuda"):
        rows = [
            (
                f"`{one['data']}`",
                one["halt"],
                f"{one['n']:,}",
                f"{one['n'] / one['seconds']:,.0f}",
                f"{WANTED:,}" if one["halt"] == "own" else "",
                f"{one['row_steps_per_puzzle']:.2f}",
            )
            for one in there["measured"]
        ]
        head = ("data", "halt", "puzzles", "puzzles a second", "wanted", "steps a puzzle")
        parts.append(
            f"On one {there['device']}, bfloat16, up to {STEPS} steps:\n\n"
            f"{report.table(head, rows)}"
        )
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="trm")
    parser.add_argument("--device")
    parser.add_argument("--count", type=int, help="puzzles; 128 on a processor, 200,000 on a GPU")
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    loaded = loading.load(options.name, device=options.device)
    kind = loaded.reasoner.device.type
    if kind == "cuda":
        measured = on_a_gpu(loaded, options.count or 200_000)
        device = devices.name(loaded.reasoner.device)
    else:
        measured = on_a_processor(loaded, options.count or 128)
        device = "cpu"
    here = {
        "reasoner": Path(options.name).name,
        "weights_sha256": loaded.sha256,
        "device": device,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "commit": commit(),
        "measured": measured,
    }
    print(text({kind: here}))
    if options.out:
        options.out.write_text(json.dumps({kind: here}, indent=2) + "\n")
    if options.write:
        path = report.RESULTS / "speed.json"
        before = json.loads(path.read_text()) if path.is_file() else {}
        report.keep("speed", before | {kind: here})


if __name__ == "__main__":
    main()
