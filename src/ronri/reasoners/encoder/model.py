"""A network that reads the board and answers at once.

Shapes: B rows, L cells, D width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn

from ronri.data.stream import Batch
from ronri.nn.layers import Attention, SwiGLU, UnitBlock, rms_norm
from ronri.nn.linear import Embedding, Linear
from ronri.nn.losses import softmax_cross_entropy
from ronri.nn.taps import Taps
from ronri.nn.world import global_mean
from ronri.reasoner import Lesson, Noise, Reasoner, Thought
from ronri.reasoners.encoder.config import Config
from ronri.sudoku.geometry import Geometry


@final
@dataclass(frozen=True)
class State:
    clues: UInt8[Tensor, "B L"]


@final
class Cells(nn.Module):
    """A transformer over cells."""

    places: Tensor

    def __init__(self, config: Config, geometry: Geometry, taps: Taps) -> None:
        super().__init__()
        self.taps = taps
        # What stands in a cell, and in which row, column and box it lies.
        self.digits = Embedding(geometry.size + 1, config.width, std=0.5)
        self.grid = nn.ModuleList(Embedding(geometry.size, config.width, std=0.5) for _ in range(3))
        places = torch.from_numpy(geometry.units_of % geometry.size)
        self.register_buffer("places", places, persistent=False)
        self.attentions = nn.ModuleList(
            Attention(config.width, config.heads) for _ in range(config.layers)
        )
        self.feed_forwards = nn.ModuleList(
            SwiGLU(config.width, config.inner) for _ in range(config.layers)
        )
        self.head = Linear(config.width, geometry.size, hidden=False)

    def forward(
        self, clues: UInt8[Tensor, "B L"], dtype: torch.dtype
    ) -> Float[Tensor, "B L digits"]:
        x = self.digits(clues.long(), dtype)
        for embedding, place in zip(self.grid, self.places.unbind(dim=1), strict=True):
            x = x + embedding(place, dtype)
        layers = zip(self.attentions, self.feed_forwards, strict=True)
        for layer, (attention, feed_forward) in enumerate(layers):
            x = x + attention(rms_norm(x), None)
            x = self.taps("residual", x + feed_forward(rms_norm(x)), layer)
        return self.head(rms_norm(x))


@final
class Candidates(nn.Module):
    """A network over the digits of cells: open, given, or excluded by a clue in the cell."""

    digits: Tensor

    def __init__(self, config: Config, geometry: Geometry, taps: Taps) -> None:
        super().__init__()
        self.taps = taps
        self.states = Embedding(3, config.width, std=0.5)
        self.register_buffer("digits", torch.arange(1, geometry.size + 1), persistent=False)
        box = geometry.box_height, geometry.box_width
        self.blocks = nn.ModuleList(
            UnitBlock(config.width, config.message, config.inner, box) for _ in range(config.layers)
        )
        self.head = Linear(config.width, 1, hidden=False)

    def forward(
        self, clues: UInt8[Tensor, "B L"], dtype: torch.dtype
    ) -> Float[Tensor, "B L digits"]:
        clue = clues[:, :, None]
        state = torch.where(clue == self.digits, 1, 2 * (clue != 0))
        x = self.states(state.flatten(1), dtype)
        for layer, block in enumerate(self.blocks):
            x = self.taps("residual", block(x), layer)
        return self.head(x).view(*clues.shape, -1)


@final
class Encoder(Reasoner):
    usual_steps = 1
    most_steps = 1

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.config = config
        self.taps = Taps(residual="the residual stream after each layer (layer)")
        network = Cells if config.mixer == "attention" else Candidates
        self.network = network(config, geometry, self.taps)

    def forward(self, clues: UInt8[Tensor, "B L"]) -> Float[Tensor, "B L digits"]:
        return self.network(clues, self.compute_dtype).float()

    def training_step(self, batch: Batch, carry: Any, progress: Float[Tensor, ""]) -> Lesson:
        del progress
        logits = self(batch.clues)
        loss = global_mean(self._loss(logits, batch))
        solved = (logits.argmax(dim=-1) + 1 == batch.solutions).all(dim=1)
        metrics = {"lm_loss": loss.detach(), "solved": solved.float().mean()}
        return Lesson(loss, carry, metrics)

    @torch.no_grad()
    def diagnose(self, batch: Batch) -> dict[str, float]:
        """The loss of held-out puzzles, to be compared with that of the lessons."""
        return {"loss": float(self._loss(self(batch.clues), batch).mean())}

    def _loss(self, logits: Float[Tensor, "B L digits"], batch: Batch) -> Float[Tensor, "B"]:
        return softmax_cross_entropy(logits, batch.solutions, lowest=1).mean(dim=1)

    def thinking_parts(self) -> Sequence[nn.Module]:
        return (self.network,)

    @torch.no_grad()
    def begin(self, clues: UInt8[Tensor, "B L"], noise: Noise) -> State:
        del noise
        return State(clues)

    @torch.no_grad()
    def advance(self, state: State) -> tuple[State, Thought]:
        beliefs = self(state.clues).softmax(dim=-1)
        likeliest = beliefs.max(dim=-1)
        return state, Thought(
            beliefs=beliefs,
            board=(likeliest.indices + 1).to(torch.uint8),
            halted=torch.ones(len(beliefs), dtype=torch.bool, device=beliefs.device),
            # The board is as likely as its cells together.
            confidence=likeliest.values.log().sum(dim=1),
        )

    def keep(self, state: State, rows: Int64[Tensor, "some"]) -> State:
        return State(state.clues[rows])
