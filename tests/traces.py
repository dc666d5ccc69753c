"""Puzzles whose traces are known, and ways to make others."""

import numpy as np
from hypothesis import strategies as st

from ronri.sudoku.geometry import NINE, STANDARD, Geometry
from ronri.sudoku.trace import record

# A published puzzle (Arto Inkala, 2010) that takes dozens of guesses.
INKALA = "..53.....8......2..7..1.5..4....53...1..7...6..32...8..6.5....9..4....3......97.."
# Nothing is forced; R3C1 is 1 or 3, and 3 fails at once. Checked by hand.
TINY = ".1.2.....42....4"
TINY_TRACE = (
    "[R1C2=1] [R1C4=2] [R3C2=4] [R3C3=2] [R4C4=4] [clues_end] "
    "[push] [R3C1=3] [R1C3=3] [pop] "
    "[push] [R3C1=1] [R3C4=3] [R4C3=1] [R2C4=1] "
    "[push] [R1C1=3] [R4C1=2] [R4C2=3] [R2C2=2] [R2C1=4] [R1C3=4] [R2C3=3] [success]"
)
TINY_SOLUTION = "3142423114232314"
# Four corners of a rectangle where 1 and 3 may swap: two solutions, nothing forced, and a guess at
# any corner settles the others.
RECTANGLE = ".2.4.4.221434321"
# No clue breaks a rule and no cell or unit has run dry, yet there is no solution.
IMPOSSIBLE = (
    ".421....6............261...3....1...",
    "2..4.....2......3.....1........56...",
)
# The first of them, searched to its end: a cell with two candidates inside another one.
NESTED_TRACE = (
    "[R1C2=4] [R1C3=2] [R1C4=1] [R2C3=6] [R4C4=2] [R4C5=6] [R4C6=1] [R5C4=3] [R6C3=1] [clues_end] "
    "[R1C6=6] [R5C5=1] [R6C4=6] "
    "[push] [R2C4=4] [R3C4=5] [push] [R3C3=3] [pop] [push] [R3C3=4] [pop] [pop] "
    "[push] [R2C4=5] [R1C5=3] [R1C1=5] [R3C6=3] [R4C3=3] [R4C1=4] [R5C3=4] [R4C2=5] [pop]"
)


def board_of(text: str) -> np.ndarray:
    return np.array([0 if c == "." else int(c) for c in text], np.uint8)


def trace_of(
    puzzle: np.ndarray, seed: int = 0, length: int = 6000, geometry: Geometry | None = None
) -> np.ndarray:
    traces = record(puzzle[None], seed=seed, length=length, geometry=geometry)
    assert traces.fits.all()
    return traces.tokens[0, : traces.lengths[0]]


def blanked(geometry: Geometry, seed: int, share: float) -> np.ndarray:
    """A puzzle made of a random symmetric copy of a simple solution, with cells taken away."""
    size, height, width = geometry.size, geometry.box_height, geometry.box_width
    chance = np.random.default_rng(seed)
    rows = np.concatenate([chance.permutation(height) + b for b in range(0, size, height)])
    columns = np.concatenate([chance.permutation(width) + s for s in range(0, size, width)])
    row, column = rows[:, None], columns[None, :]
    solution = chance.permutation(size)[(row * width + row // height + column) % size] + 1
    kept = chance.random(geometry.cells) >= share
    return (solution.ravel() * kept).astype(np.uint8)


def is_solution(board: np.ndarray, geometry: Geometry) -> bool:
    full = np.arange(1, geometry.size + 1)
    return bool((np.sort(board[geometry.units], axis=1) == full).all())


geometries = st.sampled_from([*STANDARD, Geometry(3, 2)])
seeds = st.integers(0, 2**63)


def singles(puzzle: np.ndarray) -> tuple[set[int], set[int]]:
    """The naked and the hidden singles of a 9x9 puzzle, by the definition."""
    candidates = np.zeros((81, 9), bool)
    for cell in np.flatnonzero(puzzle == 0):
        held = set(puzzle[NINE.peers[cell]])
        candidates[cell] = [digit not in held for digit in range(1, 10)]
    naked = candidates & (candidates.sum(axis=1, keepdims=True) == 1)
    hidden = np.zeros_like(candidates)
    for unit in NINE.units:
        hidden[unit] |= candidates[unit] & (candidates[unit].sum(axis=0) == 1)
    return set(np.flatnonzero(naked).tolist()), set(np.flatnonzero(hidden).tolist())
