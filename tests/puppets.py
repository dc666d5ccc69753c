"""A reasoner that thinks what it is told to think."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, final

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from grids import some_puzzles, some_solutions
from ronri.data.stream import Batch
from ronri.reasoner import Lesson, Noise, Reasoner, Thought
from ronri.sudoku.geometry import FOUR, Geometry

# Two puzzles of a 4x4 board; they have two different solutions.
SOLUTIONS = torch.from_numpy(some_solutions(FOUR)[[0, 3]].copy())
PUZZLES = torch.from_numpy(some_puzzles(SOLUTIONS.numpy(), seed=0))


@final
@dataclass(frozen=True)
class State:
    seen: UInt8[Tensor, "rows cells"]
    noise: Noise
    # Which row of those it began with.
    row: Int64[Tensor, "rows"]
    step: int


# What rows think at a step, counted from 1.
Mind = Callable[[State], Thought]


@final
class Puppet(Reasoner):
    """Thinks what it is told to think."""

    def __init__(self, mind: Mind, geometry: Geometry = FOUR) -> None:
        super().__init__(geometry)
        self.mind = mind

    def training_step(self, batch: Batch, carry: Any, progress: Float[Tensor, ""]) -> Lesson:
        raise NotImplementedError

    def begin(self, clues: UInt8[Tensor, "rows cells"], noise: Noise) -> State:
        return State(clues, noise, torch.arange(len(clues)), 0)

    def advance(self, state: State) -> tuple[State, Thought]:
        state = replace(state, step=state.step + 1)
        return state, self.mind(state)

    def keep(self, state: State, rows: Int64[Tensor, "some"]) -> State:
        return State(state.seen[rows], state.noise.rows(rows), state.row[rows], state.step)


def thought_of(board: Tensor, *, halted: Any = None, confidence: Any = None) -> Thought:
    rows = len(board)
    digits = torch.arange(1, isqrt(board.shape[1]) + 1)
    return Thought(
        beliefs=(board[:, :, None] == digits).float(),
        board=board,
        halted=torch.zeros(rows, dtype=torch.bool) if halted is None else halted,
        confidence=torch.zeros(rows) if confidence is None else confidence,
    )
