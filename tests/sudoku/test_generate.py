"""Puzzles that are what they promise, and the same ones every time."""

import numpy as np
import pytest

from grids import assert_minimal, assert_proper
from ronri.sudoku import generate
from ronri.sudoku.board import to_line
from ronri.sudoku.generate import (
    Shard,
    minimal_puzzles,
    puzzles_with_clues,
    random_grids,
)
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry
from ronri.sudoku.kernels import chance
from ronri.sudoku.rules import is_solved


def test_random_numbers_are_those_of_splitmix64() -> None:
    """Known outputs: every generated suite depends on them."""
    state = np.zeros(1, np.uint64)
    assert [int(chance.draw(state)) for _ in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


@pytest.mark.parametrize("geometry", STANDARD, ids=str)
def test_random_grids_are_solved_and_differ(geometry: Geometry) -> None:
    grids = random_grids(200, seed=1, geometry=geometry)
    assert is_solved(grids).all()
    assert len(np.unique(grids, axis=0)) > (100 if geometry == FOUR else 195)


def test_every_4x4_grid_comes_up_and_none_much_too_often() -> None:
    grids, times = np.unique(
        random_grids(288 * 50, seed=2, geometry=FOUR), axis=0, return_counts=True
    )
    assert len(grids) == 288
    assert times.min() > 20
    assert times.max() < 100


@pytest.mark.parametrize("geometry", STANDARD, ids=str)
def test_minimal_puzzles_are_minimal(geometry: Geometry) -> None:
    made = minimal_puzzles(40, seed=3, geometry=geometry)
    assert_proper(made, geometry)
    assert_minimal(made.puzzles)


@pytest.mark.parametrize(
    ("geometry", "fewest", "most"), [(FOUR, 5, 9), (SIX, 11, 14), (NINE, 24, 27)], ids=str
)
def test_puzzles_have_the_clues_that_were_asked_for(
    geometry: Geometry, fewest: int, most: int
) -> None:
    made = puzzles_with_clues(200, fewest, most, seed=4, geometry=geometry)
    assert_proper(made, geometry)
    clues = (made.puzzles > 0).sum(axis=1)
    numbers, times = np.unique(clues, return_counts=True)
    assert numbers.tolist() == list(range(fewest, most + 1))
    assert times.min() > 100 / len(numbers)
    exact = puzzles_with_clues(5, most, seed=4, geometry=geometry)
    assert ((exact.puzzles > 0).sum(axis=1) == most).all()


def test_threads_and_batches_change_nothing() -> None:
    one = puzzles_with_clues(60, 26, 30, seed=5, threads=1)
    two = puzzles_with_clues(60, 26, 30, seed=5, threads=2)
    rest = puzzles_with_clues(20, 26, 30, seed=5, start=40)
    np.testing.assert_array_equal(one.puzzles, two.puzzles)
    np.testing.assert_array_equal(one.puzzles[40:], rest.puzzles)
    other = puzzles_with_clues(60, 26, 30, seed=6)
    assert (one.puzzles != other.puzzles).any(axis=1).all()


def test_shards_together_make_the_whole() -> None:
    whole = minimal_puzzles(30, seed=7).puzzles
    for number in (1, 2, 3):
        part = minimal_puzzles(10, seed=7, shard=Shard(number, 3)).puzzles
        np.testing.assert_array_equal(part, whole[number - 1 :: 3])
    grids = random_grids(6, seed=7, shard=Shard(2, 2))
    np.testing.assert_array_equal(grids, random_grids(12, seed=7)[1::2])


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/", "-1/2", "1/2/3"])
def test_bad_shards_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="shard"):
        Shard.parse(text)
    assert Shard.parse("2/8") == Shard(2, 8)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 2**64 - 1])
def test_every_seed_will_do(seed: int) -> None:
    assert len(minimal_puzzles(2, seed=seed)) == 2


def test_what_cannot_be_made_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "TRIES", 3)
    with pytest.raises(ValueError, match="no 9x9 puzzle with as few as 12 clues"):
        puzzles_with_clues(1, 12, seed=0)
    with pytest.raises(ValueError, match="make no sense"):
        puzzles_with_clues(1, 30, 82, seed=0)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="a seed lies between"):
            minimal_puzzles(1, seed=seed)
    with pytest.raises(ValueError, match="must not be negative"):
        minimal_puzzles(-1, seed=0)


def test_the_same_seed_gives_the_same_puzzle_for_ever() -> None:
    made = puzzles_with_clues(1, 28, seed=2026)
    assert to_line(made.puzzles[0]) == (
        "..6..43....7...2.838.9...6..7.....2.6...4...3.39.5.1.6.....8.41...1..87.85......."
    )
