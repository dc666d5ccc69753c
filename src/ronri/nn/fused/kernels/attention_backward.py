"""The gradient of attention with rotary positions: one program is one head of one puzzle."""

import triton
import triton.language as tl

from ronri.nn.fused.kernels.activation import LOG2E
from ronri.nn.fused.kernels.heads import load, store, store_turned_back, turned


@triton.jit
def attention_backward(
    qkv, cos, sin, out, level, out_grad, qkv_grad, length, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    TILES: tl.constexpr, ROTARY: tl.constexpr,
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
    rows = tl.arange(0, ROWS)

    query1, query2 = load(qkv, rows, stride, length, HALF)
    grad1, grad2 = load(out_grad, rows, width, length, HALF)
    out1, out2 = load(out, rows, width, length, HALF)
    level = tl.load(level + tl.program_id(0) * length + rows, mask=rows < length, other=0.0)
    # Softmax subtracts from each gradient of a weight their mean under the weights, which is the
    # gradient of the result times the result.
    mean = tl.sum(grad1.to(tl.float32) * out1.to(tl.float32), 1)
    mean += tl.sum(grad2.to(tl.float32) * out2.to(tl.float32), 1)
    # Queries carry the scale, and log2(e), for exp2.
    query1, query2 = turned(query1, query2, cos, sin, rows, length, scale * LOG2E, HALF, ROTARY)

    query_grad1 = tl.zeros([ROWS, HALF], tl.float32)
    query_grad2 = tl.zeros([ROWS, HALF], tl.float32)
    for tile in range(TILES):
        keys = tile * KEYS + tl.arange(0, KEYS)
        key1, key2 = load(qkv + width, keys, stride, length, HALF)
        value1, value2 = load(qkv + 2 * width, keys, stride, length, HALF)
        key1, key2 = turned(key1, key2, cos, sin, keys, length, 1.0, HALF, ROTARY)
        scores = tl.dot(query1, tl.trans(key1))
        scores = tl.dot(query2, tl.trans(key2), scores)
        scores = tl.where((keys < length)[None, :], scores, float("-inf"))
        weights = tl.exp2(scores - level[:, None])
        pull = tl.dot(grad1, tl.trans(value1))
        pull = tl.dot(grad2, tl.trans(value2), pull)
        score_grad = (weights * (pull - mean[:, None])).to(query1.dtype)
        query_grad1 = tl.dot(score_grad, key1, query_grad1)
        query_grad2 = tl.dot(score_grad, key2, query_grad2)

        weights = tl.trans(weights.to(grad1.dtype))
        value_grad1 = tl.dot(weights, grad1)
        value_grad2 = tl.dot(weights, grad2)
        store(qkv_grad + 2 * width, keys, stride, length, value_grad1, value_grad2, HALF)
        score_grad = tl.trans(score_grad)
        key_grad1 = tl.dot(score_grad, query1)
        key_grad2 = tl.dot(score_grad, query2)
        store_turned_back(
            qkv_grad + width, keys, stride, length, key_grad1, key_grad2, cos, sin, 1 / LOG2E,
            HALF, ROTARY,
        )  # fmt: skip
    store_turned_back(
        qkv_grad, rows, stride, length, query_grad1, query_grad2, cos, sin, scale, HALF, ROTARY
    )
