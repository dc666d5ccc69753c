"""Text <-> grid in every common format.

`parse` reads what people paste: one line of cells, or one line for each row, bare or inside a
drawn frame. The rules it reads by:

- A cell is a digit or one of the empty signs `.` `0` `_` `*` `-`. Boards with more than nine
  digits go on with the letters A (10) to G (16), in either case.
- Between cells may stand blanks, `|`, any box-drawing character, single commas and brackets, so
  that CSV cells, Python lists and printed arrays can be read too. Two commas in a row are refused:
  a field left out would shift every cell after it.
- Surrounding quotes and blank lines do not count. `#` is no comment here but a foreign character.
- A line without digits that holds `+` `=` `:` or `'` is a ruled line (`---+---`, `'-----'`).
- A line without digits that holds `-`, `*` or `_`, such as `---------` or `*-----------*`, may be
  a ruled line or a row of empty cells. It is a ruled line if the other lines make a whole board,
  or if they write empty cells with other signs; if not, it is a row if exactly as wide as one.
- A puzzle is one line, or as many rows of equal width as the board has. Text broken at any other
  place is refused, even if the number of cells is right, for a cell may have slipped.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import isqrt

import numpy as np
from jaxtyping import Bool, UInt8

from ronri.sudoku.geometry import STANDARD, SYMBOLS, Geometry, geometry_of
from ronri.sudoku.rules import conflicts

EMPTY_SIGNS = ".0_*-"

_DIGITS = frozenset("0123456789")
_DIGITS_AND_LETTERS = _DIGITS.union("ABCDEFGabcdefg")
_BLANKS = " \t\n\u00a0\ufeff"
_BETWEEN_CELLS = _BLANKS + "|,[]" + "".join(map(chr, range(0x2500, 0x2580)))
_ONLY_IN_RULED_LINES = "+=:'"
_CELLS_OR_RULED_LINE = "-*_"
_SIGNS = frozenset(EMPTY_SIGNS + _BETWEEN_CELLS + _ONLY_IN_RULED_LINES)
_TWO_COMMAS = re.compile(r",[ \t\u00a0]*,")
_WITHOUT_DECORATION = str.maketrans("", "", _BETWEEN_CELLS)
_TO_ASCII = str.maketrans("─│┌┬┐├┼┤└┴┘", "-|+++++++++")
_SYMBOL_TABLE = SYMBOLS.encode("ascii").ljust(256, b"?")
# What a byte that is no cell is decoded to.
_NO_CELL = 255
# The largest board in its widest frame needs less than a fifth of this.
_LONGEST_TEXT = 10_000


class PuzzleError(ValueError):
    """A text is no puzzle; the message says in one line what is wrong and where."""


@dataclass(frozen=True)
class ParsedLines:
    """What `parse_lines` made of a batch: rows that are not `ok` are left empty."""

    grids: UInt8[np.ndarray, "batch cells"]
    ok: Bool[np.ndarray, "batch"]


def parse(
    text: str, geometry: Geometry | None = None, *, check: bool = True
) -> UInt8[np.ndarray, "cells"]:
    """Read one puzzle or solution, in any of the formats above.

    The number of cells decides between the standard boards unless `geometry` names one. A text
    that is no puzzle raises `PuzzleError`; so does a digit that stands twice in a unit, unless
    `check` is off.
    """
    candidates = STANDARD if geometry is None else (geometry,)
    lines = _lines(text, letters=candidates[-1].size > 9)
    fit = _fit(lines, candidates)
    grid = _decode(fit.cells.encode("ascii"), fit.geometry)
    unknown = np.flatnonzero(grid == _NO_CELL)
    if len(unknown):
        cell = int(unknown[0])
        raise PuzzleError(
            f"digit {fit.cells[cell]} in {fit.geometry.cell_name(cell)}: "
            f"a {fit.geometry.name} board has the digits 1 to {SYMBOLS[fit.geometry.size]}"
        )
    if check:
        found = conflicts(grid, fit.geometry)
        if found:
            raise PuzzleError(found[0].describe(fit.geometry))
    return grid


def parse_lines(lines: Sequence[str], geometry: Geometry) -> ParsedLines:
    """Read millions of lines, each a bare string of cells with nothing between or around them.

    Any other line comes back as not `ok`; `parse` may still be able to read it, and if not says
    what is wrong with it. Digits that stand twice are not looked for: see `is_consistent`.
    """
    if set(map(len, lines)) - {geometry.cells}:
        no_puzzle = "?" * geometry.cells
        lines = [line if len(line) == geometry.cells else no_puzzle for line in lines]
    # A character outside ASCII becomes one '?', which is no cell, so the columns stay in place.
    joined = "".join(lines).encode("ascii", "replace")
    return parse_bytes(np.frombuffer(joined, np.uint8).reshape(-1, geometry.cells), geometry)


def parse_bytes(
    rows: UInt8[np.ndarray, "batch cells"], geometry: Geometry | None = None
) -> ParsedLines:
    """`parse_lines` for text that already lies in memory as bytes, one character for each cell."""
    geometry = geometry_of(rows, geometry)
    grids = _decode(np.ascontiguousarray(rows).data, geometry).reshape(rows.shape)
    # One pass over the whole block is far cheaper than one for each row, and mostly enough.
    if grids.max(initial=0) != _NO_CELL:
        return ParsedLines(grids, np.ones(len(grids), np.bool_))
    ok = grids.max(axis=1) != _NO_CELL
    grids[~ok] = 0
    return ParsedLines(grids, ok)


def to_line(grid: UInt8[np.ndarray, "cells"]) -> str:
    """One character for each cell, `.` for an empty one."""
    return to_lines(grid[None])[0]


def to_lines(grids: UInt8[np.ndarray, "batch cells"]) -> list[str]:
    """`to_line` for millions of grids."""
    cells = grids.shape[1]
    assert grids.max(initial=0) <= isqrt(cells), "a digit that the board does not have"
    text = grids.tobytes().translate(_SYMBOL_TABLE).decode("ascii")
    return [text[start : start + cells] for start in range(0, len(text), cells)]


def to_text(
    grid: UInt8[np.ndarray, "cells"], geometry: Geometry | None = None, *, ascii_only: bool = False
) -> str:
    """Several lines for people, the boxes drawn; `parse` reads them back."""
    geometry = geometry_of(grid, geometry)
    size, height, width = geometry.size, geometry.box_height, geometry.box_width
    line = to_line(grid)
    ruled = "─" * (2 * width + 1)
    boxes_across = size // width
    drawn = ["┌" + "┬".join([ruled] * boxes_across) + "┐"]
    for row in range(size):
        if row and row % height == 0:
            drawn.append("├" + "┼".join([ruled] * boxes_across) + "┤")
        starts = range(row * size, (row + 1) * size, width)
        boxes = [" ".join(line[start : start + width]) for start in starts]
        drawn.append("│ " + " │ ".join(boxes) + " │")
    drawn.append("└" + "┴".join([ruled] * boxes_across) + "┘")
    text = "\n".join(drawn)
    return text.translate(_TO_ASCII) if ascii_only else text


# Reading: a text becomes lines of cells, and those that fill a board become a grid.


@dataclass(frozen=True)
class _Line:
    number: int
    cells: str
    # Whether this may be a ruled line instead of a row of empty cells.
    doubtful: bool


@dataclass(frozen=True)
class _Fit:
    geometry: Geometry
    cells: str


def _lines(text: str, letters: bool) -> list[_Line]:
    """The lines of a text that hold, or may hold, cells."""
    if len(text) > _LONGEST_TEXT:
        raise PuzzleError(f"a text of {len(text)} characters is too long to be one puzzle")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    inner = text.strip(_BLANKS)
    if len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "\"'":
        # Quotes turn into blanks, so that columns are still counted as in the text given.
        start = text.index(inner)
        text = text[:start] + " " + inner[1:-1] + " " + text[start + len(inner) :]
    digits = _DIGITS_AND_LETTERS if letters else _DIGITS
    numbered = enumerate(text.split("\n"), start=1)
    if "\n" in inner:
        lines = [_line(line, number, digits, f"line {number}, column") for number, line in numbered]
    else:
        lines = [_line(line, number, digits, "position") for number, line in numbered]
    return [line for line in lines if line.cells]


def _line(line: str, number: int, digits: frozenset[str], place: str) -> _Line:
    """One line of a text; a ruled line is one without cells."""
    characters = set(line)
    foreign = characters - digits - _SIGNS
    if foreign:
        index = min(map(line.index, foreign))
        raise PuzzleError(
            f"{line[index]!r} at {place} {index + 1} is neither a digit nor an empty cell "
            f"({' '.join(EMPTY_SIGNS)})"
        )
    empty_field = _TWO_COMMAS.search(line)
    if empty_field:
        raise PuzzleError(
            f"nothing between two commas at {place} {empty_field.start() + 1}: "
            "write . or 0 for an empty cell"
        )
    has_digits = not characters.isdisjoint(digits)
    strokes = characters.intersection(_ONLY_IN_RULED_LINES)
    if not strokes:
        doubtful = not has_digits and not characters.isdisjoint(_CELLS_OR_RULED_LINE)
        return _Line(number, line.translate(_WITHOUT_DECORATION), doubtful)
    if has_digits:
        index = min(map(line.index, strokes))
        raise PuzzleError(f"{line[index]!r} at {place} {index + 1} has no place in a row of cells")
    return _Line(number, "", doubtful=False)


def _fit(lines: list[_Line], candidates: Sequence[Geometry]) -> _Fit:
    """The board that the lines fill, with as few doubtful lines taken for rows as possible."""
    # People write all their empty cells alike.
    surely_cells = "".join(line.cells for line in lines if not line.doubtful)
    signs = set(EMPTY_SIGNS).intersection(surely_cells) or set(EMPTY_SIGNS)
    lines = [line for line in lines if not line.doubtful or signs.issuperset(line.cells)]
    for doubtful_rows in (False, True):
        for geometry in candidates:
            size, num_cells = geometry.size, geometry.cells
            widths = (size, num_cells) if doubtful_rows else ()
            rows = [row for row in lines if not row.doubtful or len(row.cells) in widths]
            cells = "".join(row.cells for row in rows)
            in_rows = all(len(row.cells) == size for row in rows)
            if len(cells) == num_cells and (in_rows or len(rows) == 1):
                return _Fit(geometry, cells)
    raise PuzzleError(_misfit(lines, candidates))


def _misfit(lines: list[_Line], candidates: Sequence[Geometry]) -> str:
    """Why the lines fill none of the boards, told of the board that was probably meant."""
    sure = [line for line in lines if not line.doubtful] or lines
    usual_width = Counter(len(line.cells) for line in sure).most_common(1)[0][0] if sure else 0
    rows = [line for line in lines if line in sure or len(line.cells) == usual_width]
    total = sum(len(row.cells) for row in rows)
    boards = [f"{geometry.cells} ({geometry.name})" for geometry in candidates]
    fitting = " or ".join(", ".join(boards).rsplit(", ", 1))
    if total == 0:
        return f"there are no cells in this text; a puzzle has {fitting}"
    if len(rows) <= 1:
        return f"{_count(total)} found; a puzzle has {fitting}"
    sizes = [geometry.size for geometry in candidates]
    meant = [size for size in (usual_width, len(rows)) if size in sizes]
    if not meant:
        return (
            f"{total} cells found on {len(rows)} lines; a puzzle is one line of {fitting} cells, "
            "or one line for each row"
        )
    size = meant[0]
    for index, row in enumerate(rows, start=1):
        if len(row.cells) != size:
            return (
                f"row {index} (line {row.number}) has {_count(len(row.cells))}; "
                f"a {size}x{size} board has {size} in each row"
            )
    return f"{len(rows)} rows found; a {size}x{size} board has {size}"


def _count(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def _decode(text: bytes | memoryview, geometry: Geometry) -> UInt8[np.ndarray, "cells"]:
    """Digits for characters, `_NO_CELL` for those that are none on this board."""
    return np.frombuffer(bytearray(text).translate(_digit_table(geometry.size)), np.uint8)


@cache
def _digit_table(size: int) -> bytes:
    table = bytearray([_NO_CELL]) * 256
    for sign in EMPTY_SIGNS:
        table[ord(sign)] = 0
    for digit in range(1, size + 1):
        table[ord(SYMBOLS[digit])] = table[ord(SYMBOLS[digit].lower())] = digit
    return bytes(table)
