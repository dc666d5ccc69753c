"""SwiGLU: products of matrices with the activation, or its gradient, where the product ends.

    gate, up = x w_gate', x w_up'        hidden = silu(gate) up        out = hidden w_down'

The two weights are one matrix [2 inner, width], gates first. One program computes the gates and the
ups of the same tile, so it can finish `hidden` by itself: alone, the activation would read and
write several times what the products do.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op
from triton.tools.tensor_descriptor import TensorDescriptor

from ronri.nn.fused.kernels.activation import halves, sigmoid


@triton.jit
def place(program, rows, columns, GROUP: tl.constexpr):
    """Which tile is whose: programs that run together share rows and weights in the cache."""
    per_group = GROUP * columns
    first = (program // per_group) * GROUP
    height = tl.minimum(rows - first, GROUP)
    within = program % per_group
    return first + within % height, within // height


@triton.jit
def swiglu_forward(
    x, weight, scale, shift, hidden, gate_up, tokens,
    WIDTH: tl.constexpr, INNER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, GROUP: tl.constexpr, KEEP: tl.constexpr, PROGRAMS: tl.constexpr,
    FLATTEN: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """`hidden`, tile after tile; gates and ups are written too where the backward pass wants them.

    A weight of 8 bits comes with the scale that its numbers have lost, and with a shift that its
    products have lost on average.

    Tensors are described, not pointed at: the copy engine reads and writes them, and reads the next
    tile while this one ends. The weight is described as [2, inner, width]: gates to the left, ups
    to the right, one product makes both.
    """
    rows = tl.cdiv(tokens, ROWS)
    kind = hidden.dtype
    if SCALED:
        factor = tl.load(scale)
    for tile in tl.range(tl.program_id(0), rows * (INNER // COLUMNS), PROGRAMS, flatten=FLATTEN):
        row, column = place(tile, rows, INNER // COLUMNS, GROUP)
        row *= ROWS
        column *= COLUMNS
        product = tl.zeros([ROWS, 2 * COLUMNS], tl.float32)
        for step in range(WIDTH // DEPTH):
            both = weight.load([0, column, step * DEPTH]).reshape(2 * COLUMNS, DEPTH)
            product = tl.dot(x.load([row, step * DEPTH]), both.T, product)
        gate, up = halves(product)
        if SCALED:
            at = column + tl.arange(0, COLUMNS)
            gate = gate * factor + tl.load(shift + at)[None, :]
            up = up * factor + tl.load(shift + INNER + at)[None, :]
        if KEEP:
            gate_up.store([row, column], gate.to(kind))
            gate_up.store([row, column + INNER], up.to(kind))
        hidden.store([row, column], (gate * sigmoid(gate) * up).to(kind))


@triton.jit
def _store_gradients(
    grad, gate_up, gate_up_grad, rows, column, tokens, INNER: tl.constexpr
):  # fmt: skip
    """The gradients of gates and ups from that of `hidden`, for one tile."""
    inside = (rows < tokens)[:, None]
    columns = column + tl.arange(0, grad.shape[1])
    at = rows[:, None] * (2 * INNER) + columns[None, :]
    gate = tl.load(gate_up + at, mask=inside, other=0.0)
    up = tl.load(gate_up + at + INNER, mask=inside, other=0.0)
    gate_grad, up_grad = gradients(grad, gate, up)
    tl.store(gate_up_grad + at, gate_grad, mask=inside)
    tl.store(gate_up_grad + at + INNER, up_grad, mask=inside)


@triton.jit
def gradients(grad, gate, up):
    """The gradients of gates and ups from that of `hidden`."""
    kind: tl.constexpr = gate.dtype
    # Rounded as a product of matrices would have been, and half as much to carry between layouts.
    grad = grad.to(kind).to(tl.float32)
    gate = gate.to(tl.float32)
    opening = sigmoid(gate)
    active = gate * opening
    slope = opening + active * (1.0 - opening)
    return (grad * up.to(tl.float32) * slope).to(kind), (grad * active).to(kind)


@triton.jit
def swiglu_backward(
    out_grad, weight, gate_up, gate_up_grad, tokens,
    WIDTH: tl.constexpr, INNER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One tile of the gradients of gates and ups, from that of `out` through `w_down`."""
    row, column = place(tl.program_id(0), tl.cdiv(tokens, ROWS), INNER // COLUMNS, GROUP)
    rows = row * ROWS + tl.arange(0, ROWS)
    column *= COLUMNS
    columns = column + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    # Rows past the end are read from the front and never written.
    grad_at = out_grad + (rows % tokens)[:, None] * WIDTH + depth[None, :]
    weight_at = weight + depth[:, None] * INNER + columns[None, :]
    grad = tl.zeros([ROWS, COLUMNS], tl.float32)
    for _ in range(WIDTH // DEPTH):
        grad = tl.dot(tl.load(grad_at), tl.load(weight_at), grad)
        grad_at += DEPTH
        weight_at += DEPTH * INNER
    # In two parts, for want of registers.
    left, right = halves(grad)
    _store_gradients(left, gate_up, gate_up_grad, rows, column, tokens, INNER)
    _store_gradients(right, gate_up, gate_up_grad, rows, column + COLUMNS // 2, tokens, INNER)


ROWS, COLUMNS, DEPTH, GROUP = 128, 128, 64, 8


def _tiles(tokens: int, width: int, inner: int) -> int:
    """How many tiles make [tokens, inner] out of products over the width."""
    assert width % DEPTH == 0, "tiles must fill the weights"
    assert inner % COLUMNS == 0, "tiles must fill the weights"
    assert 2 * tokens * inner < 2**31, "offsets are 32 bits wide"
    return triton.cdiv(tokens, ROWS) * (inner // COLUMNS)


def _launch(
    x: Tensor,
    weight: Tensor,
    hidden: Tensor,
    *,
    gate_up: Tensor | None = None,
    scale: Tensor | None = None,
    shift: Tensor | None = None,
) -> None:
    assert (scale is None) == (shift is None), "what is in 8 bits has both"
    tokens, width = x.shape
    inner = hidden.shape[1]
    tiles = _tiles(tokens, width, inner)
    # As many bytes of each row and each stage, whatever their precision.
    depth = DEPTH if scale is None else 2 * DEPTH
    # One program for each multiprocessor. The interpreter has one processor, for any number.
    programs = min(tiles, _multiprocessors(x.device) if x.is_cuda else 3)
    swiglu_forward[(programs,)](
        TensorDescriptor.from_tensor(x, [ROWS, depth]),
        TensorDescriptor.from_tensor(weight.view(2, inner, width), [2, COLUMNS, depth]),
        hidden if scale is None else scale,
        hidden if shift is None else shift,
        TensorDescriptor.from_tensor(hidden, [ROWS, COLUMNS]),
        TensorDescriptor.from_tensor(hidden if gate_up is None else gate_up, [ROWS, COLUMNS]),
        tokens,
        WIDTH=width, INNER=inner, ROWS=ROWS, COLUMNS=COLUMNS, DEPTH=depth, GROUP=GROUP,
        KEEP=gate_up is not None, PROGRAMS=programs, FLATTEN=True, SCALED=scale is not None,
        num_warps=8, num_stages=4,
    )  # fmt: skip


def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@custom_op("ronri::swiglu_hidden", mutates_args=())
def swiglu_hidden(
    x: Tensor, w_gate_up: Tensor, scale: Tensor | None = None, shift: Tensor | None = None
) -> Tensor:
    """silu(x w_gate') (x w_up'), without gradient.

    All may be in 8 bits; then the weight is to be multiplied by a scale, and a shift to be added
    to each product of a row.
    """
    hidden = x.new_empty(x.shape[0], w_gate_up.shape[0] // 2)
    _launch(x, w_gate_up, hidden, scale=scale, shift=shift)
    return hidden


@swiglu_hidden.register_fake
def _(
    x: Tensor,
    w_gate_up: Tensor,
    scale: Tensor | None = None,  # noqa: ARG001
    shift: Tensor | None = None,  # noqa: ARG001
) -> Tensor:
    return x.new_empty(x.shape[0], w_gate_up.shape[0] // 2)


@custom_op("ronri::swiglu", mutates_args=())
def swiglu(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The result, and what its gradient needs: `hidden`, and gates beside ups."""
    gate_up = x.new_empty(x.shape[0], w_gate_up.shape[0])
    hidden = x.new_empty(x.shape[0], w_gate_up.shape[0] // 2)
    _launch(x, w_gate_up, hidden, gate_up=gate_up)
    return hidden @ w_down.T, hidden, gate_up


@swiglu.register_fake
def _(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    tokens, inner = x.shape[0], w_gate_up.shape[0]
    return (
        x.new_empty(tokens, w_down.shape[0]),
        x.new_empty(tokens, inner // 2),
        x.new_empty(tokens, inner),
    )


@custom_op("ronri::swiglu_backward", mutates_args=())
def swiglu_backward_op(out_grad: Tensor, w_down: Tensor, gate_up: Tensor) -> Tensor:
    """The gradient of gates beside ups from that of the result."""
    tokens, width = out_grad.shape
    inner = w_down.shape[1]
    assert out_grad.is_contiguous()
    assert w_down.is_contiguous()
    gate_up_grad = torch.empty_like(gate_up)
    swiglu_backward[(_tiles(tokens, width, inner),)](
        out_grad, w_down, gate_up, gate_up_grad, tokens,
        WIDTH=width, INNER=inner, ROWS=ROWS, COLUMNS=COLUMNS, DEPTH=DEPTH, GROUP=GROUP,
        num_warps=8, num_stages=3, maxnreg=128,
    )  # fmt: skip
    return gate_up_grad


@swiglu_backward_op.register_fake
def _(out_grad: Tensor, w_down: Tensor, gate_up: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty_like(gate_up)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    _, hidden, gate_up = output
    ctx.mark_non_differentiable(hidden, gate_up)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs, hidden, gate_up)


def _differentiate(ctx: Any, out_grad: Tensor, *_: None) -> tuple[Tensor, Tensor, Tensor]:
    x, w_gate_up, w_down, hidden, gate_up = ctx.saved_tensors
    out_grad = out_grad.contiguous()
    gate_up_grad = swiglu_backward_op(out_grad, w_down, gate_up)
    return gate_up_grad @ w_gate_up, gate_up_grad.T @ x, out_grad.T @ hidden


swiglu.register_autograd(_differentiate, setup_context=_keep)
