from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import PUZZLE, SOLUTION
from lists import HEADER, assert_equal, digits, joined, random_boards, read, rows, write
from ronri.data.formats import Reader
from ronri.data.rows import BAD_PUZZLE, BAD_RATING, BAD_SOLUTION, WRONG_COLUMNS
from ronri.data.writers import csv_writer
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry

P, S = PUZZLE, SOLUTION


def test_rows_within_one_file_may_differ_in_style(tmp_path: Path) -> None:
    lines = [
        HEADER,
        f'"a, b",{P},{S},1',
        f'"say ""no""","{P}","{S}","1"',
        "",
        f" c , {P.replace('.', '0')} , {S} , 1e0 ",
        f'"c""",{P},{S},"1"',
        f'"",{P},"","1"',
        f"d,{P.replace('.', '0', 20)},{S},",
        f"e,{P},,1",
        f",{P},{S},nan",
        "   ",
        f"é,{P},{S},-1",
    ]
    batch = read(write(tmp_path, lines), strict=True)
    assert (batch.puzzles == digits(PUZZLE)).all()
    assert batch.sources == ["a, b", 'say "no"', "c", 'c"', "list", "d", "e", "list", "é"]
    assert batch.lines.tolist() == [2, 3, 5, 6, 7, 8, 9, 10, 12]
    assert np.flatnonzero(~batch.has_solution).tolist() == [4, 6]
    np.testing.assert_array_equal(batch.ratings, [1, 1, 1, 1, 1, np.nan, 1, np.nan, -1])


BAD_ROWS = {
    "a,b": (WRONG_COLUMNS, "2 columns; the header has 4"),
    f"a,{P},{S},1,": (WRONG_COLUMNS, "5 columns"),
    f'"a,{P},{S},1': (WRONG_COLUMNS, "quotes"),
    # By its commas alone this one would seem to have four columns.
    f'"a,{P}",{S},1': (WRONG_COLUMNS, "3 columns"),
    f"a,{P[1:]},{S},1": (BAD_PUZZLE, "80 cells found"),
    f"a,{P}.,{S},1": (BAD_PUZZLE, "82 cells found"),
    f"a,{P[:-1]}x,{S},1": (BAD_PUZZLE, "'x' at position 81"),
    f"a,{P[:-1]}é,{S},1": (BAD_PUZZLE, "'é' at position 81"),
    f"a,,{S},1": (BAD_PUZZLE, "no cells"),
    "a,1234341221434321,1234341221434321,1": (BAD_PUZZLE, "16 cells found"),
    f"a,{P},{S[:-1]},1": (BAD_SOLUTION, "80 cells found"),
    f"a,{P},{S[:-1]}.,1": (BAD_SOLUTION, "leaves r9c9 empty"),
    f"a,{P},{S[:-1]}x,1": (BAD_SOLUTION, "'x' at position 81"),
    f"a,{P},{S},hard": (BAD_RATING, "'hard'"),
    f"a,{P},{S},inf": (BAD_RATING, "'inf'"),
    f"a,{P},{S},1e99": (BAD_RATING, "'1e99'"),
    f"a,{P},{S},1.2.3": (BAD_RATING, "'1.2.3'"),
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_rows_are_reported_with_line_and_reason(tmp_path: Path, bad: str) -> None:
    good = rows(5)
    path = write(tmp_path, [HEADER, "", *good[:2], bad, *good[2:], bad])
    reader = Reader(path)
    batch = joined(list(reader))
    assert batch.lines.tolist() == [3, 4, 6, 7, 8]
    assert_equal(batch.take(batch.lines > 5), read(write(tmp_path, [HEADER, *[""] * 4, *good[2:]])))
    reason, message = BAD_ROWS[bad]
    assert reader.problems.counts == {reason: 2}
    assert [problem.line for problem in reader.problems.first] == [5, 9]
    assert all(message in problem.message for problem in reader.problems.first)
    assert reader.rows == 7

    strict = Reader(write(tmp_path, [HEADER, "", *good[:2], bad, *good[2:]]), strict=True)
    seen = iter(strict)
    assert next(seen).lines.tolist() == [3, 4]
    with pytest.raises(ValueError, match=f"^{path}:5: ") as caught:
        next(seen)
    assert message in str(caught.value)


def test_bad_rows_before_any_good_one(tmp_path: Path) -> None:
    path = write(tmp_path, [HEADER, *BAD_ROWS, *rows(3)])
    reader = Reader(path)
    # One of the bad rows is a good one of another size, and the first good row decides.
    small = 2 + list(BAD_ROWS).index("a,1234341221434321,1234341221434321,1")
    assert joined(list(reader)).lines.tolist() == [small]
    assert reader.geometry == FOUR
    assert reader.rows == len(BAD_ROWS) + 3
    reader = Reader(path, geometry=NINE)
    assert len(joined(list(reader))) == 3
    assert reader.problems.counts.total() == len(BAD_ROWS)
    with pytest.raises(ValueError, match=":2: 2 columns"):
        list(Reader(path, strict=True))


def test_only_the_first_problems_are_remembered_but_all_are_counted(tmp_path: Path) -> None:
    reader = Reader(write(tmp_path, [HEADER, *["x"] * 5000]))
    assert list(reader) == []
    assert reader.rows == reader.problems.total == 5000
    assert [problem.line for problem in reader.problems.first] == list(range(2, 22))


LINES = st.sampled_from([*rows(5), *BAD_ROWS, "", "  ", f'"q",{P},{S},3', f"x,{P}, {S} ,"])


@settings(max_examples=40)
@given(st.lists(LINES, max_size=30), st.integers(1, 2000), st.integers(0, 40))
def test_blocks_and_limits_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block: int, limit: int
) -> None:
    """However a file is cut into blocks, the same rows come out, and none is lost."""
    path = tmp_path_factory.mktemp("list") / "list.csv"
    path.write_text("\n".join([HEADER, *lines]))
    whole = Reader(path, geometry=NINE)
    expected = list(whole)
    places = [i for i, line in enumerate(lines, start=2) if line.strip()]
    bad = [i for i in places if lines[i - 2] in BAD_ROWS]
    assert whole.rows == len(places)
    assert whole.problems.total == len(bad)
    assert [problem.line for problem in whole.problems.first] == bad[:20]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ronri.data.lines.BLOCK_BYTES", block)
        cut = Reader(path, geometry=NINE)
        found = list(cut)
        limited = Reader(path, geometry=NINE, limit=limit + 1)
        good = sum(map(len, limited))
    assert bool(found) == bool(expected)
    if found:
        assert_equal(joined(found), joined(expected))
    assert cut.problems == whole.problems
    assert limited.rows == min(limit + 1, len(places))
    assert good == limited.good == len(set(places[: limit + 1]) - set(bad))


@settings(max_examples=100)
@given(
    st.sampled_from(["\n".join([head, *rows(4)]).encode() for head in (HEADER, "puzzle", P)]),
    st.lists(st.tuples(st.integers(0, 800), st.binary(max_size=3)), max_size=8),
)
def test_whatever_bytes_come_no_row_is_lost(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, edits: list[tuple[int, bytes]]
) -> None:
    """Damage a list anywhere: it is refused with a word, or all its lines are accounted for."""
    for place, inserted in edits:
        text = text[:place] + inserted + text[place + 1 :]
    path = tmp_path_factory.mktemp("list") / "list.csv"
    path.write_bytes(text)
    reader = Reader(path)
    try:
        good = sum(map(len, reader))
    except ValueError:
        return
    assert good == reader.good
    lines = [line for line in text.split(b"\n") if line.strip()]
    comments = sum(b"#" in line for line in lines)
    assert len(lines) - 1 - comments <= reader.rows <= len(lines)


@settings(max_examples=30)
@given(st.sampled_from([FOUR, SIX, NINE, Geometry(4, 4)]), st.integers(0, 2**32))
def test_the_fast_path_reads_what_the_slow_path_reads(
    tmp_path_factory: pytest.TempPathFactory, geometry: Geometry, seed: int
) -> None:
    random = np.random.default_rng(seed)
    solutions = random_boards(20, geometry, seed)
    puzzles = solutions * (random.random(solutions.shape) < 0.3)
    ratings = np.where(random.random(20) < 0.2, np.nan, random.random(20) * 50)
    folder = tmp_path_factory.mktemp("lists")
    with csv_writer(folder / "list.csv") as writer:
        writer.append(puzzles, solutions, ratings.astype(np.float32), "a")
    table = [line.split(",") for line in (folder / "list.csv").read_text().splitlines()]
    fast = read(folder / "list.csv", geometry=geometry, strict=True)
    # Quoted fields are read fast too; blanks around them take a line to the slow path.
    for style in ('"{}"', " {} ", '" {} "'):
        lines = [",".join(style.format(value) for value in line) for line in table]
        (folder / "other.csv").write_text("\n".join(lines))
        assert_equal(read(folder / "other.csv", geometry=geometry, strict=True), fast)
    np.testing.assert_array_equal(fast.puzzles, puzzles)
    np.testing.assert_array_equal(fast.solutions, solutions)
    np.testing.assert_array_equal(fast.ratings, ratings.astype(np.float32))
