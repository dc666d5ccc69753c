"""Candidates and singles against slow references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards import OTHERS, any_grids
from ronri.sudoku.board import parse
from ronri.sudoku.candidates import candidate_table, candidates, hidden_singles, naked_singles
from ronri.sudoku.geometry import NINE, STANDARD, Geometry


def slow_candidates(grid: np.ndarray, geometry: Geometry) -> list[set[int]]:
    every = set(range(1, geometry.size + 1))
    return [
        set() if grid[cell] else every - {int(grid[peer]) for peer in geometry.peers[cell]}
        for cell in range(geometry.cells)
    ]


@pytest.mark.parametrize("geometry", [*STANDARD, *OTHERS], ids=str)
@given(data=st.data())
def test_candidates_and_singles_equal_slow_references(
    data: st.DataObject, geometry: Geometry
) -> None:
    grids = data.draw(any_grids(geometry))
    seed = data.draw(st.integers(0, 2**32 - 1))
    grids[np.random.default_rng(seed).random(grids.shape) < 0.6] = 0
    masks = candidates(grids, geometry=geometry)
    table = candidate_table(grids, geometry=geometry)
    naked = naked_singles(grids, geometry=geometry)
    hidden = hidden_singles(grids, geometry=geometry)
    for row, grid in enumerate(grids):
        slow = slow_candidates(grid, geometry)
        for cell, digits in enumerate(slow):
            assert masks[row, cell] == sum(1 << (digit - 1) for digit in digits)
            assert set(np.flatnonzero(table[row, cell]) + 1) == digits
            assert naked[row, cell] == (min(digits) if len(digits) == 1 else 0)
        for unit, cells in enumerate(geometry.units.tolist()):
            for digit in range(1, geometry.size + 1):
                places = [cell for cell in cells if digit in slow[cell]]
                expected = places[0] if len(places) == 1 else -1
                assert hidden[row, unit, digit - 1] == expected


def test_a_single_hidden_in_its_box_alone() -> None:
    """Box 3 has room for a 1 in r3c9 only, while row 3 and column 9 have other places for it."""
    grid = parse("1........" + "......789" + "......56." + "." * 54)
    hidden = hidden_singles(grid[None])[0]
    cell = 2 * 9 + 8
    row, column, box = NINE.units_of[cell]
    assert [hidden[unit, 0] for unit in (row, column, box)] == [-1, -1, cell]
    assert naked_singles(grid[None])[0, cell] == 0
