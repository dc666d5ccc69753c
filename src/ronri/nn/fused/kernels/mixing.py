"""Tokens mixed by a SwiGLU over positions: one program is some channels of one puzzle.

    y = norm over positions of (x + w_down (silu(w_gate x) (w_up x)))        x: [tokens, channels]

Everything between reading x and writing y stays in the program. It works on x transposed, so that
what one product leaves in a thread is what the next one wants there. Tokens are held as two tiles
of powers of two, `a` and `b` (82 as 64 + 32).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op

from ronri.nn.fused.kernels.activation import sigmoid
from ronri.nn.fused.kernels.attention import tiles


@triton.jit
def load_rows(start, rows, columns, stride, length):
    """Some columns of some rows; rows past the end are zero."""
    at = start + rows[:, None] * stride + columns[None, :]
    return tl.load(at, mask=(rows < length)[:, None], other=0.0)


@triton.jit
def activated(x_a, x_b, gate_a, gate_b, up_a, up_b):
    """silu(gate) up, [channels, inner], for weights [inner, tokens]."""
    gate = tl.dot(x_b, tl.trans(gate_b), tl.dot(x_a, tl.trans(gate_a)))
    up = tl.dot(x_b, tl.trans(up_b), tl.dot(x_a, tl.trans(up_a)))
    return (gate * sigmoid(gate) * up).to(x_a.dtype)


@triton.jit
def store_normed(
    y, x_a, x_b, total_a, total_b, a, b, channels, length, epsilon, WIDTH: tl.constexpr
):
    """Add the residual, divide each channel by its root mean square, write it where it belongs."""
    total_a += x_a.to(tl.float32)
    total_b += x_b.to(tl.float32)
    squares = tl.sum(total_a * total_a, 1) + tl.sum(total_b * total_b, 1)
    factor = tl.rsqrt(squares / length + epsilon)[:, None]
    kind = y.dtype.element_ty
    y += channels[None, :]
    y_a = tl.trans((total_a * factor).to(kind))
    tl.store(y + a[:, None] * WIDTH, y_a, mask=(a < length)[:, None])
    y_b = tl.trans((total_b * factor).to(kind))
    tl.store(y + b[:, None] * WIDTH, y_b, mask=(b < length)[:, None])


@triton.jit
def mix_tokens_forward(
    x, w_gate_up, w_down, y, length, epsilon,
    WIDTH: tl.constexpr, INNER: tl.constexpr, CHANNELS: tl.constexpr, CHUNK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """y for some channels; rows of `w_gate_up` are padded with zeros to A + B."""
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    offset = tl.program_id(0).to(tl.int64) * length * WIDTH
    a = tl.arange(0, A)
    b = A + tl.arange(0, B)
    x_a = tl.trans(load_rows(x + offset, a, channels, WIDTH, length))
    x_b = tl.trans(load_rows(x + offset, b, channels, WIDTH, length))
    total_a = tl.zeros([CHANNELS, A], tl.float32)
    total_b = tl.zeros([CHANNELS, B], tl.float32)
    for start in range(0, INNER, CHUNK):
        inner = start + tl.arange(0, CHUNK)
        gate_at = w_gate_up + inner[:, None] * (A + B)
        up_at = gate_at + INNER * (A + B)
        hidden = activated(
            x_a, x_b,
            tl.load(gate_at + a[None, :]), tl.load(gate_at + b[None, :]),
            tl.load(up_at + a[None, :]), tl.load(up_at + b[None, :]),
        )  # fmt: skip
        down_a = load_rows(w_down, a, inner, INNER, length)
        down_b = load_rows(w_down, b, inner, INNER, length)
        total_a = tl.dot(hidden, tl.trans(down_a), total_a)
        total_b = tl.dot(hidden, tl.trans(down_b), total_b)
    store_normed(
        y + offset, x_a, x_b, total_a, total_b, a, b, channels, length, epsilon, WIDTH
    )  # fmt: skip


def padded(length: int) -> int:
    """How long the rows of `w_gate_up` must be: every tile in full, rows 16 bytes apart."""
    return sum(tiles(length))


@custom_op("ronri::mix_tokens", mutates_args=())
def mix_tokens(x: Tensor, w_gate_up: Tensor, w_down: Tensor, epsilon: float) -> Tensor:
    """y, without gradient; the rows of `w_gate_up` are padded with zeros."""
    batch, length, width = x.shape
    first, second = tiles(length)
    channels, chunk = 128, 32
    assert width % channels == 0
    assert w_gate_up.shape[1] == padded(length)
    assert w_down.shape[1] % chunk == 0
    assert x.is_contiguous()
    y = torch.empty_like(x)
    # 128 registers let two programs share a multiprocessor: one waits while the other computes.
    mix_tokens_forward[(batch, width // channels)](
        x, w_gate_up, w_down, y, length, epsilon,
        WIDTH=width, INNER=w_down.shape[1], CHANNELS=channels, CHUNK=chunk, A=first, B=second,
        num_warps=8, num_stages=3, maxnreg=128,
    )  # fmt: skip
    return y


@mix_tokens.register_fake
def _(x: Tensor, w_gate_up: Tensor, w_down: Tensor, epsilon: float) -> Tensor:  # noqa: ARG001
    return torch.empty_like(x)
