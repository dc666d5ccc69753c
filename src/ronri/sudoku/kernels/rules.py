"""The rules of the game, one verdict for every unit of every grid.

Not compiled here: the first few grids are judged by the function as it is, sooner than Numba would
be ready.
"""

import numpy as np

# A unit may still have empty cells, hold every digit once, or break the rules.
UNFINISHED, SATISFIED, BROKEN = 0, 1, 2

# Digits that no board has all share one bit, well above those of the sixteen real ones.
_STRANGE = 40


def judge_units(grids, units, verdicts, start, stop):
    """Write the verdict on each unit of `grids[start:stop]`, digit sets kept as bit masks."""
    num_units, size = units.shape
    # Bits 1 to `size`; bit 0 is the empty cell, which may come as often as it likes.
    every_digit = (np.int64(2) << np.int64(size)) - np.int64(2)
    for g in range(start, stop):
        for u in range(num_units):
            seen = np.int64(0)
            repeated = np.int64(0)
            for k in range(size):
                bit = np.int64(1) << min(np.int64(grids[g, units[u, k]]), np.int64(_STRANGE))
                repeated |= seen & bit
                seen |= bit
            if repeated > 1 or seen > every_digit + 1:
                verdicts[g, u] = BROKEN
            elif seen == every_digit:
                verdicts[g, u] = SATISFIED
            else:
                verdicts[g, u] = UNFINISHED
