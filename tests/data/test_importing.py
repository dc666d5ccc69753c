import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards import PUZZLE, SOLUTION
from lists import HEADER
from ronri.data.formats import Columns, Reader
from ronri.data.importing import (
    NO_SOLUTION,
    RATING_TOO_LARGE,
    SEVERAL_SOLUTIONS,
    WRONG_SOLUTION,
    Progress,
    import_file,
)
from ronri.data.rows import BAD_PUZZLE
from ronri.data.store import PuzzleSet
from ronri.data.writers import csv_writer, text_writer
from ronri.sudoku.board import parse, to_line
from ronri.sudoku.geometry import FOUR, Geometry

SEVERAL = PUZZLE[:20] + "." + PUZZLE[21:]
CONTRADICTION = PUZZLE[:2] + "5" + PUZZLE[3:]
DEAD_END = PUZZLE[:2] + "1" + PUZZLE[3:]
WRONG = SOLUTION[:-1] + "8"


def relabelled(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Copies of one puzzle, with its digits exchanged: still exactly one solution each."""
    random = np.random.default_rng(seed)
    orders = np.zeros((count, 10), np.uint8)
    orders[:, 1:] = random.permuted(np.tile(np.arange(1, 10, dtype=np.uint8), (count, 1)), axis=1)
    return orders[:, parse(PUZZLE)], orders[:, parse(SOLUTION)]


def write_list(path: Path, count: int, seed: int = 0) -> Path:
    puzzles, solutions = relabelled(count, seed)
    with csv_writer(path) as writer:
        writer.append(puzzles, solutions, np.arange(count) / np.float32(8), "made here")
    return path


def write_lines(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_every_row_is_solved_and_checked(tmp_path: Path) -> None:
    source = write_lines(
        tmp_path / "list.csv",
        HEADER,
        f"a,{PUZZLE},{SOLUTION},1.5",
        f"b,{PUZZLE},,",
        f"b,{SEVERAL},{SOLUTION},1",
        f"c,{CONTRADICTION},{SOLUTION},1",
        f"c,{DEAD_END},{SOLUTION},1",
        "",
        f"c,{PUZZLE},{WRONG},1",
        f"c,{PUZZLE[1:]},{SOLUTION},1",
        f"c,{PUZZLE},{SOLUTION},65505",
        f"d,{PUZZLE},{SOLUTION},65504",
    )
    report = import_file(source, tmp_path / "out" / "a.ronri")
    assert report.rows == 9
    assert report.kept == 3
    assert report.bad == {
        SEVERAL_SOLUTIONS: 1,
        NO_SOLUTION: 2,
        WRONG_SOLUTION: 1,
        BAD_PUZZLE: 1,
        RATING_TOO_LARGE: 1,
    }
    assert [(problem.line, problem.message) for problem in report.examples] == [
        (4, "the puzzle has more than one solution"),
        (5, "the puzzle has no solution: digit 5 stands twice in row 1: r1c1 and r1c3"),
        (6, "the puzzle has no solution"),
        (8, "the solution given has 8 in r9c9; the only solution has 9"),
        (9, "the puzzle cannot be read: 80 cells found; a puzzle has 81 (9x9)"),
        (10, "the rating 65505 is beyond 65504, the largest a set can hold"),
    ]
    opened = PuzzleSet(tmp_path / "out" / "a.ronri")
    assert [to_line(grid) for grid in opened.puzzles()] == [PUZZLE] * 3
    assert [to_line(grid) for grid in opened.solutions()] == [SOLUTION] * 3
    np.testing.assert_array_equal(opened.ratings(), [1.5, np.nan, 65504])
    assert [opened.header.sources[i] for i in opened.sources()] == ["a", "b", "d"]
    assert report.bytes_read == source.stat().st_size
    assert report.bytes_written == opened.path.stat().st_size


def test_strict_stops_at_the_first_bad_row_of_any_kind(tmp_path: Path) -> None:
    good, several, unreadable = f"a,{PUZZLE},,", f"a,{SEVERAL},,", "a,?,,"
    for lines, complaint in (
        ([good, several, unreadable], ":3: the puzzle has more than one solution"),
        ([good, good, unreadable, several], ":4: the puzzle cannot be read"),
    ):
        source = write_lines(tmp_path / "list.csv", HEADER, *lines)
        with pytest.raises(ValueError, match=complaint):
            import_file(source, tmp_path / "a.ronri", strict=True)
        assert [path.name for path in tmp_path.iterdir()] == ["list.csv"]


def test_nothing_kept_means_nothing_written(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "list.txt", SEVERAL, SEVERAL)
    report = import_file(source, tmp_path / "a.ronri")
    assert (report.rows, report.kept, report.bytes_written) == (2, 0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["list.txt"]


def test_the_list_is_not_overwritten(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "list.ronri", PUZZLE)
    with pytest.raises(ValueError, match="the list itself"):
        import_file(source, tmp_path / "." / "list.ronri")
    assert source.read_text() == f"{PUZZLE}\n"


def test_other_boards_and_named_columns(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "small.csv", "id,grid", "1,1..4..1..4..2..3")
    columns = Columns("grid", source="id")
    report = import_file(source, tmp_path / "a.ronri", columns=columns)
    opened = PuzzleSet(tmp_path / "a.ronri")
    assert report.kept == 1
    assert opened.geometry == FOUR
    assert opened.header.sources == ("1",)
    # As many cells, but upright boxes: what solves one board breaks the rules of the other.
    solution = "123456345612561234234561456123612345"
    source = write_lines(tmp_path / "six.csv", "puzzle,solution", f"{solution},{solution}")
    assert import_file(source, tmp_path / "b.ronri", geometry=Geometry(3, 2)).kept == 1
    assert PuzzleSet(tmp_path / "b.ronri").geometry == Geometry(3, 2)
    assert import_file(source, tmp_path / "c.ronri").bad == {NO_SOLUTION: 1}


def test_threads_and_blocks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_list(tmp_path / "list.csv", 1000)
    import_file(source, tmp_path / "a.ronri", threads=1)
    monkeypatch.setattr("ronri.data.lines.BLOCK_BYTES", 10_000)
    import_file(source, tmp_path / "b.ronri", threads=3)
    assert (tmp_path / "a.ronri").read_bytes() == (tmp_path / "b.ronri").read_bytes()


def test_a_part_of_a_list(tmp_path: Path) -> None:
    source = write_list(tmp_path / "list.csv.gz", 1000)
    report = import_file(source, tmp_path / "a.ronri", limit=10)
    assert (report.rows, report.kept) == (10, 10)
    header = PuzzleSet(tmp_path / "a.ronri").header
    assert header.provenance == {"file": "list.csv.gz", "limit": "10"}
    report = import_file(source, tmp_path / "a.ronri", fraction=0.1, seed=7)
    lines = [batch.lines for batch in Reader(source, fraction=0.1, seed=7)]
    opened = PuzzleSet(tmp_path / "a.ronri")
    assert 50 < report.kept == len(opened) == len(np.concatenate(lines)) < 200
    assert opened.header.provenance == {"file": "list.csv.gz", "fraction": "0.1", "seed": "7"}


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ronri.data.lines.BLOCK_BYTES", 10_000)
    source = write_list(tmp_path / "list.csv", 1000)
    told: list[Progress] = []
    import_file(source, tmp_path / "a.ronri", progress=told.append)
    assert len(told) > 10
    assert told == sorted(told, key=lambda step: (step.bytes_read, step.rows, step.kept))
    size = source.stat().st_size
    assert told[-1] == Progress(bytes_read=size, bytes_total=size, rows=1000, kept=1000)
    assert 0 < told[0].bytes_read < size


def test_a_damaged_list_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ronri.data.lines.BLOCK_BYTES", 10_000)
    source = write_list(tmp_path / "list.csv.gz", 1000)
    source.write_bytes(source.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cut short"):
        import_file(source, tmp_path / "a.ronri")
    assert [path.name for path in tmp_path.iterdir()] == ["list.csv.gz"]


# Killed and watched from outside: these need a process of their own.

KILLED = """
import os, sys, time
from ronri.data import lines
from ronri.data.importing import import_file

source, out, moment = sys.argv[1:]
lines.BLOCK_BYTES = 10_000

def wait_to_be_killed(*_):
    print("ready", flush=True)
    time.sleep(600)

def progress(step):
    if moment == "early" or (moment == "late" and step.bytes_read == step.bytes_total):
        wait_to_be_killed()

if moment == "last":
    os.fsync = wait_to_be_killed
import_file(source, out, progress=progress)
"""


@pytest.mark.parametrize("moment", ["early", "late", "last"])
def test_a_killed_import_leaves_no_set(tmp_path: Path, moment: str) -> None:
    source = write_list(tmp_path / "list.csv", 1000)
    out = tmp_path / "a.ronri"
    import_file(source, out, limit=5)
    old = out.read_bytes()
    command = [sys.executable, "-c", KILLED, str(source), str(out), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert out.read_bytes() == old
    (partial,) = set(tmp_path.iterdir()) - {source, out}
    assert partial.suffix == ".partial"
    # What was left behind is in nobody's way.
    assert import_file(source, out).kept == len(PuzzleSet(out)) == 1000


WATCHED = """
import sys
from pathlib import Path
from ronri.data.importing import import_file

def peak():
    (line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) * 1024

short, long, out = sys.argv[1:]
import_file(short, out)
before = peak()
import_file(long, out)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_long_list_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    # The short list is a few blocks long, so that everything has been as large as it ever gets.
    _, solutions = relabelled(60_000)
    # One column is empty: quickly solved.
    puzzles = solutions * (np.arange(81) % 9 != 0).astype(np.uint8)
    with csv_writer(tmp_path / "short.csv") as short, csv_writer(tmp_path / "long.csv") as long:
        short.append(puzzles, solutions)
        for _ in range(5):
            long.append(puzzles, solutions)
    names = ("short.csv", "long.csv", "a.ronri")
    command = [sys.executable, "-c", WATCHED, *(str(tmp_path / name) for name in names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(PuzzleSet(tmp_path / "a.ronri")) == 300_000
    # The set itself has 16 MiB, the list 54 MiB.
    assert int(done.stdout) < 12 << 20


# Real lists.


def test_real_answers_are_ours(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "clue17-test.csv.gz"
    report = import_file(source, tmp_path / "a.ronri", strict=True)
    assert report.kept == report.rows == 5000
    opened = PuzzleSet(tmp_path / "a.ronri")
    batch = next(iter(Reader(source)))
    np.testing.assert_array_equal(opened.solutions(), batch.solutions)
    np.testing.assert_array_equal(opened.puzzles(), batch.puzzles)
    assert opened.header.sources == ("17clue_royle",)
    # The answers do not come from the list.
    with text_writer(tmp_path / "bare.txt") as writer:
        writer.append(batch.puzzles)
    import_file(tmp_path / "bare.txt", tmp_path / "b.ronri")
    np.testing.assert_array_equal(PuzzleSet(tmp_path / "b.ronri").solutions(), batch.solutions)


def test_puzzles_with_several_solutions_are_all_refused(real_data: Path, tmp_path: Path) -> None:
    report = import_file(real_data / "many-solutions.txt", tmp_path / "a.ronri")
    assert report.rows == 1000
    assert report.bad == {SEVERAL_SOLUTIONS: 1000}
    assert [problem.line for problem in report.examples] == list(range(1, 21))
    assert list(tmp_path.iterdir()) == []
