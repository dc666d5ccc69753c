"""Canonical forms: the symmetry that makes a complete grid smallest, read row by row as digits.

Trying the whole group is hopeless on a 9x9 board (1.2 million million symmetries), but almost
everything is forced:

- Relabelling makes the first row 1 2 3 ..., so digits are named after the columns of whichever
  row comes first: a digit's label is the place to which the column that holds it there has moved.
- Fix which row comes first and which second. The second row then tells each column at which
  column its digit stands in the first row: a permutation `points_to` of the columns. Columns are
  placed from left to right. The value of the second row at a place is the place of the column
  pointed to; if that column stands nowhere yet, the smallest value is had by giving it the first
  place it may take, and in no other way. So there is a choice only where a place is still empty
  when its turn comes, and a branch ends as soon as it exceeds the best second row so far.
- With columns and labels fixed, no two rows agree in the first column. That column alone sorts
  the rows inside their bands and the bands themselves.

On a 9x9 board each of the 36 pairs of rows (18 in the grid, 18 in its transpose) leaves at most
18 arrangements, so even the most symmetric grid has no more than 648 images to compare.
"""

from typing import NamedTuple

import numpy as np

from ronri.sudoku.kernels.bits import lowest, popcount
from ronri.sudoku.kernels.chance import scramble
from ronri.sudoku.kernels.compiled import kernel

# Above every digit: what the best image holds where nothing is known yet.
_UNKNOWN = 255


class Board(NamedTuple):
    """A grid as it stands, or transposed."""

    digits: np.ndarray  # [size, size]
    clues: np.ndarray  # [size, size] the digits that the puzzle shows, 0 elsewhere
    cells: np.ndarray  # [size, size] where in the grid they come from
    band_of: np.ndarray  # [size] the band of each row
    stack_of: np.ndarray  # [size] the stack of each column
    mask_of: np.ndarray  # [stacks] the columns of each stack, as a mask


class Columns(NamedTuple):
    """Columns on their way to their places.

    The masks tell which other entries mean anything. They are kept for each place as they were
    before it was filled, so going back to an earlier choice has nothing to clean up.
    """

    start_of: np.ndarray  # [stacks] the first place of each stack
    place_of: np.ndarray  # [size] the place of each column
    column_at: np.ndarray  # [size] the column at each place
    options: np.ndarray  # [size] mask of the columns still to be tried at a place
    homeless: np.ndarray  # [size] mask of the columns without a place
    unopened: np.ndarray  # [size] mask of the columns whose whole stack has no places yet
    filled: np.ndarray  # [size] mask of the places that have a column


class Draft(NamedTuple):
    """Labels and rows that go with an arrangement of columns."""

    labels: np.ndarray  # [size + 1] the label of each digit
    rows: np.ndarray  # [size] the row at each place
    row_with: np.ndarray  # [size + 1] the row that holds each label in its first column
    next_in: np.ndarray  # [bands] the place for the next row of each band, -1 for the first


class Best(NamedTuple):
    """The smallest image so far, and the symmetry that makes it."""

    digits: np.ndarray  # [cells]
    clues: np.ndarray  # [cells] these decide between symmetries that give equal digits
    cell_from: np.ndarray  # [cells]
    digit_to: np.ndarray  # [size + 1]


@kernel
def _complete(board, first, columns, draft):
    """Find the labels and the order of rows that go with an arrangement of columns."""
    size = len(draft.rows)
    num_bands = len(draft.next_in)
    for column in range(size):
        draft.labels[board.digits[first, column]] = columns.place_of[column] + 1
    for row in range(size):
        draft.row_with[draft.labels[board.digits[row, columns.column_at[0]]]] = row

    # Take rows in ascending order of their first label. A new band opens at the next free place.
    for band in range(num_bands):
        draft.next_in[band] = -1
    free = 0
    for label in range(1, size + 1):
        row = draft.row_with[label]
        band = board.band_of[row]
        place = draft.next_in[band]
        if place < 0:
            place = free
            free += len(board.mask_of)
        draft.rows[place] = row
        draft.next_in[band] = place + 1


@kernel
def _order(values, draft, column_at, image, start):
    """Whether values so arranged come before an image (-1), after it (1) or equal it (0)."""
    size = len(column_at)
    for i in range(start, size):
        row = draft.rows[i]
        for j in range(size):
            difference = draft.labels[values[row, column_at[j]]] - image[i * size + j]
            if difference != 0:
                return -1 if difference < 0 else 1
    return 0


@kernel
def _compare(board, first, columns, draft, best):
    """Keep the image that an arrangement of columns gives, if it is smaller than the best.

    Its first two rows are known to equal the best ones.
    """
    _complete(board, first, columns, draft)
    order = _order(board.digits, draft, columns.column_at, best.digits, 2)
    if order == 0:
        order = _order(board.clues, draft, columns.column_at, best.clues, 0)
    if order < 0:
        size = len(draft.rows)
        for i in range(size):
            row = draft.rows[i]
            for j in range(size):
                column = columns.column_at[j]
                best.digits[i * size + j] = draft.labels[board.digits[row, column]]
                best.clues[i * size + j] = draft.labels[board.clues[row, column]]
                best.cell_from[i * size + j] = board.cells[row, column]
        for digit in range(size + 1):
            best.digit_to[digit] = draft.labels[digit]


@kernel
def _forget(best, start):
    """Make everything in the best image from cell `start` on larger than any digit."""
    for cell in range(start, len(best.digits)):
        best.digits[cell] = _UNKNOWN
    for cell in range(len(best.clues)):
        best.clues[cell] = _UNKNOWN


@kernel
def _search(board, first, points_to, columns, draft, best):
    """Visit every arrangement of columns whose second row is as small as the best, or smaller."""
    size = len(points_to)
    columns.options[0] = columns.homeless[0] = columns.unopened[0] = (1 << size) - 1
    columns.filled[0] = 0
    place = 0
    while place >= 0:
        options = columns.options[place]
        if options == 0:
            place -= 1
            continue
        columns.options[place] = options & (options - 1)
        column = lowest(options)
        target = points_to[column]

        # This column and the one it points to take their places, unless they have them.
        homeless = columns.homeless[place]
        unopened = columns.unopened[place]
        filled = columns.filled[place]
        for moved in (column, target):
            if homeless >> moved & 1:
                stack = board.stack_of[moved]
                mask = board.mask_of[stack]
                if unopened >> moved & 1:
                    columns.start_of[stack] = size - popcount(unopened)
                    unopened &= ~mask
                landing = columns.start_of[stack] + popcount(mask & ~homeless)
                columns.place_of[moved] = landing
                columns.column_at[landing] = moved
                homeless &= ~(1 << moved)
                filled |= 1 << landing

        # The second row here is the label of the column pointed to.
        value = columns.place_of[target] + 1
        known = best.digits[size + place]
        if value > known:
            continue
        if value < known:
            # Every prefix can be completed, so all that was known beyond this place is void.
            _forget(best, size + place)
            best.digits[size + place] = value

        if place == size - 1:
            # Should the first column sort some other row into second place, then that row makes
            # a smaller second row, and this image is replaced when its turn comes.
            _compare(board, first, columns, draft, best)
            continue
        place += 1
        columns.homeless[place] = homeless
        columns.unopened[place] = unopened
        columns.filled[place] = filled
        if filled >> place & 1:
            columns.options[place] = 1 << columns.column_at[place]
        elif place == size - popcount(unopened):
            columns.options[place] = unopened
        else:
            stack = board.stack_of[columns.column_at[place - 1]]
            columns.options[place] = board.mask_of[stack] & homeless


@kernel
def _search_all_pairs(board, column_with, points_to, columns, draft, best):
    """Search with every pair of rows that may come first and second."""
    size = len(points_to)
    # The second row is one of the first one's band, or any other where a band is a single row.
    reach = len(board.mask_of) if len(board.mask_of) > 1 else size
    for first in range(size):
        for column in range(size):
            column_with[board.digits[first, column]] = column
        start = first // reach * reach
        for second in range(start, start + reach):
            if second != first:
                for column in range(size):
                    points_to[column] = column_with[board.digits[second, column]]
                _search(board, first, points_to, columns, draft, best)


@kernel
def canonicalise(puzzles, grids, box_height, cell_from, digit_to):
    """Find symmetries that make each grid smallest and, among those that do, its puzzle smallest.

    Each grid is complete and valid, and its puzzle is some of it, or all of it.
    """
    size = digit_to.shape[1] - 1
    box_width = size // box_height
    board = Board(
        np.empty((size, size), np.int64),
        np.empty((size, size), np.int64),
        np.empty((size, size), np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.zeros(box_height, np.int64),
    )
    for i in range(size):
        board.band_of[i] = i // box_height
        board.stack_of[i] = i // box_width
        board.mask_of[board.stack_of[i]] |= 1 << i
    columns = Columns(
        np.empty(box_height, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    draft = Draft(
        np.zeros(size + 1, np.int64),
        np.empty(size, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(box_width, np.int64),
    )
    column_with = np.empty(size + 1, np.int64)
    points_to = np.empty(size, np.int64)
    best_digits = np.empty(size * size, np.int64)
    best_clues = np.empty(size * size, np.int64)

    for i in range(len(grids)):
        best = Best(best_digits, best_clues, cell_from[i], digit_to[i])
        _forget(best, 0)
        for transposed in range(2 if box_height == box_width else 1):
            for row in range(size):
                for column in range(size):
                    cell = column * size + row if transposed else row * size + column
                    board.cells[row, column] = cell
                    board.digits[row, column] = grids[i, cell]
                    board.clues[row, column] = puzzles[i, cell]
            _search_all_pairs(board, column_with, points_to, columns, draft, best)


@kernel
def hash_all(grids, hashes):
    """A 64-bit hash of each row: SplitMix64's output function, chained over the cells."""
    for i in range(len(grids)):
        mixed = scramble(np.uint64(grids.shape[1]))
        for cell in range(grids.shape[1]):
            mixed = scramble(mixed + np.uint64(grids[i, cell]) + np.uint64(1))
        hashes[i] = mixed
