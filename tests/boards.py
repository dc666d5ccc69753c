"""Boards that several tests start from."""

import numpy as np
from hypothesis import strategies as st

from ronri.sudoku.geometry import Geometry

PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
# Arto Inkala, 2012: hard for people and programs alike.
HARD = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
# Box shapes that are not standard.
OTHERS = (Geometry(3, 2), Geometry(1, 5), Geometry(3, 4), Geometry(4, 4), Geometry(1, 2))


def shifted_grid(geometry: Geometry) -> np.ndarray:
    """A solved grid: every row is the one above, shifted so that boxes come out right."""
    row, column = geometry.row_of, geometry.column_of
    shift = geometry.box_width * (row % geometry.box_height) + row // geometry.box_height
    return ((shift + column) % geometry.size + 1).astype(np.uint8)


@st.composite
def any_grids(draw: st.DrawFn, geometry: Geometry) -> np.ndarray:
    """A batch of grids: solved ones with a few cells changed, to any digit or to none."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    grids = np.tile(shifted_grid(geometry), (draw(st.integers(0, 6)), 1))
    for grid in grids:
        changed = generator.integers(geometry.cells, size=generator.integers(4))
        grid[changed] = generator.integers(geometry.size + 1, size=len(changed))
    return grids
