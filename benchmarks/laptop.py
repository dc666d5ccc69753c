"""Small boards on a processor: `python benchmarks/laptop.py [--write]`.

Trains `trm-mini4` and `trm-mini6` as the command line does, by the clock on the wall, and scores
the averaged weights on the suites.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import report

PAGE = report.ROOT / "docs" / "trm.md"
# Recipe, suite, and what we hold ourselves to: accuracy and minutes.
RUNS = (("trm-mini4", "mini4", 0.99, 3.0), ("trm-mini6", "mini6", 0.95, 15.0))


def measure(recipe: str, suite: str, folder: Path) -> dict[str, Any]:
    begun = time.perf_counter()
    _ronri("train", recipe, "--out", str(folder / recipe), "--device", "cpu")
    minutes = (time.perf_counter() - begun) / 60
    result = folder / f"{recipe}.json"
    _ronri("eval", str(folder / recipe), "--data", suite, "--device", "cpu", "--json", str(result))
    scores = json.loads(result.read_text())
    kept = ("n", "errors", "puzzle_accuracy", "puzzle_accuracy_ci95", "cell_accuracy", "budget")
    return {"recipe": recipe, "suite": suite, "minutes": minutes} | {k: scores[k] for k in kept}


def _ronri(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "ronri", *arguments], check=True)


def text(result: dict[str, Any]) -> str:
    head = ("recipe", "minutes", "allowed", "suite", "solved", "interval", "errors", "wanted")
    rows: list[tuple[str, ...]] = []
    for found, (_, _, wanted, allowed) in zip(result["measured"], RUNS, strict=True):
        low, high = found["puzzle_accuracy_ci95"]
        rows.append(
            (
                f"`{found['recipe']}`",
                f"{found['minutes']:.1f}",
                f"{allowed:.0f}",
                f"`{found['suite']}`, {found['n']:,}",
                f"{100 * found['puzzle_accuracy']:.1f} %",
                f"{100 * low:.1f}–{100 * high:.1f} %",
                str(found["errors"]),
                f"{100 * wanted:.0f} %",
            )
        )
    where = f"Measured by `python benchmarks/laptop.py --write` on {result['threads']} cores"
    return f"{report.table(head, rows)}\n{where}, imports, data and checkpoints included.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the result and renew the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = [measure(recipe, suite, Path(folder)) for recipe, suite, _, _ in RUNS]
    result = {"threads": torch.get_num_threads(), "measured": measured}
    print(json.dumps(result, indent=2))
    if options.write:
        report.keep("laptop", result)
        report.renew(PAGE, "laptop", text(result))


if __name__ == "__main__":
    main()
