"""The rules against slow references."""

from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards import OTHERS, PUZZLE, SOLUTION, any_grids, shifted_grid
from ronri.sudoku import rules
from ronri.sudoku.board import parse, to_lines
from ronri.sudoku.geometry import FOUR, NINE, STANDARD, Geometry
from ronri.sudoku.rules import (
    Conflict,
    conflicts,
    is_consistent,
    is_solved,
    solves,
    units_satisfied,
)


def slow_conflicts(grid: list[int], geometry: Geometry) -> list[Conflict]:
    found = []
    for unit, cells in enumerate(geometry.units.tolist()):
        for digit in range(1, geometry.size + 1):
            places = tuple(cell for cell in cells if grid[cell] == digit)
            if len(places) > 1:
                found.append(Conflict(digit, unit, places))
    return found


# Judged by compiled code, and by plain Python.
PATIENCE = pytest.mark.parametrize("patience", [0, 10**9], ids=["compiled", "plain"])


@PATIENCE
@pytest.mark.parametrize("geometry", [*STANDARD, *OTHERS], ids=str)
@given(data=st.data())
def test_rules_equal_a_slow_reference(
    data: st.DataObject, geometry: Geometry, patience: int
) -> None:
    grids = data.draw(any_grids(geometry))
    clues = grids.copy()
    for puzzle in clues:
        puzzle[data.draw(st.integers(0, geometry.cells - 1))] = data.draw(st.integers(0, 1))
    every_digit = list(range(1, geometry.size + 1))
    satisfied = [
        [sorted(grid[cells].tolist()) == every_digit for cells in geometry.units] for grid in grids
    ]
    solved = [all(units) for units in satisfied]
    kept = [
        all(clue in (0, digit) for digit, clue in zip(grid, puzzle, strict=True))
        for grid, puzzle in zip(grids.tolist(), clues.tolist(), strict=True)
    ]
    found = [slow_conflicts(grid, geometry) for grid in grids.tolist()]

    with patch.object(rules, "_patience", patience):
        assert units_satisfied(grids, geometry).tolist() == satisfied
        assert is_solved(grids, geometry).tolist() == solved
        assert solves(grids, clues, geometry).tolist() == [
            a and b for a, b in zip(solved, kept, strict=True)
        ]
        assert [conflicts(grid, geometry) for grid in grids] == found
        assert is_consistent(grids, geometry).tolist() == [not some for some in found]


@pytest.mark.parametrize("geometry", STANDARD, ids=lambda g: g.name)
def test_every_pair_of_equal_digits_breaks_the_rules_exactly_where_peers_meet(
    geometry: Geometry,
) -> None:
    pairs = list(combinations(range(geometry.cells), 2))
    grids = np.zeros((len(pairs), geometry.cells), np.uint8)
    for grid, pair in zip(grids, pairs, strict=True):
        grid[list(pair)] = geometry.size
    peers = [set(row) for row in geometry.peers.tolist()]
    assert is_consistent(grids).tolist() == [b not in peers[a] for a, b in pairs]


def test_large_batches_agree_with_small_ones() -> None:
    # More than one chunk, so that several threads take part.
    grids = np.tile(parse(SOLUTION), (40_000, 1))
    spoiled = np.arange(0, 40_000, 7)
    grids[spoiled, spoiled % 81] = 0
    solved = is_solved(grids)
    assert not solved[spoiled].any()
    assert solved.sum() == len(grids) - len(spoiled)
    assert is_consistent(grids).all()


@PATIENCE
@pytest.mark.parametrize("strange", [5, 17, 40, 64, 65, 255])
def test_digits_that_the_board_does_not_have_never_pass(
    strange: int, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "_patience", patience)
    grids = np.stack([shifted_grid(FOUR)] * 2)
    grids[1, 5] = strange
    assert is_solved(grids).tolist() == [True, False]
    assert is_consistent(grids).tolist() == [True, False]
    assert units_satisfied(grids)[1].sum() == FOUR.num_units - 3
    with pytest.raises(AssertionError):
        to_lines(grids)


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = parse(SOLUTION)[None]
    monkeypatch.setattr(rules, "_patience", 3)
    with patch.object(rules, "_compiled", wraps=rules._compiled) as compiled:
        assert all(is_solved(grid)[0] for _ in range(5))
    assert compiled.call_count == 2


def test_clues_must_be_kept() -> None:
    solved, other = parse(SOLUTION), shifted_grid(NINE)
    clues = parse(PUZZLE)
    assert solves(np.stack([solved, other]), np.stack([clues, clues])).tolist() == [True, False]
