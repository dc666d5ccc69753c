"""Losses that reasoners share."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
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
    logits: Float[Tensor, "*shape classes"], labels: Integer[Tensor, "*shape"], lowest: int = 0
) -> Float[Tensor, "*shape"]:
    """`lowest` is the label of the first class: boards count digits from 1."""
    return -_at(labels, log_stablemax(logits), lowest)


def softmax_cross_entropy(
    logits: Float[Tensor, "*shape classes"], labels: Integer[Tensor, "*shape"], lowest: int = 0
) -> Float[Tensor, "*shape"]:
    """`lowest` is the label of the first class: boards count digits from 1."""
    return -_at(labels, F.log_softmax(logits.float(), dim=-1), lowest)


def _at(
    labels: Integer[Tensor, "*shape"], values: Float[Tensor, "*shape classes"], lowest: int
) -> Float[Tensor, "*shape"]:
    """The value of each label. Classes are few, so all are looked at.

    Nothing is added to labels, and none is an index: compiled for a GPU, some that were bytes came
    out as their neighbours (docs/LOG.md).
    """
    classes = torch.arange(lowest, lowest + values.shape[-1], device=values.device)
    return torch.where(labels[..., None] == classes, values, 0).sum(dim=-1)
