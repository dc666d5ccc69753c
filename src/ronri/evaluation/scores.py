"""Scores: what a set of records says about a reasoner, and how sure one can be of it."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from ronri.data.describe import RATING_EDGES, RatingClass
from ronri.evaluation.records import Records

# Standard deviations of the normal distribution that hold 95 % of it.
_Z = 1.959963984540054


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a fraction: it never leaves [0, 1] and is honest near its ends."""
    assert 0 <= right <= n
    assert n > 0
    centre = right + _Z**2 / 2
    spread = _Z * math.sqrt(right * (n - right) / n + _Z**2 / 4)
    # Nothing right, or everything: the bound is the end itself, which rounding may miss.
    low = 0.0 if right == 0 else (centre - spread) / (n + _Z**2)
    high = 1.0 if right == n else (centre + spread) / (n + _Z**2)
    return low, high


@final
@dataclass(frozen=True, kw_only=True)
class Scores:
    """All scores of one trial. Fractions lie between 0 and 1."""

    n: int
    # Puzzles whose board is not the solution.
    errors: int
    # Whole boards that equal the solution, clues included.
    puzzle_accuracy: float
    puzzle_accuracy_ci95: tuple[float, float]
    # Over empty cells only.
    cell_accuracy: float
    # Fraction of the units that hold every digit once.
    constraint_satisfaction: float
    # Fraction of the puzzles whose clues are all kept.
    clues_kept: float
    verified: float
    mean_steps: float
    row_steps_per_puzzle: float
    # Of thinking alone; `Records.seconds` tells what that includes.
    ms_per_puzzle: float


def scores(records: Records) -> Scores:
    """The scores of these records."""
    n = len(records)
    if n == 0:
        raise ValueError("there are no puzzles to score")
    right = int(records.solved.sum())
    empty = int(records.cells_empty.sum())
    return Scores(
        n=n,
        errors=n - right,
        puzzle_accuracy=right / n,
        puzzle_accuracy_ci95=wilson(right, n),
        # Where nothing is empty nothing can be wrong.
        cell_accuracy=int(records.cells_right.sum()) / empty if empty else 1.0,
        constraint_satisfaction=float(records.units_satisfied.mean()),
        clues_kept=float(records.clues_kept.mean()),
        verified=float(records.verified.mean()),
        mean_steps=float(records.steps.mean()),
        row_steps_per_puzzle=float(records.row_steps.mean()),
        ms_per_puzzle=1000 * records.seconds / n,
    )


@final
@dataclass(frozen=True)
class Stratum:
    """Puzzles whose rating is at least `rating_min` and below `rating_max`."""

    rating_min: float
    rating_max: float
    n: int
    errors: int

    @property
    def puzzle_accuracy(self) -> float:
        return (self.n - self.errors) / self.n

    @property
    def label(self) -> str:
        return RatingClass(self.rating_min, self.rating_max, self.n).label


def by_rating(
    solved: Bool[np.ndarray, "puzzles"], ratings: Float[np.ndarray, "puzzles"]
) -> list[Stratum]:
    """Puzzles by how hard they are, in the classes of `ronri data describe`.

    Puzzles without a rating are in no class, and a class without puzzles is left out.
    """
    found = []
    for low, high in pairwise(RATING_EDGES):
        inside = (ratings >= low) & (ratings < high)
        if n := int(inside.sum()):
            found.append(Stratum(low, high, n, errors=n - int(solved[inside].sum())))
    return found
