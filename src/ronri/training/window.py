"""Losses and metrics between two lines of the log. They stay on the device until a line is due."""

import math
from typing import final

import torch
from torch import Tensor

from ronri.training.distributed import World

# A loss this many times that of the first line of the log has exploded.
EXPLOSION = 20.0


class Diverged(ValueError):
    """The loss is no number any more, or far larger than it was."""


@final
class Window:
    """What was measured since the last line of the log."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._losses: list[Tensor] = []
        self._sums: dict[str, Tensor] = {}
        self._first_loss: float | None = None

    def add(self, measured: dict[str, Tensor]) -> None:
        self._losses.append(measured["loss"])
        for name, value in measured.items():
            before = self._sums.get(name)
            self._sums[name] = value.float() if before is None else before + value.float()

    def check(self, step: int) -> None:
        """Raise `Diverged` if a loss up to this step was bad; waits for the device."""
        if not self._losses:
            return
        losses = self._world.mean(torch.stack(self._losses).float()).tolist()
        limit = math.inf if self._first_loss is None else EXPLOSION * self._first_loss
        for back, loss in enumerate(reversed(losses)):
            if not loss < limit:
                what = f"rose to {loss:.4g}" if math.isfinite(loss) else f"became {loss}"
                raise Diverged(f"the loss {what} at step {step - back}")

    def close(self, step: int) -> dict[str, float]:
        """The means over the window, which begins anew."""
        self.check(step)
        count = len(self._losses)
        sums = self._world.mean(torch.stack(list(self._sums.values())))
        means = dict(zip(self._sums, (sums / count).tolist(), strict=True))
        if self._first_loss is None:
            self._first_loss = means["loss"]
        self._losses, self._sums = [], {}
        return means
