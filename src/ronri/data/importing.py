"""From a list of puzzles to a set: every row is solved and checked on its way.

list -> rows -> exact solver -> set, a few thousand puzzles at a time, so that a list of millions
needs no more memory than a short one.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Bool

from ronri.data.formats import Columns, Problem, Problems, Reader
from ronri.data.packing import MAX_RATING
from ronri.data.rows import Batch
from ronri.data.store import StoreWriter
from ronri.sudoku.exact import Solutions, solve
from ronri.sudoku.geometry import SYMBOLS, Geometry
from ronri.sudoku.rules import conflicts

NO_SOLUTION = "no solution"
SEVERAL_SOLUTIONS = "several solutions"
WRONG_SOLUTION = "wrong solution"
RATING_TOO_LARGE = "rating too large"


@final
@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far an import has come."""

    bytes_read: int
    bytes_total: int
    rows: int
    kept: int


@final
@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What became of the rows: `rows` = `kept` + all of `bad`."""

    rows: int
    kept: int
    # Refused rows by reason.
    bad: Mapping[str, int]
    # The first refused rows, by line number.
    examples: tuple[Problem, ...]
    seconds: float
    # Size of the list, as far as it was read, and of the set.
    bytes_read: int
    bytes_written: int


def import_file(
    source: str | Path,
    out: str | Path,
    *,
    columns: Columns | None = None,
    geometry: Geometry | None = None,
    limit: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
    strict: bool = False,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> ImportReport:
    """Read the list `source` (see `Reader`) and write the set `out`.

    A puzzle is kept if it has exactly one solution; one that the list gives must be that one, one
    that it does not give is filled in. All other rows are counted in the report, or, if `strict`,
    the first of them is an error. `out` appears at the end and replaces what had that name; if no
    row is kept, nothing is written.
    """
    source, out = Path(source), Path(out)
    if out.suffix != ".ronri":
        raise ValueError(f"{out}: the name of a set must end in .ronri")
    if out.exists() and out.samefile(source):
        raise ValueError(f"{out} is the list itself: give the set another name")
    started = time.perf_counter()
    reader = Reader(
        source,
        columns=columns,
        geometry=geometry,
        limit=limit,
        fraction=fraction,
        seed=seed,
        strict=strict,
    )
    problems = Problems()
    kept = 0
    with ExitStack() as stack:
        writer = None
        for batch in reader:
            assert reader.geometry is not None
            solved = solve(batch.puzzles, threads=threads, geometry=reader.geometry)
            good = _judge(batch, solved, reader.geometry, problems)
            if strict and problems.first:
                raise problems.error(source)
            # Not before the first good row is it known how large the boards are.
            if writer is None and good.any():
                provenance = _provenance(source, limit, fraction, seed)
                writer = StoreWriter(out, reader.geometry, provenance=provenance)
                stack.enter_context(writer)
            if writer is not None:
                rows = batch.take(good)
                writer.append(rows.puzzles, solved.solutions[good], rows.ratings, rows.sources)
                kept = writer.count
            if progress is not None:
                progress(
                    Progress(
                        bytes_read=reader.bytes_read,
                        bytes_total=reader.bytes_total,
                        rows=reader.rows,
                        kept=kept,
                    )
                )
        bad = dict(reader.problems.counts + problems.counts)
        if writer is not None and bad:
            writer.provenance["refused"] = ", ".join(f"{n} {why}" for why, n in bad.items())
    examples = sorted(reader.problems.first + problems.first, key=attrgetter("line"))
    return ImportReport(
        rows=reader.rows,
        kept=kept,
        bad=bad,
        examples=tuple(examples[: problems.keep]),
        seconds=time.perf_counter() - started,
        bytes_read=reader.bytes_read,
        bytes_written=out.stat().st_size if kept else 0,
    )


def _provenance(
    source: Path, limit: int | None, fraction: float | None, seed: int
) -> dict[str, str]:
    provenance = {"file": source.name}
    if limit is not None:
        provenance["limit"] = str(limit)
    if fraction is not None:
        provenance |= {"fraction": str(fraction), "seed": str(seed)}
    return provenance


def _judge(
    batch: Batch, solved: Solutions, geometry: Geometry, problems: Problems
) -> Bool[np.ndarray, "batch"]:
    """Which rows can be kept; what is wrong with the others goes to the problems."""
    differs = (batch.solutions != solved.solutions).any(axis=1) & batch.has_solution
    reasons = np.select(
        [
            solved.counts == 0,
            solved.counts > 1,
            differs,
            np.abs(batch.ratings) > MAX_RATING,
        ],
        [NO_SOLUTION, SEVERAL_SOLUTIONS, WRONG_SOLUTION, RATING_TOO_LARGE],
        default="",
    )
    for i in np.flatnonzero(reasons != ""):
        reason = str(reasons[i])
        problems.add(
            int(batch.lines[i]), reason, partial(_explain, reason, batch, solved, int(i), geometry)
        )
    return reasons == ""


def _explain(reason: str, batch: Batch, solved: Solutions, i: int, geometry: Geometry) -> str:
    if reason == NO_SOLUTION:
        broken = conflicts(batch.puzzles[i], geometry)
        why = f": {broken[0].describe(geometry)}" if broken else ""
        return f"the puzzle has no solution{why}"
    if reason == SEVERAL_SOLUTIONS:
        return "the puzzle has more than one solution"
    if reason == WRONG_SOLUTION:
        given, right = batch.solutions[i], solved.solutions[i]
        cell = int((given != right).argmax())
        return (
            f"the solution given has {SYMBOLS[given[cell]]} in {geometry.cell_name(cell)}; "
            f"the only solution has {SYMBOLS[right[cell]]}"
        )
    assert reason == RATING_TOO_LARGE
    return f"the rating {batch.ratings[i]:g} is beyond {MAX_RATING:g}, the largest a set can hold"
