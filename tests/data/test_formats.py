import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards import PUZZLE, SOLUTION
from lists import HEADER, assert_equal, digits, joined, read, rows, write
from ronri.data.formats import Columns, Reader

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
def test_every_format(tmp_path: Path, name: str, ending: str) -> None:
    header, row, source, rating = EVERY_FORMAT[name]
    path = write(tmp_path, ENDINGS[ending](f"{header}\n{row}\n{row}\n".encode()), "list.txt.csv")
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


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, ["Grid,Key,SER,id,From", f"{P},{S},7.2,9,forum"])
    batch = read(path, columns=Columns("grid", solution="Key", rating="ser", source="from"))
    assert batch.puzzles.tolist() == [digits(PUZZLE)]
    assert batch.solutions.tolist() == [digits(SOLUTION)]
    assert batch.ratings.tolist() == pytest.approx([7.2])
    assert batch.sources == ["forum"]
    batch = read(path, columns=Columns("Grid"))
    assert batch.sources == ["list"]
    assert np.isnan(batch.ratings).all()
    # Naming goes before guessing.
    path = write(tmp_path, ["puzzle,other", f"{S},{P}"])
    assert read(path, columns=Columns("other")).puzzles.tolist() == [digits(PUZZLE)]


def zipped(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return file.getvalue()


def test_a_zip_archive_of_one_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, zipped(sudoku=f"puzzle,solution\n{P},{S}\n"))
    assert read(path).puzzles.tolist() == [digits(PUZZLE)]


@pytest.mark.parametrize(
    ("content", "columns", "complaint"),
    [
        ("a,b\n1,2\n", None, "columns are 'a', 'b'. If this is a CSV, name its"),
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
        (b"PK\x03\x04abcdefg", None, "zip archive is damaged"),
        (zipped(a="puzzle\n", b="puzzle\n"), None, "zip archive has 2 files; unpack it"),
        (lzma.compress(b"puzzle\n"), None, "packed with xz; unpack it first"),
        (bz2.compress(b"puzzle\n"), None, "packed with bzip2; unpack it first"),
        (b"\x01\x02\0\x03" * 99, None, "no text file"),
        ("puzzle\n".encode("utf-16"), None, "UTF-16"),
        (
            gzip.compress(b"puzzle\n" + b"1" * 9999, mtime=0)[:-9],
            None,
            "gzip file is damaged or cut short",
        ),
        (
            gzip.compress(b"puzzle\n", mtime=0)[:-8] + bytes(8),
            None,
            "gzip file is damaged or cut short",
        ),
        (gzip.compress(b"puzzle\n", mtime=0)[:-8] + bytes(8), None, "download it again"),
        (b"\x1f\x8b\x08nothing like gzip", None, "gzip file is damaged or cut short"),
    ],
)
def test_files_that_are_no_lists(
    tmp_path: Path, content: str | bytes, columns: Columns | None, complaint: str
) -> None:
    path = write(tmp_path, content.encode() if isinstance(content, str) else content)
    with pytest.raises(ValueError, match=complaint) as caught:
        list(Reader(path, columns=columns))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_truncated_gzip_is_an_error_after_its_good_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ronri.data.lines.BLOCK_BYTES", 10_000)
    whole = gzip.compress("\n".join([HEADER, *rows(2000)]).encode())
    reader = Reader(write(tmp_path, whole[: len(whole) * 3 // 4]))
    with pytest.raises(ValueError, match="cut short"):
        list(reader)
    assert 500 < reader.good < 2000


def test_plain_text(tmp_path: Path) -> None:
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
    reader = Reader(write(tmp_path, lines))
    batch = joined(list(reader))
    assert (batch.puzzles == digits(PUZZLE)).all()
    assert batch.lines.tolist() == [2, 3, 5, 7]
    assert [problem.line for problem in reader.problems.first] == [8, 9]
    assert reader.rows == 6


def test_a_list_can_be_read_twice(tmp_path: Path) -> None:
    reader = Reader(write(tmp_path, [HEADER, *rows(5), "x"]))
    assert_equal(joined(list(reader)), joined(list(reader)))
    assert reader.rows == 6


def test_limit_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ronri.data.lines.BLOCK_BYTES", 10_000)
    path = write(tmp_path, [HEADER, *rows(5000)])
    reader = Reader(path, limit=10)
    batch = joined(list(reader))
    assert batch.lines.tolist() == list(range(2, 12))
    assert reader.rows == 10
    assert reader.bytes_read < reader.bytes_total / 10
    assert reader.bytes_total == path.stat().st_size
    list(reader := Reader(path))
    assert reader.bytes_read == reader.bytes_total


def test_fraction_is_random_and_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, [HEADER, *rows(20_000)])
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
    monkeypatch.setattr("ronri.data.lines.BLOCK_BYTES", 10_000)
    assert_equal(read(path, fraction=0.1, seed=3), some)


def test_only_the_chosen_rows_are_read(tmp_path: Path) -> None:
    """Rows that are passed over are not even looked at: bad ones among them are no problem."""
    path = write(tmp_path, [HEADER, *["x"] * 5000])
    reader = Reader(path, fraction=0.1)
    assert list(reader) == []
    assert 0 < reader.rows < 1000


@pytest.mark.parametrize("options", [{"limit": 0}, {"fraction": 0.0}, {"fraction": 1.5}])
def test_impossible_wishes(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Reader(write(tmp_path, [HEADER]), **options)


def test_a_list_without_rows_is_empty(tmp_path: Path) -> None:
    reader = Reader(write(tmp_path, [HEADER]))
    assert list(reader) == []
    assert reader.rows == 0


def test_real_lists(real_data: Path) -> None:
    reader = Reader(real_data / "hard-test.csv.gz", strict=True)
    batch = joined(list(reader))
    assert batch.puzzles.shape == (8923, 81)
    assert batch.has_solution.all()
    assert ((batch.puzzles == 0) | (batch.puzzles == batch.solutions)).all()
    assert 30 < batch.ratings.mean() < 40
    assert len(set(batch.sources)) > 3
    assert len(read(real_data / "many-solutions.txt", strict=True)) == 1000
