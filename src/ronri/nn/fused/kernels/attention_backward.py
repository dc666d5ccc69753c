"""The gradient of attention with rotary positions: one program is one head of one puzzle.

As in the forward pass keys are held as one full tile and a smaller rest, `a` and `b`, and all that
comes from far is asked for before anything is used. Once turned, the halves of a head vector are
put together: one product instead of two.
"""

import triton
import triton.language as tl

from ronri.nn.fused.kernels.activation import LOG2E
from ronri.nn.fused.kernels.forgetting import forgotten
from ronri.nn.fused.kernels.heads import (
    apart,
    joined,
    load,
    load_whole,
    store_turned_back,
    store_whole,
    turned,
)


@triton.jit
def pass_back(
    query, grad, key, value, level, mean, groups, seed, least, growth, head, rows, keys, length,
    query_grad, REST: tl.constexpr, GROUPED: tl.constexpr, FORGETS: tl.constexpr,
):  # fmt: skip
    """One tile of keys: the gradients of its keys and values; that of the queries grows."""
    scores = tl.dot(query, tl.trans(key))
    pull = tl.dot(grad, tl.trans(value))
    if REST:
        scores = tl.where((keys >= length)[None, :], float("-inf"), scores)
    if GROUPED:
        scores = tl.where(apart(groups, rows, keys, length), float("-inf"), scores)
    weights = tl.exp2(scores - level[:, None])
    used = weights
    if FORGETS:
        used = forgotten(weights, seed, least, growth, head, rows, keys, length)
        pull = forgotten(pull, seed, least, growth, head, rows, keys, length)
    score_grad = (weights * (pull - mean[:, None])).to(query.dtype)
    query_grad = tl.dot(score_grad, key, query_grad)
    value_grad = tl.dot(tl.trans(used.to(query.dtype)), grad)
    key_grad = tl.dot(tl.trans(score_grad), query)
    return query_grad, key_grad, value_grad


@triton.jit
def attention_backward(
    qkv, cos, sin, groups, seeds, out, level, out_grad, qkv_grad, length, scale, least, growth,
    HEADS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, A: tl.constexpr,
    B: tl.constexpr, ROTARY: tl.constexpr, GROUPED: tl.constexpr, FORGETS: tl.constexpr,
):  # fmt: skip
    """The gradient of `attention_forward`: the weights are computed again, tile by tile."""
    puzzle = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    width: tl.constexpr = HEADS * HALF * 2
    stride: tl.constexpr = 3 * width
    qkv += puzzle * length * stride + head * (2 * HALF)
    qkv_grad += puzzle * length * stride + head * (2 * HALF)
    out += puzzle * length * width + head * (2 * HALF)
    out_grad += puzzle * length * width + head * (2 * HALF)
    groups += head * length
    seeds += puzzle
    rows = tl.arange(0, ROWS)
    a = tl.arange(0, A)
    b = A + tl.arange(0, B)

    query1, query2 = load(qkv, rows, stride, length, HALF)
    key1_a, key2_a = load(qkv + width, a, stride, length, HALF)
    key1_b, key2_b = load(qkv + width, b, stride, length, HALF)
    result = load_whole(out, rows, width, length, HALF)
    grad = load_whole(out_grad, rows, width, length, HALF)
    value_a = load_whole(qkv + 2 * width, a, stride, length, HALF)
    value_b = load_whole(qkv + 2 * width, b, stride, length, HALF)
    # Queries carry the scale, and log2(e), for exp2.
    query1, query2 = turned(query1, query2, cos, sin, rows, length, scale * LOG2E, HALF, ROTARY)
    query = joined(query1, query2)
    # Not with the others: programs wait for it as soon as they have asked for it.
    level = tl.load(level + tl.program_id(0) * length + rows, mask=rows < length, other=0.0)
    key1_a, key2_a = turned(key1_a, key2_a, cos, sin, a, length, 1.0, HALF, ROTARY)
    key1_b, key2_b = turned(key1_b, key2_b, cos, sin, b, length, 1.0, HALF, ROTARY)
    key_a = joined(key1_a, key2_a)
    key_b = joined(key1_b, key2_b)
    # Softmax subtracts from each gradient of a weight their mean under the weights, which is the
    # gradient of the result times the result.
    mean = tl.sum(grad.to(tl.float32) * result.to(tl.float32), 1)

    query_grad = tl.zeros([ROWS, 2 * HALF], tl.float32)
    query_grad, key_grad, value_grad = pass_back(
        query, grad, key_a, value_a, level, mean, groups, seeds, least, growth, head, rows, a,
        length, query_grad, False, GROUPED, FORGETS,
    )  # fmt: skip
    store_whole(qkv_grad + 2 * width, a, stride, length, value_grad, HALF)
    # Queries carried the scale and log2(e): their gradient wants the scale, that of keys log(2).
    store_turned_back(
        qkv_grad + width, a, stride, length, key_grad, cos, sin, 1 / LOG2E, HALF, ROTARY
    )
    query_grad, key_grad, value_grad = pass_back(
        query, grad, key_b, value_b, level, mean, groups, seeds, least, growth, head, rows, b,
        length, query_grad, True, GROUPED, FORGETS,
    )  # fmt: skip
    store_whole(qkv_grad + 2 * width, b, stride, length, value_grad, HALF)
    store_turned_back(
        qkv_grad + width, b, stride, length, key_grad, cos, sin, 1 / LOG2E, HALF, ROTARY
    )
    store_turned_back(qkv_grad, rows, stride, length, query_grad, cos, sin, scale, HALF, ROTARY)
