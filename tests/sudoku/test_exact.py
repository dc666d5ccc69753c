"""The exact solver against brute force, against its own reference, and against real lists."""

import csv
import gzip
from functools import cache
from itertools import permutations, product
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from boards import HARD, PUZZLE, SOLUTION, shifted_grid
from ronri.sudoku import symmetry
from ronri.sudoku.board import parse, parse_lines
from ronri.sudoku.exact import rate, solve, steps
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry
from ronri.sudoku.kernels import search
from ronri.sudoku.rules import is_solved, solves


@cache
def all_4x4() -> np.ndarray:
    """Every 4x4 solution grid, found by trying all combinations of rows."""
    rows = list(permutations((1, 2, 3, 4)))
    found = []
    for four in product(rows, repeat=4):
        columns = zip(*four, strict=True)
        boxes = [(*four[r][c : c + 2], *four[r + 1][c : c + 2]) for r in (0, 2) for c in (0, 2)]
        if all(len(set(unit)) == 4 for unit in (*columns, *boxes)):
            found.append([digit for row in four for digit in row])
    return np.array(found, np.uint8)


def test_there_are_288_grids_of_4x4() -> None:
    assert len(all_4x4()) == 288
    assert solve(np.zeros((1, 16), np.uint8), limit=1000).counts[0] == 288


@given(
    hnp.arrays(np.uint8, (8, 16), elements=st.integers(1, 4)),
    hnp.arrays(np.bool_, (8, 16)),
    st.integers(0, 287),
    st.integers(1, 300),
)
def test_4x4_equals_brute_force(
    noise: np.ndarray, shown: np.ndarray, grid: int, limit: int
) -> None:
    """Half the puzzles are cut from a grid, half are any digits, mostly contradictory."""
    puzzles = np.where(shown, noise, 0).astype(np.uint8)
    puzzles[:4] = np.where(shown[:4], all_4x4()[grid], 0)
    fits = ((puzzles[:, None] == 0) | (puzzles[:, None] == all_4x4())).all(axis=2)
    found = solve(puzzles, limit)
    np.testing.assert_array_equal(found.counts, np.minimum(fits.sum(axis=1), limit))
    for puzzle, solution, matches in zip(puzzles, found.solutions, fits, strict=True):
        if matches.any():
            assert (all_4x4()[matches] == solution).all(axis=1).any()
        else:
            assert not solution.any(), puzzle


@pytest.mark.parametrize("geometry", [*STANDARD, Geometry(3, 2), Geometry(2, 4)], ids=str)
@pytest.mark.parametrize("clues", [0.3, 0.5, 0.8])
def test_any_geometry_is_solved(geometry: Geometry, clues: float) -> None:
    shown = np.random.default_rng(1).random((20, geometry.cells)) < clues
    puzzles = np.where(shown, shifted_grid(geometry), 0).astype(np.uint8)
    found = solve(puzzles, 2, geometry=geometry)
    assert solves(found.solutions, puzzles, geometry).all()
    unique = found.counts == 1
    assert (found.solutions[unique] == shifted_grid(geometry)).all()


def spoilt(text: str, seed: int) -> np.ndarray:
    """Symmetric copies of a puzzle, clues taken or changed: with one, many or no solution."""
    puzzles = symmetry.apply(symmetry.sample(NINE, 6, seed), parse(text)[None])
    generator = np.random.default_rng(seed)
    for puzzle in puzzles:
        changed = generator.integers(81, size=generator.integers(0, 8))
        puzzle[changed] = generator.integers(0, 10) if generator.random() < 0.5 else 0
    return puzzles


@given(
    st.sampled_from([HARD, PUZZLE, SOLUTION]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 5]),
)
def test_bit_boards_make_the_same_guesses_as_the_reference(
    text: str, seed: int, limit: int
) -> None:
    puzzles = spoilt(text, seed)
    fast = solve(puzzles, limit)
    solutions = np.zeros_like(puzzles)
    counts, guesses = np.zeros(len(puzzles), np.int64), np.zeros(len(puzzles), np.int64)
    search.solve_batch(puzzles, NINE.tables, limit, solutions, counts, guesses)
    np.testing.assert_array_equal(fast.counts, counts)
    np.testing.assert_array_equal(fast.guesses, guesses)
    np.testing.assert_array_equal(fast.solutions, solutions)


def test_threads_change_nothing() -> None:
    views = symmetry.sample(NINE, 1200, seed=5)
    puzzles = symmetry.apply(views, parse(HARD)[None])
    one, two = solve(puzzles, threads=1), solve(puzzles, threads=2)
    np.testing.assert_array_equal(one.guesses, two.guesses)
    np.testing.assert_array_equal(one.solutions, two.solutions)
    assert (one.counts == 1).all()


def test_ratings_are_means_over_copies_that_do_not_depend_on_the_batch() -> None:
    puzzles = np.stack([parse(HARD), parse(PUZZLE), parse(HARD)])
    ratings = rate(puzzles, 4, seed=3)
    assert ratings[0] > 5
    assert ratings[1] == 0
    assert ratings[0] != ratings[2]
    assert rate(puzzles[2:], 4, seed=3, start=2)[0] == ratings[2]
    assert rate(puzzles, 1)[0] == solve(puzzles).guesses[0]
    copies = [symmetry.apply(symmetry.sample(NINE, 1, 3, start=i), puzzles[:1]) for i in range(3)]
    guesses = [solve(np.concatenate([puzzles[:1], *copies])).guesses.mean()]
    assert ratings[0] == guesses[0]


@pytest.mark.parametrize("text", [HARD, PUZZLE, "1" + "." * 15, "." * 36], ids=len)
def test_steps_tell_the_guesses_of_solve(text: str) -> None:
    puzzle = parse(text)
    watched = list(steps(puzzle))
    found = solve(puzzle[None], 1)
    assert watched[0].kind == "start"
    assert watched[-1].kind == "solved"
    np.testing.assert_array_equal(watched[-1].board, found.solutions[0])
    kinds = [step.kind for step in watched]
    assert kinds.count("guess") == found.guesses[0]
    assert watched[-1].depth == kinds.count("guess") - kinds.count("refuted")
    for step in watched:
        if step.kind == "refuted":
            assert found.solutions[0][step.cell] != step.digit or step.depth > 0
        assert ((puzzle == 0) | (step.board == puzzle) | (step.board == 0)).all()


def test_steps_of_an_impossible_puzzle_end_in_impossible() -> None:
    assert [step.kind for step in steps(parse("11" + "." * 14, check=False))][-1] == "impossible"


def test_bad_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="limit must be at least 1"):
        solve(np.zeros((1, 81), np.uint8), 0)
    with pytest.raises(ValueError, match="digit 7 does not exist on a 6x6 board"):
        solve(np.full((1, 36), 7, np.uint8))
    with pytest.raises(ValueError, match="copies must be at least 1"):
        rate(np.zeros((1, 16), np.uint8), 0)


def test_a_single_grid_is_told_to_come_as_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users see it: without the check of shapes that tests run under."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for wrong in (np.zeros(81, np.uint8), np.zeros((1, 81)), [[0] * 81]):
        with pytest.raises(ValueError, match=r"for one grid write grid\[None\]"):
            solve(wrong)  # type: ignore[arg-type]


def test_empty_batches_are_fine() -> None:
    for geometry in (FOUR, SIX, NINE):
        assert len(solve(np.zeros((0, geometry.cells), np.uint8)).counts) == 0


def test_every_real_puzzle_is_solved(real_data: Path) -> None:
    for path in sorted(real_data.glob("*.csv.gz")):
        with gzip.open(path, "rt") as file:
            records = list(csv.DictReader(file))
        puzzles = parse_lines([record["question"] for record in records], NINE).grids
        answers = parse_lines([record["answer"] for record in records], NINE).grids
        found = solve(puzzles)
        assert (found.counts == 1).all(), path.name
        np.testing.assert_array_equal(found.solutions, answers)


def test_every_real_puzzle_with_several_solutions_is_seen_to_have_them(real_data: Path) -> None:
    lines = (real_data / "many-solutions.txt").read_text().split()
    puzzles = parse_lines(lines, NINE)
    assert puzzles.ok.all()
    found = solve(puzzles.grids)
    assert (found.counts == 2).all()
    assert is_solved(found.solutions).all()
