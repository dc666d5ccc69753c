"""Puzzles for ever, already on the device: chosen, unpacked and moved by a random symmetry there.

A batch has slots, and a slot works on one puzzle until it is done with it. The n-th lesson of a
slot is a pure function of (seed, slot, n) and of the mixture when it began, so the whole state of a
stream is two numbers a slot: a run resumes exactly, and its slots can be spread over processes
without changing a lesson.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from ronri.data import chance
from ronri.data.tensors import random_symmetries, unpack
from ronri.sudoku.geometry import Geometry


@final
@dataclass(frozen=True)
class Batch:
    """One lesson for each slot."""

    clues: UInt8[Tensor, "slots cells"]
    solutions: UInt8[Tensor, "slots cells"]
    # Randomness for this step: a key a slot, never used twice.
    keys: Int64[Tensor, "slots"]
    # Whatever else a reasoner's own source of lessons provides, by name.
    extras: Mapping[str, Tensor] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Source:
    """The packed puzzles of one set, and how often to draw from it."""

    records: UInt8[np.ndarray, "count record"]
    weight: float
    # How often at the very beginning of a run, if not as often as later.
    early: float | None = None


@final
class PuzzleStream:
    """Lessons from a mixture of sets. `slots` are numbers that are unique over all processes."""

    def __init__(
        self,
        sources: Sequence[Source],
        geometry: Geometry,
        slots: Int64[Tensor, "slots"],
        *,
        seed: int,
        augment: bool = True,
        early_part: float = 0.0,
    ) -> None:
        self.geometry = geometry
        self.augment = augment
        device = slots.device
        self._records = torch.cat([torch.from_numpy(np.array(s.records)) for s in sources])
        self._records = self._records.to(device)
        counts = torch.tensor([len(source.records) for source in sources])
        self._counts = counts.to(device)
        self._starts = (counts.cumsum(0) - counts).to(device)
        late = np.array([source.weight for source in sources])
        early = np.array([s.weight if s.early is None else s.early for s in sources])
        self._early, self._late = early / early.sum(), late / late.sum()
        self._early_part = early_part
        self._moved = -1
        self._edges = torch.zeros(len(sources) - 1, device=device)
        self.move_to(0.0)
        root = torch.full_like(slots, chance.scramble_int(seed))
        self._slot_keys = chance.fork(root, slots)
        self._step_keys = chance.fork(chance.fork(root, -1), slots)
        # How many lessons each slot has begun, and how many batches were taken.
        self._begun = torch.zeros_like(slots)
        # The set that each slot's lesson is from.
        self._which = torch.zeros_like(slots)
        self._taken = torch.zeros((), dtype=torch.int64, device=device)

    def take(self, free: Bool[Tensor, "slots"]) -> Batch:
        """The next lesson of every slot that is free, and the current one of every other."""
        self._begun += free
        self._taken += 1
        own = chance.fork(self._slot_keys, self._begun)
        drawn = torch.bucketize(chance.uniform(own, 1)[:, 0], self._edges, right=True)
        self._which.copy_(torch.where(free, drawn, self._which))
        clues, solutions = self._lessons(own)
        keys = chance.fork(self._step_keys, self._taken.expand_as(self._step_keys))
        return Batch(clues, solutions, keys)

    def move_to(self, progress: float) -> None:
        """Mix as is right at this part of a run: from early to late, on a straight line."""
        # In a thousand steps: most updates need not write to the device.
        moved = min(1000, int(1000 * progress / self._early_part)) if self._early_part else 1000
        if moved == self._moved:
            return
        self._moved = moved
        weights = self._early + (self._late - self._early) * (moved / 1000)
        # The last set takes what rounding left over.
        self._edges.copy_(torch.from_numpy(weights.cumsum()[:-1].astype(np.float32)))

    def _lessons(
        self, keys: Int64[Tensor, "slots"]
    ) -> tuple[UInt8[Tensor, "slots cells"], UInt8[Tensor, "slots cells"]]:
        count = self._counts[self._which]
        row = self._starts[self._which] + chance.below(chance.fork(keys, 0), count)
        clues, solutions = unpack(self._records[row], self.geometry)
        if not self.augment:
            return clues, solutions
        symmetries = random_symmetries(chance.fork(keys, 1), self.geometry)
        return symmetries.apply(clues), symmetries.apply(solutions)

    @property
    def admitted(self) -> Int64[Tensor, ""]:
        """How many puzzles were begun."""
        return self._begun.sum()

    def tensors(self) -> dict[str, Tensor]:
        """The state: what a checkpoint keeps."""
        return {"begun": self._begun, "which": self._which, "taken": self._taken}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        self._begun.copy_(tensors["begun"])
        self._which.copy_(tensors["which"])
        self._taken.copy_(tensors["taken"])
