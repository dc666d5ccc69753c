"""Dropout that depends on keys and on nothing else.

Torch draws what to forget from one generator for the whole device: a batch that is spread over
processes would forget other things. Here each number asks a short hash of its row's key, of where
in the network it is and of its own place in the row, in the wrapping 32-bit integers that every
device has. That costs a fraction of what a generator's numbers cost, and a kernel that needs to
know again what was forgotten computes it again (`fused/kernels/forgetting.py` is the same hash).

Shapes: B rows.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int32, Int64
from torch import Tensor

from ronri.data import chance


def _signed(x: int) -> int:
    return x - 2**32 if x >= 2**31 else x


# Odd numbers that mix well: the golden ratio's, and those of the hash named lowbias32.
STEP, MIX_1, MIX_2 = (_signed(x) for x in (0x9E3779B1, 0x7FEB352D, 0x846CA68B))
# What of a hash is compared with the part to forget.
BITS = 24


@final
@dataclass(frozen=True)
class Dropout:
    """What each row forgets at one place of a network."""

    seeds: Int32[Tensor, "B"]
    # The part that is forgotten; the rest is made as much larger.
    part: float

    @classmethod
    def of(cls, keys: Int64[Tensor, "B"], part: float) -> "Dropout | None":
        """What rows with these keys forget; None where nothing is forgotten.

        Half of a key has to do, and nothing is forked from it: compiled code may compute a seed
        again for every number.
        """
        return cls(keys.to(torch.int32), part) if part else None

    def at(self, place: int) -> "Dropout":
        """The same rows at another place of the network, where they forget something else."""
        return Dropout(self.seeds ^ _signed(chance.scramble_int(place) % 2**32), self.part)

    @property
    def least(self) -> int:
        """Numbers whose hash is below this are forgotten."""
        return round(self.part * 2**BITS)

    @property
    def scale(self) -> float:
        """By how much the others grow."""
        return 1 / (1 - self.part) if self.part < 1 else 0.0

    def kept(self, x: Float[Tensor, "B *shape"]) -> Bool[Tensor, "B *shape"]:
        """Which numbers of x are not forgotten."""
        index = torch.arange(x[0].numel(), dtype=torch.int32, device=x.device)
        seeds = self.seeds[:, None]
        # Before the product: torch's compiler would fold one with places alone into its own
        # arithmetic of places, where it does not fit into 32 bits.
        hashed = (seeds ^ index) * STEP
        # Integers are signed here: what a shift brings in from the left is cut off. The seed goes
        # in twice, or rows whose seeds are near would forget the same in another order.
        hashed = (hashed ^ ((hashed >> 16) & 0xFFFF) ^ seeds) * MIX_1
        hashed = (hashed ^ ((hashed >> 15) & 0x1FFFF)) * MIX_2
        hashed = hashed ^ ((hashed >> 16) & 0xFFFF)
        return ((hashed & (2**BITS - 1)) >= self.least).view(x.shape)

    def left(self, x: Float[Tensor, "B *shape"]) -> Float[Tensor, "B *shape"]:
        """What is left of x."""
        return torch.where(self.kept(x), x * self.scale, 0)


def dropped(x: Float[Tensor, "B *shape"], forget: Dropout | None) -> Float[Tensor, "B *shape"]:
    """What is left of x, if anything is to be forgotten."""
    return x if forget is None else forget.left(x)
