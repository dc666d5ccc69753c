"""Work: floating point operations, counted rather than estimated."""

from copy import deepcopy
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import UInt8
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from ronri.reasoner import Noise, Reasoner

# Counted together, so that what a batch shares is shared here too.
_ROWS = 2


@final
@dataclass(frozen=True)
class Work:
    """Operations of one row in matrix products; a multiplication and its addition are two."""

    begin: float
    # Of the first step, which stands for all of them.
    advance: float

    def flops(self, rows: float, row_steps: float) -> float:
        return self.begin * rows + self.advance * row_steps


def measure(reasoner: Reasoner, clues: UInt8[np.ndarray, "puzzles cells"]) -> Work | None:
    """What a reasoner computes for one row; None if it does not compute in torch.

    Counted on a copy of the reasoner, on the processor and in float32, with attention spelled out:
    there no fused kernel hides its products, and every device counts the same.
    """
    twin = deepcopy(reasoner).cpu().float()
    twin.compute_dtype = torch.float32
    rows = torch.tensor(clues[:_ROWS])
    keys = torch.zeros(len(rows), dtype=torch.int64)
    noise = Noise(keys, torch.zeros(len(rows), dtype=torch.bool), silent=True)
    with sdpa_kernel(SDPBackend.MATH):
        with _counter() as beginning:
            state = twin.begin(rows, noise)
        with _counter() as advancing:
            twin.advance(state)
    work = Work(beginning.get_total_flops() / len(rows), advancing.get_total_flops() / len(rows))
    return work if work.begin or work.advance else None


@final
class _Anywhere:
    """In place of torch's own record of which module computes: we do not ask.

    It listens to gradients as they come, and cannot where thinking takes a gradient by itself.
    """

    parents = frozenset({"Global"})

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def _counter() -> FlopCounterMode:
    counter = FlopCounterMode(display=False)
    counter.mod_tracker = _Anywhere()  # type: ignore[assignment]
    return counter
