"""Attention with rotary positions over short sequences: one program is one head of one puzzle.

The whole sequence fits into one program, so every number is read once and written once. Queries,
keys and values are read from where the projection wrote them, and the result lies where the next
projection reads it: nobody transposes anything.

Tiles are powers of two. Keys are held as one full tile and a smaller rest, `a` and `b` (82 keys as
64 + 32 rather than 128). Each head vector is held as two halves, 1 and 2, so that a rotation is
arithmetic between them and never a shuffle. Everything is asked for before anything is used: a
program waits for memory once.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import custom_op

from ronri.nn.dropout import Dropout
from ronri.nn.fused.kernels.activation import LOG2E
from ronri.nn.fused.kernels.attention_backward import attention_backward
from ronri.nn.fused.kernels.forgetting import forgotten
from ronri.nn.fused.kernels.heads import apart, load, store, turned


@triton.jit
def attend(
    query1, query2, key1_a, key2_a, key1_b, key2_b, value1_a, value2_a, value1_b, value2_b,
    groups, seed, least, growth, head, rows, a, b, length,
    GROUPED: tl.constexpr, FORGETS: tl.constexpr,
):  # fmt: skip
    """Two halves of the result, and the level of each row: log2 of the sum of its weights.

    Queries carry the scale, and log2(e), for exp2. Keys past the end get no attention, nor do those
    of other groups. Weights are forgotten after they have been summed.
    """
    scores_a = tl.dot(query1, tl.trans(key1_a))
    scores_a = tl.dot(query2, tl.trans(key2_a), scores_a)
    scores_b = tl.dot(query1, tl.trans(key1_b))
    scores_b = tl.dot(query2, tl.trans(key2_b), scores_b)
    scores_b = tl.where((b >= length)[None, :], float("-inf"), scores_b)
    if GROUPED:
        scores_a = tl.where(apart(groups, rows, a, length), float("-inf"), scores_a)
        scores_b = tl.where(apart(groups, rows, b, length), float("-inf"), scores_b)
    top = tl.maximum(tl.max(scores_a, 1), tl.max(scores_b, 1))
    weights_a = tl.exp2(scores_a - top[:, None])
    weights_b = tl.exp2(scores_b - top[:, None])
    total = tl.sum(weights_a, 1) + tl.sum(weights_b, 1)
    if FORGETS:
        weights_a = forgotten(weights_a, seed, least, growth, head, rows, a, length)
        weights_b = forgotten(weights_b, seed, least, growth, head, rows, b, length)
    weights_a = weights_a.to(value1_a.dtype)
    weights_b = weights_b.to(value1_a.dtype)
    out1 = tl.dot(weights_b, value1_b, tl.dot(weights_a, value1_a))
    out2 = tl.dot(weights_b, value2_b, tl.dot(weights_a, value2_a))
    share = (1.0 / total)[:, None]
    return out1 * share, out2 * share, top + tl.log2(total)


@triton.jit
def attention_forward(
    qkv, cos, sin, groups, seeds, out, level, length, scale, least, growth,
    HEADS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, A: tl.constexpr,
    B: tl.constexpr, ROTARY: tl.constexpr, GROUPED: tl.constexpr, FORGETS: tl.constexpr,
    KEEP: tl.constexpr,
):  # fmt: skip
    """out = softmax(rotate(q) rotate(k)' scale) v for one head of one sequence, group by group."""
    puzzle = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    width: tl.constexpr = HEADS * HALF * 2
    stride: tl.constexpr = 3 * width
    qkv += puzzle * length * stride + head * (2 * HALF)
    out += puzzle * length * width + head * (2 * HALF)
    rows = tl.arange(0, ROWS)
    a = tl.arange(0, A)
    b = A + tl.arange(0, B)

    query1, query2 = load(qkv, rows, stride, length, HALF)
    key1_a, key2_a = load(qkv + width, a, stride, length, HALF)
    key1_b, key2_b = load(qkv + width, b, stride, length, HALF)
    value1_a, value2_a = load(qkv + 2 * width, a, stride, length, HALF)
    value1_b, value2_b = load(qkv + 2 * width, b, stride, length, HALF)
    query1, query2 = turned(query1, query2, cos, sin, rows, length, scale * LOG2E, HALF, ROTARY)
    key1_a, key2_a = turned(key1_a, key2_a, cos, sin, a, length, 1.0, HALF, ROTARY)
    key1_b, key2_b = turned(key1_b, key2_b, cos, sin, b, length, 1.0, HALF, ROTARY)
    out1, out2, row_level = attend(
        query1, query2, key1_a, key2_a, key1_b, key2_b, value1_a, value2_a, value1_b, value2_b,
        groups + head * length, seeds + puzzle, least, growth, head, rows, a, b, length,
        GROUPED, FORGETS,
    )  # fmt: skip
    store(out, rows, width, length, out1, out2, HALF)
    if KEEP:
        tl.store(level + tl.program_id(0) * length + rows, row_level, mask=rows < length)


def tiles(length: int) -> tuple[int, int]:
    """The two tiles that hold a sequence's keys: powers of two, the second the smaller rest."""
    assert 16 <= length <= 128, "a sequence must fill a tile and fit into one program"
    first = max(16, triton.next_power_of_2(length) // 2)
    return first, max(16, triton.next_power_of_2(length - first))


def _launch(
    qkv: Tensor,
    cos: Tensor | None,
    sin: Tensor | None,
    groups: Tensor | None,
    heads: int,
    out: Tensor,
    level: Tensor | None = None,
    forget: Dropout | None = None,
) -> Tensor:
    batch, length, width = out.shape
    assert qkv.is_contiguous()
    first, second = tiles(length)
    rows = max(16, triton.next_power_of_2(length))
    # 168 registers let three programs share a multiprocessor: one loads while others compute.
    spare = {"maxnreg": 168} if rows == 128 else {}
    attention_forward[(batch * heads,)](
        qkv,
        qkv if cos is None else cos,
        qkv if sin is None else sin,
        qkv if groups is None else groups,
        qkv if forget is None else forget.seeds,
        out,
        out if level is None else level,
        length,
        (width // heads) ** -0.5,
        0 if forget is None else forget.least,
        1.0 if forget is None else forget.scale,
        HEADS=heads,
        HALF=width // heads // 2,
        ROWS=rows,
        A=first,
        B=second,
        ROTARY=cos is not None,
        GROUPED=groups is not None,
        FORGETS=forget is not None,
        KEEP=level is not None,
        num_warps=4,
        **spare,
    )
    return out


def _forget(seeds: Tensor | None, part: float) -> Dropout | None:
    return None if seeds is None else Dropout(seeds, part)


def _result(qkv: Tensor, rough: bool = False) -> Tensor:
    """Room for what attention finds."""
    batch, length, fused = qkv.shape
    dtype = torch.float8_e4m3fn if rough else qkv.dtype
    return qkv.new_empty(batch, length, fused // 3, dtype=dtype)


@custom_op("ronri::rotary_attention_alone", mutates_args=())
def rotary_attention_alone(
    qkv: Tensor,
    cos: Tensor | None,
    sin: Tensor | None,
    groups: Tensor | None,
    heads: int,
    rough: bool = False,
) -> Tensor:
    """The result [batch, tokens, heads dim], without gradient; `rough`, in 8 bits."""
    return _launch(qkv, cos, sin, groups, heads, _result(qkv, rough))


@rotary_attention_alone.register_fake
def _(
    qkv: Tensor,
    cos: Tensor | None,  # noqa: ARG001
    sin: Tensor | None,  # noqa: ARG001
    groups: Tensor | None,  # noqa: ARG001
    heads: int,  # noqa: ARG001
    rough: bool = False,
) -> Tensor:
    return _result(qkv, rough)


@custom_op("ronri::rotary_attention", mutates_args=())
def rotary_attention(
    qkv: Tensor,
    cos: Tensor | None,
    sin: Tensor | None,
    groups: Tensor | None,
    heads: int,
    seeds: Tensor | None = None,
    part: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """The result, and the level of each row's softmax; `seeds` forget a part of the weights."""
    level = qkv.new_empty(qkv.shape[0], heads, qkv.shape[1], dtype=torch.float32)
    forget = _forget(seeds, part)
    return _launch(qkv, cos, sin, groups, heads, _result(qkv), level, forget), level


@rotary_attention.register_fake
def _(
    qkv: Tensor,
    cos: Tensor | None,  # noqa: ARG001
    sin: Tensor | None,  # noqa: ARG001
    groups: Tensor | None,  # noqa: ARG001
    heads: int,
    seeds: Tensor | None = None,  # noqa: ARG001
    part: float = 0.0,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    batch, length, _ = qkv.shape
    return _result(qkv), qkv.new_empty(batch, heads, length, dtype=torch.float32)


@custom_op("ronri::rotary_attention_backward", mutates_args=())
def rotary_attention_backward(
    out_grad: Tensor,
    qkv: Tensor,
    cos: Tensor | None,
    sin: Tensor | None,
    groups: Tensor | None,
    heads: int,
    out: Tensor,
    level: Tensor,
    seeds: Tensor | None = None,
    part: float = 0.0,
) -> Tensor:
    """The gradient of qkv, laid out as qkv is."""
    batch, length, fused = qkv.shape
    width = fused // 3
    assert out_grad.is_contiguous()
    qkv_grad = torch.empty_like(qkv)
    first, second = tiles(length)
    forget = _forget(seeds, part)
    # Few warps with all the registers there are: two programs share a multiprocessor, one loads
    # while the other computes.
    attention_backward[(batch * heads,)](
        qkv,
        qkv if cos is None else cos,
        qkv if sin is None else sin,
        qkv if groups is None else groups,
        qkv if forget is None else forget.seeds,
        out,
        level,
        out_grad,
        qkv_grad,
        length,
        (width // heads) ** -0.5,
        0 if forget is None else forget.least,
        1.0 if forget is None else forget.scale,
        HEADS=heads,
        HALF=width // heads // 2,
        ROWS=max(16, triton.next_power_of_2(length)),
        A=first,
        B=second,
        ROTARY=cos is not None,
        GROUPED=groups is not None,
        FORGETS=forget is not None,
        num_warps=8 if width // heads == 128 else 4,
    )
    return qkv_grad


@rotary_attention_backward.register_fake
def _(
    out_grad: Tensor,  # noqa: ARG001
    qkv: Tensor,
    cos: Tensor | None,  # noqa: ARG001
    sin: Tensor | None,  # noqa: ARG001
    groups: Tensor | None,  # noqa: ARG001
    heads: int,  # noqa: ARG001
    out: Tensor,  # noqa: ARG001
    level: Tensor,  # noqa: ARG001
    seeds: Tensor | None = None,  # noqa: ARG001
    part: float = 0.0,  # noqa: ARG001
) -> Tensor:
    return torch.empty_like(qkv)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    qkv, cos, sin, groups, ctx.heads, seeds, ctx.part = inputs
    out, level = output
    ctx.mark_non_differentiable(level)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(qkv, cos, sin, groups, out, level, seeds)


def _differentiate(ctx: Any, out_grad: Tensor, _: None) -> tuple[Tensor | None, ...]:
    qkv, cos, sin, groups, out, level, seeds = ctx.saved_tensors
    grad = rotary_attention_backward(
        out_grad.contiguous(), qkv, cos, sin, groups, ctx.heads, out, level, seeds, ctx.part
    )
    return grad, None, None, None, None, None, None


rotary_attention.register_autograd(_differentiate, setup_context=_keep)
