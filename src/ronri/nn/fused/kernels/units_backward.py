"""Gradients of a block over units: everything is computed again from x and from what was heard.

The kernels write what the gradients of the weights are products of; cuBLAS multiplies it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ronri.nn.fused.kernels.activation import sigmoid
from ronri.nn.fused.kernels.units import activated, heard_by


@triton.jit
def norm_gradient(grad, normed, factor, WIDTH: tl.constexpr):
    """The gradient of what was divided by its root mean square; `factor` is 1 over that."""
    return (grad - normed * (tl.sum(grad * normed, 1) / WIDTH)[:, None]) * factor[:, None]


@triton.jit
def think_backward(
    x, heard, w_gate_up, w_down, out_grad, x_grad, y, result_grad, hidden, gate_up_grad,
    puzzles, total, epsilon,
    SIZE: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, INNER: tl.constexpr,
    ROWS: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """The gradient of x + heard for some candidates.

    And what weights were multiplied with, `y` and `hidden`, and the gradients of these products.
    Inner numbers are worked on in parts, once on the way to the result and once on the way back,
    for want of registers.
    """
    dtype: tl.constexpr = x.dtype.element_ty
    candidates = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = candidates < total
    mask = inside[:, None]
    row = candidates.to(tl.int64)[:, None]
    numbers = tl.arange(0, WIDTH)
    part = tl.arange(0, PART)
    at = row * WIDTH + numbers[None, :]
    before = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    before += heard_by(heard, candidates, inside, puzzles, SIZE, HEIGHT, WIDTH)
    first_factor = tl.rsqrt(tl.sum(before * before, 1) / WIDTH + epsilon)
    narrow = (before * first_factor[:, None]).to(dtype)
    tl.store(y + at, narrow, mask=mask)
    gate_at = w_gate_up + part[:, None] * WIDTH + numbers[None, :]
    down_at = w_down + numbers[:, None] * INNER + part[None, :]
    hidden_at = hidden + row * INNER + part[None, :]
    result = narrow.to(tl.float32)
    for start in tl.static_range(0, INNER, PART):
        active, _, up = activated(narrow, gate_at + start * WIDTH, WIDTH, INNER)
        active_up = (active * up).to(dtype)
        tl.store(hidden_at + start, active_up, mask=mask)
        result = tl.dot(active_up, tl.trans(tl.load(down_at + start)), result)
    second_factor = tl.rsqrt(tl.sum(result * result, 1) / WIDTH + epsilon)
    grad = tl.load(out_grad + at, mask=mask, other=0.0).to(tl.float32)
    grad = norm_gradient(grad, result * second_factor[:, None], second_factor, WIDTH)
    narrow_grad = grad.to(dtype)
    tl.store(result_grad + at, narrow_grad, mask=mask)
    gate_grad_at = gate_up_grad + row * (2 * INNER) + part[None, :]
    for start in tl.static_range(0, INNER, PART):
        active, opening, up = activated(narrow, gate_at + start * WIDTH, WIDTH, INNER)
        hidden_grad = tl.dot(narrow_grad, tl.load(down_at + start))
        up_grad = (hidden_grad * active).to(dtype)
        gate_grad = (hidden_grad * up * (opening + active * (1.0 - opening))).to(dtype)
        tl.store(gate_grad_at + start, gate_grad, mask=mask)
        tl.store(gate_grad_at + INNER + start, up_grad, mask=mask)
        grad = tl.dot(gate_grad, tl.load(gate_at + start * WIDTH), grad)
        grad = tl.dot(up_grad, tl.load(gate_at + (INNER + start) * WIDTH), grad)
    grad = norm_gradient(grad, narrow.to(tl.float32), first_factor, WIDTH)
    tl.store(x_grad + at, grad.to(dtype), mask=mask)


@triton.jit
def say_backward(
    x, weight, sums_grad, other_grad, x_grad, said_grad, puzzles, total,
    SIZE: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, MESSAGE: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """The gradient of x, that of its other use included, and that of gates beside values."""
    dtype: tl.constexpr = x.dtype.element_ty
    candidates = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = candidates < total
    mask = inside[:, None]
    row = candidates.to(tl.int64)[:, None]
    numbers = tl.arange(0, WIDTH)
    message = tl.arange(0, MESSAGE)
    at = row * WIDTH + numbers[None, :]
    weight_at = weight + message[:, None] * WIDTH + numbers[None, :]
    w_gate = tl.load(weight_at)
    w_value = tl.load(weight_at + MESSAGE * WIDTH)
    here = tl.load(x + at, mask=mask, other=0.0)
    grad = tl.load(other_grad + at, mask=mask, other=0.0).to(tl.float32)
    product_grad = heard_by(sums_grad, candidates, inside, puzzles, SIZE, HEIGHT, MESSAGE)
    gate = tl.dot(here, tl.trans(w_gate))
    value = tl.dot(here, tl.trans(w_value))
    opening = sigmoid(gate)
    active = gate * opening
    said_at = said_grad + row * (2 * MESSAGE) + message[None, :]
    value_grad = (product_grad * active).to(dtype)
    tl.store(said_at + MESSAGE, value_grad, mask=mask)
    gate_grad = (product_grad * value * (opening + active * (1.0 - opening))).to(dtype)
    tl.store(said_at, gate_grad, mask=mask)
    grad = tl.dot(gate_grad, w_gate, grad)
    grad = tl.dot(value_grad, w_value, grad)
    tl.store(x_grad + at, grad.to(dtype), mask=mask)


# How each kernel is launched, as in `units`. With parts of 32 `think_backward` stops with an
# illegal access.
THINK_BACKWARD = {"ROWS": 128, "PART": 64, "num_warps": 8, "num_stages": 1}
SAY_BACKWARD = {"ROWS": 64, "num_warps": 4, "num_stages": 1}


def thought_backward(
    x: Tensor, heard: Tensor, w_gate_up: Tensor, w_down: Tensor, out_grad: Tensor,
    size: int, height: int, epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of x (of x + heard, that is), of `w_gate_up` and of `w_down`."""
    puzzles, length, width = x.shape
    total, inner = puzzles * length, w_down.shape[1]
    x_grad = torch.empty_like(x)
    y, result_grad = x.new_empty(total, width), x.new_empty(total, width)
    hidden, gate_up_grad = x.new_empty(total, inner), x.new_empty(total, 2 * inner)
    think_backward[(triton.cdiv(total, THINK_BACKWARD["ROWS"]),)](
        x, heard, w_gate_up, w_down, out_grad, x_grad, y, result_grad, hidden, gate_up_grad,
        puzzles, total, epsilon,
        SIZE=size, HEIGHT=height, WIDTH=width, INNER=inner, **THINK_BACKWARD,
    )  # fmt: skip
    return x_grad, gate_up_grad.T @ y, result_grad.T @ hidden


def said_backward(
    x: Tensor, w_say: Tensor, sums_grad: Tensor, other_grad: Tensor, size: int, height: int
) -> tuple[Tensor, Tensor]:
    """The gradients of x, to which `other_grad` is added, and of `w_say`."""
    puzzles, length, width = x.shape
    total, message = puzzles * length, w_say.shape[0] // 2
    x_grad = torch.empty_like(x)
    said_grad = x.new_empty(total, 2 * message)
    say_backward[(triton.cdiv(total, SAY_BACKWARD["ROWS"]),)](
        x, w_say, sums_grad, other_grad, x_grad, said_grad, puzzles, total,
        SIZE=size, HEIGHT=height, WIDTH=width, MESSAGE=message, **SAY_BACKWARD,
    )  # fmt: skip
    return x_grad, said_grad.T @ x.view(total, width)
