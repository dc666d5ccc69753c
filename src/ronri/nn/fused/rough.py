"""The same layers in 8 bits, for passes that have no gradient and can do with less.

Products in float8 (four bits of exponent, three of mantissa) take two thirds of the time of those
in bfloat16, and less energy, which is what a busy GPU runs out of. What goes into them is bounded
by a norm before, so it needs no scale of its own; weights are small and have one for each matrix.
"""

import torch
from jaxtyping import Float
from torch import Tensor

EIGHT = torch.float8_e4m3fn
MOST = torch.finfo(EIGHT).max


def fits(*sizes: int) -> bool:
    """Whether matrices of these sizes fill their tiles."""
    return all(size % 128 == 0 for size in sizes)


def attention(
    x: Float[Tensor, "batch tokens width"],
    w_qkv: Float[Tensor, "three_width width"],
    w_out: Float[Tensor, "width width"],
    cos: Float[Tensor, "tokens dim"] | None,
    sin: Float[Tensor, "tokens dim"] | None,
    heads: int,
) -> Float[Tensor, "batch tokens width"]:
    """Attention from projection to projection; scores and their softmax are not in 8 bits."""
    from ronri.nn.fused.kernels.attention import rotary_attention_alone

    qkv = product(rounded(x), *scaled(w_qkv), x.dtype)
    mixed = rotary_attention_alone(qkv, cos, sin, heads, rough=True)
    return product(mixed, *scaled(w_out), x.dtype)


def swiglu(
    x: Float[Tensor, "batch tokens width"],
    w_gate_up: Float[Tensor, "two_inner width"],
    w_down: Float[Tensor, "width inner"],
) -> Float[Tensor, "batch tokens width"]:
    """silu(x w_gate') (x w_up') w_down'."""
    from ronri.nn.fused.kernels.swiglu import swiglu_hidden

    hidden = swiglu_hidden(rounded(x).flatten(0, -2), *scaled(w_gate_up))
    return product(hidden, *scaled(w_down), x.dtype).view(x.shape)


def rounded(x: Tensor) -> Tensor:
    """In 8 bits; what is too large becomes the largest number there is."""
    return x.clamp(-MOST, MOST).to(EIGHT)


def scaled(weight: Float[Tensor, "outputs inputs"]) -> tuple[Tensor, Tensor]:
    """A matrix in 8 bits, its largest number the largest there is, and what to multiply it by."""
    scale = weight.float().abs().amax().clamp(min=1e-12) / MOST
    return rounded(weight / scale), scale


def product(x: Tensor, weight: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """x weight' scale, of two matrices in 8 bits."""
    one = torch.ones((), device=x.device)
    flat = torch._scaled_mm(
        x.flatten(0, -2), weight.T, one, scale, out_dtype=dtype, use_fast_accum=True
    )
    return flat.view(*x.shape[:-1], -1)
