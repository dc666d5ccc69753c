"""A projection back into the stream, with the residual and the norm where the product ends.

    y = rms_norm(residual + h w')

One program holds whole rows of the result (64 x 512 numbers are half of a multiprocessor's
registers), so that the sum of squares needs nobody else.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op


@triton.jit
def _finish(
    product, residual, y, scale, rows, tokens, epsilon, WIDTH: tl.constexpr, KEEP: tl.constexpr
):
    """Add the residual, divide each row by its root mean square."""
    inside = rows < tokens
    at = rows[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    stream = tl.load(residual + at, mask=inside[:, None], other=0.0)
    total = product + stream.to(tl.float32)
    factor = tl.rsqrt(tl.sum(total * total, 1) / WIDTH + epsilon)
    tl.store(y + at, (total * factor[:, None]).to(y.dtype.element_ty), mask=inside[:, None])
    if KEEP:
        tl.store(scale + rows, factor, mask=inside)


@triton.jit
def linear_add_norm_forward(
    h, weight, residual, y, scale, tokens, epsilon,
    WIDTH: tl.constexpr, INNER: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
    KEEP: tl.constexpr,
):  # fmt: skip
    """Some whole rows of y; what they were divided by too where the backward pass wants it."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    depth = tl.arange(0, DEPTH)
    # Rows past the end are read from the front and never written.
    h_at = h + (rows % tokens)[:, None] * INNER + depth[None, :]
    weight_at = weight + columns[None, :] * INNER + depth[:, None]
    product = tl.zeros([ROWS, WIDTH], tl.float32)
    for _ in range(INNER // DEPTH):
        product = tl.dot(tl.load(h_at), tl.load(weight_at), product)
        h_at += DEPTH
        weight_at += DEPTH
    _finish(product, residual, y, scale, rows, tokens, epsilon, WIDTH, KEEP)


@triton.jit
def linear_add_norm_forward_tma(
    h, weight, residual, y, scale, tokens, epsilon,
    WIDTH: tl.constexpr, INNER: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
    KEEP: tl.constexpr, PROGRAMS: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """The same, the operands through tensor descriptors, programs persist.

    The weight is described as [2, width / 2, inner], since a box has at most 256 rows.
    """
    for tile in tl.range(tl.program_id(0), tl.cdiv(tokens, ROWS), PROGRAMS, flatten=FLATTEN):
        product = tl.zeros([ROWS, WIDTH], tl.float32)
        for step in range(INNER // DEPTH):
            part = weight.load([0, 0, step * DEPTH]).reshape(WIDTH, DEPTH)
            product = tl.dot(h.load([tile * ROWS, step * DEPTH]), part.T, product)
        rows = tile * ROWS + tl.arange(0, ROWS)
        _finish(product, residual, y, scale, rows, tokens, epsilon, WIDTH, KEEP)


def _launch(
    h: Tensor,
    weight: Tensor,
    residual: Tensor,
    y: Tensor,
    scale: Tensor,
    epsilon: float,
    keep: bool,
) -> None:
    tokens, inner = h.shape
    width = weight.shape[0]
    assert inner % 64 == 0, "tiles must fill the weights"
    assert tokens * max(inner, width) < 2**31, "offsets are 32 bits wide"
    assert h.is_contiguous()
    assert weight.is_contiguous()
    assert residual.is_contiguous()
    linear_add_norm_forward[(triton.cdiv(tokens, 64),)](
        h, weight, residual, y, scale, tokens, epsilon,
        WIDTH=width, INNER=inner, ROWS=64, DEPTH=64, KEEP=keep, num_warps=8, num_stages=3,
    )  # fmt: skip


@custom_op("ronri::linear_add_norm", mutates_args=())
def linear_add_norm(
    h: Tensor, weight: Tensor, residual: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """rms_norm(residual + h w'), and what each row was multiplied with."""
    y = torch.empty_like(residual)
    scale = h.new_empty(h.shape[0], dtype=torch.float32)
    _launch(h, weight, residual, y, scale, epsilon, keep=True)
    return y, scale


@linear_add_norm.register_fake
def _(
    h: Tensor,
    weight: Tensor,  # noqa: ARG001
    residual: Tensor,
    epsilon: float,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(residual), h.new_empty(h.shape[0], dtype=torch.float32)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    h, weight, _, _ = inputs
    y, scale = output
    ctx.mark_non_differentiable(scale)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(h, weight, y, scale)


def _differentiate(ctx: Any, y_grad: Tensor, _: None) -> tuple[Tensor, Tensor, Tensor, None]:
    h, weight, y, scale = ctx.saved_tensors
    # y = sum * scale, so the result and the scale say what the sum was.
    normed, grad = y.float(), y_grad.float()
    shared = (normed * grad).mean(-1, keepdim=True)
    sum_grad = (scale[:, None] * (grad - normed * shared)).to(y.dtype)
    return sum_grad @ weight, sum_grad.T @ h, sum_grad, None


linear_add_norm.register_autograd(_differentiate, setup_context=_keep)
