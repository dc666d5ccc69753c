"""The network that TRM calls again and again, and how a board becomes vectors.

Shapes: B rows, L positions (context tokens, then cells; or every digit of every cell), D width.
"""

from typing import final

import torch
from jaxtyping import Float, Int32, UInt8
from torch import Tensor, nn

from ronri.nn.layers import (
    Attention,
    PositionMixer,
    Rotary,
    SwiGLU,
    UnitMixer,
    add_norm,
    hear_and_think,
)
from ronri.nn.linear import Embedding
from ronri.reasoners.trm.config import Config
from ronri.sudoku.geometry import Geometry

# Token 0 is padding, token 1 an empty cell, token d + 1 the digit d. Boards are never padded; the
# number stays free so that published weights fit.
EMPTY = 1


@final
class Embedder(nn.Module):
    """x: what the network is told, once, about the puzzle. Context tokens, then cells."""

    places: Tensor

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        # Embeddings are drawn small and multiplied up, so that they learn as fast as matrices.
        self.scale = config.width**0.5
        # How many vectors a board is, and what is read from each: every token that may stand there.
        self.positions = config.context_tokens + geometry.cells
        self.outputs = EMPTY + 1 + geometry.size
        self.tokens = Embedding(self.outputs, config.width, std=1 / self.scale)
        self.context = nn.Parameter(torch.zeros(config.context_tokens, config.width))
        self.grid: nn.ModuleList | None = None
        if config.positions in ("grid", "both"):
            self.grid = nn.ModuleList(
                Embedding(geometry.size, config.width, std=1 / self.scale) for _ in range(3)
            )
            # The row, column and box of each cell, each counted from 0.
            places = torch.from_numpy(geometry.units_of % geometry.size)
            self.register_buffer("places", places, persistent=False)

    def forward(
        self, clues: UInt8[Tensor, "B cells"], dtype: torch.dtype
    ) -> Float[Tensor, "B L D"]:
        cells = self.tokens(clues.long() + EMPTY, dtype)
        if self.grid is not None:
            for embedding, place in zip(self.grid, self.places.unbind(dim=1), strict=True):
                cells = cells + embedding(place, dtype)
        context = self.context.to(dtype).expand(len(clues), -1, -1)
        return torch.cat([context, cells], dim=1) * self.scale

    def apart(
        self, z: Float[Tensor, "B L D"]
    ) -> tuple[Float[Tensor, "B cells D"], Float[Tensor, "B D"]]:
        """From what the board is read, and from what whether it is right: the first token."""
        return z[:, len(self.context) :], z[:, 0]


@final
class CandidateEmbedder(nn.Module):
    """x, where a position is a digit in a cell: it may be open, given, or excluded by a clue."""

    digits: Tensor

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        self.scale = config.width**0.5
        self.positions = geometry.cells * geometry.size
        # From each vector one number, how likely this digit is.
        self.outputs = 1
        self.states = Embedding(3, config.width, std=1 / self.scale)
        self.register_buffer("digits", torch.arange(1, geometry.size + 1), persistent=False)

    def forward(
        self, clues: UInt8[Tensor, "B cells"], dtype: torch.dtype
    ) -> Float[Tensor, "B L D"]:
        clue = clues[:, :, None]
        state = torch.where(clue == self.digits, 1, 2 * (clue != 0))
        return self.states(state.flatten(1), dtype) * self.scale

    def apart(
        self, z: Float[Tensor, "B L D"]
    ) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B D"]]:
        """From what the board is read, and from what whether it is right: the mean of all."""
        return z, z.mean(dim=1)


def _groups(config: Config, geometry: Geometry) -> Int32[Tensor, "heads L"] | None:
    """For each head, which positions see each other: those of one row, column or box, or all."""
    if config.unit_heads == 0:
        return None
    positions = config.context_tokens + geometry.cells
    groups = torch.zeros(config.heads, positions, dtype=torch.int32)
    units = torch.from_numpy(geometry.units_of.T) + 1
    each = config.unit_heads // 3
    groups[: config.unit_heads, config.context_tokens :] = units.repeat_interleave(each, dim=0)
    return groups


@final
class Block(nn.Module):
    """Positions exchange what they know, then each thinks for itself; a norm after each."""

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        self.attention: Attention | None = None
        self.mixer: PositionMixer | None = None
        self.units: UnitMixer | None = None
        if config.mixer == "attention":
            self.attention = Attention(config.width, config.heads, _groups(config, geometry))
        elif config.mixer == "units":
            box = geometry.box_height, geometry.box_width
            self.units = UnitMixer(config.width, config.message, box)
        else:
            positions = config.context_tokens + geometry.cells
            self.mixer = PositionMixer(positions, config.mixer_inner)
        self.feed_forward = SwiGLU(config.width, config.inner)

    def forward(
        self, x: Float[Tensor, "B L D"], rotary: Rotary | None, *, rough: int | None
    ) -> Float[Tensor, "B L D"]:
        if self.units is not None:
            return hear_and_think(x, self.units, self.feed_forward)
        if self.attention is not None:
            x = add_norm(x, self.attention(x, rotary, rough=rough))
        else:
            assert self.mixer is not None
            x = self.mixer(x)
        return add_norm(x, self.feed_forward(x, rough=rough))


@final
class Recursion(nn.Module):
    """The one small network, called with whatever is to be updated and what to update it by."""

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        self.rotary: Rotary | None = None
        if config.positions in ("rotary", "both"):
            positions = config.context_tokens + geometry.cells
            self.rotary = Rotary(positions, config.width // config.heads)
        self.blocks = nn.ModuleList(Block(config, geometry) for _ in range(config.layers))

    def forward(
        self,
        z: Float[Tensor, "B L D"],
        injection: Float[Tensor, "B L D"],
        *,
        rough: int | None = None,
    ) -> Float[Tensor, "B L D"]:
        """`rough`: in 8 bits where the device can, without gradient; the turn of this call."""
        z = z + injection
        for block in self.blocks:
            z = block(z, self.rotary, rough=rough)
        return z
