"""The exact solver as a reasoner: one step, and it is sure or it says that nothing fits."""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from ronri.data.stream import Batch
from ronri.reasoner import Lesson, Noise, Reasoner, Thought
from ronri.sudoku import exact
from ronri.sudoku.geometry import Geometry


@final
@dataclass(frozen=True)
class State:
    clues: UInt8[Tensor, "rows cells"]


@final
class Exact(Reasoner):
    usual_steps = 1
    most_steps = 1

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)

    def training_step(self, batch: Batch, carry: Any, progress: Float[Tensor, ""]) -> Lesson:
        del batch, carry, progress
        raise ValueError("the exact solver has nothing to learn")

    def begin(self, clues: UInt8[Tensor, "rows cells"], noise: Noise) -> State:
        del noise
        return State(clues)

    def advance(self, state: State) -> tuple[State, Thought]:
        found = exact.solve(state.clues.cpu().numpy(), limit=1, geometry=self.geometry)
        # A puzzle without a solution gets an empty board: nothing is believed.
        board = torch.from_numpy(found.solutions).to(state.clues.device)
        digits = torch.arange(1, self.geometry.size + 1, device=board.device)
        solved = torch.from_numpy(found.counts).to(board.device) > 0
        return state, Thought(
            beliefs=(board[:, :, None] == digits).float(),
            board=board,
            halted=torch.ones_like(solved),
            confidence=solved.float(),
        )

    def keep(self, state: State, rows: Int64[Tensor, "some"]) -> State:
        return State(state.clues[rows])
