"""Our networks: every digit of every cell has a representation and a latent of its own.

They are made of blocks in which a digit of a cell hears what is said in its row, its column, its
box and its cell (`ronri.nn.layers.UnitMixer`). No weight knows one digit, row, column or box from
another, or how many there are. Shapes: B rows, L digits of cells, D width, C 1 + digits.
"""

from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ronri.nn.dropout import Dropout
from ronri.nn.layers import UnitBlock
from ronri.nn.linear import Linear
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.reading import Reading
from ronri.sudoku.geometry import Geometry


def _blocks(config: Config, geometry: Geometry, count: int) -> nn.ModuleList:
    box = geometry.box_height, geometry.box_width
    return nn.ModuleList(
        UnitBlock(config.width, config.message, config.inner, box) for _ in range(count)
    )


@final
class Encoder(nn.Module):
    """From a board to a vector for every digit of every cell."""

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        self.inputs = Linear(3, config.width, hidden=False)
        self.blocks = _blocks(config, geometry, config.layers)

    def forward(
        self,
        board: Float[Tensor, "B cells C"],
        *,
        twice: bool = False,
        forget: Dropout | None = None,
    ) -> Float[Tensor, "B L D"]:
        assert forget is None, "latents of cells have no dropout"
        empty, digits = board[..., :1], board[..., 1:]
        # That it is this digit, that it may be any, that it is another.
        states = torch.stack([digits, empty.expand_as(digits), 1 - empty - digits], dim=-1)
        x = self.inputs(states.flatten(1, 2))
        for block in self.blocks:
            x = block(x, twice=twice)
        return x


@final
class Reader(nn.Module):
    """Decoder and predictor: what latents say, and what they make us expect of the target.

    The blocks belong to both, so that what is expected of one cell depends on the latents of
    others. Without that the energy has little to say about a wrong board (docs/enso.md).
    """

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        width = config.width
        self.size = geometry.size
        self.context = Linear(width, width)
        self.latent = Linear(config.latent, width, hidden=False)
        self.blocks = _blocks(config, geometry, config.decoder_layers)
        self.head = Linear(width, 1, hidden=False)
        self.predictor = nn.ModuleList(
            (
                Linear(width, config.predictor_inner),
                Linear(config.latent, config.predictor_inner, hidden=False),
                Linear(config.predictor_inner, width),
            )
        )

    def forward(
        self,
        context: Float[Tensor, "B L D"],
        z: Float[Tensor, "B L latent"],
        *,
        twice: bool = False,
        forget: Dropout | None = None,
    ) -> Reading:
        assert forget is None, "latents of cells have no dropout"
        z = z.to(context.dtype)
        x = self.context(context) + self.latent(z)
        for block in self.blocks:
            x = block(x, twice=twice)
        logits = self.head(x).float().view(len(x), -1, self.size)
        read, latent, last = self.predictor
        return Reading(logits, last(F.gelu(read(x) + latent(z))))
