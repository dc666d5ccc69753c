"""How learning rates and momenta move while a run goes on, and how they fit its batch.

Progress is the fraction of the run that is done. It may count updates or minutes, whichever the
recipe limits; only the loop knows which.
"""

import math
from dataclasses import dataclass
from typing import final

from ronri.recipe import Optim

# What a batch may hold on a device with less memory than that many gigabytes, of 10^9 bytes: a card
# sold with 24 GB reports a little less than 24 * 2^30 bytes and belongs with the larger ones.
_BATCH_TIERS = ((6, 256), (12, 512), (24, 1024))
_LARGEST_BATCH = 2048


@final
@dataclass(frozen=True)
class Schedule:
    """The learning rate over a run, as a fraction of the recipe's."""

    config: Optim

    def scale(self, step: int, progress: float) -> float:
        """The fraction to use for the next update, when `step` updates are done.

        It rises linearly until `warmup` updates or `warmup_part` of the run are done, whichever is
        first.
        A cosine takes it from 1 at the beginning of the run to `final` at its end.
        """
        # The clock may run past the end while the last update is under way.
        progress = min(1.0, progress)
        warm = 1.0
        if self.config.warmup > 0:
            part = progress / self.config.warmup_part
            warm = min(1.0, max((step + 1) / self.config.warmup, part))
        if self.config.schedule == "constant":
            return warm
        return warm * linear(self.config.final, 1.0, (1 + math.cos(math.pi * progress)) / 2)


def linear(start: float, stop: float, progress: float) -> float:
    """From `start` to `stop` on a straight line, exact at both ends; it stays at `stop` then."""
    progress = min(1.0, progress)
    return (1 - progress) * start + progress * stop


def auto_batch(memory_bytes: int) -> int:
    """A batch that fits a device with this much memory."""
    for gigabytes, batch in _BATCH_TIERS:
        if memory_bytes < gigabytes * 10**9:
            return batch
    return _LARGEST_BATCH


def scaled_lr(base_lr: float, batch: int, base_batch: int) -> float:
    """The learning rate for a batch, given the one that is right for another.

    The noise of a gradient falls with the root of the batch (Hoffer et al., 2017), so the step may
    grow with it.
    """
    return base_lr * math.sqrt(batch / base_batch)
