"""What Enso makes small, each on its own.

Shapes: B rows, D numbers of a vector.
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from ronri.nn.losses import softmax_cross_entropy
from ronri.nn.world import global_sum

# Keeps the root of a variance from having an infinite slope at 0.
_EPSILON = 1e-4


def distance(
    one: Float[Tensor, "B vectors D"], other: Float[Tensor, "B vectors D"]
) -> Float[Tensor, "B"]:
    """The squared distance of two representations: the mean over their vectors."""
    return (one.float() - other.float()).square().sum(dim=-1).mean(dim=-1)


def broken_rules(
    beliefs: Float[Tensor, "B cells digits"], units: Int64[Tensor, "units size"]
) -> Float[Tensor, "B"]:
    """The constraint penalty: how far each digit is from being once in each unit, squared."""
    once = beliefs[:, units].sum(dim=2)
    return (once - 1).square().sum(dim=(1, 2))


def decode_loss(
    logits: Float[Tensor, "B cells digits"],
    solutions: UInt8[Tensor, "B cells"],
    clues: UInt8[Tensor, "B cells"],
) -> Float[Tensor, "B"]:
    """Cross-entropy of a row's empty cells, their mean: what is given need not be learned."""
    empty = (clues == 0).float()
    each = softmax_cross_entropy(logits, solutions, lowest=1)
    return (each * empty).sum(dim=1) / empty.sum(dim=1).clamp(min=1)


@final
@dataclass(frozen=True)
class Spread:
    """How a representation spreads over a batch: that of all processes together."""

    mean: Float[Tensor, "D"]
    covariance: Float[Tensor, "D D"]
    # Vectors that were counted.
    count: Float[Tensor, ""]

    @classmethod
    def of(cls, representation: Float[Tensor, "B vectors D"]) -> "Spread":
        """In float32, or in float64 where that is what is given."""
        x = representation.flatten(0, 1)
        x = x if x.dtype == torch.float64 else x.float()
        count = global_sum(x.new_full((), len(x)))
        mean = global_sum(x.sum(dim=0)) / count
        centred = x - mean
        return cls(mean, global_sum(centred.T @ centred) / (count - 1).clamp(min=1), count)

    @property
    def std(self) -> Float[Tensor, "D"]:
        return torch.sqrt(self.covariance.diagonal() + _EPSILON)

    def variance_loss(self) -> Float[Tensor, ""]:
        """How much is missing to a standard deviation of 1 in every dimension."""
        return F.relu(1 - self.std).mean()

    def covariance_loss(self) -> Float[Tensor, ""]:
        """How much dimensions say the same: squares off the diagonal, for each dimension."""
        apart = self.covariance - torch.diag(self.covariance.diagonal())
        return apart.square().sum() / len(self.mean)

    # Monitors. None of them alone tells that a representation has collapsed.

    def correlation(self) -> Float[Tensor, ""]:
        """Root mean square of the correlations of different dimensions: 1 if all say the same."""
        scale = 1 / torch.sqrt(self.covariance.diagonal() + 1e-12)
        correlations = self.covariance * scale * scale[:, None]
        width = len(self.mean)
        apart = correlations - torch.diag(correlations.diagonal())
        return torch.sqrt(apart.square().sum() / max(width * (width - 1), 1))

    def rank(self) -> Float[Tensor, ""]:
        """RankMe: the exponential of the entropy of the singular values of all vectors.

        They are roots of what is computed here, which makes much of rounding: ask in float64.
        """
        second = self.covariance * (self.count - 1) + self.count * torch.outer(self.mean, self.mean)
        singular = torch.linalg.eigvalsh(second).clamp(min=0).sqrt()
        share = singular / singular.sum().clamp(min=1e-30)
        return torch.exp(-(share * torch.log(share.clamp(min=1e-30))).sum())
