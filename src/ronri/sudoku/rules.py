"""The rules: whether grids keep them, and where they do not."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Bool, UInt8

from ronri.sudoku.geometry import SYMBOLS, Geometry, geometry_of
from ronri.sudoku.kernels.rules import BROKEN, SATISFIED, judge_units

# So many more grids are judged by plain Python, a third of a millisecond each: Numba takes half a
# second to get ready, which whoever has a puzzle or two need not wait for.
_patience = 100


@dataclass(frozen=True)
class Conflict:
    """One digit that stands in several cells of one unit."""

    digit: int
    unit: int
    cells: tuple[int, ...]

    def describe(self, geometry: Geometry) -> str:
        """'digit 5 stands twice in row 3: r3c1 and r3c7'."""
        times = "twice" if len(self.cells) == 2 else f"{len(self.cells)} times"
        *first, last = (geometry.cell_name(cell) for cell in self.cells)
        place = f"{geometry.unit_name(self.unit)}: {', '.join(first)} and {last}"
        return f"digit {SYMBOLS[self.digit]} stands {times} in {place}"


def conflicts(grid: UInt8[np.ndarray, "cells"], geometry: Geometry | None = None) -> list[Conflict]:
    """Every digit that stands more than once in a unit: rows first, then columns, then boxes."""
    geometry = geometry_of(grid, geometry)
    found = []
    for unit in np.flatnonzero(_verdicts(grid[None], geometry)[0] == BROKEN):
        members = geometry.units[unit]
        for digit in range(1, geometry.size + 1):
            cells = members[grid[members] == digit]
            if len(cells) > 1:
                found.append(Conflict(digit, int(unit), tuple(cells.tolist())))
    return found


def is_consistent(
    grids: UInt8[np.ndarray, "batch cells"], geometry: Geometry | None = None
) -> Bool[np.ndarray, "batch"]:
    """Whether no digit stands twice in a unit, and none is one that the board does not have."""
    return (_verdicts(grids, geometry) != BROKEN).all(axis=1)


def is_solved(
    grids: UInt8[np.ndarray, "batch cells"], geometry: Geometry | None = None
) -> Bool[np.ndarray, "batch"]:
    """Whether every unit holds every digit once."""
    return (_verdicts(grids, geometry) == SATISFIED).all(axis=1)


def solves(
    grids: UInt8[np.ndarray, "batch cells"],
    clues: UInt8[np.ndarray, "batch cells"],
    geometry: Geometry | None = None,
) -> Bool[np.ndarray, "batch"]:
    """Whether each grid is solved and keeps every clue of its puzzle."""
    return is_solved(grids, geometry) & ((clues == 0) | (grids == clues)).all(axis=1)


def units_satisfied(
    grids: UInt8[np.ndarray, "batch cells"], geometry: Geometry | None = None
) -> Bool[np.ndarray, "batch units"]:
    """Which units hold every digit once."""
    return _verdicts(grids, geometry) == SATISFIED


def _verdicts(
    grids: UInt8[np.ndarray, "batch cells"], geometry: Geometry | None
) -> UInt8[np.ndarray, "batch units"]:
    geometry = geometry_of(grids, geometry)
    grids = np.ascontiguousarray(grids)
    verdicts = np.empty((len(grids), geometry.num_units), np.uint8)
    units = geometry.units
    global _patience
    if len(grids) <= _patience:
        _patience -= len(grids)
        judge_units(grids, units, verdicts, 0, len(grids))
        return verdicts
    from ronri.sudoku.kernels.compiled import spread

    judge = _compiled()
    # Chunks are large because a thread takes longer to start than to judge a few thousand grids.
    spread(
        lambda start, stop: judge(grids, units, verdicts, start, stop),
        len(grids),
        chunk=16_384,
    )
    return verdicts


@cache
def _compiled() -> Callable[..., None]:
    from ronri.sudoku.kernels.compiled import kernel

    judge: Callable[..., None] = kernel(judge_units)
    return judge
