"""Kernels that keep a block of a reasoner from reading and writing its stream over and over.

On a large GPU the products of matrices are quick and the memory around them is not: what a block
does between them (rotating, softmax, activations, sums, norms) costs almost as much as they do. The
functions here do that work where the data already is. Each is the same function as the plain layers
of `ronri.nn`, rounding aside, works inside `torch.compile` without breaking the graph, and has a
gradient unless it says otherwise.

They need Triton and a GPU with tensor descriptors (Hopper or later), compute in bfloat16, and want
shapes that fill their tiles: ask `available` and `fits_…` first. The first call imports Triton.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int32
from torch import Tensor

from ronri.nn.dropout import Dropout
from ronri.nn.fused import rough as rough

# Widths, messages and inner widths for which tests compare the block over units with its formula.
UNIT_SHAPES = (32, 16, 64), (64, 32, 128), (64, 64, 128), (64, 32, 256)

_on = True
_supported = False


def look(device: torch.device) -> None:
    """Find out whether the kernels run on a device. Until someone has looked, they are not used.

    Compiled code cannot ask a device: whoever puts a network on one looks before.
    """
    global _supported
    _supported = (
        device.type == "cuda"
        and importlib.util.find_spec("triton") is not None
        and torch.cuda.get_device_capability(device) >= (9, 0)
    )


def available(x: Tensor) -> bool:
    """Whether the kernels can work on a tensor where it is, and nobody has switched them off."""
    return _on and _supported and x.is_cuda and x.dtype == torch.bfloat16


def fits_attention(tokens: int, head_width: int) -> bool:
    """Whether a whole sequence fits one program, and a head fills a tile."""
    return 16 <= tokens <= 128 and head_width in (32, 64, 128)


def fits_swiglu(width: int, inner: int) -> bool:
    return width % 64 == 0 and inner % 128 == 0


def fits_mixing(tokens: int, width: int, inner: int) -> bool:
    return 16 <= tokens <= 128 and width % 128 == 0 and inner % 64 == 0


def fits_units(size: int, width: int, message: int, inner: int) -> bool:
    """Whether a row of the board fits one tile, and the weights are among those that were tried."""
    return size <= 11 and (width, message, inner) in UNIT_SHAPES


@contextmanager
def switched(on: bool) -> Iterator[None]:
    """Switch the kernels off, or on again: to compare them with the plain layers."""
    global _on
    before, _on = _on, on
    try:
        yield
    finally:
        _on = before


def rotary_attention(
    qkv: Float[Tensor, "batch tokens three_heads_dim"],
    cos: Float[Tensor, "tokens dim"] | None,
    sin: Float[Tensor, "tokens dim"] | None,
    heads: int,
    groups: Int32[Tensor, "heads tokens"] | None = None,
    forget: Dropout | None = None,
) -> Float[Tensor, "batch tokens heads_dim"]:
    """Attention of every token to every token of its group, for 16 to 128 tokens.

    `qkv` is what one projection wrote: queries, keys, values, each [heads, dim]. Queries and keys
    are turned, x cos + rotate_half(x) sin, unless there are no angles. As in every rotary table
    the second half of `cos` and `sin` repeats the first; only the first is read. Each head has its
    own groups, and tokens of group 0 are with everyone. `forget` drops some of the weights that
    the softmax gives, [heads, tokens, tokens] for each row.
    """
    from ronri.nn.fused.kernels import attention

    if forget is not None:
        seeds, part = forget.seeds, forget.part
        return attention.rotary_attention(qkv, cos, sin, groups, heads, seeds, part)[0]
    if torch.is_grad_enabled():
        return attention.rotary_attention(qkv, cos, sin, groups, heads)[0]
    return attention.rotary_attention_alone(qkv, cos, sin, groups, heads)


def swiglu(
    x: Float[Tensor, "*batch width"],
    w_gate_up: Float[Tensor, "two_inner width"],
    w_down: Float[Tensor, "width inner"],
) -> Float[Tensor, "*batch width"]:
    """silu(x w_gate') (x w_up') w_down', its gradient from the same saved products."""
    from ronri.nn.fused.kernels import swiglu as kernels

    flat = x.flatten(0, -2)
    if torch.is_grad_enabled():
        return kernels.swiglu(flat, w_gate_up, w_down)[0].view(x.shape)
    return F.linear(kernels.swiglu_hidden(flat, w_gate_up), w_down).view(x.shape)


def mix_tokens(
    x: Float[Tensor, "batch tokens width"],
    w_gate_up: Float[Tensor, "two_inner tokens"],
    w_down: Float[Tensor, "tokens inner"],
    epsilon: float = 1e-5,
) -> Float[Tensor, "batch tokens width"]:
    """A SwiGLU over positions, its residual, and the norm over positions."""
    if torch.is_grad_enabled():
        return mix_tokens_plain(x, w_gate_up, w_down, epsilon)
    from ronri.nn.fused.kernels import mixing

    w_gate_up = F.pad(w_gate_up, (0, mixing.padded(x.shape[1]) - x.shape[1]))
    return mixing.mix_tokens(x, w_gate_up, w_down, epsilon)


def mix_tokens_plain(
    x: Float[Tensor, "batch tokens width"],
    w_gate_up: Float[Tensor, "two_inner tokens"],
    w_down: Float[Tensor, "tokens inner"],
    epsilon: float = 1e-5,
) -> Float[Tensor, "batch tokens width"]:
    """The same for the compiler to fuse, on any device.

    Nothing is transposed; tokens are padded to a multiple of 8, from the first product to the norm,
    for products of other sizes are far slower, and so are those of their gradients.
    """
    batch, tokens, _ = x.shape
    rest = -tokens % 8
    rows = F.pad(x, (0, 0, 0, rest))
    # Two products rather than halves of one: their gradients need not be put together again.
    gate, up = (
        torch.bmm(F.pad(half, (0, rest)).expand(batch, -1, -1), rows) for half in w_gate_up.chunk(2)
    )
    down = F.pad(w_down, (0, 0, 0, rest)).expand(batch, -1, -1)
    total = rows.float() + torch.bmm(down, F.silu(gate) * up).float()
    # What was padded is still zero.
    factor = torch.rsqrt(total.square().sum(1, keepdim=True) / tokens + epsilon)
    return (total[:, :tokens] * factor).to(x.dtype)


def unit_block(
    x: Float[Tensor, "batch candidates width"],
    w_say: Float[Tensor, "two_message width"],
    w_hear: Float[Tensor, "width four_message"],
    w_gate_up: Float[Tensor, "two_inner width"],
    w_down: Float[Tensor, "width inner"],
    *,
    box: tuple[int, int],
    epsilon: float = 1e-5,
) -> Float[Tensor, "batch candidates width"]:
    """Candidates hear their rows, columns, boxes and cells, then each thinks; a norm after each."""
    from ronri.nn.fused.kernels import unit_block as kernels

    weights = w_say, w_hear, w_gate_up, w_down
    return kernels.unit_block(x, *weights, box[0] * box[1], box[0], epsilon)[0]
