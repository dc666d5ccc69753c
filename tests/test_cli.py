"""The command line as a process: pages, pipes, signals and terminals."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from boards import HARD, PUZZLE
from command_line import Ronri


@pytest.fixture
def ronri(capsys: pytest.CaptureFixture[str]) -> Ronri:
    return Ronri(capsys)


def test_the_version_is_told(ronri: Ronri) -> None:
    assert re.fullmatch(r"ronri \d+\.\d+\.\d+\n", ronri("--version"))


def test_the_page_lists_the_commands(ronri: Ronri) -> None:
    page = ronri("--help")
    for command in ("solve", "train", "eval", "compare", "data", "info"):
        assert re.search(rf"\b{command} +\S", page)
    assert re.search(r"\bgenerate +\S", ronri("data", "--help"))
    assert "--samples" in ronri("solve", "-h")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "name a command; there are solve, train, "),
        ("data", "name a command; there are generate, "),
        ("solv", "there is no command 'solv' (did you mean solve?); there are solve, "),
        ("data genrate", "there is no command 'genrate' (did you mean generate?)"),
        ("--verbose", "there is no command '--verbose'"),
    ],
)
def test_a_command_that_is_not_there_is_one_line(
    ronri: Ronri, arguments: str, message: str
) -> None:
    found = ronri(*arguments.split(), status=2)
    assert message in found
    assert re.search(r"`ronri( data)? --help` tells more", found)


def test_the_installed_command_answers() -> None:
    """As a process of its own, with a pipe for a terminal."""
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-m", "ronri", "solve", HARD, "--watch", "--reasoner", "exact"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "verified, the only solution" in done.stdout
    assert done.stderr == ""


def test_a_reader_that_stops_reading_is_no_error() -> None:
    ronri = f"{sys.executable} -m ronri solve {HARD} --watch --reasoner exact"
    command = f"{ronri} | head -1; exit ${{PIPESTATUS[0]}}"
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
    command = [sys.executable, "-m", "ronri", "solve", PUZZLE, "--reasoner", "exact"]
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
