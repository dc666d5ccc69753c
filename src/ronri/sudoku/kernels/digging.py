"""Making puzzles: random grids, clues dug out of them, hard puzzles bred from one another."""

from typing import NamedTuple

import numpy as np

from ronri.sudoku.kernels import bitboard, chance, search
from ronri.sudoku.kernels.compiled import kernel
from ronri.sudoku.kernels.group import draw_symmetry


class Room(NamedTuple):
    """Scratch arrays of one thread."""

    state: np.ndarray
    seen: np.ndarray
    state_stack: np.ndarray
    board: np.ndarray
    board_stack: np.ndarray
    deterministic: np.ndarray
    order: np.ndarray
    found: np.ndarray
    cell_from: np.ndarray
    digit_to: np.ndarray
    turned: np.ndarray


@kernel
def make_room(tables):
    cells = len(tables.peers)
    return Room(
        np.empty(bitboard.STATE, np.int32),
        np.empty(bitboard.WORDS, np.int32),
        np.empty((bitboard.MAX_DEPTH, bitboard.STATE + 2), np.int32),
        np.empty(cells, np.int64),
        np.empty((cells + 1, cells), np.int64),
        np.empty(0, np.uint64),
        np.empty(cells, np.int64),
        np.empty((2, cells), np.uint8),
        np.empty(cells, np.int64),
        np.empty(tables.size + 1, np.uint8),
        np.empty(cells, np.uint8),
    )


@kernel
def find(puzzle, cell, digit, limit, random, tables, room):
    """Search for up to `limit` solutions, into `room.found`: (solutions, guesses).

    With a `digit`, only solutions that do *not* have it on `cell` count.
    """
    if tables.box_height == 3 and tables.box_width == 3:
        bitboard.start(puzzle, room.state, room.seen)
        if digit:
            room.state[3 * (digit - 1) + cell // 27] &= ~(1 << (cell % 27))
        return bitboard.search(room.state, room.seen, room.state_stack, limit, room.found, random)
    search.start(puzzle, room.board, tables)
    if digit:
        room.board[cell] &= ~(1 << (digit - 1))
    return search.search(room.board, tables, room.board_stack, limit, room.found, random)


@kernel
def fill(grid, random, tables, room):
    """A random solution grid: cells with the fewest candidates first, digits at random."""
    grid[:] = 0
    find(grid, 0, 0, 1, random, tables, room)
    grid[:] = room.found[0]


@kernel
def dig(puzzle, target, random, tables, room):
    """Take clues away in random order while the solution stays unique, down to `target` clues.

    Each clue is tried once: one that cannot go now cannot go later either, when fewer are left.
    Returns the number of clues left, so with a target of 0 the puzzle is minimal.
    """
    clues = 0
    for cell in range(len(puzzle)):
        if puzzle[cell]:
            room.order[clues] = cell
            clues += 1
    chance.shuffle(random, room.order, clues)
    left = clues
    for i in range(clues):
        if left <= target:
            break
        cell = room.order[i]
        digit = np.int64(puzzle[cell])
        puzzle[cell] = 0
        others, _ = find(puzzle, cell, digit, 1, room.deterministic, tables, room)
        if others:
            puzzle[cell] = digit
        else:
            left -= 1
    return left


@kernel
def fill_batch(seed, first, step, tables, grids):
    room = make_room(tables)
    for i in range(len(grids)):
        fill(grids[i], chance.fork(seed, first + i * step), tables, room)


@kernel
def dig_batch(seed, first, step, fewest, most, tries, tables, puzzles, solutions, clues):
    """Puzzles with a random number of clues between `fewest` and `most`; minimal if that is 0.

    Where digging gets stuck above the number it drew, it starts over with a new grid, `tries` times
    at most. `clues` tells how many clues each has, 0 where it gave up.
    """
    room = make_room(tables)
    for i in range(len(puzzles)):
        random = chance.fork(seed, first + i * step)
        target = fewest + chance.below(random, most - fewest + 1)
        clues[i] = 0
        for _ in range(tries):
            fill(solutions[i], random, tables, room)
            puzzles[i] = solutions[i]
            left = dig(puzzles[i], target, random, tables, room)
            if left <= target or target == 0:
                clues[i] = left
                break


@kernel
def turn(puzzle, random, tables, room):
    """A random symmetric copy of a puzzle, into `room.turned`."""
    draw_symmetry(random, tables.box_height, tables.box_width, room.cell_from, room.digit_to)
    for cell in range(len(puzzle)):
        room.turned[cell] = room.digit_to[puzzle[room.cell_from[cell]]]


@kernel
def mutate(puzzle, random, tables, room):
    """Turn a minimal puzzle into another in place; false if it came back unchanged.

    One or two clues go, one of the solutions that opens up is taken for the new one, clues of it
    are added where another solution differs until none is left, and what is redundant goes.
    """
    cells = len(puzzle)
    clues = 0
    for cell in range(cells):
        if puzzle[cell]:
            room.order[clues] = cell
            clues += 1
    chance.shuffle(random, room.order, clues)
    gone = min(1 + chance.below(random, 2), clues)
    before = puzzle.copy()
    for i in range(gone):
        puzzle[room.order[i]] = 0
    find(puzzle, 0, 0, 1, random, tables, room)
    solution = room.found[0].copy()
    while True:
        count, _ = find(puzzle, 0, 0, 2, room.deterministic, tables, room)
        if count == 1:
            break
        # Of two solutions at least one is not ours; add a clue on which it disagrees.
        other = 0 if differs(room.found[0], solution) else 1
        disagreements = 0
        for cell in range(cells):
            if room.found[other, cell] != solution[cell]:
                room.order[disagreements] = cell
                disagreements += 1
        cell = room.order[chance.below(random, disagreements)]
        puzzle[cell] = solution[cell]
    dig(puzzle, 0, random, tables, room)
    return differs(puzzle, before)


@kernel
def differs(a, b):
    for i in range(len(a)):
        if a[i] != b[i]:
            return True
    return False


@kernel
def mean_guesses(puzzle, copies, random, tables, room):
    """Guesses averaged over random symmetric copies."""
    total = 0
    for _ in range(copies):
        turn(puzzle, random, tables, room)
        _, guesses = find(room.turned, 0, 0, 1, room.deterministic, tables, room)
        total += guesses
    return total / copies


@kernel
def breed_batch(parents, seed, first, copies, tables, children, ratings):
    """One mutated child of each parent and its mean number of guesses; -1 where none came of it."""
    room = make_room(tables)
    for i in range(len(parents)):
        random = chance.fork(seed, first + i)
        children[i] = parents[i]
        ratings[i] = -1.0
        if mutate(children[i], random, tables, room):
            ratings[i] = mean_guesses(children[i], copies, random, tables, room)
