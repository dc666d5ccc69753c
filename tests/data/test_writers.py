import gzip
from pathlib import Path

import numpy as np
import pytest

from boards import PUZZLE, SOLUTION
from lists import HEADER, digits, random_boards, read
from ronri.data.writers import csv_writer, text_writer


@pytest.mark.parametrize("name", ["list.csv", "list.csv.gz"])
def test_what_is_written_can_be_read(tmp_path: Path, name: str) -> None:
    solutions = random_boards(100)
    puzzles = solutions * (random_boards(100, seed=1) < 4)
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
    expected = (
        f"{HEADER}\nroyle,{PUZZLE},{SOLUTION},34.6\nroyle,{PUZZLE},{SOLUTION},34.6\n,{PUZZLE},,\n"
    )
    assert (tmp_path / "a.csv").read_bytes() == expected.encode()
    with text_writer(tmp_path / "a.txt") as plain:
        plain.append(puzzles)
        plain.append(solutions)
    assert (tmp_path / "a.txt").read_bytes() == f"{PUZZLE}\n{SOLUTION}\n".encode()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_an_exception_leaves_no_file(tmp_path: Path, name: str) -> None:
    def interrupted() -> None:
        with csv_writer(tmp_path / name) as writer:
            writer.append(random_boards(10))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_equal_rows_make_equal_gzip_files(tmp_path: Path) -> None:
    for name in ("a.txt.gz", "b.txt.gz"):
        with text_writer(tmp_path / name) as writer:
            writer.append(random_boards(100))
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()
