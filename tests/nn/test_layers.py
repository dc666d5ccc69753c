"""Layers against plain references, and the symmetries they have."""

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ronri.nn import fused
from ronri.nn.layers import (
    Attention,
    PositionMixer,
    Rotary,
    SwiGLU,
    UnitMixer,
    add_norm,
    hear_and_think,
    rms_norm,
)
from ronri.sudoku.geometry import FOUR, SIX, Geometry


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_rms_norm_is_that_of_torch() -> None:
    x = 5 * torch.randn(3, 4, 16)
    torch.testing.assert_close(rms_norm(x), F.rms_norm(x, (16,), eps=1e-5))
    # Nothing to divide by is no reason to fail.
    assert not rms_norm(torch.zeros(2, 8)).any()


def test_rms_norm_computes_in_float32() -> None:
    x = (1000 * torch.randn(2, 64)).bfloat16()
    assert torch.equal(rms_norm(x), rms_norm(x.float()).bfloat16())


def test_add_norm_forgets_the_length_of_what_it_gets() -> None:
    x, update = torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    found = add_norm(x, update)
    torch.testing.assert_close(found, rms_norm(x + update))
    torch.testing.assert_close(add_norm(100 * x, 100 * update), found, rtol=1e-3, atol=1e-4)


def test_rotary_turns_pairs_by_angles_that_grow_with_the_position() -> None:
    positions, width = 5, 8
    x = torch.randn(2, positions, 3, width)
    frequency = 10_000.0 ** (-torch.arange(width // 2, dtype=torch.float64) * 2 / width)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * frequency
    # Number i and number i + width / 2 are one complex number.
    number = torch.complex(x[..., : width // 2].double(), x[..., width // 2 :].double())
    turned = number * torch.polar(torch.ones_like(angle), angle)[:, None]
    expected = torch.cat([turned.real, turned.imag], dim=-1).float()
    torch.testing.assert_close(Rotary(positions, width)(x), expected)


def test_rotated_products_depend_on_the_distance_alone() -> None:
    q, k = (torch.randn(16).expand(1, 9, 1, 16) for _ in range(2))
    rotary = Rotary(9, 16)
    products = rotary(q)[0, :, 0] @ rotary(k)[0, :, 0].T
    for distance in range(-8, 9):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert products[0].std() > 0.1


@pytest.mark.parametrize("rotated", [False, True])
def test_attention_is_a_softmax_over_positions(rotated: bool) -> None:
    attention = Attention(12, 3)
    rotary = Rotary(7, 4) if rotated else None
    x = torch.randn(2, 7, 12)
    q, k, v = (part.view(2, 7, 3, 4) for part in (x @ attention.qkv.weight.T).split(12, dim=-1))
    if rotary is not None:
        q, k = rotary(q), rotary(k)
    weights = (torch.einsum("blhk,bmhk->bhlm", q, k) / 2).softmax(dim=-1)
    mixed = torch.einsum("bhlm,bmhk->blhk", weights, v).reshape(2, 7, 12)
    torch.testing.assert_close(attention(x, rotary), mixed @ attention.out.weight.T)


def test_attention_without_rotation_does_not_know_the_order() -> None:
    attention, x, order = Attention(12, 3), torch.randn(2, 7, 12), torch.randperm(7)
    torch.testing.assert_close(attention(x[:, order], None), attention(x, None)[:, order])
    turned = Rotary(7, 4)
    assert not torch.allclose(attention(x[:, order], turned), attention(x, turned)[:, order])


def test_attention_within_groups() -> None:
    """Each head has its own groups; positions of group 0 see, and are seen, everywhere."""
    groups = torch.tensor([[0, 1, 1, 2, 2], [1, 1, 1, 0, 2]], dtype=torch.int32)
    attention, x = Attention(12, 2, groups), torch.randn(3, 5, 12)
    q, k, v = (part.view(3, 5, 2, 6) for part in (x @ attention.qkv.weight.T).split(12, dim=-1))
    scores = torch.einsum("blhk,bmhk->bhlm", q, k) / 6**0.5
    for head, row in enumerate(groups.tolist()):
        for one, other in itertools.product(range(5), repeat=2):
            if row[one] != row[other] and row[one] and row[other]:
                scores[:, head, one, other] = -torch.inf
    mixed = torch.einsum("bhlm,bmhk->blhk", scores.softmax(dim=-1), v).reshape(3, 5, 12)
    torch.testing.assert_close(attention(x, None), mixed @ attention.out.weight.T)
    assert not {"groups", "mask"} & attention.state_dict().keys()


def test_heads_share_the_width() -> None:
    with pytest.raises(ValueError, match="width of 10 cannot be shared by 3 heads"):
        Attention(10, 3)


def test_swiglu_is_gated() -> None:
    layer, x = SwiGLU(6, 10), torch.randn(2, 3, 6)
    gate, up = layer.gate_up.weight.split(10)
    expected = (F.silu(x @ gate.T) * (x @ up.T)) @ layer.down.weight.T
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("turn", [0, 3])
def test_rough_layers_are_told_whose_turn_it_is(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []

    def rough(x: Tensor, *others: Any) -> Tensor:
        turns.append(others[-1])
        return x

    monkeypatch.setattr(fused, "available", lambda _: True)
    for name in ("attention", "swiglu"):
        monkeypatch.setattr(fused.rough, name, rough)
    x = torch.randn(1, 17, 128)
    Attention(128, 2)(x, None, rough=turn)
    SwiGLU(128, 128)(x, rough=turn)
    assert turns == [turn, turn]


def test_the_position_mixer_acts_on_every_channel_alone() -> None:
    mixer, x = PositionMixer(7, 10), torch.randn(2, 7, 4)
    found = mixer(x)
    for channel in range(4):
        column = x[:, :, channel]
        expected = add_norm(column, mixer.swiglu(column))
        torch.testing.assert_close(found[:, :, channel], expected)


@pytest.mark.parametrize("geometry", [FOUR, SIX], ids=str)
def test_candidates_hear_the_sums_of_their_units(geometry: Geometry) -> None:
    size, box = geometry.size, (geometry.box_height, geometry.box_width)
    mixer, x = UnitMixer(6, 5, box), torch.randn(2, size**3, 6)
    gate, value = mixer.say.weight.split(5)
    said = F.silu(x @ gate.T) * (x @ value.T)
    members: dict[tuple[int, ...], list[int]] = {}
    units_of = []
    for candidate in range(size**3):
        cell, digit = divmod(candidate, size)
        row, column, block = geometry.units_of[cell].tolist()
        # What is said in a row about another digit is not heard, but in the cell all digits are.
        units_of.append([(row, digit), (column, digit), (block, digit), (cell, -1)])
        for kind, unit in enumerate(units_of[-1]):
            members.setdefault((kind, *unit), []).append(candidate)
    assert {len(some) for some in members.values()} == {size}
    expected = torch.zeros_like(x)
    for candidate, units in enumerate(units_of):
        for kind, unit in enumerate(units):
            total = said[:, members[(kind, *unit)]].sum(dim=1)
            ear = mixer.hear.weight[:, 5 * kind : 5 * kind + 5]
            expected[:, candidate] += total @ ear.T / size**0.5
    feed_forward = SwiGLU(6, 7)
    y = add_norm(x, expected)
    for gradient in (True, False):
        with torch.set_grad_enabled(gradient):
            torch.testing.assert_close(mixer(x), expected)
            thought = hear_and_think(x, mixer, feed_forward)
            torch.testing.assert_close(thought, add_norm(y, feed_forward(y)))


def test_optimisers_learn_which_matrices_are_stacked() -> None:
    assert Attention(12, 3).qkv.parts == 3
    assert SwiGLU(6, 10).gate_up.parts == 2
    assert UnitMixer(6, 5, (2, 2)).say.parts == 2
