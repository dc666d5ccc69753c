"""Lists of puzzles as people publish them: CSV or plain text, gzip or not, read as a stream.

Known by their header line, among others:

    source,question,answer,rating             Sudoku-Extreme
    puzzle,solution                           Kaggle, 9 million
    quizzes,solutions                         Kaggle, 1 million
    id,puzzle,solution,clues,difficulty       Kaggle, 3 million (difficulty is the rating)
    (no header, one puzzle a line)            plain text; `#` starts a comment

Any other CSV can be read by naming its columns. A row is a line: quoted fields may hold commas
and quotes but no line breaks. Every row is either handed out or counted as a problem.

Reading goes block by block. Where the fields of a line are found by their commas alone and have
the lengths they should, all such lines of a block are read together in numpy; any other line is
read by itself, slowly, by code that can say what is wrong with it. The fast path never judges: a
line it does not like is left to the slow path.
"""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, isinf
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Float32, Int64, UInt8

from ronri.data.store import whole_file
from ronri.sudoku.board import ParsedLines, PuzzleError, parse, parse_bytes, to_lines
from ronri.sudoku.geometry import Geometry, standard
from ronri.sudoku.kernels.chance import scramble

# Bytes of text read at a time: some 20,000 rows.
BLOCK_BYTES = 4 << 20
# A longer line is no row of any list; without this bound such a file would fill the memory.
LONGEST_LINE = 100_000
# A first line this long, half of which are these signs, is a puzzle and no header.
_SMALLEST_BOARD = 16
_CELL_SIGNS = "0123456789.*-"
# No field that is gathered as a whole is longer than the largest board.
_PADDING = b"\0" * 256
_LARGEST_FLOAT = float(np.finfo(np.float32).max)

# Why a row is refused. More words, and where, are in each problem's message.
WRONG_COLUMNS = "wrong number of columns"
BAD_PUZZLE = "unreadable puzzle"
BAD_SOLUTION = "unreadable solution"
BAD_RATING = "unreadable rating"

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


@final
@dataclass(frozen=True)
class Problem:
    """One row that is refused."""

    line: int
    reason: str
    message: str


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
        with self.path.open("rb") as file, _unzipped(file, self.path) as stream:
            first = _first_line(stream, self.path)
            table = _recognise(first.text, self._columns, self.path)
            number = first.number if table.plain else first.number + 1
            for block in _blocks(stream, first.raw if table.plain else b"", self.path):
                self.bytes_read = file.tell()
                lines = _Lines.of(block, number, table)
                number += len(lines.numbers)
                yield from self._wanted(lines)
                if self.rows == self._limit:
                    return
            self.bytes_read = file.tell()

    def _wanted(self, lines: "_Lines") -> Iterator[Batch]:
        """Those rows of a block that `fraction` and `limit` ask for."""
        wanted = lines.ends > lines.starts
        if self._fraction is not None:
            wanted &= _by_chance(lines.numbers, self._fraction, self._seed)
        lines = lines.take(np.flatnonzero(wanted))
        while len(lines.numbers) and self.rows != self._limit:
            # Some lines may turn out to be blank, so the limit can take more than one helping.
            helping = len(lines.numbers) if self._limit is None else self._limit - self.rows
            batch = self._read(lines.take(slice(helping)))
            lines = lines.take(slice(helping, None))
            stop = self._strict and self.problems.total > 0
            if batch is not None and stop:
                batch = batch.take(batch.lines < self.problems.first[0].line)
            if batch is not None and len(batch):
                yield batch
            if stop:
                raise self.problems.error(self.path)

    def _read(self, lines: "_Lines") -> Batch | None:
        """The good rows of some lines; None while nobody knows how large the boards are."""
        count = len(lines.numbers)
        singles: dict[int, _Row] = {}
        seen = 0
        while self.geometry is None and seen < count:
            self._read_single(lines, seen, singles)
            seen += 1
        if self.geometry is None:
            return None
        shape = (count, self.geometry.cells)
        batch = Batch(
            puzzles=np.zeros(shape, np.uint8),
            solutions=np.zeros(shape, np.uint8),
            ratings=np.full(count, np.nan, np.float32),
            sources=[self._name] * count,
            lines=lines.numbers,
        )
        good = _read_together(lines, self.geometry, batch)
        for i in np.flatnonzero(~good).tolist():
            if i >= seen:
                self._read_single(lines, i, singles)
        for i, row in singles.items():
            good[i] = True
            batch.puzzles[i], batch.solutions[i] = row.puzzle, row.solution
            batch.ratings[i] = row.rating
            batch.sources[i] = row.source or self._name
        batch = batch.take(good)
        self.good += len(batch)
        return batch

    def _read_single(self, lines: "_Lines", i: int, singles: dict[int, "_Row"]) -> None:
        """Read line `i` into `singles`, or report it; a blank line is no row."""
        text = lines.text(i)
        if not text.strip():
            return
        try:
            row = _read_row(text, lines.table, self.geometry)
        except _BadRow as bad:
            self.problems.add(int(lines.numbers[i]), bad.reason, partial(str, bad))
            return
        self.geometry = self.geometry or standard(len(row.puzzle))
        singles[i] = row


# The way in: bytes, first line, blocks of whole lines.


@contextmanager
def _unzipped(file: io.BufferedReader, path: Path) -> Iterator[io.BufferedIOBase]:
    """The text in a file, which may be packed with gzip whatever its name says."""
    start = file.peek(4)[:4]
    if start == b"PK\x03\x04":
        raise ValueError(f"{path}: this is a zip archive; unpack it first")
    if start[:2] != b"\x1f\x8b":
        yield file
        return
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path}: the gzip file is damaged or cut short ({error}); download it again"
        ) from error


@final
@dataclass(frozen=True)
class _FirstLine:
    """The first line that says anything."""

    number: int
    raw: bytes

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace").strip()


def _first_line(stream: io.BufferedIOBase, path: Path) -> _FirstLine:
    line = _FirstLine(1, _rest_of_line(stream, path))
    if line.raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path}: the text is in UTF-16; save it as UTF-8")
    line = _FirstLine(1, line.raw.removeprefix(b"\xef\xbb\xbf"))
    while line.raw and (not line.text or line.text.startswith("#")):
        line = _FirstLine(line.number + 1, _rest_of_line(stream, path))
    if not line.raw:
        raise ValueError(f"{path}: there is nothing in this file")
    if "\r" in line.text:
        raise ValueError(f"{path}: lines end in carriage returns alone; save it with line feeds")
    return line


def _blocks(stream: io.BufferedIOBase, start: bytes, path: Path) -> Iterator[bytes]:
    """Whole lines, a few megabytes at a time; every line ends with a line feed."""
    while block := start + stream.read(BLOCK_BYTES):
        start = b""
        if not block.endswith(b"\n"):
            block += _rest_of_line(stream, path)
        yield block if block.endswith(b"\n") else block + b"\n"


def _rest_of_line(stream: io.BufferedIOBase, path: Path) -> bytes:
    rest = stream.readline(LONGEST_LINE)
    if len(rest) == LONGEST_LINE:
        raise ValueError(
            f"{path}: a line is longer than {LONGEST_LINE:,} bytes; this is no list of puzzles"
        )
    return rest


# Which column is what.


@final
@dataclass(frozen=True)
class _Table:
    """Where a row's fields are. Plain text is a table of one column that may hold comments."""

    width: int
    puzzle: int
    solution: int | None = None
    rating: int | None = None
    source: int | None = None
    plain: bool = False


def _recognise(first_line: str, columns: Columns | None, path: Path) -> _Table:
    """What the first line, which may or may not be a header, says about the rows."""
    if columns is None and _looks_like_cells(first_line.partition("#")[0]):
        return _Table(width=1, puzzle=0, plain=True)
    names = [name.strip().lower() for name in next(csv.reader([first_line]))]
    found = "the columns are " + ", ".join(repr(name[:20]) for name in names[:20])
    if columns is None and any(map(_looks_like_cells, names)):
        raise ValueError(
            f"{path}: the first line is a row, not a header; "
            "write one above it, such as puzzle,solution"
        )
    places: dict[str, int] = {}
    for role, known in _KNOWN_NAMES.items():
        asked = known if columns is None else (getattr(columns, role) or "",)
        fitting = [i for i, name in enumerate(names) if name in map(str.lower, asked) and name]
        if len(fitting) > 1:
            raise ValueError(f"{path}: more than one column may be the {role}: {found}; name one")
        if columns is not None and asked[0] and not fitting:
            raise ValueError(f"{path}: no column is named {asked[0]!r}; {found}")
        if fitting:
            places[role] = fitting[0]
    if "puzzle" not in places:
        raise ValueError(
            f"{path}: no column is known to hold puzzles; {found}. Name the column of the puzzle, "
            "and those of solution, rating and source if there are any"
        )
    return _Table(
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


# The fast path: all regular lines of a block together.


@final
@dataclass(frozen=True)
class _Lines:
    """Some lines of a block, by where they start and end in it (line ends left out)."""

    block: bytes
    table: _Table
    commas: Int64[np.ndarray, "commas"]
    numbers: Int64[np.ndarray, "lines"]
    starts: Int64[np.ndarray, "lines"]
    ends: Int64[np.ndarray, "lines"]

    @classmethod
    def of(cls, block: bytes, first_number: int, table: _Table) -> "_Lines":
        characters = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(characters == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        numbers = np.arange(first_number, first_number + len(ends))
        # An empty line starts at its own end: the byte before belongs to another line.
        ends = ends - ((ends > starts) & (characters[ends - 1] == ord("\r")))
        commas = np.zeros(0, np.int64) if table.plain else np.flatnonzero(characters == ord(","))
        # With these behind the last one, "the next comma" always exists.
        commas = np.append(commas, np.full(table.width, len(block)))
        return cls(block + _PADDING, table, commas, numbers, starts, ends)

    def take(self, rows: slice | Int64[np.ndarray, "rows"]) -> "_Lines":
        return replace(
            self, numbers=self.numbers[rows], starts=self.starts[rows], ends=self.ends[rows]
        )

    def text(self, i: int) -> str:
        text = self.block[self.starts[i] : self.ends[i]].decode("utf-8", "replace")
        return text.partition("#")[0] if self.table.plain else text


def _read_together(lines: _Lines, geometry: Geometry, batch: Batch) -> Bool[np.ndarray, "lines"]:
    """Fill the batch's rows from the regular lines, and say which lines those are."""
    table = lines.table
    # The commas of line i are number first[i], first[i] + 1, ... of the block.
    first = np.searchsorted(lines.commas, lines.starts)
    regular = lines.commas[first + table.width - 1] >= lines.ends
    if table.width > 1:
        regular &= lines.commas[first + table.width - 2] < lines.ends
    rows = np.flatnonzero(regular)
    lines, first = lines.take(rows), first[rows]
    fields = [_Field.of(lines, first, column) for column in range(table.width)]
    good = np.ones(len(rows), np.bool_)
    if b'"' in lines.block:
        # A field is bare or quoted as a whole; any other quote makes the line irregular.
        quotes = np.flatnonzero(np.frombuffer(lines.block, np.uint8) == ord('"'))
        count = np.searchsorted(quotes, lines.ends) - np.searchsorted(quotes, lines.starts)
        bare = [field.unquoted() for field in fields]
        pairs = [after.starts - before.starts for before, after in zip(fields, bare, strict=True)]
        good = count == 2 * np.sum(pairs, axis=0)
        fields = bare
    puzzles = fields[table.puzzle].boards(geometry)
    good &= puzzles.ok
    batch.puzzles[rows] = puzzles.grids
    if table.solution is not None:
        written = fields[table.solution]
        solutions = written.boards(geometry)
        missing = written.starts == written.ends
        good &= missing | (solutions.ok & solutions.grids.all(axis=1))
        batch.solutions[rows] = solutions.grids
    if table.rating is not None:
        ratings = np.array([_number(text) for text in fields[table.rating].texts()], np.float64)
        good &= ~np.isinf(ratings)
        batch.ratings[rows] = ratings
    if table.source is not None:
        for i, text in zip(rows.tolist(), fields[table.source].texts(), strict=True):
            batch.sources[i] = text.decode("utf-8", "replace").strip() or batch.sources[i]
    regular[rows] = good
    return regular


@final
@dataclass(frozen=True)
class _Field:
    """One column of some lines."""

    block: bytes
    starts: Int64[np.ndarray, "lines"]
    ends: Int64[np.ndarray, "lines"]

    @classmethod
    def of(cls, lines: _Lines, first: Int64[np.ndarray, "lines"], column: int) -> "_Field":
        """Column `column` of lines whose first commas are number `first` of the block."""
        is_last = column == lines.table.width - 1
        return cls(
            lines.block,
            lines.starts if column == 0 else lines.commas[first + column - 1] + 1,
            lines.ends if is_last else lines.commas[first + column],
        )

    def unquoted(self) -> "_Field":
        """Without the quotes around those fields that have them."""
        characters = np.frombuffer(self.block, np.uint8)
        quoted = (characters[self.starts] == ord('"')) & (characters[self.ends - 1] == ord('"'))
        quoted &= self.ends - self.starts >= 2
        return _Field(self.block, self.starts + quoted, self.ends - quoted)

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

    def texts(self) -> list[bytes]:
        bounds = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.block[start:end] for start, end in bounds]


# The slow path: one line, and what is wrong with it.


class _BadRow(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@final
@dataclass(frozen=True)
class _Row:
    puzzle: UInt8[np.ndarray, "cells"]
    # All zeros if there is none.
    solution: UInt8[np.ndarray, "cells"]
    rating: float
    source: str


def _read_row(text: str, table: _Table, geometry: Geometry | None) -> _Row:
    try:
        values = [text] if table.plain else next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise _BadRow(WRONG_COLUMNS, f"the quotes are wrong: {error}") from error
    if len(values) != table.width:
        raise _BadRow(WRONG_COLUMNS, f"{len(values)} columns; the header has {table.width}")

    def value(column: int | None) -> str:
        return "" if column is None else values[column].strip()

    try:
        puzzle = parse(value(table.puzzle), geometry, check=False)
    except PuzzleError as error:
        raise _BadRow(BAD_PUZZLE, f"the puzzle cannot be read: {error}") from error
    geometry = geometry or standard(len(puzzle))
    solution = np.zeros_like(puzzle)
    if value(table.solution):
        try:
            solution = parse(value(table.solution), geometry, check=False)
        except PuzzleError as error:
            raise _BadRow(BAD_SOLUTION, f"the solution cannot be read: {error}") from error
        if not solution.all():
            hole = geometry.cell_name(int(solution.argmin()))
            raise _BadRow(BAD_SOLUTION, f"the solution leaves {hole} empty")
    rating = _number(value(table.rating).encode())
    if isinf(rating):
        raise _BadRow(BAD_RATING, f"the rating is no number: {value(table.rating)[:40]!r}")
    return _Row(puzzle, solution, rating, value(table.source))


def _number(text: bytes) -> float:
    """A rating: NaN for an empty field, infinity for what is none."""
    try:
        number = float(text or b"nan")
    except ValueError:
        return inf
    return inf if abs(number) > _LARGEST_FLOAT else number


# The way out.

_HEADER = b"source,question,answer,rating\n"


@final
@dataclass(frozen=True)
class CsvWriter:
    """See `csv_writer`."""

    stream: io.BufferedIOBase

    def append(
        self,
        puzzles: UInt8[np.ndarray, "batch cells"],
        solutions: UInt8[np.ndarray, "batch cells"] | None = None,
        ratings: Float[np.ndarray, "batch"] | None = None,
        sources: str | Sequence[str] = "",
    ) -> None:
        """Write rows. A solution of zeros and a rating of NaN stand for "unknown"."""
        count = len(puzzles)
        names = [sources] * count if isinstance(sources, str) else sources
        if solutions is None:
            answers = [""] * count
        else:
            unknown = "." * solutions.shape[1]
            answers = [line if line != unknown else "" for line in to_lines(solutions)]
        if ratings is None:
            ratings = np.full(count, np.nan, np.float32)
        # As text a number has the fewest digits that tell it from its neighbours of its own type.
        scores = np.where(np.isnan(ratings), "", ratings.astype(str)).tolist()
        rows = zip(names, to_lines(puzzles), answers, scores, strict=True)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.stream.write(text.getvalue().encode())


@final
@dataclass(frozen=True)
class TextWriter:
    """See `text_writer`."""

    stream: io.BufferedIOBase

    def append(self, puzzles: UInt8[np.ndarray, "batch cells"]) -> None:
        self.stream.write("".join(f"{line}\n" for line in to_lines(puzzles)).encode())


@contextmanager
def csv_writer(path: str | Path) -> Iterator[CsvWriter]:
    """A CSV with the columns of Sudoku-Extreme; gzip if the name ends in `.gz`.

    The file appears when the block ends without an exception. Equal rows make equal bytes.
    """
    with _zipped(Path(path)) as stream:
        stream.write(_HEADER)
        yield CsvWriter(stream)


@contextmanager
def text_writer(path: str | Path) -> Iterator[TextWriter]:
    """Plain text, one puzzle a line; otherwise like `csv_writer`."""
    with _zipped(Path(path)) as stream:
        yield TextWriter(stream)


@contextmanager
def _zipped(path: Path) -> Iterator[io.BufferedIOBase]:
    with whole_file(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        # Neither name nor time in the gzip header, or equal rows would not make equal bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            yield stream
