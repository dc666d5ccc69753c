"""Candidates and hidden singles of many grids."""

import numpy as np

from ronri.sudoku.kernels.bits import popcount
from ronri.sudoku.kernels.compiled import kernel


@kernel
def candidate_masks(grids, tables, masks):
    """Bit `digit - 1` for each digit that no peer holds; nothing for filled cells."""
    every = (1 << tables.size) - 1
    in_unit = np.empty(3 * tables.size, np.int64)
    for i in range(len(grids)):
        in_unit[:] = 0
        for cell in range(grids.shape[1]):
            if grids[i, cell]:
                bit = 1 << (np.int64(grids[i, cell]) - 1)
                for kind in range(3):
                    in_unit[tables.units_of[cell, kind]] |= bit
        for cell in range(grids.shape[1]):
            row, column, box = tables.units_of[cell]
            taken = in_unit[row] | in_unit[column] | in_unit[box]
            masks[i, cell] = 0 if grids[i, cell] else every & ~taken


@kernel
def only_places(masks, tables, places):
    """For each unit and digit, the one cell that has it as a candidate, or -1."""
    size = tables.size
    for i in range(len(masks)):
        for unit in range(3 * size):
            once, twice = 0, 0
            for k in range(size):
                mask = np.int64(masks[i, tables.units[unit, k]])
                twice |= once & mask
                once |= mask
            places[i, unit, :] = -1
            alone = once & ~twice
            for k in range(size):
                mask = np.int64(masks[i, tables.units[unit, k]]) & alone
                while mask:
                    bit = mask & -mask
                    mask ^= bit
                    places[i, unit, popcount(bit - 1)] = tables.units[unit, k]
