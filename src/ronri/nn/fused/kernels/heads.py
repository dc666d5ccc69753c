"""Rows of one head in and out of a program, and their rotation.

Each head vector is held as two halves, 1 and 2, so that a rotation is arithmetic between them and
never a shuffle.
"""

import triton
import triton.language as tl

from ronri.nn.fused.kernels.activation import halves


@triton.jit
def load(start, rows, stride, length, HALF: tl.constexpr):
    """Two halves of some rows of one head; rows past the end are zero."""
    columns = tl.arange(0, HALF)
    at = start + rows[:, None] * stride + columns[None, :]
    inside = (rows < length)[:, None]
    return tl.load(at, mask=inside, other=0.0), tl.load(at + HALF, mask=inside, other=0.0)


@triton.jit
def load_whole(start, rows, stride, length, HALF: tl.constexpr):
    """Some rows of one head that nobody turns, in one piece; rows past the end are zero."""
    at = start + rows[:, None] * stride + tl.arange(0, 2 * HALF)[None, :]
    return tl.load(at, mask=(rows < length)[:, None], other=0.0)


@triton.jit
def joined(first, second):
    """One tile of two halves: every thread keeps what it holds."""
    ROWS: tl.constexpr = first.shape[0]
    HALF: tl.constexpr = first.shape[1]
    return tl.join(first, second).permute(0, 2, 1).reshape([ROWS, 2 * HALF])


@triton.jit
def store_whole(start, rows, stride, length, tile, HALF: tl.constexpr):
    at = start + rows[:, None] * stride + tl.arange(0, 2 * HALF)[None, :]
    tl.store(at, tile.to(start.dtype.element_ty), mask=(rows < length)[:, None])


@triton.jit
def store(start, rows, stride, length, first, second, HALF: tl.constexpr):
    columns = tl.arange(0, HALF)
    at = start + rows[:, None] * stride + columns[None, :]
    inside = (rows < length)[:, None]
    tl.store(at, first.to(start.dtype.element_ty), mask=inside)
    tl.store(at + HALF, second.to(start.dtype.element_ty), mask=inside)


@triton.jit
def angles(cos, sin, rows, length, HALF: tl.constexpr):
    """Cosines and sines of some rows; both halves of a rotary table are the same."""
    at = rows[:, None] * (2 * HALF) + tl.arange(0, HALF)[None, :]
    inside = (rows < length)[:, None]
    cosines = tl.load(cos + at, mask=inside, other=0.0).to(tl.float32)
    return cosines, tl.load(sin + at, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def apart(groups, rows, columns, length):
    """Where a row and a column are of different groups; group 0 is with everyone."""
    own = tl.load(groups + rows, mask=rows < length, other=0)[:, None]
    other = tl.load(groups + columns, mask=columns < length, other=0)[None, :]
    return (own != other) & (own != 0) & (other != 0)


@triton.jit
def rotated(first, second, c, s, scale):
    """Both halves of some rows, turned and scaled, rounded as they were."""
    x = first.to(tl.float32)
    y = second.to(tl.float32)
    turned1 = (x * c - y * s) * scale
    turned2 = (y * c + x * s) * scale
    return turned1.to(first.dtype), turned2.to(first.dtype)


@triton.jit
def turned(
    first, second, cos, sin, rows, length, scale, HALF: tl.constexpr, ROTARY: tl.constexpr
):  # fmt: skip
    """Rows turned by their angles, if there are any, and scaled."""
    if ROTARY:
        c, s = angles(cos, sin, rows, length, HALF)
        return rotated(first, second, c, s, scale)
    else:  # noqa: RET505
        kind = first.dtype
        return (first.to(tl.float32) * scale).to(kind), (second.to(tl.float32) * scale).to(kind)


@triton.jit
def store_turned_back(
    start, rows, stride, length, grad, cos, sin, scale, HALF: tl.constexpr, ROTARY: tl.constexpr
):
    """Store the gradient of what `turned` was given: a rotation's transpose turns back."""
    x, y = halves(grad)
    if ROTARY:
        c, s = angles(cos, sin, rows, length, HALF)
        store(start, rows, stride, length, (x * c + y * s) * scale, (y * c - x * s) * scale, HALF)
    else:
        store(start, rows, stride, length, x * scale, y * scale, HALF)
