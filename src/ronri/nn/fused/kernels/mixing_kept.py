"""Tokens mixed by a SwiGLU over positions, with a gradient.

The products are the library's; what lies between them is here. Nothing is transposed. The weight
[2 inner, tokens] comes with rows padded to a length at which tensor cores can read them.
"""

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op

from ronri.nn.fused.kernels.activation import sigmoid
from ronri.nn.fused.kernels.swiglu import gradients

BLOCK = 2048


@triton.jit
def activate(gate_up, hidden, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """hidden [half] = silu(gate) up of each puzzle's gate_up [2, half]."""
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = tl.program_id(1).to(tl.int64) * HALF
    at = 2 * start + block
    gate = tl.load(gate_up + at).to(tl.float32)
    up = tl.load(gate_up + at + HALF).to(tl.float32)
    active = (gate * sigmoid(gate) * up).to(hidden.dtype.element_ty)
    tl.store(hidden + start + block, active)


@triton.jit
def activate_backward(hidden_grad, gate_up, gate_up_grad, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient of `gate_up` from that of `hidden`."""
    block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = tl.program_id(1).to(tl.int64) * HALF
    at = 2 * start + block
    grad = tl.load(hidden_grad + start + block)
    gate_grad, up_grad = gradients(grad, tl.load(gate_up + at), tl.load(gate_up + at + HALF))
    tl.store(gate_up_grad + at, gate_grad)
    tl.store(gate_up_grad + at + HALF, up_grad)


@triton.jit
def add_norm(
    x, update, y, factor, length, epsilon,
    WIDTH: tl.constexpr, CHANNELS: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    """y = x + update over its root mean square over positions, for some channels of one puzzle."""
    puzzle = tl.program_id(0).to(tl.int64)
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    tokens = tl.arange(0, TOKENS)[:, None]
    at = puzzle * length * WIDTH + tokens * WIDTH + channels[None, :]
    total = tl.load(x + at, mask=tokens < length, other=0.0).to(tl.float32)
    total += tl.load(update + at, mask=tokens < length, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(total * total, 0) / length + epsilon)
    tl.store(y + at, (total * scale[None, :]).to(y.dtype.element_ty), mask=tokens < length)
    tl.store(factor + puzzle * WIDTH + channels, scale)


@triton.jit
def add_norm_backward(
    y_grad, y, factor, total_grad, length,
    WIDTH: tl.constexpr, CHANNELS: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    """The gradient of the sum. The result and its factor say what the sum was."""
    puzzle = tl.program_id(0).to(tl.int64)
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    tokens = tl.arange(0, TOKENS)[:, None]
    at = puzzle * length * WIDTH + tokens * WIDTH + channels[None, :]
    grad = tl.load(y_grad + at, mask=tokens < length, other=0.0).to(tl.float32)
    normed = tl.load(y + at, mask=tokens < length, other=0.0).to(tl.float32)
    scale = tl.load(factor + puzzle * WIDTH + channels)
    shared = tl.sum(grad * normed, 0) / length
    result = (grad - normed * shared[None, :]) * scale[None, :]
    tl.store(total_grad + at, result.to(total_grad.dtype.element_ty), mask=tokens < length)


def _sizes(x: Tensor) -> dict[str, int]:
    _, length, width = x.shape
    assert width % 64 == 0, "tiles must fill the width"
    tokens = triton.next_power_of_2(length)
    return {"WIDTH": width, "CHANNELS": 64, "TOKENS": tokens}


@custom_op("ronri::mix_tokens_kept", mutates_args=())
def mix_tokens_kept(
    x: Tensor, w_gate_up: Tensor, w_down: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result, and what its gradient needs: the factors of its norm, `hidden`, `gate_up`."""
    batch, length, width = x.shape
    assert x.is_contiguous()
    gate_up = torch.bmm(w_gate_up[:, :length].expand(batch, -1, -1), x)
    half = w_down.shape[1] * width
    assert half % BLOCK == 0, "blocks must fill a puzzle"
    hidden = x.new_empty(batch, w_down.shape[1], width)
    activate[(half // BLOCK, batch)](gate_up, hidden, HALF=half, BLOCK=BLOCK)
    update = torch.bmm(w_down.expand(batch, -1, -1), hidden)
    y = torch.empty_like(x)
    factor = x.new_empty(batch, width, dtype=torch.float32)
    add_norm[(batch, width // 64)](x, update, y, factor, length, epsilon, **_sizes(x))
    return y, factor, hidden, gate_up


@mix_tokens_kept.register_fake
def _(
    x: Tensor,
    w_gate_up: Tensor,
    w_down: Tensor,
    epsilon: float,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, _, width = x.shape
    return (
        torch.empty_like(x),
        x.new_empty(batch, width, dtype=torch.float32),
        x.new_empty(batch, w_down.shape[1], width),
        x.new_empty(batch, w_gate_up.shape[0], width),
    )


@custom_op("ronri::mix_tokens_backward", mutates_args=())
def mix_tokens_backward(
    y_grad: Tensor,
    x: Tensor,
    w_gate_up: Tensor,
    w_down: Tensor,
    y: Tensor,
    factor: Tensor,
    hidden: Tensor,
    gate_up: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x and of both weights."""
    batch, length, width = x.shape
    assert y_grad.is_contiguous()
    total_grad = torch.empty_like(x)
    add_norm_backward[(batch, width // 64)](y_grad, y, factor, total_grad, length, **_sizes(x))
    hidden_grad = torch.bmm(w_down.T.expand(batch, -1, -1), total_grad)
    gate_up_grad = torch.empty_like(gate_up)
    half = hidden[0].numel()
    activate_backward[(half // BLOCK, batch)](
        hidden_grad, gate_up, gate_up_grad, HALF=half, BLOCK=BLOCK
    )
    turned = w_gate_up[:, :length].T.expand(batch, -1, -1)
    x_grad = torch.baddbmm(total_grad, turned, gate_up_grad)
    # Each puzzle's [tokens, 2 inner], whose rows are as long as tensor cores like.
    w_gate_up_grad = torch.bmm(x, gate_up_grad.mT).sum(0).T
    w_gate_up_grad = F.pad(w_gate_up_grad, (0, w_gate_up.shape[1] - length)).contiguous()
    return x_grad, w_gate_up_grad, torch.bmm(total_grad, hidden.mT).sum(0)


@mix_tokens_backward.register_fake
def _(
    y_grad: Tensor,  # noqa: ARG001
    x: Tensor,
    w_gate_up: Tensor,
    w_down: Tensor,
    y: Tensor,  # noqa: ARG001
    factor: Tensor,  # noqa: ARG001
    hidden: Tensor,  # noqa: ARG001
    gate_up: Tensor,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(w_gate_up), torch.empty_like(w_down)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, w_gate_up, w_down, _ = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, w_gate_up, w_down, *output)


def _differentiate(ctx: Any, y_grad: Tensor, *_: None) -> tuple[Tensor, Tensor, Tensor, None]:
    return *mix_tokens_backward(y_grad.contiguous(), *ctx.saved_tensors), None


mix_tokens_kept.register_autograd(_differentiate, setup_context=_keep)
