"""Losses that reasoners share."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor


def wide(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """In float64, where the device knows it."""
    return x.float() if x.device.type == "mps" else x.double()


def log_stablemax(logits: Float[Tensor, "*shape classes"]) -> Float[Tensor, "*shape classes"]:
    """The logarithm of stablemax: a softmax with x + 1 and 1 / (1 - x) in place of the exponential.

    It grows linearly, so that a network that is already right is not pushed to ever larger logits.
    """
    logits = wide(logits)
    # Both branches are computed: keep the one that is not taken away from dividing by zero.
    below, above = logits.clamp(max=0), logits.clamp(min=0)
    weight = torch.where(logits < 0, 1 / (1 - below), above + 1)
    return torch.log(weight / weight.sum(dim=-1, keepdim=True))


def stablemax_cross_entropy(
    logits: Float[Tensor, "*shape classes"], labels: Int64[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    return -_at(labels, log_stablemax(logits))


def softmax_cross_entropy(
    logits: Float[Tensor, "*shape classes"], labels: Int64[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    return -_at(labels, F.log_softmax(logits.float(), dim=-1))


def _at(
    labels: Int64[Tensor, "*shape"], values: Float[Tensor, "*shape classes"]
) -> Float[Tensor, "*shape"]:
    """The value of each label. Classes are few, so all are looked at.

    Picked by their index, compiled for a GPU by torch 2.11, they were those of other classes where
    labels were computed from bytes; their gradient was right (docs/LOG.md).
    """
    classes = torch.arange(values.shape[-1], device=values.device)
    return torch.where(labels[..., None] == classes, values, 0).sum(dim=-1)
