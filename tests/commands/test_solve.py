"""`ronri solve`: the exact solver, and networks that succeed and fail."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import small_enso
from boards import HARD, PUZZLE, SOLUTION
from command_line import Ronri, add_oracle
from ronri import loading, registry
from ronri.commands.solve import Counting
from ronri.reasoners.trm.config import Config
from ronri.sudoku import exact
from ronri.sudoku.board import parse, to_text
from ronri.sudoku.geometry import FOUR, NINE, Geometry

SEVERAL = "12" + "." * 14
NONE = "123." + "...4" + "........"
KEYS = {
    *("reasoner", "puzzle", "board", "best_board", "verified", "solutions", "steps", "row_steps"),
    *("confidence", "ms", "weights_sha256"),
}


def write_model(folder: Path, geometry: Geometry) -> str:
    """A network that has learned nothing; returns the checksum of its weights."""
    torch.manual_seed(0)
    config = Config(width=16, heads=2, inner=16, h_cycles=1, l_cycles=1, max_steps=3)
    weights = registry.find("trm").build(config, geometry).state_dict()
    return loading.save(
        folder, kind="trm", config=config, geometry=geometry, weights=weights, which="raw"
    )


# How many solutions there are.


@pytest.mark.parametrize(("puzzle", "count"), [(PUZZLE, 1), (SEVERAL, 2), (NONE, 0)])
def test_solutions_are_counted_by_a_process_of_its_own(
    puzzle: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch")  # as in a process that has just begun
    counting = Counting(parse(puzzle))
    monkeypatch.setattr(exact, "solve", None)  # nobody here can have counted
    assert counting.result() == count


@pytest.mark.parametrize("executable", ["false", "no such program"])
def test_solutions_are_counted_here_if_that_process_fails(
    executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "executable", executable)
    assert Counting(parse(PUZZLE)).result() == 1


# What is imported.


@pytest.mark.parametrize("accelerated", [True, False])
def test_all_of_torch_is_there_where_kernels_may_need_it(accelerated: bool, tmp_path: Path) -> None:
    """By a stand-in: what is left out on a processor is there where something faster is."""
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "__init__.py").write_text("from torch import _meta_registrations, accelerator")
    (torch / "_meta_registrations.py").write_text("print('complete')")
    (torch / "accelerator.py").write_text(f"def is_available(): return {accelerated}")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from ronri.commands import solve
solve._import_torch()
import torch
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ("complete\n" if accelerated else "")


# The exact solver.


def test_a_puzzle_is_solved_drawn_and_verified(ronri: Ronri) -> None:
    shown = ronri("solve", PUZZLE, "--reasoner", "exact")
    assert to_text(parse(SOLUTION)) in shown
    assert "verified, the only solution; 0 guesses" in shown


def test_a_puzzle_is_solved_for_programs(ronri: Ronri) -> None:
    answer = ronri.json("solve", HARD, "--reasoner", "exact")
    assert answer["board"][0] == "8"
    assert (answer["verified"], answer["solutions"], answer["reasoner"]) == (True, "one", "exact")
    assert answer["guesses"] > 0
    assert set(answer) == KEYS | {"guesses"}


def test_watching_shows_the_search(ronri: Ronri) -> None:
    shown = ronri("solve", HARD, "--watch", "--reasoner", "exact")
    guesses = ronri.json("solve", HARD, "--reasoner", "exact")["guesses"]
    assert len(re.findall(r"\? r\dc\d = \d", shown)) == guesses
    assert "is impossible" in shown


def test_several_solutions_are_said_to_be_several(ronri: Ronri) -> None:
    assert "one of several solutions" in ronri("solve", SEVERAL)
    assert ronri.json("solve", SEVERAL)["solutions"] == "several"


def test_no_solution_is_status_1(ronri: Ronri) -> None:
    assert "no solution exists" in ronri("solve", NONE, status=1)
    assert "no solution exists" in ronri("solve", NONE, "--watch", status=1)
    answer = ronri.json("solve", NONE, status=1)
    assert (answer["board"], answer["best_board"]) == (None, None)
    assert (answer["verified"], answer["solutions"]) == (False, "none")


@pytest.mark.parametrize("option", ["--steps 3", "--samples 2", "--views 2", "--halt own"])
def test_the_search_has_no_budget(ronri: Ronri, option: str) -> None:
    message = ronri("solve", PUZZLE, "--reasoner", "exact", *option.split(), status=2)
    assert "exact searches until it is done" in message


# What a puzzle is.


def test_puzzles_come_from_files_and_the_standard_input(
    ronri: Ronri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "puzzle.txt"
    file.write_text(to_text(parse(PUZZLE)))
    assert ronri.json("solve", file, "--reasoner", "exact")["board"] == SOLUTION
    monkeypatch.setattr(sys, "stdin", io.StringIO(PUZZLE))
    assert ronri.json("solve", "-", "--reasoner", "exact")["board"] == SOLUTION


def test_a_drawn_board_is_read_from_the_command_line(ronri: Ronri) -> None:
    """Its bytes are more than a file name may have, its characters fewer."""
    drawn = to_text(parse("1" + "." * 35))
    assert ronri.json("solve", drawn)["verified"]


def test_a_puzzle_may_look_like_an_option(ronri: Ronri) -> None:
    assert ronri.json("solve", "--" + SEVERAL[:2] + "-" * 12)["verified"]


def test_watching_is_not_for_programs(ronri: Ronri) -> None:
    assert "choose one" in ronri("solve", PUZZLE, "--watch", "--json", status=2)


def test_sets_and_lists_are_no_puzzles(ronri: Ronri, tmp_path: Path) -> None:
    ronri("data", "generate", tmp_path / "a.ronri", "--count", 3)
    assert "see `ronri data describe`" in ronri("solve", tmp_path / "a.ronri", status=2)


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


# Networks.


def test_a_network_that_solves(ronri: Ronri, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = add_oracle(monkeypatch, needs=4)
    shown = ronri("solve", PUZZLE, "--reasoner", oracle)
    assert to_text(parse(SOLUTION)) in shown
    assert "verified, the only solution; oracle thought for 3 steps" in shown
    answer = ronri.json("solve", PUZZLE, "--reasoner", oracle)
    assert set(answer) == KEYS | {"budget", "seed"}
    assert (answer["board"], answer["best_board"]) == (SOLUTION, SOLUTION)
    assert (answer["verified"], answer["solutions"], answer["steps"]) == (True, "one", 3)
    assert "one of several solutions" in ronri("solve", SEVERAL, "--reasoner", oracle)


def test_how_much_a_network_may_think(ronri: Ronri, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board is right as soon as digits are believed more than not: before the oracle is sure."""
    solve = ("solve", PUZZLE, "--reasoner", add_oracle(monkeypatch, needs=4))
    assert ronri.json(*solve)["steps"] == ronri.json(*solve, "--halt", "verified")["steps"] == 3
    assert ronri.json(*solve, "--halt", "own")["steps"] == 4
    assert ronri.json(*solve, "--halt", "fixed")["steps"] == 32
    assert ronri.json(*solve, "--steps", 1, status=1)["steps"] == 1
    # The plain row is right, so no other begins; unless every row takes all steps.
    several = ("--samples", 2, "--views", 2)
    found = ronri.json(*solve, *several)
    assert (found["steps"], found["row_steps"]) == (3, 3)
    assert "12 row-steps in all" in ronri(*solve, *several, "--halt", "fixed", "--steps", 3)


def test_a_network_that_fails_says_so(ronri: Ronri, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = add_oracle(monkeypatch, errs=True)
    shown = ronri("solve", PUZZLE, "--reasoner", oracle, status=1)
    assert "✗ not solved: the best board breaks 3 rules and changes 1 clue;" in shown
    assert "one solution exists: try more --steps, --samples, --views, or --reasoner exact" in shown
    assert "verified" not in shown
    answer = ronri.json("solve", PUZZLE, "--reasoner", oracle, status=1)
    assert (answer["board"], answer["verified"], answer["solutions"]) == (None, False, "one")
    assert answer["best_board"] == SOLUTION[:-1] + "1"


def test_a_puzzle_with_several_solutions_is_for_the_solver(
    ronri: Ronri, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = add_oracle(monkeypatch, errs=True)
    shown = ronri("solve", "." * 80 + PUZZLE[-1], "--reasoner", oracle, status=1)
    assert "several solutions exist" in shown
    assert "try --reasoner exact, or more" in shown


def test_a_puzzle_without_a_solution_is_nobodys_fault(
    ronri: Ronri, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = add_oracle(monkeypatch)
    shown = ronri("solve", NONE, "--reasoner", oracle, status=1)
    assert shown.endswith("no solution exists\n")
    assert ronri.json("solve", NONE, "--reasoner", oracle, status=1)["solutions"] == "none"


def test_watching_a_network_through_a_pipe(ronri: Ronri, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ronri("solve", PUZZLE, "--reasoner", add_oracle(monkeypatch, needs=4), "--watch")
    steps = re.findall(r"^step (\d) of 32, .*units (\d+) of 27 hold", shown, re.MULTILINE)
    assert steps == [("1", "0"), ("2", "0"), ("3", "27")]
    assert to_text(parse(SOLUTION)) in shown


def test_the_network_comes_first_where_its_weights_are(
    ronri: Ronri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "RELEASED", tmp_path)
    assert ronri.json("solve", PUZZLE)["reasoner"] == "exact"
    sha256 = write_model(tmp_path / "trm", NINE)
    answer = ronri.json("solve", PUZZLE, status=1)
    assert (answer["reasoner"], answer["weights_sha256"]) == ("trm", sha256)
    assert (answer["steps"], answer["row_steps"]) == (12, 12)
    # Its board is nine by nine.
    assert ronri.json("solve", SEVERAL)["reasoner"] == "exact"


def test_a_program_is_told_how_low_a_board_lies(ronri: Ronri, tmp_path: Path) -> None:
    config = small_enso.CELLS
    weights = small_enso.model_of(config).state_dict()
    loading.save(
        tmp_path / "low", kind="enso", config=config, geometry=FOUR, weights=weights, which="raw"
    )
    enso = ("--reasoner", tmp_path / "low", "--device", "cpu", "--steps", 3)
    found = ronri.json("solve", SEVERAL, *enso, "--seed", 4, "--halt", "fixed", status=1)
    board = loading.load(str(tmp_path / "low")).solve(SEVERAL, steps=3, halt="fixed", seed=4)
    assert found["energy"] == pytest.approx(board.energy)
    assert found["confidence"] == pytest.approx(1 / (1 + found["energy"]))
    assert found["budget"] == {"steps": 3, "samples": 1, "views": 1, "halt": "fixed"}
    assert found["seed"] == 4
    exact = ronri.json("solve", PUZZLE, "--reasoner", "exact")
    assert not {"energy", "budget", "seed"} & exact.keys()
    write_model(tmp_path / "four", FOUR)
    other = loading.load(str(tmp_path / "four"))
    assert other.solve(SEVERAL, steps=2).energy is None
    assert "energy" not in ronri.json("solve", SEVERAL, "--reasoner", tmp_path / "four", status=1)


def test_a_model_in_a_folder(ronri: Ronri, tmp_path: Path) -> None:
    write_model(tmp_path / "four", FOUR)
    four = ("--reasoner", tmp_path / "four", "--device", "cpu")
    assert ronri.json("solve", SEVERAL, *four, "--steps", 2, status=1)["steps"] == 2
    message = ronri("solve", PUZZLE, *four, status=2)
    assert "plays on 4x4 boards and the puzzle is 9x9" in message


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--reasoner nosuch", "'nosuch' cannot be loaded"),
        ("--steps 0", "at least 1"),
        ("--device abacus", "a device is cpu, cuda or mps, not 'abacus'"),
    ],
)
def test_what_cannot_think_is_told(
    ronri: Ronri, monkeypatch: pytest.MonkeyPatch, option: str, message: str
) -> None:
    oracle = () if "--reasoner" in option else ("--reasoner", add_oracle(monkeypatch))
    assert message in ronri("solve", PUZZLE, *oracle, *option.split(), status=2)


def test_a_reasoner_without_weights_is_told(
    ronri: Ronri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "RELEASED", tmp_path)
    message = ronri("solve", PUZZLE, "--reasoner", "encoder", status=2)
    assert "no weights of it were released" in message
