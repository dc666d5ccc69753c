"""Result files, and the blocks of documents that are written from them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def keep(name: str, result: dict[str, Any]) -> None:
    """Write `results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")


def kept(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


def block(page: Path, name: str) -> str:
    """What stands between the two marks of a block."""
    return _parts(page, name)[1]


def renew(page: Path, name: str, text: str) -> None:
    """Write a block anew, leaving the rest of the page as it is."""
    before, _, after = _parts(page, name)
    page.write_text(f"{before}{_begin(name)}{text}{_end(name)}{after}")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown: the first column to the left, numbers to the right."""
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def version(commit: str | None) -> str:
    """A commit as pages tell it, and whether anything had been changed since."""
    if commit is None:
        return "unknown"
    short = f"`{commit[:7]}`"
    return f"{short} and what was changed since" if commit.endswith("-dirty") else short


def _parts(page: Path, name: str) -> tuple[str, str, str]:
    before, rest = page.read_text().split(_begin(name))
    inside, after = rest.split(_end(name))
    return before, inside, after


def _begin(name: str) -> str:
    return f"<!-- {name}: begin -->\n"


def _end(name: str) -> str:
    return f"<!-- {name}: end -->\n"
