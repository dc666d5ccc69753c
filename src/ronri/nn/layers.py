"""Layers that reasoners share. They compute in the dtype of what they are given.

Shapes: B rows, L positions, D width, H heads, K width of a head.
"""

from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int32
from torch import Tensor, nn

from ronri.nn import fused
from ronri.nn.linear import Linear


def rms_norm(x: Float[Tensor, "*shape"], eps: float = 1e-5) -> Float[Tensor, "*shape"]:
    """Divide by the root mean square of the last dimension, in float32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


@final
class Rotary(nn.Module):
    """RoPE: the angles by which queries and keys of each position are turned."""

    cos: Tensor
    sin: Tensor

    def __init__(self, positions: int, head_width: int, theta: float = 10_000.0) -> None:
        super().__init__()
        frequency = theta ** (-torch.arange(0, head_width, 2, dtype=torch.float32) / head_width)
        angle_LK = torch.outer(torch.arange(positions, dtype=torch.float32), frequency).repeat(1, 2)
        self.register_buffer("cos", angle_LK.cos(), persistent=False)
        self.register_buffer("sin", angle_LK.sin(), persistent=False)

    def forward(self, x: Float[Tensor, "B L H K"]) -> Float[Tensor, "B L H K"]:
        first, second = x.float().chunk(2, dim=-1)
        turned = torch.cat([-second, first], dim=-1)
        return (x * self.cos[:, None] + turned * self.sin[:, None]).to(x.dtype)


@final
class Attention(nn.Module):
    """Every position looks at every other one.

    Unless there are `groups`: then, in each head, at those of its own group. Positions of group 0
    see everyone and are seen by everyone.
    """

    groups: Tensor | None
    mask: Tensor | None

    def __init__(self, width: int, heads: int, groups: Int32[Tensor, "H L"] | None = None) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} cannot be shared by {heads} heads")
        self.heads = heads
        self.qkv = Linear(width, 3 * width, parts=3, hidden=True)
        self.out = Linear(width, width, hidden=True)
        self.register_buffer("groups", groups, persistent=False)
        self.register_buffer("mask", None if groups is None else _mask(groups), persistent=False)

    def forward(
        self, x: Float[Tensor, "B L D"], rotary: Rotary | None, *, rough: int | None = None
    ) -> Float[Tensor, "B L D"]:
        """`rough`: in 8 bits where the device can, without gradient; the turn of this call."""
        cos, sin = (None, None) if rotary is None else (rotary.cos, rotary.sin)
        fits = fused.available(x) and fused.fits_attention(x.shape[1], x.shape[2] // self.heads)
        if rough is not None and fits and fused.rough.fits(x.shape[2]):
            weights = self.qkv.weight, self.out.weight
            return fused.rough.attention(x, *weights, cos, sin, self.groups, self.heads, rough)
        qkv = self.qkv(x)
        if fits:
            return self.out(fused.rotary_attention(qkv, cos, sin, self.heads, self.groups))
        q, k, v = qkv.unflatten(-1, (3, self.heads, -1)).unbind(dim=2)
        if rotary is not None:
            q, k = rotary(q), rotary(k)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        mask = None if self.mask is None else self.mask.to(x.dtype)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).flatten(2))


def _mask(groups: Int32[Tensor, "H L"]) -> Float[Tensor, "1 H L L"]:
    """What to add to scores: nothing where positions see each other.

    In four dimensions: for three, torch has no fast kernel on a processor.
    """
    own, other = groups[:, :, None], groups[:, None, :]
    hidden = (own != other) & (own != 0) & (other != 0)
    return torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)[None]


@final
class SwiGLU(nn.Module):
    """A gated feed-forward layer: down(silu(gate) * up)."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_up = Linear(width, 2 * inner, parts=2, hidden=True)
        self.down = Linear(inner, width, hidden=True)

    def forward(
        self, x: Float[Tensor, "*batch D"], *, rough: int | None = None
    ) -> Float[Tensor, "*batch D"]:
        """`rough`: in 8 bits where the device can, without gradient; the turn of this call."""
        gate_up, down = self.gate_up.weight, self.down.weight
        if fused.available(x) and fused.fits_swiglu(*down.shape):
            if rough is not None and fused.rough.fits(*down.shape):
                return fused.rough.swiglu(x, gate_up, down, rough)
            return fused.swiglu(x, gate_up.to(x.dtype), down.to(x.dtype))
        return self.plainly(x)

    def plainly(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        """The same, and never by a fused kernel."""
        return self.down(self.gate_up.gated(x))


@final
class PositionMixer(nn.Module):
    """A SwiGLU over positions in place of attention: every position has weights of its own.

    The norm after it acts over positions too, as in the published network.
    """

    def __init__(self, positions: int, inner: int) -> None:
        super().__init__()
        self.swiglu = SwiGLU(positions, inner)

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        gate_up, down = self.swiglu.gate_up.weight, self.swiglu.down.weight
        if fused.available(x) and fused.fits_mixing(x.shape[1], x.shape[2], down.shape[1]):
            return fused.mix_tokens(x, gate_up.to(x.dtype), down.to(x.dtype))
        x_BDL = x.transpose(1, 2)
        return add_norm(x_BDL, self.swiglu(x_BDL)).transpose(1, 2)


@final
class UnitMixer(nn.Module):
    """Everyone says something, and hears the sum of what is said in each of its units.

    Positions are candidates, a digit in a cell: row by row, column by column, digit by digit.
    Exactly one candidate is right in each row for each digit, in each column for each digit, in
    each box for each digit, and in each cell: these are the units. Nothing here knows one digit,
    row, column or box from another, and no weight depends on how many there are.
    """

    def __init__(self, width: int, message: int, box: tuple[int, int]) -> None:
        super().__init__()
        self.box = box
        self.size = box[0] * box[1]
        self.say = Linear(width, 2 * message, parts=2, hidden=True)
        self.hear = Linear(4 * message, width, hidden=True)

    @property
    def ears(self) -> Float[Tensor, "D four_messages"]:
        """Weights for what is heard; where units are larger, the less for each voice."""
        return self.hear.weight * self.size**-0.5

    def forward(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        height, wide = self.box
        # [batch, band, row, stack, column, digit, message]: boxes are where bands and stacks meet.
        said = self.say.gated(x).view(len(x), wide, height, height, wide, self.size, -1)
        # A row and a box share what is said in a row of the box.
        shared = said.sum(dim=4, keepdim=True)
        sums = (
            shared.sum(dim=3, keepdim=True),
            said.sum(dim=(1, 2), keepdim=True),
            shared.sum(dim=2, keepdim=True),
            said.sum(dim=5, keepdim=True),
        )
        ears = self.ears.to(x.dtype).chunk(4, dim=1)
        rows, columns, boxes, cells = (F.linear(*pair) for pair in zip(sums, ears, strict=True))
        # Rows and boxes first: their sum is not yet spread over columns.
        return (rows + boxes + columns + cells).view(x.shape)


def hear_and_think(
    x: Float[Tensor, "B L D"], mixer: UnitMixer, feed_forward: SwiGLU, *, twice: bool = False
) -> Float[Tensor, "B L D"]:
    """A block of a network over units: exchange, then think; a norm after each.

    `twice`: gradients of its gradient will be asked for, and no fused kernel has any.
    """
    message, (width, inner) = mixer.hear.weight.shape[1] // 4, feed_forward.down.weight.shape
    fits = fused.available(x) and fused.fits_units(mixer.size, width, message, inner)
    if fits and not twice:
        say, ears = mixer.say.weight.to(x.dtype), mixer.ears.to(x.dtype)
        gate_up, down = (
            feed_forward.gate_up.weight.to(x.dtype),
            feed_forward.down.weight.to(x.dtype),
        )
        return fused.unit_block(x, say, ears, gate_up, down, box=mixer.box)
    x = add_norm(x, mixer(x))
    thought = feed_forward.plainly(x) if twice else feed_forward(x)
    return add_norm(x, thought)


@final
class UnitBlock(nn.Module):
    """Hear what is said in one's units, then think."""

    def __init__(self, width: int, message: int, inner: int, box: tuple[int, int]) -> None:
        super().__init__()
        self.units = UnitMixer(width, message, box)
        self.feed_forward = SwiGLU(width, inner)

    def forward(self, x: Float[Tensor, "B L D"], *, twice: bool = False) -> Float[Tensor, "B L D"]:
        return hear_and_think(x, self.units, self.feed_forward, twice=twice)


def add_norm(
    x: Float[Tensor, "*batch D"], update: Float[Tensor, "*batch D"]
) -> Float[Tensor, "*batch D"]:
    """A residual connection, then a norm."""
    return rms_norm(x + update)
