"""Means over all processes of a run. With one process they are plain means."""

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float
from torch import Tensor


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def global_sum(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The sum over processes of what each of them has, with its gradient.

    What is computed from it is the same everywhere, and so is a loss. Its gradient for one
    process's values then counts every process's copy of that loss, and gradients of weights are
    averaged over processes afterwards: together, the gradient of the loss of all values.
    """
    return values if world_size() == 1 else _Sum.apply(values)  # type: ignore[no-untyped-call]


class _Sum(torch.autograd.Function):
    """A sum over processes; what flows back is summed over them, too."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        del ctx
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        del ctx
        return _Sum.forward(None, gradients[0])


def global_mean(
    values: Float[Tensor, "slots"], chosen: Bool[Tensor, "slots"] | None = None
) -> Float[Tensor, ""]:
    """The mean of values, or of the chosen ones, that counts all processes' values alike.

    Gradients are averaged over processes afterwards, and every process has as many slots as any
    other, so the mean of all values is the plain one. Chosen values may be many here and none
    there: their number is counted over all processes. No value chosen anywhere means 0.
    """
    if chosen is None:
        return values.mean()
    count = chosen.sum().to(values.dtype)
    if world_size() > 1:
        dist.all_reduce(count)
    return torch.where(chosen, values, 0).sum() * world_size() / count.clamp(min=1)
