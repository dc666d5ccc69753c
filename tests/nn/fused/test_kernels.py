"""The fused kernels are the plain layers: same values, same gradients, one graph."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from formulas import (
    CUDA,
    DEVICE,
    angles,
    assert_near,
    assert_one_graph,
    assert_same,
    attention,
    mix_tokens,
    norm,
    normal,
    some_groups,
    swiglu,
    triton,
)
from formulas import loops_mended as loops_mended
from formulas import rounding_mended as rounding_mended
from formulas import seeded as seeded
from ronri.nn import fused
from ronri.nn.dropout import Dropout

LENGTHS = (17, 37, 82)


@triton
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize(
    ("tokens", "heads", "dim"), [(17, 2, 32), (37, 3, 64), (64, 1, 128), (82, 4, 64)]
)
def test_attention(tokens: int, heads: int, dim: int, rotary: bool) -> None:
    cos, sin = angles(tokens, dim) if rotary else (None, None)
    qkv = normal(2, tokens, 3 * heads * dim)
    for grad in (True, False):
        assert_same(
            lambda qkv: fused.rotary_attention(qkv, cos, sin, heads),
            lambda qkv: attention(qkv, cos, sin, heads),
            qkv,
            grad=grad,
        )


@triton
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize(("tokens", "heads", "dim"), [(17, 3, 32), (82, 2, 64), (82, 6, 32)])
def test_attention_within_groups(tokens: int, heads: int, dim: int, rotary: bool) -> None:
    """Each head has its own groups; group 0 is with everyone, and a group may have one member."""
    groups = some_groups(heads, tokens)
    cos, sin = angles(tokens, dim) if rotary else (None, None)
    for grad in (True, False):
        assert_same(
            lambda qkv: fused.rotary_attention(qkv, cos, sin, heads, groups),
            lambda qkv: attention(qkv, cos, sin, heads, groups),
            normal(2, tokens, 3 * heads * dim),
            grad=grad,
        )


@triton
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("tokens", "heads", "dim"), [(17, 3, 32), (81, 2, 64)])
def test_attention_that_forgets(tokens: int, heads: int, dim: int, grouped: bool) -> None:
    """The same weights in both passes, and those that plain layers forget."""
    groups = some_groups(heads, tokens) if grouped else None
    forget = Dropout.of(torch.tensor([-5, 2**40 + 7, 11], device=DEVICE), 0.3)
    assert forget is not None
    for place in (0, 9):
        at = forget.at(place)
        assert_same(
            lambda qkv, at=at: fused.rotary_attention(qkv, None, None, heads, groups, at),
            lambda qkv, at=at: attention(qkv, None, None, heads, groups, at),
            normal(3, tokens, 3 * heads * dim),
            grad=True,
        )


@triton
def test_attention_to_one_token_alone() -> None:
    """Large scores neither overflow nor turn into NaN."""
    assert_same(
        lambda qkv: fused.rotary_attention(qkv, None, None, 2),
        lambda qkv: attention(qkv, None, None, 2),
        normal(1, 20, 3 * 2 * 32, scale=12.0),
        grad=False,
    )


@triton
def test_angles_turn_as_rotate_half_does() -> None:
    """[a, b] becomes [a cos - b sin, b cos + a sin], so relative positions alone matter."""
    tokens, dim = 17, 32
    rate = torch.rand(dim // 2, device=DEVICE).repeat(2)
    place = torch.arange(tokens, device=DEVICE)[:, None]
    qkv = normal(1, tokens, 3 * dim)
    here = fused.rotary_attention(qkv, (place * rate).cos(), (place * rate).sin(), 1)
    there = fused.rotary_attention(qkv, ((place + 9) * rate).cos(), ((place + 9) * rate).sin(), 1)
    assert_near(there, here.double())
    assert (fused.rotary_attention(qkv, None, None, 1) - here).norm() > 0.1 * here.norm()


# More rows than one tile, and a last tile that is not full.
@triton
@pytest.mark.parametrize("rows", [(3, 50), (128,)])
def test_swiglu(rows: tuple[int, ...]) -> None:
    inputs = (normal(*rows, 64), normal(512, 64, scale=1 / 8), normal(64, 256, scale=1 / 16))
    for grad in (True, False):
        assert_same(fused.swiglu, swiglu, *inputs, grad=grad)


@triton
@pytest.mark.parametrize("tokens", LENGTHS)
def test_mix_tokens(tokens: int) -> None:
    x, w_gate_up = normal(2, tokens, 256), normal(256, tokens, scale=tokens**-0.5)
    w_down = normal(tokens, 128, scale=128**-0.5)
    for grad in (True, False):
        assert_same(fused.mix_tokens, mix_tokens, x, w_gate_up, w_down, grad=grad)


@pytest.mark.parametrize("tokens", LENGTHS)
def test_mix_tokens_for_the_compiler(tokens: int) -> None:
    x, w_gate_up = normal(2, tokens, 32), normal(32, tokens, scale=tokens**-0.5)
    w_down = normal(tokens, 16, scale=1 / 4)
    assert_same(fused.mix_tokens_plain, mix_tokens, x, w_gate_up, w_down, grad=True)


@triton
def test_a_block_is_one_graph() -> None:
    cos, sin = angles(17, 64)

    def block(qkv: Tensor, x: Tensor, *w: Tensor) -> Tensor:
        x = norm(x + fused.rotary_attention(qkv, cos, sin, 2))
        return fused.swiglu(fused.mix_tokens(x, w[0], w[1]), w[2], w[3]) + x

    assert_one_graph(
        block,
        normal(2, 17, 3 * 128),
        normal(2, 17, 128),
        normal(128, 17, scale=1 / 4),
        normal(17, 64, scale=1 / 8),
        normal(256, 128, scale=1 / 11),
        normal(128, 128, scale=1 / 11),
    )


def test_the_processor_never_gets_kernels() -> None:
    assert not fused.available(torch.zeros(1, dtype=torch.bfloat16))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_kernels_are_for_bfloat16_and_can_be_switched_off() -> None:
    x = torch.zeros(1, dtype=torch.bfloat16, device="cuda")
    fused.look(x.device)
    assert fused.available(x)
    assert not fused.available(x.float())
    with fused.switched(False):
        assert not fused.available(x)
    assert fused.available(x)


def test_kernels_are_not_imported_before_they_are_called() -> None:
    code = "import sys, ronri.nn.fused; assert 'ronri.nn.fused.kernels' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
