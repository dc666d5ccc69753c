"""Hard puzzles, bred: hard, minimal, no two alike, and the same ones every time."""

from typing import Any

import numpy as np
import pytest

from boards import HARD
from grids import assert_minimal, assert_proper
from ronri.sudoku import breeding, symmetry
from ronri.sudoku.board import parse
from ronri.sudoku.breeding import breed, hard_puzzles
from ronri.sudoku.exact import rate
from ronri.sudoku.generate import Shard, minimal_puzzles
from ronri.sudoku.geometry import FOUR, NINE, Geometry

ANCESTORS = parse(HARD)[None]


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


def likeness(children: np.ndarray, mother: np.ndarray) -> float:
    """How many clues of the mother a child has, on average."""
    return float(((children == mother) & (mother > 0)).sum(axis=1).mean())


@pytest.fixture
def lonely(monkeypatch: pytest.MonkeyPatch) -> None:
    """One parent at a time."""
    monkeypatch.setattr(breeding, "PARENTS", 1)
    monkeypatch.setattr(breeding, "CHILDREN", 64)


@pytest.mark.usefixtures("lonely")
def test_what_is_hard_in_ancestors_does_not_die_with_the_first_generation() -> None:
    """Only a child that is as hard takes the place of a hard ancestor."""
    generations = breed(seed=8, least=5.0, ancestors=ANCESTORS)
    for _ in range(4):
        assert likeness(next(generations).puzzles, ANCESTORS[0]) > 12


@pytest.mark.usefixtures("lonely")
def test_every_herd_has_other_ancestors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bred from one puzzle of two at a time: a child has most clues of its mother."""
    monkeypatch.setattr(breeding, "HERD", 1)
    other = symmetry.apply(symmetry.sample(NINE, 1, seed=4), ANCESTORS)
    generations = breed(seed=3, least=5.0, ancestors=np.concatenate([ANCESTORS, other]))
    mothers = set()
    for _ in range(12):
        children = next(generations).puzzles
        alike = [likeness(children, mother) for mother in (ANCESTORS[0], other[0])]
        assert max(alike) > 12
        mothers.add(int(np.argmax(alike)))
    assert mothers == {0, 1}


@pytest.mark.usefixtures("lonely")
def test_a_barren_population_makes_way_for_other_ancestors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes a thousand guesses: all of ten ancestors get their turn, and it ends."""
    monkeypatch.setattr(breeding, "BARREN", 2)
    monkeypatch.setattr(breeding, "PATIENCE", 120)
    ancestors = minimal_puzzles(10, seed=1).puzzles
    parents = []
    children = breeding._children

    def watched(mothers: np.ndarray, *rest: Any) -> Any:
        parents.append(mothers[0].tobytes())
        return children(mothers, *rest)

    monkeypatch.setattr(breeding, "_children", watched)
    with pytest.raises(ValueError, match="no new 9x9 puzzle that takes 1000 guesses"):
        hard_puzzles(1, seed=0, least=1000.0, ancestors=ancestors)
    assert {ancestor.tobytes() for ancestor in ancestors} <= set(parents)


def test_hard_puzzles_do_not_depend_on_threads_or_count() -> None:
    one = hard_puzzles(30, seed=8, ancestors=ANCESTORS, threads=1)
    two = hard_puzzles(40, seed=8, ancestors=ANCESTORS, threads=2)
    np.testing.assert_array_equal(one.puzzles, two.puzzles[:30])
    np.testing.assert_array_equal(one.ratings, two.ratings[:30])
    shard = hard_puzzles(30, seed=8, ancestors=ANCESTORS, shard=Shard(2, 2))
    assert (one.puzzles != shard.puzzles).any(axis=1).all()


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
    monkeypatch.setattr(breeding, "PATIENCE", 3)
    for seed in range(20):
        with pytest.raises(ValueError, match="no new"):
            hard_puzzles(1, seed=seed, least=1.0, geometry=geometry)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 2**64 - 1])
def test_every_seed_will_do(seed: int) -> None:
    assert len(hard_puzzles(2, seed=seed, ancestors=ANCESTORS)) == 2


def test_what_cannot_be_bred_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breeding, "PATIENCE", 2)
    with pytest.raises(ValueError, match="no new 4x4 puzzle that takes 10 guesses"):
        hard_puzzles(1, seed=0, geometry=FOUR)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="a seed lies between"):
            hard_puzzles(1, seed=seed)
    with pytest.raises(ValueError, match="exactly one solution"):
        hard_puzzles(1, seed=0, ancestors=np.zeros((1, 81), np.uint8))
    with pytest.raises(ValueError, match="no ancestor"):
        hard_puzzles(1, seed=0, ancestors=np.zeros((0, 81), np.uint8))
