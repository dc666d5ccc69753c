"""Texts that should be read, texts that should not, and the rules against slow references."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import OTHERS, PUZZLE, SOLUTION, any_grids, shifted_grid
from ronri.sudoku.board import (
    EMPTY_SIGNS,
    PuzzleError,
    parse,
    parse_bytes,
    parse_lines,
    to_line,
    to_lines,
    to_text,
)
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, SYMBOLS, Geometry
from ronri.sudoku.rules import is_solved, solves
from written import FORMATS, ODD, rows_of


@st.composite
def puzzles(draw: st.DrawFn, geometry: Geometry) -> np.ndarray:
    """Consistent grids with any number of clues, none and all included."""
    names = np.array(draw(st.permutations(range(1, geometry.size + 1))), np.uint8)
    seed = draw(st.integers(0, 2**32 - 1))
    share = draw(st.sampled_from([0.0, 0.05, 0.3, 0.9, 1.0]))
    kept = np.random.default_rng(seed).random(geometry.cells) < share
    return np.where(kept, names[shifted_grid(geometry) - 1], 0).astype(np.uint8)


# --- formats -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("geometry", STANDARD, ids=lambda g: g.name)
@settings(max_examples=25)
@given(data=st.data())
def test_every_format_is_read_with_every_empty_sign(
    data: st.DataObject, geometry: Geometry, name: str
) -> None:
    grid = data.draw(puzzles(geometry))
    sign = data.draw(st.sampled_from(EMPTY_SIGNS))
    text = FORMATS[name](to_line(grid).replace(".", sign), geometry)
    for given_geometry in (None, geometry):
        np.testing.assert_array_equal(parse(text, given_geometry), grid)


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("geometry", [*STANDARD, *OTHERS], ids=str)
@settings(max_examples=40)
@given(data=st.data())
def test_own_printing_is_read_back(
    data: st.DataObject, geometry: Geometry, ascii_only: bool
) -> None:
    grid = data.draw(puzzles(geometry))
    text = to_text(grid, geometry, ascii_only=ascii_only)
    assert text.isascii() or not ascii_only
    np.testing.assert_array_equal(parse(text, geometry), grid)
    np.testing.assert_array_equal(parse(to_line(grid), geometry), grid)
    np.testing.assert_array_equal(parse(to_line(grid).lower(), geometry), grid)


def test_own_printing_looks_right() -> None:
    grid = parse("12.. .... .... ..3.")
    assert to_text(grid).split("\n") == [
        "┌─────┬─────┐",
        "│ 1 2 │ . . │",
        "│ . . │ . . │",
        "├─────┼─────┤",
        "│ . . │ . . │",
        "│ . . │ 3 . │",
        "└─────┴─────┘",
    ]
    assert to_text(grid, ascii_only=True).split("\n")[:2] == ["+-----+-----+", "| 1 2 | . . |"]
    assert to_line(parse(PUZZLE)) == PUZZLE


def test_a_line_of_strokes_is_a_row_where_a_row_is_missing() -> None:
    # Two rows are empty here, and the middle is ruled.
    text = "1--4\n----\n-----\n----\n4--1"
    assert to_line(parse(text)) == "1..4........4..1"
    # The very same line is a ruled one where no row is missing.
    text = "1..4\n....\n----\n....\n4..1"
    assert to_line(parse(text)) == "1..4........4..1"
    assert to_line(parse("*" * 16)) == "." * 16
    assert to_line(parse("\n".join(["______"] * 6))) == "." * 36


# --- what is refused -------------------------------------------------------------------------


def rows_with(index: int, row: str) -> str:
    rows = rows_of(PUZZLE, NINE)
    rows[index] = row
    return "\n".join(rows)


REFUSED = [
    ("", None, "there are no cells in this text; a puzzle has 16 (4x4), 36 (6x6) or 81 (9x9)"),
    ("5", None, "1 cell found; a puzzle has 16 (4x4), 36 (6x6) or 81 (9x9)"),
    (PUZZLE[1:], None, "80 cells found; a puzzle has 16 (4x4), 36 (6x6) or 81 (9x9)"),
    (PUZZLE, SIX, "81 cells found; a puzzle has 36 (6x6)"),
    (rows_with(2, ".98...6."), None, "row 3 (line 3) has 8 cells; a 9x9 board has 9 in each row"),
    (
        "\n\n" + rows_with(3, "8...6....3"),
        None,
        "row 4 (line 6) has 10 cells; a 9x9 board has 9 in each row",
    ),
    (rows_with(8, ""), None, "8 rows found; a 9x9 board has 9"),
    # A line of strokes is no row where the others write empty cells with another sign.
    ("1---\n----\n-2--\n--1", None, "row 4 (line 4) has 3 cells; a 4x4 board has 4 in each row"),
    ("1...\n----\n.2..\n..1", None, "row 3 (line 4) has 3 cells; a 4x4 board has 4 in each row"),
    ("1...\n....\n----\n....", None, "3 rows found; a 4x4 board has 4"),
    (
        "*-----*\n|12|34|\n|34|12|\n*--*--*\n|21|43|\n|43|2|\n*-----*",
        None,
        "row 4 (line 6) has 3 cells; a 4x4 board has 4 in each row",
    ),
    ("----\n----", None, "2 rows found; a 4x4 board has 4"),
    ("1..\n...\n...\n...", None, "row 1 (line 1) has 3 cells; a 4x4 board has 4 in each row"),
    (
        f"{PUZZLE[:27]}\n{PUZZLE[27:54]}\n{PUZZLE[54:]}",
        NINE,
        "81 cells found on 3 lines; a puzzle is one line of 81 (9x9) cells, "
        "or one line for each row",
    ),
    (
        PUZZLE.replace("7", "x", 1),
        None,
        "'x' at position 5 is neither a digit nor an empty cell (. 0 _ * -)",
    ),
    (
        f'"{PUZZLE[:80]}A"',
        None,
        "'A' at position 82 is neither a digit nor an empty cell (. 0 _ * -)",
    ),
    (
        rows_with(1, "6..1\u202e5..."),
        None,
        r"'\u202e' at line 2, column 5 is neither a digit nor an empty cell (. 0 _ * -)",
    ),
    (
        "53\udc80.",
        None,
        r"'\udc80' at position 3 is neither a digit nor an empty cell (. 0 _ * -)",
    ),
    (rows_with(1, "6..+195..."), None, "'+' at line 2, column 4 has no place in a row of cells"),
    (
        "1,2,3,4,,4,3,2,1",
        None,
        "nothing between two commas at position 8: write . or 0 for an empty cell",
    ),
    (
        "[1, 2, 3, 4]\n[3, \t, 1, 2]",
        FOUR,
        "nothing between two commas at line 2, column 3: write . or 0 for an empty cell",
    ),
    ("." * 8 + "7" + "." * 27, None, "digit 7 in r2c3: a 6x6 board has the digits 1 to 6"),
    ("." * 143 + "G", Geometry(3, 4), "digit G in r12c12: a 12x12 board has the digits 1 to C"),
    ("9" * 10_001, None, "a text of 10001 characters is too long to be one puzzle"),
    (rows_with(2, "5.8..." + "5.."), None, "digit 5 stands twice in row 3: r3c1 and r3c7"),
    ("1..." + "1..." * 3, None, "digit 1 stands 4 times in column 1: r1c1, r2c1, r3c1 and r4c1"),
    ("1...." + "..1" + "." * 28, None, "digit 1 stands twice in box 1: r1c1 and r2c2"),
]


@pytest.mark.parametrize(("text", "geometry", "message"), REFUSED)
def test_a_bad_puzzle_is_told_what_is_wrong_and_where(
    text: str, geometry: Geometry | None, message: str
) -> None:
    with pytest.raises(PuzzleError) as raised:
        parse(text, geometry)
    assert str(raised.value) == message


def test_conflicts_are_let_through_on_demand() -> None:
    text = "11" + "." * 14
    np.testing.assert_array_equal(parse(text, check=False), [1, 1] + [0] * 14)
    with pytest.raises(PuzzleError, match="digit 1 stands twice in row 1: r1c1 and r1c2"):
        parse(text)


def test_a_geometry_that_does_not_fit_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="a 6x6 board has 36 cells, not 81"):
        is_solved(parse(PUZZLE)[None], SIX)
    with pytest.raises(ValueError, match="no standard board has 25 cells"):
        to_text(np.zeros(25, np.uint8))


# --- many lines ------------------------------------------------------------------------------


@pytest.mark.parametrize("geometry", [*STANDARD, Geometry(4, 4)], ids=str)
@given(data=st.data())
def test_batches_are_read_as_line_by_line(data: st.DataObject, geometry: Geometry) -> None:
    def bare(line: str) -> bool:
        return len(line) == geometry.cells and set(line) <= cells

    cells = set(EMPTY_SIGNS + SYMBOLS[: geometry.size + 1])
    cells |= {symbol.lower() for symbol in cells}
    good = st.text(sorted(cells), min_size=geometry.cells, max_size=geometry.cells)
    bad = st.tuples(good, st.integers(0, geometry.cells - 1), st.sampled_from(ODD)).map(
        lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 1 :]
    )
    lines = data.draw(st.lists(st.one_of(good, bad, st.text(max_size=5)), max_size=6))
    parsed = parse_lines(lines, geometry)
    assert parsed.ok.tolist() == [bare(line) for line in lines]
    for line, grid, ok in zip(lines, parsed.grids, parsed.ok, strict=True):
        expected = parse(line, geometry, check=False) if ok else np.zeros(geometry.cells)
        np.testing.assert_array_equal(grid, expected)


@pytest.mark.parametrize("geometry", [*STANDARD, Geometry(4, 4)], ids=str)
@given(data=st.data())
def test_batches_are_written_as_line_by_line(data: st.DataObject, geometry: Geometry) -> None:
    grids = data.draw(any_grids(geometry))
    lines = to_lines(grids)
    assert lines == ["".join(SYMBOLS[digit] for digit in grid) for grid in grids]
    np.testing.assert_array_equal(parse_lines(lines, geometry).grids, grids)


def test_bytes_are_read_from_any_layout() -> None:
    table = np.frombuffer(f"{PUZZLE},{SOLUTION}\n".encode() * 3, np.uint8).reshape(3, -1)
    puzzles, answers = parse_bytes(table[:, :81]), parse_bytes(table[:, 82:163], NINE)
    assert puzzles.ok.all()
    assert to_lines(puzzles.grids) == [PUZZLE] * 3
    assert to_lines(answers.grids) == [SOLUTION] * 3
    assert not parse_bytes(table[:, 1:82]).ok.any()
    # The answer is free to be changed, and the bytes it came from stay as they were.
    puzzles.grids[:] = 0
    assert to_lines(parse_bytes(table[:, :81]).grids) == [PUZZLE] * 3


def test_real_lists_are_read(real_data: Path) -> None:
    for name in ("clue17-test", "hard-test", "kaggle3m-test"):
        with gzip.open(real_data / f"{name}.csv.gz", "rt") as file:
            records = list(csv.DictReader(file))
        questions = [record["question"] for record in records]
        puzzles = parse_lines(questions, NINE)
        answers = parse_lines([record["answer"] for record in records], NINE)
        assert puzzles.ok.all()
        assert answers.ok.all()
        assert solves(answers.grids, puzzles.grids).all()
        assert to_lines(puzzles.grids) == questions
        for question, grid in zip(questions[:500], puzzles.grids, strict=False):
            np.testing.assert_array_equal(parse(question), grid)
