"""Complete grids to work on, some of them very symmetric."""

from collections.abc import Iterator
from functools import cache
from random import Random

import numpy as np
from hypothesis import strategies as st

from boards import shifted_grid
from ronri.sudoku.exact import solve
from ronri.sudoku.generate import Puzzles, RatedPuzzles
from ronri.sudoku.geometry import STANDARD, Geometry
from ronri.sudoku.symmetry import Symmetries

SEEDS = st.integers(0, 2**64 - 1)
# Standard boards, and boxes of every other kind: tall, long, and as thin as a line.
GEOMETRIES = (*STANDARD, Geometry(3, 2), Geometry(2, 4), Geometry(4, 2), Geometry(1, 4))


def solutions_of(geometry: Geometry, random: Random) -> Iterator[list[int]]:
    """Every complete grid, in a random order, by plain backtracking."""
    grid = [0] * geometry.cells
    peers = geometry.peers.tolist()

    def extend() -> Iterator[list[int]]:
        fewest: list[int] | None = None
        cell = -1
        for empty in (c for c in range(geometry.cells) if grid[c] == 0):
            seen = {grid[p] for p in peers[empty]}
            options = [d for d in range(1, geometry.size + 1) if d not in seen]
            if fewest is None or len(options) < len(fewest):
                fewest, cell = options, empty
        if fewest is None:
            yield grid.copy()
            return
        for digit in random.sample(fewest, len(fewest)):
            grid[cell] = digit
            yield from extend()
        grid[cell] = 0

    return extend()


def random_solution(geometry: Geometry, seed: int) -> np.ndarray:
    return np.array(next(solutions_of(geometry, Random(seed))), np.uint8)


def pattern_solution(geometry: Geometry) -> np.ndarray:
    """123456789 456789123 789123456 231564897 ...: the most symmetric grid of a 9x9 board."""
    height, width = geometry.box_height, geometry.box_width
    band, row = np.divmod(geometry.row_of, height)
    stack, column = np.divmod(geometry.column_of, width)
    return (width * ((row + stack) % height) + (column + band) % width + 1).astype(np.uint8)


@cache
def some_solutions(geometry: Geometry) -> np.ndarray:
    """Two very symmetric grids, and ten random ones."""
    made = [random_solution(geometry, seed) for seed in range(10)]
    grids = np.stack([pattern_solution(geometry), shifted_grid(geometry), *made])
    grids.flags.writeable = False
    return grids


def some_puzzles(solutions: np.ndarray, seed: int) -> np.ndarray:
    """About half of the cells of each solution; uniqueness does not matter to symmetry."""
    hidden = np.random.default_rng(seed).random(solutions.shape) < 0.5
    return np.where(hidden, np.uint8(0), solutions)


def text(grid: np.ndarray) -> str:
    return "".join(map(str, grid.tolist()))


def same(one: Symmetries, other: Symmetries) -> bool:
    return np.array_equal(one.cell_from, other.cell_from) and np.array_equal(
        one.digit_to, other.digit_to
    )


def is_symmetry(cell_from: np.ndarray, geometry: Geometry) -> bool:
    """Whether lines come from lines of one kind, and boxes from boxes."""

    def comes_whole(new: np.ndarray, old: np.ndarray) -> bool:
        return all(len(np.unique(old[cell_from[new == unit]])) == 1 for unit in np.unique(new))

    row, column = geometry.row_of, geometry.column_of
    straight = comes_whole(row, row) and comes_whole(column, column)
    crossed = comes_whole(row, column) and comes_whole(column, row)
    is_permutation = np.array_equal(np.sort(cell_from), np.arange(geometry.cells))
    return (
        is_permutation and (straight or crossed) and comes_whole(geometry.box_of, geometry.box_of)
    )


def assert_proper(made: Puzzles | RatedPuzzles, geometry: Geometry) -> None:
    """Each puzzle has exactly the solution that comes with it."""
    found = solve(made.puzzles, geometry=geometry)
    assert (found.counts == 1).all()
    np.testing.assert_array_equal(found.solutions, made.solutions)


def assert_minimal(puzzles: np.ndarray) -> None:
    """Without any one of its clues, a puzzle has several solutions."""
    for puzzle in puzzles:
        clues = np.flatnonzero(puzzle)
        fewer = np.tile(puzzle, (len(clues), 1))
        fewer[np.arange(len(clues)), clues] = 0
        assert (solve(fewer).counts == 2).all()
