"""Dropout is a function of keys: what is forgotten, how much, and what the others gain."""

import pytest
import torch
from torch import Tensor

from ronri.nn.dropout import Dropout, dropped

KEYS = torch.randint(-(2**63), 2**63 - 1, (64,), generator=torch.Generator().manual_seed(0))


def forget(part: float, keys: Tensor = KEYS) -> Dropout:
    found = Dropout.of(keys, part)
    assert found is not None
    return found


def test_nothing_is_forgotten_where_nothing_shall_be() -> None:
    x = torch.randn(64, 3)
    assert Dropout.of(KEYS, 0.0) is None
    assert dropped(x, None) is x


def test_as_many_are_forgotten_as_shall_be() -> None:
    x = torch.ones(64, 50, 40)
    for part in (0.1, 0.5, 0.9):
        share = float((forget(part).left(x) == 0).float().mean())
        # Five standard deviations of as many draws.
        assert abs(share - part) < 5 * (part * (1 - part) / x.numel()) ** 0.5
    assert not forget(1.0).left(x).any()


def test_what_is_kept_grows() -> None:
    x = torch.randn(64, 200).requires_grad_()
    y = forget(0.25).left(x)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] / 0.75)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient, torch.where(kept, 1 / torch.tensor(0.75), 0.0))


def test_rows_places_and_neighbours_have_nothing_to_do_with_each_other() -> None:
    x = torch.empty(64, 4096)
    half = forget(0.5)
    here, there = ((2 * half.at(place).kept(x) - 1.0) for place in (0, 1))
    pairs = [
        here[:, 1:] * here[:, :-1],
        here[:, 64:] * here[:, :-64],
        here[1:] * here[:-1],
        here * there,
        # Keys that differ by one, and places that do.
        (2 * forget(0.5, KEYS + 1).at(0).kept(x) - 1.0) * here,
        (2 * half.at(5).kept(x) - 1.0) * (2 * half.at(4).kept(x) - 1.0),
        # Keys that differ in one bit, and the places that this bit exchanges.
        *(
            (2 * forget(0.5, KEYS ^ bit).at(0).kept(x) - 1.0) * here[:, torch.arange(4096) ^ bit]
            for bit in (1, 8, 2048)
        ),
    ]
    for pair in pairs:
        assert abs(float(pair.mean())) < 5 * pair.numel() ** -0.5
    # Nor do rows differ in how much they forget by more than chance has it.
    assert here.mean(dim=1).std() < 1.5 * 4096**-0.5
    assert here.mean(dim=0).std() < 1.1 * 64**-0.5


def test_a_row_forgets_the_same_alone() -> None:
    x = torch.randn(64, 7, 5)
    some = torch.tensor([3, 60, 17])
    assert torch.equal(forget(0.4, KEYS[some]).left(x[some]), forget(0.4).left(x)[some])
    assert torch.equal(forget(0.4).left(x.view(64, 35)), forget(0.4).left(x).view(64, 35))


def test_the_hash_is_that_of_integers_without_sign() -> None:
    def kept(seed: int, index: int) -> bool:
        x = (seed ^ index) * 0x9E3779B1 % 2**32
        x = (x ^ (x >> 16) ^ (seed % 2**32)) * 0x7FEB352D % 2**32
        x = (x ^ (x >> 15)) * 0x846CA68B % 2**32
        return (x ^ (x >> 16)) % 2**24 >= 0.5 * 2**24

    found = forget(0.5).kept(torch.empty(64, 100))
    expected = [[kept(key % 2**32, index) for index in range(100)] for key in KEYS.tolist()]
    assert found.tolist() == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_compiled_for_a_gpu_the_same_is_forgotten() -> None:
    """Beside a norm, too, where places are counted row by row."""
    half = forget(0.5, KEYS.cuda())
    x = torch.randn(64, 81, 512, device="cuda")

    def block(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(half.at(3).left(x), (512,))

    torch.testing.assert_close(torch.compile(block)(x), block(x))
