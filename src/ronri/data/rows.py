"""From lines of text to puzzles, solutions, ratings and sources.

There are two ways. Where the fields of a line are found by their commas alone and have the
lengths they should, all such lines of a block are read together in numpy (`read_together`); any
other line is read by itself, slowly, by code that can say what is wrong with it (`read_row`). The
fast path never judges: a line it does not like is left to the slow path.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isinf
from typing import TypeVar, final

import numpy as np
from jaxtyping import Bool, Float32, Int64, UInt8

from ronri.data.lines import Lines
from ronri.sudoku.board import ParsedLines, PuzzleError, parse, parse_bytes
from ronri.sudoku.geometry import Geometry, geometry_of

# Why a row is refused. More words, and where, are in each problem's message.
WRONG_COLUMNS = "wrong number of columns"
BAD_PUZZLE = "unreadable puzzle"
BAD_SOLUTION = "unreadable solution"
BAD_RATING = "unreadable rating"

_Value = TypeVar("_Value")
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


@final
@dataclass(frozen=True)
class Table:
    """Where a row's fields are. Plain text is a table of one column that may hold comments."""

    width: int
    puzzle: int
    solution: int | None = None
    rating: int | None = None
    source: int | None = None
    plain: bool = False


@final
@dataclass(frozen=True)
class Row:
    """What one line says."""

    puzzle: UInt8[np.ndarray, "cells"]
    # All zeros if there is none.
    solution: UInt8[np.ndarray, "cells"]
    # NaN if there is none.
    rating: float
    # Empty if there is none.
    source: str


@final
@dataclass(frozen=True)
class Batch:
    """Some rows of a list, in its order."""

    puzzles: UInt8[np.ndarray, "batch cells"]
    # All zeros where the row has none.
    solutions: UInt8[np.ndarray, "batch cells"]
    # NaN where the row has none.
    ratings: Float32[np.ndarray, "batch"]
    # The file's own name where the list names no sources.
    sources: list[str]
    # Where each row stands in the file, counted from 1 as editors do.
    lines: Int64[np.ndarray, "batch"]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def has_solution(self) -> Bool[np.ndarray, "batch"]:
        # A solution has no empty cell, so one cell tells.
        return self.solutions[:, 0] != 0

    def take(self, rows: Bool[np.ndarray, "batch"]) -> "Batch":
        """The rows where the mask is set."""
        if rows.all():
            return self
        sources = [source for source, taken in zip(self.sources, rows, strict=True) if taken]
        arrays = (self.puzzles[rows], self.solutions[rows], self.ratings[rows])
        return Batch(*arrays, sources, self.lines[rows])


# The slow path: one line, and what is wrong with it.


class BadRow(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def read_row(text: str, table: Table, geometry: Geometry | None) -> Row:
    """The row that a line holds; `BadRow` says what is wrong with it."""
    try:
        values = [text] if table.plain else next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise BadRow(WRONG_COLUMNS, f"the quotes are wrong: {error}") from error
    if len(values) != table.width:
        raise BadRow(WRONG_COLUMNS, f"{len(values)} columns; the header has {table.width}")

    def value(column: int | None) -> str:
        return "" if column is None else values[column].strip()

    try:
        puzzle = parse(value(table.puzzle), geometry, check=False)
    except PuzzleError as error:
        raise BadRow(BAD_PUZZLE, f"the puzzle cannot be read: {error}") from error
    geometry = geometry_of(puzzle, geometry)
    solution = np.zeros_like(puzzle)
    if value(table.solution):
        try:
            solution = parse(value(table.solution), geometry, check=False)
        except PuzzleError as error:
            raise BadRow(BAD_SOLUTION, f"the solution cannot be read: {error}") from error
        if not solution.all():
            hole = geometry.cell_name(int(solution.argmin()))
            raise BadRow(BAD_SOLUTION, f"the solution leaves {hole} empty")
    rating = _number(value(table.rating).encode())
    if isinf(rating):
        raise BadRow(BAD_RATING, f"the rating is no number: {value(table.rating)[:40]!r}")
    return Row(puzzle, solution, rating, value(table.source))


def _number(text: bytes) -> float:
    """A rating: NaN for an empty field, infinity for what is none."""
    try:
        number = float(text or b"nan")
    except ValueError:
        return inf
    return inf if abs(number) > _LARGEST_FLOAT else number


def _name(text: bytes) -> str:
    return text.decode("utf-8", "replace").strip()


# The fast path: all regular lines of a block together.


@final
@dataclass(frozen=True)
class _Field:
    """One column of some lines, by where it starts and ends in their block."""

    block: bytes
    starts: Int64[np.ndarray, "lines"]
    ends: Int64[np.ndarray, "lines"]

    @property
    def quoted(self) -> Bool[np.ndarray, "lines"]:
        characters = np.frombuffer(self.block, np.uint8)
        quoted = (characters[self.starts] == ord('"')) & (characters[self.ends - 1] == ord('"'))
        return quoted & (self.ends - self.starts >= 2)

    def boards(self, geometry: Geometry) -> ParsedLines:
        # Items as long as a board, one from every place of the block. Nothing is copied but
        # those that are taken, each in one piece.
        cells = geometry.cells
        places = len(self.block) - cells + 1
        items = np.ndarray((places,), f"V{cells}", self.block, strides=(1,))[self.starts]
        parsed = parse_bytes(items.view(np.uint8).reshape(-1, cells), geometry)
        ok = parsed.ok & (self.ends - self.starts == cells)
        parsed.grids[~ok] = 0
        return ParsedLines(parsed.grids, ok)

    def values(self, read: Callable[[bytes], _Value]) -> list[_Value]:
        bounds = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        texts = [self.block[start:end] for start, end in bounds]
        # Ratings and sources repeat: few of them are read for the first time.
        known = {text: read(text) for text in set(texts)}
        return [known[text] for text in texts]


def read_together(
    lines: Lines, table: Table, geometry: Geometry, batch: Batch
) -> Bool[np.ndarray, "lines"]:
    """Fill the batch's rows from the regular lines, and say which lines those are."""
    rows, fields = _split(lines, table)
    puzzles = fields[table.puzzle].boards(geometry)
    good = puzzles.ok
    batch.puzzles[rows] = puzzles.grids
    if table.solution is not None:
        written = fields[table.solution]
        solutions = written.boards(geometry)
        missing = written.starts == written.ends
        good &= missing | (solutions.ok & solutions.grids.all(axis=1))
        batch.solutions[rows] = solutions.grids
    if table.rating is not None:
        ratings = np.array(fields[table.rating].values(_number), np.float64)
        good &= ~np.isinf(ratings)
        batch.ratings[rows] = ratings
    if table.source is not None:
        for i, source in zip(rows.tolist(), fields[table.source].values(_name), strict=True):
            batch.sources[i] = source or batch.sources[i]
    regular = np.zeros(len(lines), np.bool_)
    regular[rows] = good
    return regular


def _split(lines: Lines, table: Table) -> tuple[Int64[np.ndarray, "rows"], list[_Field]]:
    """The lines that can be split at commas alone, and their fields without quotes around them."""
    block, characters = lines.block, np.frombuffer(lines.block, np.uint8)
    commas = np.zeros(0, np.int64) if table.plain else np.flatnonzero(characters == ord(","))
    # With these behind the last one, "the next comma" always exists.
    commas = np.append(commas, np.full(table.width, len(block)))
    # The commas of line i are number first[i], first[i] + 1, ... of the block.
    first = np.searchsorted(commas, lines.starts)
    fits = commas[first + table.width - 1] >= lines.ends
    if table.width > 1:
        fits &= commas[first + table.width - 2] < lines.ends
    rows = np.flatnonzero(fits)
    first, starts, ends = first[rows], lines.starts[rows], lines.ends[rows]
    between = [commas[first + column] for column in range(table.width - 1)]
    bounds = zip([starts, *(comma + 1 for comma in between)], [*between, ends], strict=True)
    fields = [_Field(block, *bound) for bound in bounds]
    if b'"' not in block:
        return rows, fields
    # A field is bare or quoted as a whole; any line with other quotes is left to the slow path.
    quotes = np.flatnonzero(characters == ord('"'))
    count = np.searchsorted(quotes, ends) - np.searchsorted(quotes, starts)
    quoted = [field.quoted for field in fields]
    fits = count == 2 * np.sum(quoted, axis=0)
    return rows[fits], [
        _Field(block, (field.starts + around)[fits], (field.ends - around)[fits])
        for field, around in zip(fields, quoted, strict=True)
    ]
