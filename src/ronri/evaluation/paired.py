"""Two reasoners on the same puzzles: is one better, or was it lucky?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Bool

from ronri.evaluation.trials import Trial, allowed


@final
@dataclass(frozen=True)
class Paired:
    """McNemar's exact test. Puzzles that both solve, or neither, say nothing about the two."""

    only_first: int
    only_second: int
    # How often two equally good reasoners would differ at least as much as these.
    p: float


def mcnemar(first: Bool[np.ndarray, "puzzles"], second: Bool[np.ndarray, "puzzles"]) -> Paired:
    """Compare which puzzles two reasoners solved."""
    only_first = int((first & ~second).sum())
    only_second = int((second & ~first).sum())
    return Paired(only_first, only_second, _fair_coin(only_first, only_second))


def _fair_coin(heads: int, tails: int) -> float:
    """How likely a fair coin falls at least this unevenly, to either side.

    In whole numbers, so that it is exact: 2 * sum over k <= min of (n over k), of 2**n.
    """
    n, fewer = heads + tails, min(heads, tails)
    ways, total = 1, 0
    for k in range(fewer + 1):
        total += ways
        ways = ways * (n - k) // (k + 1)
    # Both sides share the middle if the coin fell evenly.
    return min(2 * total, 2**n) / 2**n


@final
@dataclass(frozen=True)
class Pair:
    """Two trials on the same puzzles."""

    first: Trial
    second: Trial
    test: Paired

    def to_json(self) -> dict[str, Any]:
        return {
            "data": self.first.puzzles.name,
            "first": self.first.reasoner,
            "first_budget": asdict(self.first.budget),
            "second": self.second.reasoner,
            "second_budget": asdict(self.second.budget),
            "n": self.first.scores.n,
            **asdict(self.test),
        }


def pairs(trials: Sequence[Trial]) -> list[Pair]:
    """Every two reasoners on the same data set, each with the largest budget it was given."""
    largest: dict[tuple[str, str], Trial] = {}
    for trial in trials:
        key = (trial.puzzles.name, trial.reasoner)
        if key not in largest or allowed(trial.budget) > allowed(largest[key].budget):
            largest[key] = trial
    best = list(largest.values())
    return [
        Pair(first, second, mcnemar(first.records.solved, second.records.solved))
        for index, first in enumerate(best)
        for second in best[index + 1 :]
        if first.puzzles.name == second.puzzles.name
    ]
