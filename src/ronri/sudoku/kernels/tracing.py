"""The search that `trace.py` records, on a Sudoku seen as an exact cover.

A board is solved when every cell holds one digit and every unit holds each digit in one place:
`cells + units * size` constraints, each waiting for one of `size` placements. A placement takes
part in four of them: its cell, and its digit in its row, column and box. `options[constraint]` is
the bit mask of the placements still possible there. So a naked single and a hidden single are the
same thing, a constraint with one option, and both kinds of contradiction are a constraint with
none.

A forced placement stays forced until it is made or its branch fails, because whatever else takes
it away leaves its constraint without any option. Hence the list of forced placements needs no
repair, and since a guess is made only when nothing is forced, undoing a guess leaves it empty.
Each depth of the search has a row of `options` of its own, so a pop costs nothing.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from ronri.sudoku.geometry import Geometry
from ronri.sudoku.kernels.bits import lowest, popcount
from ronri.sudoku.kernels.chance import below, fork, shuffle
from ronri.sudoku.kernels.compiled import inlined, kernel

SOLVED, IMPOSSIBLE, UNFINISHED = 0, 1, 2

# A constraint that has its placement. Two bits above every option, so that it looks neither
# contradictory nor forced, and taking options from it changes nothing.
_MET = np.int32(3 << 16)


class Cover(NamedTuple):
    """Which placements meet which constraints, in one geometry. Cells are the first constraints."""

    size: int
    constraints_of: np.ndarray  # [placements 4]: cell, row, column, box
    slots_of: np.ndarray  # [placements 4]: which option of that constraint it is
    placements_of: np.ndarray  # [constraints size]: the placement behind each option


class Workspace(NamedTuple):
    """Arrays that the puzzles of a batch use one after the other."""

    forced: np.ndarray  # the forced placements, in no order
    seen: np.ndarray  # [placements]: has been in `forced`, or was placed, since the last push
    clues: np.ndarray
    ties: np.ndarray  # cells that are equally good to guess at
    options: np.ndarray  # [depths constraints]
    num_placed: np.ndarray  # [depths]
    choices: np.ndarray  # [depths size]: what to guess at that depth, in this order
    num_choices: np.ndarray  # [depths]
    num_tried: np.ndarray  # [depths]


class Outcome(NamedTuple):
    length: int
    pushes: int
    pops: int
    status: int


@cache
def cover_of(geometry: Geometry) -> Cover:
    size, placements = geometry.size, np.arange(geometry.cells * geometry.size)
    cell, digit = placements // size, placements % size
    units = geometry.units_of[cell]
    place_in_unit = (geometry.units[units] == cell[:, None, None]).argmax(axis=2)
    constraints_of = np.column_stack([cell, geometry.cells + units * size + digit[:, None]])
    slots_of = np.column_stack([digit, place_in_unit])
    placements_of = np.empty((geometry.cells + geometry.num_units * size, size), np.int32)
    placements_of[constraints_of, slots_of] = placements[:, None]
    return Cover(size, constraints_of.astype(np.int32), slots_of.astype(np.int32), placements_of)


@kernel
def _workspace(cover):
    placements, (constraints, size) = cover.constraints_of.shape[0], cover.placements_of.shape
    cells = size * size
    return Workspace(
        np.empty(placements, np.int32),
        np.empty(placements, np.bool_),
        np.empty(cells, np.int32),
        np.empty(cells, np.int32),
        np.empty((cells + 1, constraints), np.int32),
        np.empty(cells + 1, np.int32),
        np.empty((cells + 1, size), np.int32),
        np.empty(cells + 1, np.int32),
        np.empty(cells + 1, np.int32),
    )


@inlined
def _emit(row, length, token):
    """Append a token where there is room for it; the length counts it in any case."""
    if length < row.size:
        row[length] = token
    return length + 1


@kernel
def _place(options, placement, cover, forced, seen, num_forced):
    """Make a placement: it meets its constraints, and its rivals there are options no more.

    Returns the new number of forced placements, or -1 after a contradiction.
    """
    # While its rivals go, the constraints of this placement narrow down to itself: no news.
    seen[placement] = True
    for j in range(4):
        met = cover.constraints_of[placement, j]
        rivals = options[met] & ~(1 << cover.slots_of[placement, j])
        options[met] = _MET
        while rivals:
            rival = cover.placements_of[met, lowest(rivals)]
            rivals &= rivals - 1
            for k in range(4):
                constraint = cover.constraints_of[rival, k]
                left = options[constraint] & ~(1 << cover.slots_of[rival, k])
                options[constraint] = left
                if left & (left - 1) == 0:
                    if left == 0:
                        return -1
                    only = cover.placements_of[constraint, lowest(left)]
                    if not seen[only]:
                        seen[only] = True
                        forced[num_forced] = only
                        num_forced += 1
    return num_forced


@kernel
def _set_clues(puzzle, cover, work):
    """Put the clues on the board at depth 0, and list them and what they force.

    Returns the number of clues and of forced placements, the latter -1 if there is no solution.
    """
    size, options, forced = cover.size, work.options[0], work.forced
    options[:] = (1 << size) - 1
    work.seen[:] = False
    num_clues = num_forced = 0
    for cell in range(size * size):
        if puzzle[cell] > 0:
            slot = puzzle[cell] - 1
            placement = cell * size + slot
            work.clues[num_clues] = placement
            num_clues += 1
            # Clues that clash are a puzzle without a solution, like any other such puzzle.
            if num_forced >= 0 and options[cell] >> slot & 1:
                num_forced = _place(options, placement, cover, forced, work.seen, num_forced)
            else:
                num_forced = -1
    # Some of what the first clues forced was made by later clues.
    kept = 0
    for i in range(num_forced):
        if options[forced[i] // size] != _MET:
            forced[kept] = forced[i]
            kept += 1
    return num_clues, min(kept, num_forced)


@kernel
def _open_node(options, size, chance, ties, choices):
    """Choose a cell to guess at and write its placements to `choices`, in random order.

    The cell is a random one of those with the fewest candidates. Returns how many it has.
    """
    fewest, num_ties = size + 1, 0
    for cell in range(size * size):
        if options[cell] != _MET:
            count = popcount(options[cell])
            if count < fewest:
                fewest, num_ties = count, 0
            if count == fewest:
                ties[num_ties] = cell
                num_ties += 1
    cell = ties[below(chance, num_ties)]
    left = options[cell]
    for i in range(fewest):
        choices[i] = cell * size + lowest(left)
        left &= left - 1
    shuffle(chance, choices, fewest)
    return fewest


@kernel
def _search(row, length, limit, num_forced, cover, chance, work):
    """Append to `row` the events that follow `clues_end`."""
    size, num_placements = cover.size, cover.constraints_of.shape[0]
    push, pop, success = num_placements + 1, num_placements + 2, num_placements + 3
    pushes = pops = depth = 0
    while length < limit:
        if num_forced > 0:
            pick = below(chance, num_forced)
            num_forced -= 1
            placement = work.forced[pick]
            work.forced[pick] = work.forced[num_forced]
            num_forced = _place(
                work.options[depth], placement, cover, work.forced, work.seen, num_forced
            )
            work.num_placed[depth] += 1
            length = _emit(row, length, placement)
            continue

        if num_forced == 0:
            if work.num_placed[depth] == size * size:
                return Outcome(_emit(row, length, success), pushes, pops, SOLVED)
            work.num_tried[depth] = 0
            work.num_choices[depth] = _open_node(
                work.options[depth], size, chance, work.ties, work.choices[depth]
            )
        else:
            if depth == 0:
                return Outcome(length, pushes, pops, IMPOSSIBLE)
            depth -= 1
            pops += 1
            length = _emit(row, length, pop)
            if work.num_tried[depth] == work.num_choices[depth]:
                continue  # every candidate has failed, and so has the branch around them

        placement = work.choices[depth, work.num_tried[depth]]
        work.num_tried[depth] += 1
        work.options[depth + 1] = work.options[depth]
        work.num_placed[depth + 1] = work.num_placed[depth] + 1
        depth += 1
        work.seen[:] = False
        num_forced = _place(work.options[depth], placement, cover, work.forced, work.seen, 0)
        pushes += 1
        length = _emit(row, _emit(row, length, push), placement)
    return Outcome(length, pushes, pops, UNFINISHED)


@kernel
def trace_batch(
    puzzles, seed, first, step, limit, shuffle_clues, cover, tokens, lengths, pushes, pops, status
):
    """Record the trace of each puzzle in its row of `tokens`, which comes filled with padding."""
    clues_end = cover.constraints_of.shape[0]
    work = _workspace(cover)
    for i in range(puzzles.shape[0]):
        chance = fork(seed, first + i * step)
        num_clues, num_forced = _set_clues(puzzles[i], cover, work)
        work.num_placed[0] = num_clues
        if shuffle_clues:
            shuffle(chance, work.clues, num_clues)

        length = 0
        for c in range(num_clues):
            length = _emit(tokens[i], length, work.clues[c])
        length = _emit(tokens[i], length, clues_end)
        outcome = _search(tokens[i], length, limit, num_forced, cover, chance, work)
        lengths[i], pushes[i], pops[i] = outcome.length, outcome.pushes, outcome.pops
        status[i] = outcome.status
