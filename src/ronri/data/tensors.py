"""Torch twins of geometry, symmetry, packing and validity: the same answers, on any device.

Each is tested equal to its original in `sudoku/` or `data/packing.py`.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from ronri.data import chance
from ronri.data.packing import Layout
from ronri.sudoku.geometry import Geometry


@final
@dataclass(frozen=True)
class Symmetries:
    """As `sudoku.symmetry.Symmetries`: new[c] = digit_to[old[cell_from[c]]]."""

    cell_from: Int64[Tensor, "rows cells"]
    # digit_to[:, 0] is 0: an empty cell stays empty.
    digit_to: Int64[Tensor, "rows digits_and_0"]

    def apply(self, grids: UInt8[Tensor, "rows cells"]) -> UInt8[Tensor, "rows cells"]:
        moved = grids.gather(1, self.cell_from)
        return self.digit_to.gather(1, moved.long()).to(torch.uint8)

    def undo(self, grids: UInt8[Tensor, "rows cells"]) -> UInt8[Tensor, "rows cells"]:
        renamed = self.digit_to.argsort(dim=1).gather(1, grids.long())
        return renamed.gather(1, self.cell_from.argsort(dim=1)).to(torch.uint8)

    def undo_beliefs(
        self, beliefs: Float[Tensor, "rows cells digits"]
    ) -> Float[Tensor, "rows cells digits"]:
        """Beliefs about the images of boards, as beliefs about the boards."""
        cell_to = self.cell_from.argsort(dim=1)[:, :, None].expand_as(beliefs)
        digit_to = (self.digit_to[:, 1:] - 1)[:, None, :].expand_as(beliefs)
        return beliefs.gather(1, cell_to).gather(2, digit_to)

    def undo_cells(self, cells: Int64[Tensor, "rows"]) -> Int64[Tensor, "rows"]:
        return self.cell_from.gather(1, cells[:, None])[:, 0]

    def undo_digits(self, digits: Int64[Tensor, "rows"]) -> Int64[Tensor, "rows"]:
        return self.digit_to.argsort(dim=1).gather(1, digits[:, None])[:, 0]

    def rows(self, which: Int64[Tensor, "some"]) -> "Symmetries":
        return Symmetries(self.cell_from[which], self.digit_to[which])

    def unless(self, plain: Bool[Tensor, "rows"]) -> "Symmetries":
        """These symmetries, but in some rows the one that changes nothing."""
        cells = torch.arange(self.cell_from.shape[1], device=plain.device)
        digits = torch.arange(self.digit_to.shape[1], device=plain.device)
        return Symmetries(
            torch.where(plain[:, None], cells, self.cell_from),
            torch.where(plain[:, None], digits, self.digit_to),
        )


def random_symmetries(keys: Int64[Tensor, "rows"], geometry: Geometry) -> Symmetries:
    """A symmetry for each key, every one equally likely."""
    size, height, width = geometry.size, geometry.box_height, geometry.box_width
    bands, stacks = size // height, size // width
    # All random bits at once: on a GPU it is the number of small operations that costs.
    draws = chance.draws(keys, 1 + 3 * size + bands + stacks)
    flip, for_digits, for_rows, for_columns = draws.tensor_split(
        (1, 1 + size, 1 + 2 * size + bands), dim=1
    )
    row_from = _lines(for_rows, bands, height)
    column_from = _lines(for_columns, stacks, width)
    cell_from = row_from[:, :, None] * size + column_from[:, None, :]
    if height == width:
        turned = cell_from.transpose(1, 2)
        cell_from = torch.where((flip & 1).bool()[:, :, None], turned, cell_from)
    digits = for_digits.argsort(dim=1) + 1
    nothing = torch.zeros_like(digits[:, :1])
    return Symmetries(cell_from.flatten(1), torch.cat([nothing, digits], dim=1))


def _lines(
    draws: Int64[Tensor, "rows groups_and_size"], groups: int, members: int
) -> Int64[Tensor, "rows size"]:
    """Rows (or columns) in a random order that keeps bands (or stacks) together."""
    for_groups, for_members = draws.tensor_split((groups,), dim=1)
    group = for_groups.argsort(dim=1)
    inside = for_members.unflatten(1, (groups, members)).argsort(dim=2)
    return (group[:, :, None] * members + inside).flatten(1)


def unpack(
    records: UInt8[Tensor, "rows record"], geometry: Geometry
) -> tuple[UInt8[Tensor, "rows cells"], UInt8[Tensor, "rows cells"]]:
    """The puzzles and the solutions of packed records (`data/packing.py` tells the layout)."""
    layout = Layout.of(geometry)
    halves = records[:, : layout.clues]
    solutions = torch.stack([halves & 15, halves >> 4], dim=2).flatten(1)[:, : geometry.cells] + 1
    bits = torch.arange(8, device=records.device, dtype=torch.uint8)
    packed = records[:, layout.clues : layout.rating]
    is_clue = ((packed[:, :, None] >> bits) & 1).flatten(1)[:, : geometry.cells]
    return solutions * is_clue, solutions


def units_satisfied(
    boards: UInt8[Tensor, "rows cells"], geometry: Geometry
) -> Bool[Tensor, "rows units"]:
    """Which rows, columns and boxes hold every digit once."""
    units = torch.from_numpy(geometry.units).to(boards.device)
    # As many powers of two as digits add up to all ones only if each of them is there once.
    powers = torch.where(boards > 0, 1 << boards.int() >> 1, 0)
    return powers[:, units].sum(dim=2) == (1 << geometry.size) - 1


def solves(
    boards: UInt8[Tensor, "rows cells"], clues: UInt8[Tensor, "rows cells"], geometry: Geometry
) -> Bool[Tensor, "rows"]:
    """Whether boards keep the rules and every clue. The check knows no answers."""
    kept = ((clues == 0) | (boards == clues)).all(dim=1)
    return kept & units_satisfied(boards, geometry).all(dim=1)
