"""The exact solver: solve, count solutions, and how many guesses a puzzle takes.

A guess is a digit tried without proof. The solver first follows every naked single, hidden single
and locked candidate; when these run dry it tries one candidate of one cell, and if that fails, it
knows the candidate is wrong and goes on. The number of guesses up to the solution is the puzzle's
*rating*: 0 for what pure propagation solves, dozens for the hardest puzzles people publish.

Boards of 9x9 take a fast path on bit boards that makes exactly the same guesses as the reference.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from ronri.sudoku import symmetry
from ronri.sudoku.geometry import NINE, Geometry, playable
from ronri.sudoku.kernels import bitboard, search
from ronri.sudoku.kernels.compiled import spread


@dataclass(frozen=True)
class Solutions:
    """What the solver found for a batch of puzzles."""

    solutions: UInt8[np.ndarray, "batch cells"]
    """The first solution found; zeros where there is none."""
    counts: Int64[np.ndarray, "batch"]
    """How many solutions were found, at most the limit that was asked for."""
    guesses: Int64[np.ndarray, "batch"]
    """Guesses up to the first solution, or up to the proof that there is none."""


@dataclass(frozen=True)
class Step:
    """One moment of the solver at work on one puzzle."""

    kind: Literal["start", "guess", "refuted", "solved", "impossible"]
    depth: int
    """Guesses that the board stands on, not yet proven."""
    cell: int
    digit: int
    """The placement that was guessed or refuted; 0 in the other kinds."""
    board: UInt8[np.ndarray, "cells"]
    """What is decided after all consequences, up to a contradiction if there is one."""


def solve(
    puzzles: UInt8[np.ndarray, "batch cells"],
    limit: int = 2,
    *,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> Solutions:
    """Solve a batch, looking for up to `limit` solutions of each puzzle.

    The default of two tells a proper puzzle (`counts == 1`) from one with several solutions.
    Contradictory clues are no error: such a puzzle has no solution.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    geometry = playable(puzzles, geometry)
    # A read-only array, as from a file, would make numba compile the kernels once more for it.
    puzzles = np.require(puzzles, requirements=["C", "W"])
    solutions = np.zeros_like(puzzles)
    counts = np.zeros(len(puzzles), np.int64)
    guesses = np.zeros(len(puzzles), np.int64)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        if geometry == NINE:
            bitboard.solve_batch(puzzles[part], limit, solutions[part], counts[part], guesses[part])
        else:
            search.solve_batch(
                puzzles[part],
                geometry.tables,
                limit,
                solutions[part],
                counts[part],
                guesses[part],
            )

    spread(work, len(puzzles), threads)
    return Solutions(solutions, counts, guesses)


def rate(
    puzzles: UInt8[np.ndarray, "batch cells"],
    copies: int = 1,
    *,
    seed: int = 0,
    start: int = 0,
    step: int = 1,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> Float64[np.ndarray, "batch"]:
    """Mean number of guesses over `copies` symmetric copies of each puzzle.

    Which guess comes first depends on how the board is turned, so one reading is noisy: copies
    average that out. The first copy is the puzzle as it stands; the others of row i depend on
    `seed` and `start + i * step`.
    """
    if copies < 1:
        raise ValueError(f"copies must be at least 1, not {copies}")
    geometry = playable(puzzles, geometry)
    total = solve(puzzles, 1, threads=threads, geometry=geometry).guesses.astype(np.float64)
    # A symmetry takes several times the room of a puzzle: not all at once.
    for first in range(0, len(puzzles), 8_192):
        part = slice(first, first + 8_192)
        for copy in range(copies - 1):
            views = symmetry.sample(
                geometry,
                len(puzzles[part]),
                seed=seed,
                start=(start + first * step) * (copies - 1) + copy,
                step=step * (copies - 1),
            )
            image = symmetry.apply(views, puzzles[part])
            total[part] += solve(image, 1, threads=threads, geometry=geometry).guesses
    return total / copies


def steps(
    puzzle: UInt8[np.ndarray, "cells"], *, geometry: Geometry | None = None
) -> Iterator[Step]:
    """Watch the solver on one puzzle, up to its first solution: each guess, each refutation."""
    geometry = playable(puzzle[None], geometry)
    tables, size = geometry.tables, geometry.size
    board = np.empty(geometry.cells, np.int64)
    search.start(puzzle, board, tables)
    alive = search.settle(board, tables)
    yield Step("start", 0, 0, 0, _decided(board))
    open_guesses: list[tuple[int, int, np.ndarray]] = []
    while not (alive and search.solved(board)):
        if alive:
            cell, bit = divmod(search.choose(board, tables), size)
            open_guesses.append((cell, bit, board.copy()))
            board[cell] = 1 << bit
        elif open_guesses:
            cell, bit, board = open_guesses.pop()
            board[cell] ^= 1 << bit
        else:
            yield Step("impossible", 0, 0, 0, _decided(board))
            return
        kind: Literal["guess", "refuted"] = "guess" if alive else "refuted"
        alive = search.settle(board, tables)
        yield Step(kind, len(open_guesses), int(cell), int(bit) + 1, _decided(board))
    yield Step("solved", len(open_guesses), 0, 0, _decided(board))


def _decided(board: np.ndarray) -> np.ndarray:
    """The digits of cells with one candidate left."""
    alone = (board & (board - 1)) == 0
    return np.where(alone & (board > 0), np.log2(np.maximum(board, 1)) + 1, 0).astype(np.uint8)
