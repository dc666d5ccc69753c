"""Every clue votes for the digits of every cell; each step counts the votes once more."""

from dataclasses import dataclass
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ronri.data.stream import Batch
from ronri.nn.linear import Linear
from ronri.nn.losses import softmax_cross_entropy
from ronri.nn.world import global_mean
from ronri.reasoner import Lesson, Noise, Reasoner, Thought
from ronri.sudoku.geometry import Geometry
from their_reasoner import Config


@final
@dataclass(frozen=True)
class State:
    clues: Tensor
    votes: Tensor
    noise: Noise
    step: Tensor


@final
class Votes(Reasoner):
    usual_steps = 2

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.config = config
        inputs = geometry.cells * (geometry.size + 1)
        self.count = Linear(inputs, geometry.cells * geometry.size, hidden=False)

    def forward(self, clues: Tensor) -> Tensor:
        seen = F.one_hot(clues.long(), self.geometry.size + 1).flatten(1)
        votes: Tensor = self.count(seen.to(self.compute_dtype)).float()
        return votes.unflatten(1, (self.geometry.cells, self.geometry.size))

    def training_step(self, batch: Batch, carry: Any, progress: Tensor) -> Lesson:
        del progress
        loss = softmax_cross_entropy(self(batch.clues), batch.solutions, lowest=1).mean(dim=1)
        return Lesson(global_mean(loss), carry)

    @torch.no_grad()
    def begin(self, clues: Tensor, noise: Noise) -> State:
        votes = torch.zeros(*clues.shape, self.geometry.size, device=clues.device)
        return State(clues, votes, noise, torch.zeros_like(noise.keys))

    @torch.no_grad()
    def advance(self, state: State) -> tuple[State, Thought]:
        stir = state.noise.normal(state.step, state.votes[0].numel()).view_as(state.votes)
        votes = state.votes + self(state.clues) + self.config.noise * stir
        beliefs = votes.softmax(dim=-1)
        best = beliefs.max(dim=-1)
        thought = Thought(
            beliefs=beliefs,
            board=(best.indices + 1).to(torch.uint8),
            halted=state.step >= 1,
            confidence=best.values.mean(dim=1),
        )
        return State(state.clues, votes, state.noise, state.step + 1), thought

    def keep(self, state: State, rows: Tensor) -> State:
        return State(state.clues[rows], state.votes[rows], state.noise.rows(rows), state.step[rows])
