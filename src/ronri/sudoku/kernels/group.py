"""Random elements of the symmetry group."""

import numpy as np

from ronri.sudoku.kernels.chance import below, fork, shuffle
from ronri.sudoku.kernels.compiled import kernel


@kernel
def _shuffle_lines(state, lines, group):
    """A random order of rows or columns in which groups of `group` neighbours stay together."""
    groups = np.arange(len(lines) // group)
    shuffle(state, groups, len(groups))
    for i in range(len(groups)):
        members = lines[i * group : (i + 1) * group]
        for k in range(group):
            members[k] = groups[i] * group + k
        shuffle(state, members, group)


@kernel
def draw_symmetry(state, box_height, box_width, cell_from, digit_to):
    """Fill two arrays with one random symmetry."""
    size = box_height * box_width
    rows = np.empty(size, np.int64)
    columns = np.empty(size, np.int64)
    transposed = box_height == box_width and below(state, 2) == 1
    _shuffle_lines(state, rows, box_height)
    _shuffle_lines(state, columns, box_width)
    cell = 0
    for row in rows:
        for column in columns:
            cell_from[cell] = column * size + row if transposed else row * size + column
            cell += 1
    for digit in range(size + 1):
        digit_to[digit] = digit
    shuffle(state, digit_to[1:], size)


@kernel
def sample_symmetries(box_height, box_width, seed, start, step, cell_from, digit_to):
    """Fill row `i` with a random symmetry that depends on `seed` and `start + i * step`."""
    for i in range(len(cell_from)):
        random = fork(seed, start + i * step)
        draw_symmetry(random, box_height, box_width, cell_from[i], digit_to[i])
