"""Other ways to go forward through attention, to be measured."""

import triton
import triton.language as tl

from ronri.nn.fused.kernels.activation import LOG2E
from ronri.nn.fused.kernels.attention import attend
from ronri.nn.fused.kernels.heads import angles, load, rotated, store


@triton.jit
def attention_forward_persistent(
    qkv, cos, sin, out, level, length, scale, count,
    HEADS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, A: tl.constexpr,
    B: tl.constexpr, KEEP: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The same, one head after the other: the next one is on its way while this one computes."""
    width: tl.constexpr = HEADS * HALF * 2
    stride: tl.constexpr = 3 * width
    rows = tl.arange(0, ROWS)
    a = tl.arange(0, A)
    b = A + tl.arange(0, B)
    cos_q, sin_q = angles(cos, sin, rows, length, HALF)
    cos_a, sin_a = angles(cos, sin, a, length, HALF)
    cos_b, sin_b = angles(cos, sin, b, length, HALF)
    for tile in tl.range(tl.program_id(0), count, PROGRAMS, num_stages=STAGES):
        puzzle = tile // HEADS * length.to(tl.int64)
        start = qkv + puzzle * stride + tile % HEADS * (2 * HALF)
        query1, query2 = load(start, rows, stride, length, HALF)
        key1_a, key2_a = load(start + width, a, stride, length, HALF)
        key1_b, key2_b = load(start + width, b, stride, length, HALF)
        value1_a, value2_a = load(start + 2 * width, a, stride, length, HALF)
        value1_b, value2_b = load(start + 2 * width, b, stride, length, HALF)
        query1, query2 = rotated(query1, query2, cos_q, sin_q, scale * LOG2E)
        key1_a, key2_a = rotated(key1_a, key2_a, cos_a, sin_a, 1.0)
        key1_b, key2_b = rotated(key1_b, key2_b, cos_b, sin_b, 1.0)
        out1, out2, row_level = attend(
            query1, query2, key1_a, key2_a, key1_b, key2_b, value1_a, value2_a, value1_b, value2_b,
            b >= length,
        )  # fmt: skip
        place = out + puzzle * width + tile % HEADS * (2 * HALF)
        store(place, rows, width, length, out1, out2, HALF)
        if KEEP:
            tl.store(level + tile * length + rows, row_level, mask=rows < length)


@triton.jit
def attention_forward_tma(
    qkv_rows, qkv_a, qkv_b, cos, sin, out, level, length, scale, count,
    HEADS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, A: tl.constexpr,
    B: tl.constexpr, KEEP: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The same through tensor descriptors [puzzles, tokens, channels], one for each height."""
    width: tl.constexpr = HEADS * HALF * 2
    rows = tl.arange(0, ROWS)
    a = tl.arange(0, A)
    b = A + tl.arange(0, B)
    cos_q, sin_q = angles(cos, sin, rows, length, HALF)
    cos_a, sin_a = angles(cos, sin, a, length, HALF)
    cos_b, sin_b = angles(cos, sin, b, length, HALF)
    for tile in tl.range(tl.program_id(0), count, PROGRAMS, num_stages=STAGES):
        puzzle = tile // HEADS
        at = tile % HEADS * (2 * HALF)
        query1 = qkv_rows.load([puzzle, 0, at]).reshape(ROWS, HALF)
        query2 = qkv_rows.load([puzzle, 0, at + HALF]).reshape(ROWS, HALF)
        key1_a = qkv_a.load([puzzle, 0, at + width]).reshape(A, HALF)
        key2_a = qkv_a.load([puzzle, 0, at + width + HALF]).reshape(A, HALF)
        key1_b = qkv_b.load([puzzle, A, at + width]).reshape(B, HALF)
        key2_b = qkv_b.load([puzzle, A, at + width + HALF]).reshape(B, HALF)
        value1_a = qkv_a.load([puzzle, 0, at + 2 * width]).reshape(A, HALF)
        value2_a = qkv_a.load([puzzle, 0, at + 2 * width + HALF]).reshape(A, HALF)
        value1_b = qkv_b.load([puzzle, A, at + 2 * width]).reshape(B, HALF)
        value2_b = qkv_b.load([puzzle, A, at + 2 * width + HALF]).reshape(B, HALF)
        query1, query2 = rotated(query1, query2, cos_q, sin_q, scale * LOG2E)
        key1_a, key2_a = rotated(key1_a, key2_a, cos_a, sin_a, 1.0)
        key1_b, key2_b = rotated(key1_b, key2_b, cos_b, sin_b, 1.0)
        out1, out2, row_level = attend(
            query1, query2, key1_a, key2_a, key1_b, key2_b, value1_a, value2_a, value1_b, value2_b,
            b >= length,
        )  # fmt: skip
        place = out + puzzle * length.to(tl.int64) * width + at
        store(place, rows, width, length, out1, out2, HALF)
        if KEEP:
            tl.store(level + tile * length + rows, row_level, mask=rows < length)


@triton.jit
def attention_forward_small(
    qkv, cos, sin, out, level, length, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, TALL: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """The same, a few rows of queries at a time: no more of them than there are, few registers."""
    puzzle = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    width: tl.constexpr = HEADS * HALF * 2
    stride: tl.constexpr = 3 * width
    qkv += puzzle * length * stride + head * (2 * HALF)
    out += puzzle * length * width + head * (2 * HALF)
    a = tl.arange(0, A)
    b = A + tl.arange(0, B)
    key1_a, key2_a = load(qkv + width, a, stride, length, HALF)
    key1_b, key2_b = load(qkv + width, b, stride, length, HALF)
    value1_a, value2_a = load(qkv + 2 * width, a, stride, length, HALF)
    value1_b, value2_b = load(qkv + 2 * width, b, stride, length, HALF)
    c, s = angles(cos, sin, a, length, HALF)
    key1_a, key2_a = rotated(key1_a, key2_a, c, s, 1.0)
    c, s = angles(cos, sin, b, length, HALF)
    key1_b, key2_b = rotated(key1_b, key2_b, c, s, 1.0)
    for start in tl.range(0, TALL, ROWS):
        rows = start + tl.arange(0, ROWS)
        query1, query2 = load(qkv, rows, stride, length, HALF)
        c, s = angles(cos, sin, rows, length, HALF)
        query1, query2 = rotated(query1, query2, c, s, scale * LOG2E)
        out1, out2, row_level = attend(
            query1, query2, key1_a, key2_a, key1_b, key2_b, value1_a, value2_a, value1_b, value2_b,
            b >= length,
        )  # fmt: skip
        store(out, rows, width, length, out1, out2, HALF)
        if KEEP:
            tl.store(level + tl.program_id(0) * length + rows, row_level, mask=rows < length)
