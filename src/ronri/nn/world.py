"""Means over all processes of a run. With one process they are plain means."""

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float
from torch import Tensor


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


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
