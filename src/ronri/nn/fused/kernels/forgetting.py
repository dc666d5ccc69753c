"""What dropout forgets, hashed as `ronri.nn.dropout` does it."""

import triton
import triton.language as tl

from ronri.nn import dropout

STEP, MIX_1, MIX_2 = (
    tl.constexpr(number % 2**32) for number in (dropout.STEP, dropout.MIX_1, dropout.MIX_2)
)
COMPARED = tl.constexpr(2**dropout.BITS - 1)


@triton.jit
def kept(seed, index, least):
    """Whether the numbers at these places of a row are kept."""
    seed = seed.to(tl.uint32, bitcast=True)
    hashed = (seed ^ index.to(tl.uint32)) * STEP
    hashed = (hashed ^ (hashed >> 16) ^ seed) * MIX_1
    hashed = (hashed ^ (hashed >> 15)) * MIX_2
    hashed = hashed ^ (hashed >> 16)
    return (hashed & COMPARED) >= least


@triton.jit
def forgotten(weights, seed, least, growth, head, rows, columns, length):
    """Weights of one head, some of them forgotten and the others larger."""
    index = (head * length + rows[:, None]) * length + columns[None, :]
    return tl.where(kept(tl.load(seed), index, least), weights * growth, 0.0)
