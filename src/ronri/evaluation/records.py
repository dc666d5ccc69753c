"""Records: what came of each puzzle, one by one. Everything that is scored is in them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64, UInt8

from ronri.data.tensors import units_satisfied
from ronri.evaluation.chunks import in_chunks, usual_rows
from ronri.reasoner import Budget, Reasoner
from ronri.sudoku.geometry import Geometry
from ronri.thinking import Answers, answer


@final
@dataclass(frozen=True, kw_only=True)
class Records:
    """One entry a puzzle, in the order of the puzzles."""

    board: UInt8[np.ndarray, "puzzles cells"]
    # The whole board equals the solution, clues included.
    solved: Bool[np.ndarray, "puzzles"]
    # The board keeps every clue and every rule, as the check sees it that knows no solution.
    verified: Bool[np.ndarray, "puzzles"]
    clues_kept: Bool[np.ndarray, "puzzles"]
    # Among the cells that the puzzle leaves empty.
    cells_right: Int64[np.ndarray, "puzzles"]
    cells_empty: Int64[np.ndarray, "puzzles"]
    # Fraction of rows, columns and boxes that hold every digit once.
    units_satisfied: Float64[np.ndarray, "puzzles"]
    # The step at which the board was there, or all where a right one was wanted and not found; rows
    # of the puzzle that thought; the steps of all rows.
    steps: Int64[np.ndarray, "puzzles"]
    rows: Int64[np.ndarray, "puzzles"]
    row_steps: Int64[np.ndarray, "puzzles"]
    confidence: Float32[np.ndarray, "puzzles"]
    # Time spent thinking: from clues in main memory to chosen boards in main memory, of every
    # chunk, the first and slowest included. Scoring, and chunks that did not fit, do not count.
    seconds: float

    def __len__(self) -> int:
        return len(self.board)

    @classmethod
    def joined(cls, parts: Sequence["Records"]) -> "Records":
        """The records of all parts, one after another; the seconds of all together."""
        arrays = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(cls)
            if field.name != "seconds"
        }
        return cls(**arrays, seconds=sum(part.seconds for part in parts))


def score(
    reasoner: Reasoner,
    clues: UInt8[np.ndarray, "puzzles cells"],
    solutions: UInt8[np.ndarray, "puzzles cells"],
    budget: Budget,
    *,
    seed: int = 0,
    max_rows: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Records:
    """Let a reasoner think about puzzles and compare its boards with the solutions.

    At most `max_rows` rows think together; but for rounding, what is recorded does not depend on
    it, nor on which other puzzles are there. `progress` is told how many puzzles are done.
    """

    def think(part: slice) -> Records:
        started = _now(reasoner.device)
        found = answer(reasoner, torch.tensor(clues[part]), budget, seed=seed)
        board = found.board.cpu().numpy()
        seconds = _now(reasoner.device) - started
        return _recorded(found, board, clues[part], solutions[part], reasoner.geometry, seconds)

    parts = [_nothing(reasoner.geometry)]
    done = 0
    for part in in_chunks(
        think,
        len(clues),
        rows_each=budget.samples * budget.views,
        max_rows=usual_rows(reasoner.device) if max_rows is None else max_rows,
    ):
        parts.append(part)
        done += len(part)
        if progress is not None:
            progress(done)
    return Records.joined(parts)


def _now(device: torch.device) -> float:
    """The clock, read when the device has done all that it was told to do."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.perf_counter()


def _recorded(
    found: Answers,
    board: UInt8[np.ndarray, "puzzles cells"],
    clues: UInt8[np.ndarray, "puzzles cells"],
    solutions: UInt8[np.ndarray, "puzzles cells"],
    geometry: Geometry,
    seconds: float,
) -> Records:
    empty = clues == 0
    right = board == solutions
    return Records(
        board=board,
        solved=right.all(axis=1),
        verified=found.verified.cpu().numpy(),
        clues_kept=(empty | (board == clues)).all(axis=1),
        cells_right=(right & empty).sum(axis=1),
        cells_empty=empty.sum(axis=1),
        units_satisfied=units_satisfied(found.board, geometry).cpu().numpy().mean(axis=1),
        steps=found.steps.cpu().numpy(),
        rows=found.rows.cpu().numpy(),
        row_steps=found.row_steps.cpu().numpy(),
        confidence=found.confidence.cpu().numpy(),
        seconds=seconds,
    )


def _nothing(geometry: Geometry) -> Records:
    """The records of no puzzles."""
    true, count = np.zeros(0, np.bool_), np.zeros(0, np.int64)
    return Records(
        board=np.zeros((0, geometry.cells), np.uint8),
        solved=true,
        verified=true,
        clues_kept=true,
        cells_right=count,
        cells_empty=count,
        units_satisfied=np.zeros(0, np.float64),
        steps=count,
        rows=count,
        row_steps=count,
        confidence=np.zeros(0, np.float32),
        seconds=0.0,
    )
