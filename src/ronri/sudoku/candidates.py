"""What can be seen at a glance: candidates, naked singles, hidden singles.

A candidate of an empty cell is a digit that none of its peers holds; nothing cleverer is removed.
A naked single is the only candidate of its cell, a hidden single the only place of its digit in
a unit. Probes ask whether networks know these; pages draw them.
"""

import numpy as np
from jaxtyping import Bool, Int16, UInt8, UInt16

from ronri.sudoku.geometry import Geometry, playable
from ronri.sudoku.kernels import glance
from ronri.sudoku.kernels.compiled import spread

# Grids that one thread takes at a time: less work would not be worth a thread.
_CHUNK = 4_096


def candidates(
    grids: UInt8[np.ndarray, "batch cells"],
    *,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> UInt16[np.ndarray, "batch cells"]:
    """Candidate masks: bit `digit - 1` is set for each candidate. Filled cells have none."""
    geometry = playable(grids, geometry)
    grids = np.require(grids, requirements=["C", "W"])
    masks = np.empty(grids.shape, np.uint16)

    def work(start: int, stop: int) -> None:
        glance.candidate_masks(grids[start:stop], geometry.tables, masks[start:stop])

    spread(work, len(grids), threads, chunk=_CHUNK)
    return masks


def candidate_table(
    grids: UInt8[np.ndarray, "batch cells"],
    *,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> Bool[np.ndarray, "batch cells size"]:
    """The same, one truth value per cell and digit."""
    geometry = playable(grids, geometry)
    masks = candidates(grids, threads=threads, geometry=geometry)
    digits = np.uint16(1) << np.arange(geometry.size, dtype=np.uint16)
    return (masks[:, :, None] & digits) != 0


def naked_singles(
    grids: UInt8[np.ndarray, "batch cells"],
    *,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> UInt8[np.ndarray, "batch cells"]:
    """The digit of each naked single, 0 elsewhere."""
    masks = candidates(grids, threads=threads, geometry=geometry)
    alone = np.bitwise_count(masks) == 1
    # The lowest bit is the only one: how many stand below it is its digit, less one.
    return np.where(alone, np.bitwise_count(masks - alone) + 1, 0).astype(np.uint8)


def hidden_singles(
    grids: UInt8[np.ndarray, "batch cells"],
    *,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> Int16[np.ndarray, "batch units size"]:
    """For each unit and digit, the one cell where the digit can still go, or -1.

    A digit that the unit already holds, or that has two places or none, gives -1. Read along the
    units, this tells in which of its row, column and box a single is hidden.
    """
    geometry = playable(grids, geometry)
    masks = candidates(grids, threads=threads, geometry=geometry)
    places = np.empty((len(grids), geometry.num_units, geometry.size), np.int16)

    def work(start: int, stop: int) -> None:
        glance.only_places(masks[start:stop], geometry.tables, places[start:stop])

    spread(work, len(grids), threads, chunk=_CHUNK)
    return places
