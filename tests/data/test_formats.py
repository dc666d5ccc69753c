import gzip
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronri.data import formats
from ronri.data.formats import (
    BAD_PUZZLE,
    BAD_RATING,
    BAD_SOLUTION,
    WRONG_COLUMNS,
    Batch,
    Columns,
    Reader,
    csv_writer,
    text_writer,
)
from ronri.sudoku.board import to_lines
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry

PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes lines, or bytes, to a file."""

    def write(content: bytes | Sequence[str], name: str = "list.csv") -> Path:
        path = tmp_path / name
        if not isinstance(content, bytes):
            content = "".join(f"{line}\n" for line in content).encode()
        path.write_bytes(content)
        return path

    return write


def boards(count: int, geometry: Geometry = NINE, seed: int = 0) -> np.ndarray:
    """Full grids of random digits: readers do not ask whether they keep the rules."""
    random = np.random.default_rng(seed)
    return random.integers(1, geometry.size + 1, (count, geometry.cells)).astype(np.uint8)


def rows(count: int, seed: int = 0) -> list[str]:
    """Rows of a Sudoku-Extreme list, no two of them alike."""
    solutions = boards(count, seed=seed)
    puzzles = solutions * (boards(count, seed=seed + 1) < 4)
    lines = zip(to_lines(puzzles), to_lines(solutions), strict=True)
    return [f"list{i % 3},{p},{s},{i / 10}" for i, (p, s) in enumerate(lines)]


def joined(batches: Sequence[Batch]) -> Batch:
    return Batch(
        np.concatenate([batch.puzzles for batch in batches]),
        np.concatenate([batch.solutions for batch in batches]),
        np.concatenate([batch.ratings for batch in batches]),
        [source for batch in batches for source in batch.sources],
        np.concatenate([batch.lines for batch in batches]),
    )


def read(path: Path, **options: Any) -> Batch:
    return joined(list(Reader(path, **options)))


def assert_equal(a: Batch, b: Batch) -> None:
    for name in ("puzzles", "solutions", "ratings", "lines"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.sources == b.sources


def digits(text: str) -> list[int]:
    return [int(character.replace(".", "0")) for character in text]


HEADER = "source,question,answer,rating"
P, S = PUZZLE, SOLUTION
EVERY_FORMAT = {
    "Sudoku-Extreme": (HEADER, f"royle,{P},{S},2.5", "royle", 2.5),
    "Kaggle 9M": ("puzzle,solution", f"{P.replace('.', '0')},{S}", "list", None),
    "Kaggle 1M": ("quizzes,solutions", f"{P.replace('.', '0')},{S}", "list", None),
    "Kaggle 3M": ("id,puzzle,solution,clues,difficulty", f"1,{P},{S},30,2.5", "list", 2.5),
    "capitals": ("Puzzle , Solution,Difficulty", f"{P},{S},2.5", "list", 2.5),
    "puzzles only": ("puzzle", P, "list", None),
    "a sign in a name": ("id,puzzle,# of clues", f"1,{P},30", "list", None),
    "plain text": ("# hardest first", P, "list", None),
    "plain text, comment": ("", f"  {P} # Wikipedia, 2006", "list", None),
}
ENDINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda text: text,
    "no last newline": lambda text: text[:-1],
    "empty lines": lambda text: text + b"\n \n\n",
    "Windows": lambda text: text.replace(b"\n", b"\r\n"),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "gzip": gzip.compress,
    "gzip of two": lambda text: gzip.compress(text[:50]) + gzip.compress(text[50:]),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_every_format(write: Write, name: str, ending: str) -> None:
    header, row, source, rating = EVERY_FORMAT[name]
    path = write(ENDINGS[ending](f"{header}\n{row}\n{row}\n".encode()), "list.txt.csv")
    batch = read(path, strict=True)
    assert batch.puzzles.tolist() == [digits(PUZZLE)] * 2
    if SOLUTION in row:
        assert batch.solutions.tolist() == [digits(SOLUTION)] * 2
        assert batch.has_solution.all()
    else:
        assert not batch.solutions.any()
        assert not batch.has_solution.any()
    assert batch.sources == [source] * 2
    assert [None if np.isnan(r) else r for r in batch.ratings.tolist()] == [rating] * 2
    assert batch.lines.tolist() == [2, 3]


def test_rows_within_one_file_may_differ_in_style(write: Write) -> None:
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
    batch = read(write(lines), strict=True)
    assert (batch.puzzles == digits(PUZZLE)).all()
    assert batch.sources == ["a, b", 'say "no"', "c", 'c"', "list", "d", "e", "list", "é"]
    assert batch.lines.tolist() == [2, 3, 5, 6, 7, 8, 9, 10, 12]
    assert np.flatnonzero(~batch.has_solution).tolist() == [4, 6]
    np.testing.assert_array_equal(batch.ratings, [1, 1, 1, 1, 1, np.nan, 1, np.nan, -1])


def test_columns_can_be_named(write: Write) -> None:
    path = write(["Grid,Key,SER,id,From", f"{P},{S},7.2,9,forum"])
    batch = read(path, columns=Columns("grid", solution="Key", rating="ser", source="from"))
    assert batch.puzzles.tolist() == [digits(PUZZLE)]
    assert batch.solutions.tolist() == [digits(SOLUTION)]
    assert batch.ratings.tolist() == pytest.approx([7.2])
    assert batch.sources == ["forum"]
    batch = read(path, columns=Columns("Grid"))
    assert batch.sources == ["list"]
    assert np.isnan(batch.ratings).all()
    # Naming goes before guessing.
    path = write(["puzzle,other", f"{S},{P}"])
    assert read(path, columns=Columns("other")).puzzles.tolist() == [digits(PUZZLE)]


@pytest.mark.parametrize(
    ("content", "columns", "complaint"),
    [
        ("a,b\n1,2\n", None, "columns are 'a', 'b'. Name the column of the puzzle"),
        ("sudoku\n" + PUZZLE, None, "columns are 'sudoku'"),
        (f"{P},{S}\n", None, "first line is a row, not a header"),
        (f"1,{P}\n", None, "first line is a row, not a header"),
        ("sudoku_puzzle_number_1,b\n", None, "no column is known to hold puzzles"),
        ("puzzle,question\n", None, "more than one column may be the puzzle"),
        ("puzzle,puzzle\n", None, "more than one column may be the puzzle"),
        (
            "puzzle,solution\n",
            Columns("grid"),
            "no column is named 'grid'; the columns are 'puzzle'",
        ),
        ("puzzle,a\n", Columns("puzzle", rating="b"), "no column is named 'b'"),
        (f"puzzle\r{P}\r", None, "carriage returns alone"),
        ("53..7....\n6..195...\n", None, "no column is known to hold puzzles"),
        ("", None, "nothing in this file"),
        ("\n# only a comment\n\n", None, "nothing in this file"),
        (b"PK\x03\x04abcdefg", None, "zip archive"),
        ("puzzle\n".encode("utf-16"), None, "UTF-16"),
        (gzip.compress(b"puzzle\n" + b"1" * 9999)[:-9], None, "gzip file is damaged or cut short"),
        (gzip.compress(b"puzzle\n")[:-8] + bytes(8), None, "gzip file is damaged or cut short"),
        (gzip.compress(b"puzzle\n")[:-8] + bytes(8), None, "download it again"),
        (b"\x1f\x8b\x08nothing like gzip", None, "gzip file is damaged or cut short"),
    ],
)
def test_files_that_are_no_lists(
    write: Write, content: str | bytes, columns: Columns | None, complaint: str
) -> None:
    path = write(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ValueError, match=complaint) as caught:
        list(Reader(path, columns=columns))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_truncated_gzip_is_an_error_after_its_good_rows(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "BLOCK_BYTES", 10_000)
    whole = gzip.compress("\n".join([HEADER, *rows(2000)]).encode())
    reader = Reader(write(whole[: len(whole) * 3 // 4]))
    with pytest.raises(ValueError, match="cut short"):
        list(reader)
    assert 500 < reader.good < 2000


@pytest.mark.parametrize("start", [b"", b"puzzle\n"])
def test_an_endless_line_does_not_fill_the_memory(write: Write, start: bytes) -> None:
    path = write(start + b"x" * (40 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="no list of puzzles"):
            list(Reader(path))
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


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
    f"a,,{S},1": (BAD_PUZZLE, "0 cells found"),
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
def test_bad_rows_are_reported_with_line_and_reason(write: Write, bad: str) -> None:
    good = rows(5)
    path = write([HEADER, "", *good[:2], bad, *good[2:], bad])
    reader = Reader(path)
    batch = joined(list(reader))
    assert batch.lines.tolist() == [3, 4, 6, 7, 8]
    assert_equal(batch.take(batch.lines > 5), read(write([HEADER, *[""] * 4, *good[2:]])))
    reason, message = BAD_ROWS[bad]
    assert reader.problems.counts == {reason: 2}
    assert [problem.line for problem in reader.problems.first] == [5, 9]
    assert all(message in problem.message for problem in reader.problems.first)
    assert reader.rows == 7

    strict = Reader(write([HEADER, "", *good[:2], bad, *good[2:]]), strict=True)
    seen = iter(strict)
    assert next(seen).lines.tolist() == [3, 4]
    with pytest.raises(ValueError, match=f"^{path}:5: ") as caught:
        next(seen)
    assert message in str(caught.value)


def test_bad_rows_before_any_good_one(write: Write) -> None:
    path = write([HEADER, *BAD_ROWS, *rows(3)])
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


def test_only_the_first_problems_are_remembered_but_all_are_counted(write: Write) -> None:
    reader = Reader(write([HEADER, *["x"] * 5000]))
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
        patch.setattr(formats, "BLOCK_BYTES", block)
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
    solutions = boards(20, geometry, seed)
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


def test_plain_text(write: Write) -> None:
    lines = [
        "# my favourites",
        PUZZLE,
        PUZZLE.replace(".", "0"),
        "",
        f"{PUZZLE}# no space",
        "   # nothing",
        f"\t{PUZZLE.replace('.', '0', 10)}  ",
        PUZZLE[:-1],
        f"{PUZZLE},{SOLUTION}",
        f"#{PUZZLE}",
    ]
    reader = Reader(write(lines))
    batch = joined(list(reader))
    assert (batch.puzzles == digits(PUZZLE)).all()
    assert batch.lines.tolist() == [2, 3, 5, 7]
    assert [problem.line for problem in reader.problems.first] == [8, 9]
    assert reader.rows == 6


def test_a_list_can_be_read_twice(write: Write) -> None:
    reader = Reader(write([HEADER, *rows(5), "x"]))
    assert_equal(joined(list(reader)), joined(list(reader)))
    assert reader.rows == 6


def test_limit_stops_early(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "BLOCK_BYTES", 10_000)
    path = write([HEADER, *rows(5000)])
    reader = Reader(path, limit=10)
    batch = joined(list(reader))
    assert batch.lines.tolist() == list(range(2, 12))
    assert reader.rows == 10
    assert reader.bytes_read < reader.bytes_total / 10
    assert reader.bytes_total == path.stat().st_size
    list(reader := Reader(path))
    assert reader.bytes_read == reader.bytes_total


def test_fraction_is_random_and_the_same_every_time(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write([HEADER, *rows(20_000)])
    every = read(path)
    some = read(path, fraction=0.1, seed=3)
    # Five standard deviations.
    assert abs(len(some) - 2000) < 5 * np.sqrt(20_000 * 0.1 * 0.9)
    assert_equal(some, every.take(np.isin(every.lines, some.lines)))
    # Spread over the whole list, not taken from one end.
    assert abs(some.lines.mean() - 10_000) < 5 * 20_000 / np.sqrt(12 * 2000)
    other = read(path, fraction=0.1, seed=4)
    both = np.intersect1d(some.lines, other.lines)
    assert abs(len(both) - 200) < 5 * np.sqrt(200)
    # A larger fraction holds the smaller one.
    assert np.isin(some.lines, read(path, fraction=0.2, seed=3).lines).all()
    assert_equal(read(path, fraction=1.0), every)
    first = read(path, fraction=0.1, seed=3, limit=50)
    assert_equal(first, some.take(np.arange(len(some)) < 50))
    monkeypatch.setattr(formats, "BLOCK_BYTES", 10_000)
    assert_equal(read(path, fraction=0.1, seed=3), some)


def test_only_the_chosen_rows_are_read(write: Write) -> None:
    """Rows that are passed over are not even looked at: bad ones among them are no problem."""
    path = write([HEADER, *["x"] * 5000])
    reader = Reader(path, fraction=0.1)
    assert list(reader) == []
    assert 0 < reader.rows < 1000


@pytest.mark.parametrize("options", [{"limit": 0}, {"fraction": 0.0}, {"fraction": 1.5}])
def test_impossible_wishes(write: Write, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Reader(write([HEADER]), **options)


def test_a_list_without_rows_is_empty(write: Write) -> None:
    reader = Reader(write([HEADER]))
    assert list(reader) == []
    assert reader.rows == 0


# Writing.


@pytest.mark.parametrize("name", ["list.csv", "list.csv.gz"])
def test_what_is_written_can_be_read(tmp_path: Path, name: str) -> None:
    solutions = boards(100)
    puzzles = solutions * (boards(100, seed=1) < 4)
    solutions[50:60] = 0
    ratings = np.linspace(0, 40, 100).astype(np.float32)
    ratings[30:40] = np.nan
    sources = [f'a, {i} "b"' for i in range(100)]
    with csv_writer(tmp_path / name) as writer:
        for start in range(0, 100, 30):
            part = slice(start, start + 30)
            writer.append(puzzles[part], solutions[part], ratings[part], sources[part])
    batch = read(tmp_path / name, strict=True)
    np.testing.assert_array_equal(batch.puzzles, puzzles)
    np.testing.assert_array_equal(batch.solutions, solutions)
    np.testing.assert_array_equal(batch.ratings, ratings)
    assert batch.sources == sources
    # Writing what was read gives the same bytes, whenever that is done.
    with csv_writer(tmp_path / f"again-{name}") as writer:
        writer.append(batch.puzzles, batch.solutions, batch.ratings, batch.sources)
    assert read(tmp_path / name).sources == sources
    text = [(tmp_path / file).read_bytes() for file in (name, f"again-{name}")]
    if name.endswith(".gz"):
        assert all(packed[:2] == b"\x1f\x8b" and packed[4:8] == bytes(4) for packed in text)
        text = [gzip.decompress(packed) for packed in text]
    assert text[0] == text[1]


def test_the_exact_text(tmp_path: Path) -> None:
    puzzles = np.array([digits(PUZZLE)], np.uint8)
    solutions = np.array([digits(SOLUTION)], np.uint8)
    with csv_writer(tmp_path / "a.csv") as writer:
        writer.append(puzzles, solutions, np.array([34.6], np.float32), "royle")
        # A stored rating has eleven bits; it is written with the digits it stands for.
        writer.append(puzzles, solutions, np.array([34.6], np.float16), "royle")
        writer.append(puzzles)
    expected = f"{HEADER}\nroyle,{P},{S},34.6\nroyle,{P},{S},34.6\n,{P},,\n"
    assert (tmp_path / "a.csv").read_bytes() == expected.encode()
    with text_writer(tmp_path / "a.txt") as plain:
        plain.append(puzzles)
        plain.append(solutions)
    assert (tmp_path / "a.txt").read_bytes() == f"{PUZZLE}\n{SOLUTION}\n".encode()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_an_exception_leaves_no_file(tmp_path: Path, name: str) -> None:
    def interrupted() -> None:
        with csv_writer(tmp_path / name) as writer:
            writer.append(boards(10))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_equal_rows_make_equal_gzip_files(tmp_path: Path) -> None:
    for name in ("a.txt.gz", "b.txt.gz"):
        with text_writer(tmp_path / name) as writer:
            writer.append(boards(100))
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


def test_real_lists(real_data: Path) -> None:
    reader = Reader(real_data / "hard-test.csv.gz", strict=True)
    batch = joined(list(reader))
    assert batch.puzzles.shape == (8923, 81)
    assert batch.has_solution.all()
    assert ((batch.puzzles == 0) | (batch.puzzles == batch.solutions)).all()
    assert 30 < batch.ratings.mean() < 40
    assert len(set(batch.sources)) > 3
    assert len(read(real_data / "many-solutions.txt", strict=True)) == 1000
