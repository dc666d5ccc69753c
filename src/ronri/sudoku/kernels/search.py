"""The exact solver for any geometry, written to be read: the reference for `bitboard`.

The board is one candidate mask per cell (bit `digit - 1`). Three rules are followed to the end:
a cell with one candidate takes it from its peers; a digit with one place in a unit goes there;
a digit confined, within a box, to one line leaves the rest of that line, and the other way round
(locked candidates). These rules only ever remove candidates, so the order in which they are used
does not matter, and neither does the data structure: `bitboard` reaches the same boards, makes the
same guesses in the same order, and a test compares the two guess by guess.
"""

import numpy as np

from ronri.sudoku.kernels import chance
from ronri.sudoku.kernels.bits import lowest, popcount
from ronri.sudoku.kernels.compiled import kernel


@kernel
def settle(board, tables):
    """Follow the three rules until nothing moves; false at a contradiction."""
    size = tables.size
    moved = True
    while moved:
        moved = False
        for cell in range(len(board)):
            mask = board[cell]
            if mask == 0:
                return False
            if popcount(mask) == 1:
                for peer in tables.peers[cell]:
                    if board[peer] & mask:
                        board[peer] &= ~mask
                        moved = True
        for unit in range(3 * size):
            once, twice = 0, 0
            for cell in tables.units[unit]:
                twice |= once & board[cell]
                once |= board[cell]
            if once != (1 << size) - 1:
                return False
            for cell in tables.units[unit]:
                hidden = board[cell] & ~twice
                if hidden and popcount(board[cell]) > 1:
                    # Two digits with this one place: keeping the lower leaves the other none.
                    board[cell] = hidden & -hidden
                    moved = True
        for box in range(2 * size, 3 * size):
            for cell in tables.units[box]:
                moved |= lock(board, tables, box, tables.units_of[cell, 0])
                moved |= lock(board, tables, box, tables.units_of[cell, 1])
    return True


@kernel
def lock(board, tables, box, line):
    """Locked candidates between a box and a line that crosses it; whether anything was removed."""
    inside, box_rest, line_rest = 0, 0, 0
    for cell in tables.units[box]:
        if in_line(tables, cell, line):
            inside |= board[cell]
        else:
            box_rest |= board[cell]
    for cell in tables.units[line]:
        if tables.units_of[cell, 2] != box:
            line_rest |= board[cell]
    from_line = inside & ~box_rest & line_rest
    from_box = inside & ~line_rest & box_rest
    if from_line:
        for cell in tables.units[line]:
            if tables.units_of[cell, 2] != box:
                board[cell] &= ~from_line
    if from_box:
        for cell in tables.units[box]:
            if not in_line(tables, cell, line):
                board[cell] &= ~from_box
    return from_line != 0 or from_box != 0


@kernel
def in_line(tables, cell, line):
    return tables.units_of[cell, 0] == line or tables.units_of[cell, 1] == line


@kernel
def start(puzzle, board, tables):
    """Every digit is a candidate of an empty cell, a clue the only one of its own."""
    for cell in range(len(puzzle)):
        board[cell] = 1 << (puzzle[cell] - 1) if puzzle[cell] else (1 << tables.size) - 1


@kernel
def solved(board):
    for mask in board:
        if popcount(mask) != 1:
            return False
    return True


@kernel
def choose(board, tables):
    """Where to guess: `size * cell + digit` (from 0). `bitboard.choose` states the rule."""
    size = tables.size
    best, most = -1, -1
    for cell in range(len(board)):
        if popcount(board[cell]) == 2:
            home = 0
            for peer in tables.peers[cell]:
                shared = popcount(board[peer] & board[cell])
                home += 4 * shared if popcount(board[peer]) == 2 else shared
            if home > most:
                most, best = home, cell
    if best < 0:
        fewest = size + 1
        for cell in range(len(board)):
            count = popcount(board[cell])
            if 1 < count < fewest:
                fewest, best = count, cell
    return size * best + lowest(board[best])


@kernel
def choose_at_random(board, tables, random):
    """A random cell among those with the fewest candidates, and a random candidate of it."""
    fewest, ties, best = tables.size + 1, 0, -1
    for cell in range(len(board)):
        count = popcount(board[cell])
        if 1 < count <= fewest:
            ties = ties + 1 if count == fewest else 1
            fewest = count
            if chance.below(random, ties) == 0:
                best = cell
    mask = board[best]
    for _ in range(chance.below(random, fewest)):
        mask &= mask - 1
    return tables.size * best + lowest(mask)


@kernel
def read(board, grid):
    for cell in range(len(board)):
        grid[cell] = lowest(board[cell]) + 1


@kernel
def search(board, tables, stack, limit, grids, random):
    """Count solutions up to `limit`; write the first ones into `grids`, as many as it has rows.

    Returns (solutions, guesses up to the first of them). With a generator of random numbers as
    `random` (not empty), guesses are made at random.
    """
    solutions = guesses = first_guesses = depth = 0
    alive = settle(board, tables)
    while True:
        if alive and solved(board):
            if solutions < len(grids):
                read(board, grids[solutions])
            if solutions == 0:
                first_guesses = guesses
            solutions += 1
            alive = False
            if solutions >= limit:
                return solutions, first_guesses
        if alive:
            choice = (
                choose_at_random(board, tables, random) if len(random) else choose(board, tables)
            )
            cell, bit = choice // tables.size, 1 << (choice % tables.size)
            guesses += 1
            # What is left to try: the same board without this candidate.
            stack[depth] = board
            stack[depth, cell] ^= bit
            depth += 1
            board[cell] = bit
        else:
            if depth == 0:
                return solutions, first_guesses if solutions else guesses
            depth -= 1
            board[:] = stack[depth]
        alive = settle(board, tables)


@kernel
def solve_batch(puzzles, tables, limit, solutions, counts, guesses):
    cells = puzzles.shape[1]
    board, stack = np.empty(cells, np.int64), np.empty((cells + 1, cells), np.int64)
    deterministic = np.empty(0, np.uint64)
    for i in range(len(puzzles)):
        start(puzzles[i], board, tables)
        counts[i], guesses[i] = search(
            board, tables, stack, limit, solutions[i : i + 1], deterministic
        )
