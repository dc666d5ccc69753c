"""What several kernels share."""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)) without a division, for which the GPU has no single instruction."""
    root = tl.rsqrt(1.0 + tl.exp2(x * -LOG2E))
    return root * root


@triton.jit
def halves(tile):
    """The left and the right half of a tile, which every thread already holds."""
    ROWS: tl.constexpr = tile.shape[0]
    COLUMNS: tl.constexpr = tile.shape[1]
    return tile.reshape([ROWS, 2, COLUMNS // 2]).permute(0, 2, 1).split()
