"""A list as large as the largest public one: how fast it is imported, and in how much memory.

    python benchmarks/importing.py [--rows 9000000] [--write]

Writes a CSV of generated puzzles (repeated, for reading and solving do not care), imports it in a
process of its own, and asks the system for that process's peak memory. Needs Linux and about 2 GB
of disk. `--write` keeps the result and renews the sentence in `docs/data.md`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import report
from ronri.data.writers import csv_writer
from ronri.sudoku.generate import minimal_puzzles

PAGE = report.ROOT / "docs" / "data.md"
DISTINCT = 100_000

IMPORT = """
import json, sys
from ronri.data.importing import import_file
found = import_file(sys.argv[1], sys.argv[2])
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"rows": found.rows, "kept": found.kept, "seconds": found.seconds,
                  "list_bytes": found.bytes_read, "set_bytes": found.bytes_written,
                  "peak_bytes": 1024 * int(peak)}))
"""


def measure(rows: int) -> dict[str, Any]:
    made = minimal_puzzles(min(DISTINCT, rows), seed=1)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "list.csv"
        with csv_writer(source) as writer:
            for start in range(0, rows, len(made)):
                part = slice(min(len(made), rows - start))
                writer.append(made.puzzles[part], made.solutions[part])
        command = [sys.executable, "-c", IMPORT, str(source), str(Path(folder) / "set.ronri")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def sentence(found: dict[str, Any]) -> str:
    return (
        f"Importing {found['rows']:,} rows ({found['list_bytes'] / 2**20:,.0f} MiB), every one "
        f"solved and checked, took {found['seconds']:.0f} s on two cores and "
        f"{found['peak_bytes'] / 2**20:,.0f} MiB of memory; the set has "
        f"{found['set_bytes'] / 2**20:,.0f} MiB (`python benchmarks/importing.py --write`).\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=9_000_000)
    parser.add_argument("--write", action="store_true", help="keep the result, renew the page")
    arguments = parser.parse_args()
    found = measure(arguments.rows)
    print(sentence(found))
    if arguments.write:
        report.keep("importing", found)
        report.renew(PAGE, "importing", sentence(found))


if __name__ == "__main__":
    main()
