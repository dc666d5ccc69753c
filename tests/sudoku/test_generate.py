"""Puzzles that are what they promise, and the same ones every time."""

import numpy as np
import pytest

from boards import HARD
from ronri.sudoku import generate, symmetry
from ronri.sudoku.board import parse, to_line
from ronri.sudoku.exact import rate, solve
from ronri.sudoku.generate import (
    Puzzles,
    RatedPuzzles,
    Shard,
    breed,
    hard_puzzles,
    minimal_puzzles,
    puzzles_with_clues,
    random_grids,
)
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry
from ronri.sudoku.kernels import chance
from ronri.sudoku.rules import is_solved

ANCESTORS = parse(HARD)[None]


def assert_proper(made: Puzzles | RatedPuzzles, geometry: Geometry) -> None:
    """Each puzzle has exactly the solution that comes with it."""
    found = solve(made.puzzles, geometry=geometry)
    assert (found.counts == 1).all()
    np.testing.assert_array_equal(found.solutions, made.solutions)


def assert_minimal(puzzles: np.ndarray) -> None:
    """Without any one of its clues, a puzzle has several solutions."""
    for puzzle in puzzles:
        clues = np.flatnonzero(puzzle)
        fewer = np.tile(puzzle, (len(clues), 1))
        fewer[np.arange(len(clues)), clues] = 0
        assert (solve(fewer).counts == 2).all()


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


def test_hard_puzzles_bred_from_a_hard_one() -> None:
    made = hard_puzzles(60, seed=8, ancestors=ANCESTORS)
    assert len(made) == 60
    assert_proper(made, NINE)
    assert_minimal(made.puzzles[:20])
    assert (made.ratings >= 10).all()
    forms = symmetry.canonical_puzzles(made.puzzles, made.solutions)
    assert len(np.unique(forms, axis=0)) == 60
    # Ratings read on other copies agree on the whole.
    assert rate(made.puzzles, 8, seed=9).mean() > 8


def test_every_herd_has_other_ancestors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bred from one puzzle of two: a child has most clues of its mother, so it tells which."""
    monkeypatch.setattr(generate, "HERD", 20)
    monkeypatch.setattr(generate, "PARENTS", 1)
    monkeypatch.setattr(generate, "CHILDREN", 64)
    other = symmetry.apply(symmetry.sample(NINE, 1, seed=4), ANCESTORS[:1])
    generations = breed(seed=3, least=5.0, ancestors=np.concatenate([ANCESTORS[:1], other]))
    mothers = set()
    for _ in range(60):
        children = next(generations).puzzles
        alike = [
            ((children == mother) & (mother > 0)).sum(axis=1).mean()
            for mother in (ANCESTORS[0], other[0])
        ]
        mothers.add(int(np.argmax(alike)))
    assert mothers == {0, 1}


def test_hard_puzzles_do_not_depend_on_threads_or_count() -> None:
    one = hard_puzzles(30, seed=8, ancestors=ANCESTORS, threads=1)
    two = hard_puzzles(40, seed=8, ancestors=ANCESTORS, threads=2)
    np.testing.assert_array_equal(one.puzzles, two.puzzles[:30])
    np.testing.assert_array_equal(one.ratings, two.ratings[:30])
    shard = hard_puzzles(30, seed=8, ancestors=ANCESTORS, shard=Shard(2, 2))
    assert (one.puzzles != shard.puzzles).any(axis=1).all()


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 2**64 - 1])
def test_every_seed_will_do(seed: int) -> None:
    assert len(minimal_puzzles(2, seed=seed)) == 2
    assert len(hard_puzzles(2, seed=seed, ancestors=ANCESTORS)) == 2


def test_breeding_from_nothing_finds_harder_and_harder_puzzles() -> None:
    generations = breed(seed=10, least=3.0)
    first = [next(generations) for _ in range(3)]
    for _ in range(25):
        later = next(generations)
    assert_proper(later, NINE)
    assert len(later) > 1.5 * np.mean([len(batch) for batch in first])


@pytest.mark.parametrize("geometry", [Geometry(1, 2), Geometry(2, 1), Geometry(1, 3)], ids=str)
def test_tiny_boards_can_be_bred(geometry: Geometry, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have puzzles of a single clue, which leaves little to mutate."""
    monkeypatch.setattr(generate, "PATIENCE", 3)
    for seed in range(20):
        with pytest.raises(ValueError, match="no new"):
            hard_puzzles(1, seed=seed, least=1.0, geometry=geometry)


def test_what_cannot_be_made_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "TRIES", 3)
    monkeypatch.setattr(generate, "PATIENCE", 2)
    with pytest.raises(ValueError, match="no 9x9 puzzle with as few as 12 clues"):
        puzzles_with_clues(1, 12, seed=0)
    with pytest.raises(ValueError, match="no new 4x4 puzzle that takes 10 guesses"):
        hard_puzzles(1, seed=0, geometry=FOUR)
    with pytest.raises(ValueError, match="make no sense"):
        puzzles_with_clues(1, 30, 82, seed=0)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="a seed lies between"):
            minimal_puzzles(1, seed=seed)
        with pytest.raises(ValueError, match="a seed lies between"):
            hard_puzzles(1, seed=seed)
    with pytest.raises(ValueError, match="must not be negative"):
        minimal_puzzles(-1, seed=0)
    with pytest.raises(ValueError, match="exactly one solution"):
        hard_puzzles(1, seed=0, ancestors=np.zeros((1, 81), np.uint8))
    with pytest.raises(ValueError, match="no ancestor"):
        hard_puzzles(1, seed=0, ancestors=np.zeros((0, 81), np.uint8))


def test_the_same_seed_gives_the_same_puzzle_for_ever() -> None:
    made = puzzles_with_clues(1, 28, seed=2026)
    assert to_line(made.puzzles[0]) == (
        "..6..43....7...2.838.9...6..7.....2.6...4...3.39.5.1.6.....8.41...1..87.85......."
    )
