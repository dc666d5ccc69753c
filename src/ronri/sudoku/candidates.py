"""What can be seen at a glance: candidates, naked singles, hidden singles.

A candidate of an empty cell is a digit that none of its peers holds; nothing cleverer is removed.
A naked single is the only candidate of its cell, a hidden single the only place of its digit in
a unit. Probes ask whether networks know these; pages draw them.
"""

import numpy as np
from jaxtyping import Bool, Int16, UInt8, UInt16

from ronri.sudoku.geometry import Geometry, geometry_of


def candidates(
    grids: UInt8[np.ndarray, "batch cells"], *, geometry: Geometry | None = None
) -> UInt16[np.ndarray, "batch cells"]:
    """Candidate masks: bit `digit - 1` is set for each candidate. Filled cells have none."""
    geometry = geometry_of(grids, geometry)
    filled = grids > 0
    bits = np.where(filled, np.left_shift(1, np.maximum(grids, 1) - 1, dtype=np.uint16), 0)
    in_unit = np.bitwise_or.reduce(bits[:, geometry.units], axis=2)
    taken = np.bitwise_or.reduce(in_unit[:, geometry.units_of], axis=2)
    every = np.uint16((1 << geometry.size) - 1)
    return np.where(filled, 0, ~taken & every).astype(np.uint16)


def candidate_table(
    grids: UInt8[np.ndarray, "batch cells"], *, geometry: Geometry | None = None
) -> Bool[np.ndarray, "batch cells size"]:
    """The same, one truth value per cell and digit."""
    geometry = geometry_of(grids, geometry)
    masks = candidates(grids, geometry=geometry)
    return (masks[:, :, None] >> np.arange(geometry.size, dtype=np.uint16) & 1).astype(bool)


def naked_singles(
    grids: UInt8[np.ndarray, "batch cells"], *, geometry: Geometry | None = None
) -> UInt8[np.ndarray, "batch cells"]:
    """The digit of each naked single, 0 elsewhere."""
    table = candidate_table(grids, geometry=geometry)
    alone = table.sum(axis=2) == 1
    return np.where(alone, table.argmax(axis=2) + 1, 0).astype(np.uint8)


def hidden_singles(
    grids: UInt8[np.ndarray, "batch cells"], *, geometry: Geometry | None = None
) -> Int16[np.ndarray, "batch units size"]:
    """For each unit and digit, the one cell where the digit can still go, or -1.

    A digit that the unit already holds, or that has two places or none, gives -1. Read along the
    units, this tells in which of its row, column and box a single is hidden.
    """
    geometry = geometry_of(grids, geometry)
    table = candidate_table(grids, geometry=geometry)
    places = table[:, geometry.units]  # [batch, units, places, digits]
    alone = places.sum(axis=2) == 1
    units = np.arange(geometry.num_units)[:, None]
    cell = geometry.units[units, places.argmax(axis=2)]
    return np.where(alone, cell, -1).astype(np.int16)
