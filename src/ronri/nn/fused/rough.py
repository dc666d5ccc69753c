"""The same layers in 8 bits, for passes that have no gradient and can do with less.

Products in float8 (four bits of exponent, three of mantissa) take two thirds of the time of those
in bfloat16, and less energy, which is what a busy GPU runs out of. What goes into them is bounded
by a norm before, so it needs no scale of its own; weights are small and have one for each matrix.

A rounded input is off in a direction of its own in every row, which does little harm. A rounded
weight is off in the same way for all rows, as far as they are alike, each time the network is
called, and that adds up (docs/LOG.md). So two things are done about weights:

- Calls take turns. What one turn has rounded away is owed to the next: a network that corrects its
  own notes hears them all, and the mean of several turns is nearer to the weight than any of them.
- What rounding does to the mean row is put right: (weight - rounded weight) mean row is added to
  all of them. The price is that a row depends, a little, on the batch of its process.
"""

from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int32
from jaxtyping import Float8e4m3fn as Float8
from torch import Tensor

EIGHT = torch.float8_e4m3fn
MOST = torch.finfo(EIGHT).max
# After so many turns the first one comes again.
TURNS = 4
# Rows whose mean stands for that of all.
SAMPLE = 128


def fits(*sizes: int) -> bool:
    """Whether matrices of these sizes fill their tiles."""
    return all(size % 128 == 0 for size in sizes)


def attention(
    x: Float[Tensor, "batch tokens width"],
    w_qkv: Float[Tensor, "three_width width"],
    w_out: Float[Tensor, "width width"],
    cos: Float[Tensor, "tokens dim"] | None,
    sin: Float[Tensor, "tokens dim"] | None,
    groups: Int32[Tensor, "heads tokens"] | None,
    heads: int,
    turn: int,
) -> Float[Tensor, "batch tokens width"]:
    """Attention from projection to projection; scores and their softmax are not in 8 bits."""
    from ronri.nn.fused.kernels.attention import rotary_attention_alone

    qkv = product(rounded(x), scaled(w_qkv, turn), x.dtype)
    mixed = rotary_attention_alone(qkv, cos, sin, groups, heads, rough=True)
    return product(mixed, scaled(w_out, turn), x.dtype)


def swiglu(
    x: Float[Tensor, "batch tokens width"],
    w_gate_up: Float[Tensor, "two_inner width"],
    w_down: Float[Tensor, "width inner"],
    turn: int,
) -> Float[Tensor, "batch tokens width"]:
    """silu(x w_gate') (x w_up') w_down'."""
    from ronri.nn.fused.kernels.swiglu import swiglu_hidden

    x_eight, gate_up = rounded(x), scaled(w_gate_up, turn)
    hidden = swiglu_hidden(
        x_eight.flatten(0, -2), gate_up.rounded, gate_up.scale, missed(x_eight, gate_up)
    )
    return product(hidden.view(*x.shape[:-1], -1), scaled(w_down, turn), x.dtype)


@final
class Scaled(NamedTuple):
    """A matrix in 8 bits."""

    rounded: Float8[Tensor, "outputs inputs"]
    # What to multiply it by.
    scale: Float[Tensor, ""]
    # What rounding has taken away.
    rest: Float[Tensor, "outputs inputs"]


def rounded(x: Float[Tensor, "*shape"]) -> Float8[Tensor, "*shape"]:
    """In 8 bits; what is too large becomes the largest number there is."""
    return x.clamp(-MOST, MOST).to(EIGHT)


def scaled(weight: Float[Tensor, "outputs inputs"], turn: int) -> Scaled:
    """A matrix whose largest number becomes the largest there is.

    Each turn also rounds what the turns before it owe.
    """
    weight = weight.float()
    scale = weight.abs().amax().clamp(min=1e-12) / MOST
    wanted = weight / scale
    owed = torch.zeros_like(wanted)
    for _ in range(turn % TURNS + 1):
        eight = rounded(wanted + owed)
        owed = owed + wanted - eight.float()
    return Scaled(eight, scale, weight - eight.float() * scale)


def product(
    x: Float8[Tensor, "batch tokens inputs"], weight: Scaled, dtype: torch.dtype
) -> Float[Tensor, "batch tokens outputs"]:
    """x weight', and what the rounded weight misses of it."""
    one = torch.ones((), device=x.device)
    flat = torch._scaled_mm(
        x.flatten(0, -2),
        weight.rounded.T,
        one,
        weight.scale,
        bias=missed(x, weight).to(dtype),
        out_dtype=dtype,
        use_fast_accum=True,
    )
    return flat.view(*x.shape[:-1], -1)


def missed(x: Float8[Tensor, "batch tokens inputs"], weight: Scaled) -> Float[Tensor, "outputs"]:
    """What the rounded weight misses of the product with the mean row, or that of a sample."""
    # From puzzle to puzzle one token further: up to 128 tokens, all are met. Of a small batch, all.
    stride = x.shape[0] // SAMPLE * x.shape[1] + 1
    return weight.rest @ x.flatten(0, -2)[::stride].float().mean(dim=0)
