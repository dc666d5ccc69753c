"""Every command and every option, as a user would call them."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from boards import HARD, PUZZLE, SOLUTION
from ronri.cli import main
from ronri.data.splits import set_keys
from ronri.data.store import PuzzleSet
from ronri.sudoku.board import parse, to_text
from ronri.sudoku.exact import steps
from ronri.terminal import watch

SEVERAL = "12" + "." * 14
NONE = "123." + "...4" + "........"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RONRI_CACHE", str(tmp_path / "cache"))


class Ronri:
    """The command line, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: object, status: int = 0) -> str:
        """What a command prints; checks its exit status, and that errors are one line."""
        try:
            found = main([str(argument) for argument in arguments])
        except SystemExit as end:
            found = int(end.code or 0)
        captured = self.capsys.readouterr()
        assert found == status, captured.err
        if status == 2:
            assert captured.err.startswith("ronri: ")
            assert captured.err.count("\n") == 1
            return captured.err
        assert captured.err == ""
        return captured.out

    def json(self, *arguments: object, status: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", status=status))


@pytest.fixture
def ronri(capsys: pytest.CaptureFixture[str]) -> Ronri:
    return Ronri(capsys)


def test_a_puzzle_is_solved_drawn_and_verified(ronri: Ronri) -> None:
    shown = ronri("solve", PUZZLE)
    assert to_text(parse(SOLUTION)) in shown
    assert "verified, the only solution; 0 guesses" in shown


def test_a_puzzle_is_solved_for_programs(ronri: Ronri) -> None:
    answer = ronri.json("solve", HARD)
    assert answer["board"][0] == "8"
    assert (answer["verified"], answer["solutions"], answer["reasoner"]) == (True, "one", "exact")
    assert answer["guesses"] > 0


def test_watching_shows_the_search(ronri: Ronri) -> None:
    shown = ronri("solve", HARD, "--watch")
    guesses = ronri.json("solve", HARD)["guesses"]
    assert len(re.findall(r"\? r\dc\d = \d", shown)) == guesses
    assert "is impossible" in shown


def test_puzzles_come_from_files_and_the_standard_input(
    ronri: Ronri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "puzzle.txt"
    file.write_text(to_text(parse(PUZZLE)))
    assert ronri.json("solve", file)["board"] == SOLUTION
    monkeypatch.setattr(sys, "stdin", io.StringIO(PUZZLE))
    assert ronri.json("solve", "-")["board"] == SOLUTION


def test_a_drawn_board_is_read_from_the_command_line(ronri: Ronri) -> None:
    """Its bytes are more than a file name may have, its characters fewer."""
    drawn = to_text(parse("1" + "." * 35))
    assert ronri.json("solve", drawn)["verified"]


def test_watching_is_not_for_programs(ronri: Ronri) -> None:
    assert "choose one" in ronri("solve", PUZZLE, "--watch", "--json", status=2)


def test_sets_and_lists_are_no_puzzles(ronri: Ronri, tmp_path: Path) -> None:
    ronri("data", "generate", tmp_path / "a.ronri", "--count", 3)
    assert "see `ronri data describe`" in ronri("solve", tmp_path / "a.ronri", status=2)


def test_the_version_is_told(ronri: Ronri) -> None:
    assert re.fullmatch(r"ronri \d+\.\d+\.\d+\n", ronri("--version"))


def test_several_solutions_are_said_to_be_several(ronri: Ronri) -> None:
    assert "one of several solutions" in ronri("solve", SEVERAL)
    assert ronri.json("solve", SEVERAL)["solutions"] == "several"


def test_no_solution_is_status_1(ronri: Ronri) -> None:
    assert "no solution exists" in ronri("solve", NONE, status=1)
    assert "no solution exists" in ronri("solve", NONE, "--watch", status=1)
    answer = ronri.json("solve", NONE, status=1)
    assert (answer["board"], answer["verified"], answer["solutions"]) == (None, False, "none")


@pytest.mark.parametrize(
    ("puzzle", "message"),
    [
        ("12", "2 cells found"),
        ("5" + PUZZLE[1:8] + "5" + PUZZLE[9:], "digit 5 stands twice in row 1: r1c1 and r1c9"),
        ("x" * 81, "'x' at position 1"),
        ("", "there are no cells in this text"),
        ("nosuch.txt", "there is no file of that name"),
        (".", ". is a folder"),
        ("7" + "." * 35, "digit 7 in r1c1: a 6x6 board"),
    ],
)
def test_a_bad_puzzle_is_status_2(ronri: Ronri, puzzle: str, message: str) -> None:
    assert message in ronri("solve", puzzle, status=2)


@pytest.mark.parametrize("name", ["a.ronri", "a.csv", "a.csv.gz", "a.txt"])
def test_generated_puzzles_can_be_read_back(ronri: Ronri, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    report = ronri.json("data", "generate", out, "--count", 30, "--clues", "28-30", "--seed", 1)
    assert report["kept"] == 30
    found = ronri.json("data", "describe", out)
    assert found["n"] == 30
    assert set(found["clues"]) == {"28", "29", "30"}


def test_generating_by_kind_size_and_shard(ronri: Ronri, tmp_path: Path) -> None:
    def made(name: str, *options: object) -> PuzzleSet:
        out = tmp_path / f"{name}.ronri"
        assert "12 puzzles in" in ronri("data", "generate", out, "--count", 12, *options)
        return PuzzleSet(out)

    assert made("six", "--size", 6).geometry.size == 6
    assert (made("four", "--size", 4, "--clues", 6).puzzles() > 0).sum() == 72
    minimal = made("minimal", "--kind", "minimal", "--threads", 1)
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(HARD)
    hard = made("hard", "--kind", "hard", "--ancestors", seeds, "--guesses", 12, "--copies", 2)
    assert (hard.ratings() >= 12).all()
    other = made("other", "--kind", "minimal", "--shard", "2/2", "--seed", 3)
    assert not set(set_keys(minimal).split.tolist()) & set(set_keys(other).split.tolist())


def test_excluded_sets_are_kept_out(ronri: Ronri, tmp_path: Path) -> None:
    first, second = tmp_path / "1.ronri", tmp_path / "2.ronri"
    ronri("data", "generate", first, "--count", 20)
    report = ronri.json("data", "generate", second, "--count", 20, "--exclude", first)
    assert report["excluded"] == 20
    overlap = ronri.json("data", "describe", second, "--against", first)["overlap"]
    assert (overlap["puzzles"], overlap["solutions"]) == (0, 0)
    # Given twice, both count.
    third, both = tmp_path / "3.ronri", ("--exclude", first, "--exclude", second)
    report = ronri.json("data", "generate", third, "--count", 20, *both)
    assert report["excluded"] == 40
    message = ronri("data", "generate", second, "--count", 1, "--exclude", "mini4", status=2)
    assert "mini4 has 4x4 boards" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--clues", "many"), "written like 30 or 24-36"),
        (("--clues", "90"), "make no sense"),
        (("--shard", "3/2"), "shard 3/2 does not exist"),
        (("--seed", "-1"), "a seed lies between"),
        (("--exclude", "nonsense"), "there is no file 'nonsense'"),
        (("--kind", "minimal", "--clues", "30"), "--clues goes with --kind clues"),
        (("--guesses", "5"), "--guesses goes with --kind hard"),
        (("--ancestors", "mini4"), "--ancestors goes with --kind hard"),
        (("--kind", "hard", "--guesses", "nan"), "takes more than nan guesses"),
    ],
)
def test_bad_orders_are_refused(
    ronri: Ronri, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "out.ronri"
    assert message in ronri("data", "generate", out, "--count", 1, *options, status=2)
    assert not out.exists()


def test_an_unknown_kind_of_file_is_refused(ronri: Ronri, tmp_path: Path) -> None:
    message = ronri("data", "generate", tmp_path / "out.xlsx", "--count", 1, status=2)
    assert ".ronri, .csv, .csv.gz, .txt or .txt.gz" in message


LIST = f"""grid,answer,difficulty,origin
{PUZZLE},{SOLUTION},1.5,paper
{PUZZLE},{SOLUTION[::-1]},1.5,paper
nonsense,{SOLUTION},1.5,paper
{PUZZLE},,2.5,book
"""
COLUMNS = (
    *("--puzzle", "grid", "--solution", "answer"),
    *("--rating", "difficulty", "--source-column", "origin"),
)


def test_importing_reports_every_row(ronri: Ronri, tmp_path: Path) -> None:
    source, out = tmp_path / "list.csv", tmp_path / "set.ronri"
    source.write_text(LIST)
    shown = ronri("data", "import", source, out, *COLUMNS)
    assert "4 rows read, 2 kept, 2 refused" in shown
    assert "line 3: " in shown
    assert "line 4: " in shown
    found = PuzzleSet(out)
    assert found.header.sources == ("paper", "book")
    assert found.ratings().tolist() == [1.5, 2.5]
    report = ronri.json("data", "import", source, out, *COLUMNS, "--limit", 1)
    assert (report["rows"], report["kept"]) == (1, 1)
    none = ronri("data", "import", source, out, *COLUMNS, "--fraction", 1e-6, "--seed", 1, status=2)
    assert "nothing was written" in none


def test_strict_stops_at_the_first_bad_row(ronri: Ronri, tmp_path: Path) -> None:
    source, out = tmp_path / "list.csv", tmp_path / "set.ronri"
    source.write_text(LIST)
    message = ronri("data", "import", source, out, *COLUMNS, "--strict", status=2)
    assert "list.csv:3" in message
    assert not out.exists()


def test_bad_imports_are_explained(ronri: Ronri, tmp_path: Path) -> None:
    source, out = tmp_path / "list.csv", tmp_path / "set.ronri"
    source.write_text(LIST)
    assert "grid" in ronri("data", "import", source, out, status=2)
    assert "--puzzle NAME" in ronri("data", "import", source, out, "--rating", "x", status=2)
    assert "no file" in ronri("data", "import", tmp_path / "nothing.csv", out, status=2)
    assert "must end in .ronri" in ronri("data", "import", source, tmp_path / "a.csv", status=2)
    assert "no list but a suite" in ronri("data", "import", "mini4", out, status=2)
    ronri("data", "generate", tmp_path / "b.ronri", "--count", 1)
    assert "is a set already" in ronri("data", "import", tmp_path / "b.ronri", out, status=2)
    assert "nothing was written" in ronri(
        "data", "import", source, out, "--puzzle", "answer", "--limit", 1, "--solution", "grid",
        status=2,
    )  # fmt: skip


def test_describing_for_people(ronri: Ronri) -> None:
    shown = ronri("data", "describe", "mini4", "--against", "mini4", "--threads", 1)
    assert re.search(r"puzzles\s+500 \(4x4\)", shown)
    assert re.search(r"also in mini4\s+500 puzzles", shown)
    assert "█" in shown


def test_rows_left_out_of_a_list_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "list.txt"
    source.write_text(f"{PUZZLE}\n{'.' * 81}\n")
    assert main(["data", "describe", str(source)]) == 0
    captured = capsys.readouterr()
    assert "rows left out: 1 several solutions; `ronri data import` tells which" in captured.err
    assert re.search(r"refused\s+1 several solutions", captured.out)
    # A stored set keeps the count, but has been reported on when it was imported.
    out = tmp_path / "set.ronri"
    assert main(["data", "import", str(source), str(out)]) == 0
    capsys.readouterr()
    assert main(["data", "describe", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert re.search(r"refused\s+1 several solutions", captured.out)


def test_splitting(ronri: Ronri, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    shown = ronri("data", "split", "mini4", folder, "--test", 100, "--validation", "10%")
    assert "test.ronri: 100 puzzles" in shown
    rule = ("--rule", folder / "split.json")
    report = ronri.json("data", "split", "mini4", tmp_path / "b", *rule)
    assert report["rule"] == json.loads((folder / "split.json").read_text())
    message = ronri("data", "split", "mini4", tmp_path / "c", *rule, "--test", 5, status=2)
    assert "--rule fixes the sizes" in message
    assert report["counts"]["test"] == 100
    assert sum(report["counts"].values()) == 500
    assert "a size is a count" in ronri(
        "data", "split", "mini4", folder, "--test", "lots", status=2
    )


def test_the_installed_command_answers() -> None:
    """As a process of its own, with a pipe for a terminal."""
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-m", "ronri", "solve", HARD, "--watch"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "verified, the only solution" in done.stdout
    assert done.stderr == ""


def test_a_reader_that_stops_reading_is_no_error() -> None:
    command = f"{sys.executable} -m ronri solve {HARD} --watch | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    # The search is short enough to be written before the reader leaves, or it is not.
    assert done.returncode in (0, 128 + signal.SIGPIPE)


def test_files_that_cannot_be_used_are_named(ronri: Ronri, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = ronri("data", "generate", tmp_path / "file" / "a.csv", "--count", 1, status=2)
    assert re.fullmatch(r"ronri: .*file.*: (Not a directory|File exists)\n", message)


def test_an_ascii_terminal_gets_an_answer() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "ronri", "solve", PUZZLE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "verified, the only solution" in done.stdout


def test_a_command_that_is_ended_leaves_no_half_written_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ronri", "data", "generate", str(tmp_path / "a.csv")]
    command += ["--count", "100000000"]
    with subprocess.Popen(command) as process:
        while not list(tmp_path.iterdir()):
            assert process.poll() is None
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_the_moving_picture_moves() -> None:
    """On a terminal there are many pictures, on a narrow one without the search beside them."""
    for width in (40, 90):
        console = Console(file=io.StringIO(), force_terminal=True, width=width, height=40)
        watch(steps(parse(HARD)), parse(HARD), console, delay=0.0)
        assert isinstance(console.file, io.StringIO)
        shown = console.file.getvalue()
        assert shown.count("┌") > 20
        beside = re.search(r"┐.*\? .*r8c7", shown) is not None
        assert beside == (width == 90)
