"""Board geometries as data: what a cell, a unit and a peer is, for any box shape.

A board of `box_height` x `box_width` boxes has `size = box_height * box_width` digits, rows,
columns and boxes. Cells are numbered row by row from 0; digits run from 1, and 0 is an empty
cell. Units are numbered rows first, then columns, then boxes, so unit `u` is row `u`,
column `u - size` or box `u - 2 * size`.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

# SYMBOLS[d] is how digit d is written.
SYMBOLS = ".123456789ABCDEFG"
# Candidate sets are bit masks in sixteen bits, so no board may have more digits than that.
MAX_SIZE = 16


class Tables(NamedTuple):
    """A geometry as compiled kernels want it: three numbers and three arrays."""

    size: int
    box_height: int
    box_width: int
    units: Int64[np.ndarray, "units size"]
    units_of: Int64[np.ndarray, "cells 3"]
    peers: Int64[np.ndarray, "cells peers"]


@dataclass(frozen=True)
class Geometry:
    """A square board cut into boxes of `box_height` rows and `box_width` columns."""

    box_height: int
    box_width: int

    def __post_init__(self) -> None:
        if self.box_height < 1 or self.box_width < 1 or not 2 <= self.size <= MAX_SIZE:
            raise ValueError(
                f"boxes of {self.box_height}x{self.box_width} cells make no board: "
                f"a board has between 2 and {MAX_SIZE} digits"
            )

    @property
    def size(self) -> int:
        """Number of digits, and of rows, columns and boxes."""
        return self.box_height * self.box_width

    @property
    def cells(self) -> int:
        return self.size * self.size

    @property
    def num_units(self) -> int:
        return 3 * self.size

    @property
    def name(self) -> str:
        return f"{self.size}x{self.size}"

    @cached_property
    def row_of(self) -> Int64[np.ndarray, "cells"]:
        return np.arange(self.cells) // self.size

    @cached_property
    def column_of(self) -> Int64[np.ndarray, "cells"]:
        return np.arange(self.cells) % self.size

    @cached_property
    def box_of(self) -> Int64[np.ndarray, "cells"]:
        boxes_across = self.size // self.box_width
        return self.row_of // self.box_height * boxes_across + self.column_of // self.box_width

    @cached_property
    def units_of(self) -> Int64[np.ndarray, "cells 3"]:
        """The row, column and box unit of each cell."""
        return np.stack(
            [self.row_of, self.size + self.column_of, 2 * self.size + self.box_of], axis=1
        )

    @cached_property
    def units(self) -> Int64[np.ndarray, "units size"]:
        """The cells of each unit, in ascending order."""
        members = [np.flatnonzero((self.units_of == u).any(axis=1)) for u in range(self.num_units)]
        return np.stack(members)

    @cached_property
    def peers(self) -> Int64[np.ndarray, "cells peers"]:
        """The other cells that share a unit with each cell, in ascending order."""
        share = (self.units_of[:, None, :] == self.units_of[None, :, :]).any(axis=2)
        np.fill_diagonal(share, False)
        return np.stack([np.flatnonzero(row) for row in share])

    @cached_property
    def tables(self) -> Tables:
        return Tables(
            self.size, self.box_height, self.box_width, self.units, self.units_of, self.peers
        )

    def unit_name(self, unit: int) -> str:
        """'row 3', 'column 1', 'box 9', counted from 1 as people do."""
        kind = ("row", "column", "box")[unit // self.size]
        return f"{kind} {unit % self.size + 1}"

    def cell_name(self, cell: int) -> str:
        """'r1c1' for the first cell."""
        return f"r{cell // self.size + 1}c{cell % self.size + 1}"


FOUR = Geometry(2, 2)
SIX = Geometry(2, 3)
NINE = Geometry(3, 3)
STANDARD = (FOUR, SIX, NINE)


@cache
def standard(cells: int) -> Geometry:
    """The standard geometry with this many cells: 16, 36 or 81."""
    for geometry in STANDARD:
        if geometry.cells == cells:
            return geometry
    known = ", ".join(f"{g.cells} ({g.name})" for g in STANDARD)
    raise ValueError(f"no standard board has {cells} cells; boards have {known}")


def geometry_of(grids: np.ndarray, geometry: Geometry | None = None) -> Geometry:
    """The geometry of grids: the one that is given, if they fit it, or the standard one."""
    cells = grids.shape[-1]
    if geometry is None:
        return standard(cells)
    if geometry.cells != cells:
        raise ValueError(f"a {geometry.name} board has {geometry.cells} cells, not {cells}")
    return geometry


def playable(grids: np.ndarray, geometry: Geometry | None = None) -> Geometry:
    """The geometry of a batch that kernels may be given: they trust its shape and its digits."""
    if not isinstance(grids, np.ndarray) or grids.ndim != 2 or grids.dtype != np.uint8:
        raise ValueError(
            "boards come as a batch: a uint8 array [batch, cells]; for one grid write grid[None]"
        )
    geometry = geometry_of(grids, geometry)
    if grids.size and grids.max() > geometry.size:
        raise ValueError(f"digit {grids.max()} does not exist on a {geometry.name} board")
    return geometry
