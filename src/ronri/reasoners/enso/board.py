"""The document's networks: one vector stands for the whole board.

Transformers over cells write it (the encoders) and read it (the decoder); a small perceptron
predicts one from another. Shapes: B rows, L cells, D width, C 1 + digits.
"""

from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ronri.nn import fused
from ronri.nn.dropout import Dropout, dropped
from ronri.nn.linear import Embedding, Linear
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.reading import Reading
from ronri.sudoku.geometry import Geometry


@final
class Norm(nn.Module):
    """Layer norm, in float32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape D"]:
        return F.layer_norm(x.float(), self.weight.shape, self.weight, self.bias).to(x.dtype)


@final
class Layer(nn.Module):
    """Attention, then a feed-forward layer four times as wide; a norm before each.

    No other layer that forgets has its `number`: none forgets the same.
    """

    def __init__(self, width: int, heads: int, inner: int, number: int) -> None:
        super().__init__()
        self.heads = heads
        # Where it forgets: weights of attention, what that found, hidden numbers, what they say.
        self.forgets_at = tuple(range(4 * number, 4 * number + 4))
        self.norms = nn.ModuleList(Norm(width) for _ in range(2))
        self.qkv = Linear(width, 3 * width, bias=True, parts=3)
        self.out = Linear(width, width, bias=True)
        self.up = Linear(width, inner, bias=True)
        self.down = Linear(inner, width, bias=True)

    def forward(
        self, x: Float[Tensor, "B L D"], forget: Dropout | None = None
    ) -> Float[Tensor, "B L D"]:
        attention, feed_forward = self.norms
        weights, found, hidden, said = (
            None if forget is None else forget.at(place) for place in self.forgets_at
        )
        x = x + dropped(self.out(self._looked(self.qkv(attention(x)), weights)), found)
        inner = dropped(F.gelu(self.up(feed_forward(x))), hidden)
        return x + dropped(self.down(inner), said)

    def _looked(
        self, qkv: Float[Tensor, "B L three_D"], forget: Dropout | None
    ) -> Float[Tensor, "B L D"]:
        width = qkv.shape[-1] // 3
        if fused.available(qkv) and fused.fits_attention(qkv.shape[1], width // self.heads):
            return fused.rotary_attention(qkv, None, None, self.heads, forget=forget)
        q, k, v = qkv.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        if forget is None:
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            # In float32, as kernels of attention do it.
            weights = (q @ k.mT * q.shape[-1] ** -0.5).softmax(dim=-1, dtype=torch.float32)
            mixed = forget.left(weights).to(v.dtype) @ v
        return mixed.transpose(1, 2).flatten(2)


@final
class Places(nn.Module):
    """Where cells are: a vector for the row, one for the column and one for the box."""

    places: Tensor

    def __init__(self, width: int, geometry: Geometry) -> None:
        super().__init__()
        self.grid = nn.ModuleList(Embedding(geometry.size, width, std=0.5) for _ in range(3))
        places = torch.from_numpy(geometry.units_of % geometry.size)
        self.register_buffer("places", places, persistent=False)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        for embedding, place in zip(self.grid, self.places.unbind(dim=1), strict=True):
            x = x + embedding(place, x.dtype)
        return x


@final
class Encoder(nn.Module):
    """From a board to one vector: the mean of what the cells have understood."""

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        width = config.width
        self.inputs = Linear(geometry.size + 1, width, bias=True, hidden=False)
        self.places = Places(width, geometry)
        self.layers = nn.ModuleList(
            Layer(width, config.heads, config.inner, number) for number in range(config.layers)
        )

    def forward(
        self,
        board: Float[Tensor, "B L C"],
        *,
        twice: bool = False,
        forget: Dropout | None = None,
    ) -> Float[Tensor, "B 1 D"]:
        del twice
        x = self.places(self.inputs(board))
        for layer in self.layers:
            x = layer(x, forget)
        return x.mean(dim=1, keepdim=True)


@final
class Reader(nn.Module):
    """Decoder and predictor: what a latent says, and what it makes us expect of the target."""

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__()
        both = config.width + config.latent
        inner, cell = config.predictor_inner, config.decoder_width
        self.predictor = nn.ModuleList(
            (
                Linear(both, inner, bias=True),
                Linear(inner, inner, bias=True),
                Linear(inner, config.width, bias=True),
            )
        )
        self.norm = Norm(inner)
        self.cells = geometry.cells
        self.unpack = Linear(both, geometry.cells * cell, bias=True, hidden=False)
        self.places = Places(cell, geometry)
        self.layers = nn.ModuleList(
            Layer(cell, config.decoder_heads, 4 * cell, config.layers + number)
            for number in range(config.decoder_layers)
        )
        self.head = Linear(cell, geometry.size, bias=True, hidden=False)

    def forward(
        self,
        context: Float[Tensor, "B 1 D"],
        z: Float[Tensor, "B 1 latent"],
        *,
        twice: bool = False,
        forget: Dropout | None = None,
    ) -> Reading:
        del twice
        both = torch.cat([context, z.to(context.dtype)], dim=-1)
        first, second, last = self.predictor
        x = F.gelu(first(both))
        prediction = last(self.norm(x + F.gelu(second(x))))
        cells = self.places(self.unpack(both).view(len(both), self.cells, -1))
        for layer in self.layers:
            cells = layer(cells, forget)
        return Reading(self.head(cells).float(), prediction)
