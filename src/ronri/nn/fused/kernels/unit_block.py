"""The block over units as two operations that torch knows: itself, and its gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from ronri.nn.fused.kernels.units import heard_in_units, sums_over_units, thought
from ronri.nn.fused.kernels.units_backward import said_backward, thought_backward


@custom_op("ronri::unit_block", mutates_args=())
def unit_block(
    x: Tensor, w_say: Tensor, w_hear: Tensor, w_gate_up: Tensor, w_down: Tensor,
    size: int, height: int, epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The result, and what its gradient needs: sums over units, and what was heard in them."""
    assert all(tensor.is_contiguous() for tensor in (x, w_say, w_hear, w_gate_up, w_down))
    sums = sums_over_units(x, w_say, size, height)
    heard = heard_in_units(sums, w_hear)
    return thought(x, heard, w_gate_up, w_down, size, height, epsilon), sums, heard


@unit_block.register_fake
def _(
    x: Tensor, w_say: Tensor, w_hear: Tensor, w_gate_up: Tensor, w_down: Tensor,  # noqa: ARG001
    size: int, height: int, epsilon: float,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    units = 4, x.shape[0], size * size
    return (
        torch.empty_like(x),
        x.new_empty(*units, w_say.shape[0] // 2),
        x.new_empty(*units, x.shape[2]),
    )


@custom_op("ronri::unit_block_backward", mutates_args=())
def unit_block_backward(
    out_grad: Tensor, x: Tensor, w_say: Tensor, w_hear: Tensor, w_gate_up: Tensor, w_down: Tensor,
    sums: Tensor, heard: Tensor, size: int, height: int, epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of x and of the four weights."""
    assert out_grad.is_contiguous()
    total_grad, gate_up_grad, down_grad = thought_backward(
        x, heard, w_gate_up, w_down, out_grad, size, height, epsilon
    )
    # Everyone in a unit heard the same: what they all say about it is added up.
    heard_grad = sums_over_units(total_grad, None, size, height).flatten(1, 2)
    kinds, _, _, message = sums.shape
    weights = w_hear.view(-1, kinds, message).transpose(0, 1)
    sums_grad = torch.bmm(heard_grad, weights).view(sums.shape)
    hear_grad = torch.bmm(heard_grad.mT, sums.flatten(1, 2)).transpose(0, 1).reshape(w_hear.shape)
    x_grad, say_grad = said_backward(x, w_say, sums_grad, total_grad, size, height)
    return x_grad, say_grad, hear_grad, gate_up_grad, down_grad


@unit_block_backward.register_fake
def _(
    out_grad: Tensor, x: Tensor, w_say: Tensor, w_hear: Tensor, w_gate_up: Tensor, w_down: Tensor,  # noqa: ARG001
    sums: Tensor, heard: Tensor, size: int, height: int, epsilon: float,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    return (
        torch.empty_like(x),
        torch.empty_like(w_say),
        torch.empty_like(w_hear),
        torch.empty_like(w_gate_up),
        torch.empty_like(w_down),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, sums, heard = output
    *tensors, size, height, epsilon = inputs
    ctx.mark_non_differentiable(sums, heard)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*tensors, sums, heard)
    ctx.settings = size, height, epsilon


def _differentiate(ctx: Any, out_grad: Tensor, *_: None) -> tuple[Tensor | None, ...]:
    found = unit_block_backward(out_grad.contiguous(), *ctx.saved_tensors, *ctx.settings)
    return *found, None, None, None


unit_block.register_autograd(_differentiate, setup_context=_keep)
