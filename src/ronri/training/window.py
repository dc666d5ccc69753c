"""Losses and metrics between two lines of the log. They stay on the device until a line is due."""

import math
from typing import final

import torch
from torch import Tensor

from ronri.training.distributed import World

# A loss this many times that of the first line of the log has exploded.
EXPLOSION = 20.0


class Diverged(ValueError):
    """The loss or its gradient is no number any more, or the loss far larger than it was."""


@final
class Window:
    """What was measured since the last line of the log.

    `first_loss` is what later losses are compared with, once there is one: a run that is resumed
    brings its own.
    """

    def __init__(self, world: World, first_loss: float | None = None) -> None:
        self._world = world
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._sums: dict[str, Tensor] = {}
        self.first_loss = first_loss

    def add(self, measured: dict[str, Tensor]) -> None:
        self._losses.append(measured["loss"])
        self._norms.append(measured["gradient_norm"])
        for name, value in measured.items():
            before = self._sums.get(name)
            self._sums[name] = value.float() if before is None else before + value.float()

    def check(self, step: int) -> None:
        """Raise `Diverged` for the first step of the window that went wrong; waits for the device.

        A gradient that is no number ruins the weights while the loss still looks well.
        """
        if not self._losses:
            return
        both = torch.stack([torch.stack(self._losses).float(), torch.stack(self._norms).float()])
        losses, norms = self._world.mean(both).tolist()
        limit = math.inf if self.first_loss is None else EXPLOSION * self.first_loss
        for index, (loss, norm) in enumerate(zip(losses, norms, strict=True)):
            at = f"at step {step - len(losses) + 1 + index}"
            if not math.isfinite(loss):
                raise Diverged(f"the loss became {loss} {at}")
            if not math.isfinite(norm):
                raise Diverged(f"the gradient became {norm} {at}")
            if loss > limit:
                raise Diverged(f"the loss rose to {loss:.4g} {at}")

    def close(self, step: int) -> dict[str, float]:
        """The means over the window, which begins anew."""
        self.check(step)
        count = len(self._losses)
        sums = self._world.mean(torch.stack(list(self._sums.values())))
        means = dict(zip(self._sums, (sums / count).tolist(), strict=True))
        if self.first_loss is None and means["loss"] > 0:
            self.first_loss = means["loss"]
        self._losses, self._norms, self._sums = [], [], {}
        return means
