"""Descriptions against sets whose contents are known."""

from pathlib import Path

import numpy as np
import pytest

from ronri.data.describe import describe
from ronri.data.store import PuzzleSet, StoreWriter
from ronri.sudoku import symmetry
from ronri.sudoku.exact import solve
from ronri.sudoku.generate import minimal_puzzles, puzzles_with_clues
from ronri.sudoku.geometry import FOUR, NINE


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> PuzzleSet:
    """30 minimal puzzles with ratings, 10 symmetric copies of them, 20 others without ratings."""
    path = tmp_path_factory.mktemp("sets") / "mixed.ronri"
    minimal, others = minimal_puzzles(30, seed=1), puzzles_with_clues(20, 30, seed=2)
    views = symmetry.sample(NINE, 10, seed=3)
    with StoreWriter(path, NINE) as writer:
        writer.append(minimal.puzzles, minimal.solutions, np.arange(30.0), "minimal")
        copies = [symmetry.apply(views, g[:10]) for g in (minimal.puzzles, minimal.solutions)]
        writer.append(copies[0], copies[1], np.full(10, 100.0), "copy")
        writer.append(others.puzzles, others.solutions, None, "easy")
    return PuzzleSet(path)


def test_everything_is_counted(mixed: PuzzleSet) -> None:
    found = describe(mixed)
    assert (found.n, found.board) == (60, "9x9")
    assert found.sources == {"minimal": 30, "copy": 10, "easy": 20}
    assert sum(found.clues.values()) == 60
    assert found.clues[30] == 20
    assert (found.distinct_puzzles, found.duplicates, found.distinct_solutions) == (50, 10, 50)
    assert found.rated_here == 20
    guesses = solve(mixed.puzzles(slice(40, 60))).guesses
    every = [*range(30), *[100] * 10, *guesses.tolist()]
    assert found.mean_rating == pytest.approx(np.mean(every))
    for rating in found.ratings:
        expected = sum(rating.rating_min <= guess < rating.rating_max for guess in every)
        assert rating.n == expected
    assert found.overlap is None


def test_overlap_is_found_through_symmetry(mixed: PuzzleSet, tmp_path: Path) -> None:
    minimal = minimal_puzzles(5, seed=1)
    views = symmetry.sample(NINE, 5, seed=9)
    puzzles, solutions = (symmetry.apply(views, g) for g in (minimal.puzzles, minimal.solutions))
    siblings = puzzles.copy()
    for sibling, solution in zip(siblings, solutions, strict=True):
        free = np.flatnonzero(sibling == 0)[0]
        sibling[free] = solution[free]
    with StoreWriter(tmp_path / "other.ronri", NINE) as writer:
        writer.append(puzzles[:2], solutions[:2])
        writer.append(siblings[2:], solutions[2:])
    overlap = describe(mixed, PuzzleSet(tmp_path / "other.ronri")).overlap
    assert overlap is not None
    # The copies are in the set twice; siblings share the solution, not the puzzle.
    assert (overlap.puzzles, overlap.solutions) == (4, 10)


def test_sets_of_different_boards_cannot_be_compared(mixed: PuzzleSet, tmp_path: Path) -> None:
    small = minimal_puzzles(3, seed=1, geometry=FOUR)
    with StoreWriter(tmp_path / "small.ronri", FOUR) as writer:
        writer.append(small.puzzles, small.solutions)
    with pytest.raises(ValueError, match="share nothing"):
        describe(mixed, PuzzleSet(tmp_path / "small.ronri"))


def test_an_empty_set_can_be_described(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "empty.ronri", NINE):
        pass
    found = describe(PuzzleSet(tmp_path / "empty.ronri"))
    assert (found.n, found.mean_rating, found.clues) == (0, None, {})
