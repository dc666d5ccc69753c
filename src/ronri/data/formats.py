"""Lists of puzzles as people publish them: CSV or plain text, gzip or not, read as a stream.

Known by their header line, among others:

    source,question,answer,rating             Sudoku-Extreme
    puzzle,solution                           Kaggle, 9 million
    quizzes,solutions                         Kaggle, 1 million
    id,puzzle,solution,clues,difficulty       Kaggle, 3 million (difficulty is the rating)
    (no header, one puzzle a line)            plain text; `#` starts a comment

Any other CSV can be read by naming its columns. A row is a line: quoted fields may hold commas
and quotes but no line breaks. Every row is either handed out or counted as a problem.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Bool, Int64

from ronri.data.files import unzipped
from ronri.data.lines import Lines, blocks, first_line
from ronri.data.rows import BadRow, Batch, Row, Table, read_row, read_together
from ronri.sudoku.geometry import Geometry, geometry_of
from ronri.sudoku.kernels.chance import scramble

# A first line this long, half of which are these signs, is a puzzle and no header.
_SMALLEST_BOARD = 16
_CELL_SIGNS = "0123456789.*-"

_KNOWN_NAMES = {
    "puzzle": ("puzzle", "question", "quizzes"),
    "solution": ("solution", "answer", "solutions"),
    "rating": ("rating", "difficulty"),
    "source": ("source",),
}


@final
@dataclass(frozen=True)
class Columns:
    """The columns of a CSV that hold what we want, by their names in its header."""

    puzzle: str
    solution: str | None = None
    rating: str | None = None
    source: str | None = None


@final
@dataclass(frozen=True)
class Problem:
    """One row that is refused."""

    line: int
    reason: str
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@final
@dataclass
class Problems:
    """Every refused row is counted here, the first few are remembered."""

    keep: int = 20
    counts: Counter[str] = field(default_factory=Counter)
    first: list[Problem] = field(default_factory=list)

    def add(self, line: int, reason: str, explain: Callable[[], str]) -> None:
        """Count a row; `explain` is called for the message if the row is to be remembered."""
        self.counts[reason] += 1
        if len(self.first) < self.keep:
            self.first.append(Problem(line, reason, explain()))

    def error(self, path: Path) -> ValueError:
        """The first problem as an error that says where it is."""
        return ValueError(f"{path}:{self.first[0].line}: {self.first[0].message}")

    @property
    def total(self) -> int:
        return self.counts.total()


@final
class Reader:
    """The rows of a list, in batches: `for batch in Reader(path)`.

    `columns` names the columns of a CSV that is not one of the known ones. `limit` stops after
    that many rows. `fraction` keeps a random part of the lines: which ones depends on `seed` and
    the line's number alone, and only those are read. `strict` makes the first bad row an error.
    `geometry` is needed for boards other than the standard ones; if it is left out the first
    good row decides, and rows of any other size are bad.

    `rows` = `good` + `problems.total` at any time: no row is lost without a word.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        columns: Columns | None = None,
        geometry: Geometry | None = None,
        limit: int | None = None,
        fraction: float | None = None,
        seed: int = 0,
        strict: bool = False,
    ) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        if fraction is not None and not 0 < fraction <= 1:
            raise ValueError(f"fraction must be above 0 and at most 1, not {fraction}")
        self.path = Path(path)
        self.geometry = geometry
        self.good = 0
        self.problems = Problems()
        self.bytes_read = 0
        self.bytes_total = self.path.stat().st_size
        self._columns = columns
        self._limit = limit
        self._fraction = fraction
        self._seed = seed
        self._strict = strict
        # `puzzles.csv.gz` is the source "puzzles".
        self._name = self.path.name.split(".")[0]

    @property
    def rows(self) -> int:
        return self.good + self.problems.total

    def __iter__(self) -> Iterator[Batch]:
        self.good, self.problems = 0, Problems()
        with self.path.open("rb") as file, unzipped(file, self.path) as stream:
            first = first_line(stream, self.path)
            table = _recognise(first.text, self._columns, self.path)
            number = first.number if table.plain else first.number + 1
            for block in blocks(stream, first.raw if table.plain else b"", self.path):
                self.bytes_read = file.tell()
                lines = Lines.of(block, number, comments=table.plain)
                number += len(lines)
                batch = self._read(self._wanted(lines), table)
                stop = self._strict and self.problems.total > 0
                if stop:
                    batch = batch.take(batch.lines < self.problems.first[0].line)
                if len(batch):
                    yield batch
                if stop:
                    raise self.problems.error(self.path)
                if self.rows == self._limit:
                    return
            self.bytes_read = file.tell()

    def _wanted(self, lines: Lines) -> Lines:
        """Those rows of a block that `fraction` and `limit` ask for; a blank line is no row."""
        if self._fraction is not None:
            lines = lines.take(_by_chance(lines.numbers, self._fraction, self._seed))
        lines = lines.with_text()
        return lines if self._limit is None else lines.take(slice(self._limit - self.rows))

    def _read(self, lines: Lines, table: Table) -> Batch:
        """The good rows of some lines."""
        singles: dict[int, Row | None] = {}
        # Before the first good row nobody knows how large the boards are.
        while self.geometry is None and len(singles) < len(lines):
            singles[len(singles)] = self._read_single(lines, len(singles), table)
        shape = (len(lines), 0 if self.geometry is None else self.geometry.cells)
        batch = Batch(
            puzzles=np.zeros(shape, np.uint8),
            solutions=np.zeros(shape, np.uint8),
            ratings=np.full(len(lines), np.nan, np.float32),
            sources=[self._name] * len(lines),
            lines=lines.numbers,
        )
        good = np.zeros(len(lines), np.bool_)
        if self.geometry is not None:
            good = read_together(lines, table, self.geometry, batch)
            for i in np.flatnonzero(~good).tolist():
                if i not in singles:
                    singles[i] = self._read_single(lines, i, table)
        for i, row in singles.items():
            if row is not None:
                good[i] = True
                batch.puzzles[i], batch.solutions[i] = row.puzzle, row.solution
                batch.ratings[i], batch.sources[i] = row.rating, row.source or self._name
        self.good += int(good.sum())
        return batch.take(good)

    def _read_single(self, lines: Lines, i: int, table: Table) -> Row | None:
        """Read line `i`, or report it."""
        try:
            row = read_row(lines.text(i), table, self.geometry)
        except BadRow as bad:
            self.problems.add(int(lines.numbers[i]), bad.reason, partial(str, bad))
            return None
        self.geometry = geometry_of(row.puzzle, self.geometry)
        return row


def _recognise(first_line: str, columns: Columns | None, path: Path) -> Table:
    """What the first line, which may or may not be a header, says about the rows."""
    if columns is None and _looks_like_cells(first_line.partition("#")[0]):
        return Table(width=1, puzzle=0, plain=True)
    names = [name.strip().lower() for name in next(csv.reader([first_line]))]
    found = "the columns are " + ", ".join(repr(name[:20]) for name in names[:20])
    if columns is None and any(map(_looks_like_cells, names)):
        raise ValueError(
            f"{path}: the first line is a row, not a header; "
            "write one above it, such as puzzle,solution"
        )
    wanted: Mapping[str, tuple[str, ...]] = _KNOWN_NAMES
    if columns is not None:
        wanted = {role: (name,) for role, name in asdict(columns).items() if name}
    places: dict[str, int] = {}
    for role, choices in wanted.items():
        fitting = [i for i, name in enumerate(names) if name in map(str.lower, choices)]
        if len(fitting) > 1:
            raise ValueError(f"{path}: more than one column may be the {role}: {found}; name one")
        if fitting:
            places[role] = fitting[0]
        elif columns is not None:
            raise ValueError(f"{path}: no column is named {choices[0]!r}; {found}")
    if "puzzle" not in places:
        raise ValueError(
            f"{path}: no column is known to hold puzzles; {found}. If this is a CSV, name its "
            "columns: ronri data import FILE SET --puzzle NAME [--solution NAME ...]"
        )
    return Table(
        width=len(names),
        puzzle=places["puzzle"],
        solution=places.get("solution"),
        rating=places.get("rating"),
        source=places.get("source"),
    )


def _looks_like_cells(text: str) -> bool:
    signs = sum(text.count(sign) for sign in _CELL_SIGNS)
    return len(text) >= _SMALLEST_BOARD and 2 * signs >= len(text) and "," not in text


def _by_chance(
    numbers: Int64[np.ndarray, "lines"], fraction: float, seed: int
) -> Bool[np.ndarray, "lines"]:
    """Whether each line is one of the fraction: a hash of (seed, line number)."""
    # Without the compiler `scramble` takes whole arrays.
    mix: Callable[[np.ndarray], np.ndarray] = scramble.py_func
    hashed = mix(mix(np.array([seed % 2**64], np.uint64)) ^ numbers.astype(np.uint64))
    return (hashed >> np.uint64(11)) * 2.0**-53 < fraction
