"""Layers in 8 bits are rounded where they should be, and nowhere else."""

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from formulas import (
    CUDA,
    DEVICE,
    DTYPE,
    angles,
    assert_equal_compiled,
    attention,
    normal,
    some_groups,
    swiglu,
    triton,
)
from formulas import loops_mended as loops_mended
from formulas import rounding_mended as rounding_mended
from formulas import seeded as seeded
from ronri.nn import fused


def alike(*shape: int) -> Tensor:
    """Rows that have something in common."""
    return normal(*shape) + normal(shape[-1])


def rounded(x: Tensor) -> Tensor:
    """To 8 bits and back; the largest number of a weight becomes the largest there is."""
    return x.to(torch.float8_e4m3fn).to(x.dtype)


def rounded_linear(x: Tensor, weight: Tensor, turn: int) -> Tensor:
    """The product with a rounded weight, put right for the mean row. x is rounded."""
    scale = weight.abs().max() / 448
    before = torch.zeros_like(weight)
    for past in range(turn + 1):
        # All turns together are to be as many times the weight.
        eight = rounded((((past + 1) * weight - before) / scale).clamp(-448, 448)) * scale
        before += eight
    return x @ eight.T + (weight - eight) @ x.flatten(0, -2).mean(0)


def assert_rough(found: Tensor, rounded_where_it_is: Tensor, exact: Tensor) -> None:
    """Rounded to 8 bits at the right places and nowhere else, and not far from the truth."""
    scale = exact.norm()
    # On a GPU numbers in between are bfloat16: some fall on the other side of a step of 8 bits.
    assert (found.double() - rounded_where_it_is).norm() / scale < (2.5e-2 if CUDA else 5e-3)
    assert 1e-2 < (found.double() - exact).norm() / scale < 8e-2


@triton
@pytest.mark.parametrize(("tokens", "turn", "grouped"), [(17, 0, True), (82, 3, False)])
def test_rough_attention(tokens: int, turn: int, grouped: bool) -> None:
    cos, sin = angles(tokens, 64)
    groups = some_groups(2, tokens) if grouped else None
    x, w_qkv, w_out = alike(2, tokens, 128), normal(384, 128), normal(128, 128)
    w_qkv, w_out = w_qkv.float() / 11, w_out.float() / 11
    found = fused.rough.attention(x, w_qkv, w_out, cos, sin, groups, 2, turn)
    eight = rounded_linear(rounded(x.double()), w_qkv.double(), turn)
    eight = attention(eight, cos, sin, 2, groups)
    eight = rounded_linear(rounded(eight), w_out.double(), turn)
    exact = attention(x.double() @ w_qkv.double().T, cos, sin, 2, groups) @ w_out.double().T
    assert found.dtype == DTYPE
    assert_rough(found, eight, exact)


@triton
@pytest.mark.parametrize("turn", [0, 3])
def test_rough_swiglu(turn: int) -> None:
    x, w_gate_up, w_down = alike(3, 50, 128), normal(512, 128), normal(128, 256)
    w_gate_up, w_down = w_gate_up.float() / 11, w_down.float() / 16
    found = fused.rough.swiglu(x, w_gate_up, w_down, turn)
    gate, up = rounded_linear(rounded(x.double()), w_gate_up.double(), turn).chunk(2, dim=-1)
    eight = rounded_linear(rounded(F.silu(gate) * up), w_down.double(), turn)
    exact = swiglu(x.double(), w_gate_up.double(), w_down.double())
    assert found.dtype == DTYPE
    assert_rough(found, eight, exact)


# All rows of a small batch are looked at, and a sample of those of a large one.
@pytest.mark.parametrize("batch", [3, 256])
def test_a_rounded_weight_is_right_about_the_mean_row(batch: int) -> None:
    # Puzzles differ, the first ones most, and so do tokens: the sample must be of them all.
    puzzles = normal(batch, 1, 128)
    puzzles[:9] += 3 * normal(128)
    x = alike(batch, 17, 128) + puzzles + 2 * normal(17, 128)
    x, weight = fused.rough.rounded(x), normal(128, 128).float()
    scaled = fused.rough.scaled(weight, 0)
    found = fused.rough.product(x, scaled, DTYPE).double()
    exact = x.double() @ weight.double().T
    uncorrected = exact - x.double() @ scaled.rest.double().T
    error, before = ((y - exact).flatten(0, -2).mean(0).norm() for y in (found, uncorrected))
    assert error < 0.2 * before


def test_the_mean_of_all_turns_is_nearer_to_the_weight_than_any() -> None:
    weight = torch.randn(128, 128, device=DEVICE)
    turns = [fused.rough.scaled(weight, turn) for turn in range(fused.rough.TURNS)]
    for one in turns:
        torch.testing.assert_close(one.rounded.float() * one.scale + one.rest, weight)
    # Of what was owed only the last turn's part is left.
    mean = torch.stack([one.rest for one in turns]).mean(0)
    assert mean.norm() < 1.2 / fused.rough.TURNS * turns[0].rest.norm()
    again = fused.rough.scaled(weight, fused.rough.TURNS)
    assert torch.equal(again.rounded.float(), turns[0].rounded.float())


@triton
def test_rough_layers_bear_what_8_bits_cannot_hold() -> None:
    """Nothing overflows: what is too large becomes the largest number there is."""
    x, w_gate_up = normal(1, 16, 128, scale=1e3), normal(256, 128, scale=5e-3).float()
    w_down = normal(128, 128).float()
    for turn in (0, 3):
        assert fused.rough.swiglu(x, w_gate_up, w_down, turn).isfinite().all()
        assert fused.rough.swiglu(x, w_gate_up * 0, w_down, turn).eq(0).all()


@triton
def test_rough_layers_are_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    # The compiler cannot look into the checks of shapes.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    cos, sin = angles(17, 64)
    inputs = [normal(2, 17, 128), *(normal(n, 128).float() / 11 for n in (384, 128, 256, 128))]

    def block(x: Tensor, *w: Tensor) -> Tensor:
        x = x + fused.rough.attention(x, w[0], w[1], cos, sin, None, 2, 0)
        return x + fused.rough.swiglu(x, w[2], w[3], 1)

    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert_equal_compiled(compiled(*inputs), block(*inputs))
