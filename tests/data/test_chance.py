"""Random numbers on the device: the same bits as the game's, and the distributions they promise."""

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ronri.data import chance
from ronri.sudoku.kernels import chance as original

BITS = st.integers(0, 2**64 - 1)
KEYS = torch.arange(60_000)


def as_keys(numbers: Sequence[int]) -> torch.Tensor:
    """64 bits as torch has them: with a sign."""
    return torch.from_numpy(np.array(numbers, np.uint64).view(np.int64))


def bits_of(keys: torch.Tensor) -> list[int]:
    return keys.numpy().view(np.uint64).tolist()


def too_uneven(counts: torch.Tensor) -> float:
    """Chi-square of counts that should all be equal, in standard deviations above its mean."""
    expected = counts.sum() / counts.numel()
    freedom = counts.numel() - 1
    chi_square = ((counts - expected) ** 2 / expected).sum()
    return float((chi_square - freedom) / (2 * freedom) ** 0.5)


@given(st.lists(BITS, min_size=1, max_size=20))
def test_scrambles_as_the_kernels_do(numbers: list[int]) -> None:
    expected = [int(original.scramble(np.uint64(x))) for x in numbers]
    assert bits_of(chance.scramble(as_keys(numbers))) == expected
    assert [chance.scramble_int(x) % 2**64 for x in numbers] == expected


@given(st.lists(st.tuples(BITS, BITS), min_size=1, max_size=20))
def test_forks_as_the_kernels_do(pairs: list[tuple[int, int]]) -> None:
    expected = [int(original.fork(np.uint64(a), np.uint64(b))[0]) for a, b in pairs]
    keys, index = as_keys([a for a, _ in pairs]), as_keys([b for _, b in pairs])
    assert bits_of(chance.fork(keys, index)) == expected
    one_by_one = [chance.fork(keys[i : i + 1], int(index[i])) for i in range(len(pairs))]
    assert bits_of(torch.cat(one_by_one)) == expected


@given(BITS, BITS)
def test_draws_what_a_generator_of_the_kernels_draws(seed: int, index: int) -> None:
    state = original.fork(np.uint64(seed), np.uint64(index))
    found = chance.draws(chance.fork(as_keys([seed]), as_keys([index])), 5)
    assert bits_of(found[0]) == [int(original.draw(state)) for _ in range(5)]


@pytest.mark.parametrize("kind", [chance.uniform, chance.normal, chance.permutations])
def test_a_row_does_not_depend_on_its_neighbours(
    kind: Callable[[torch.Tensor, int], torch.Tensor],
) -> None:
    some = torch.tensor([41, 7])
    assert torch.equal(kind(KEYS[:50], 5)[some], kind(some, 5))


def test_uniform_is_uniform() -> None:
    found = chance.uniform(KEYS, 3)
    assert found.dtype == torch.float32
    assert found.min() >= 0
    assert found.max() < 1
    for column in found.T:
        assert too_uneven(torch.bincount((column * 100).long(), minlength=100)) < 4
    # Columns of a row and neighbouring rows have nothing to do with each other.
    for one, other in ((found[:, 0], found[:, 1]), (found[1:, 0], found[:-1, 0])):
        cells = (one * 10).long() * 10 + (other * 10).long()
        assert too_uneven(torch.bincount(cells, minlength=100)) < 4


@pytest.mark.parametrize("bound", [1, 7, 2**31 - 1])
def test_below_stays_below(bound: int) -> None:
    found = chance.below(KEYS, torch.full_like(KEYS, bound))
    assert found.min() >= 0
    assert found.max() < bound
    bins = min(bound, 50)
    if bins > 1:
        assert too_uneven(torch.bincount(found * bins // bound, minlength=bins)) < 4


def test_every_row_has_its_own_bound() -> None:
    bounds = torch.tensor([1, 1000, 3]).repeat(20_000)
    found = chance.below(KEYS, bounds).view(-1, 3)
    assert found.amax(dim=0).tolist() == [0, 999, 2]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_permutations_are_equally_likely(length: int) -> None:
    found = chance.permutations(KEYS, length)
    orders = {order: i for i, order in enumerate(permutations(range(length)))}
    counts = torch.zeros(len(orders))
    for order in found.tolist():
        counts[orders[tuple(order)]] += 1
    if length > 1:
        assert too_uneven(counts) < 4


def test_long_permutations_are_permutations() -> None:
    found = chance.permutations(KEYS[:100], 81)
    assert torch.equal(found.sort(dim=1).values, torch.arange(81).expand(100, 81))


@pytest.mark.parametrize("count", [1, 4, 5])
def test_normal_has_the_moments_of_a_normal_distribution(count: int) -> None:
    found = chance.normal(KEYS, count).double()
    assert found.shape == (len(KEYS), count)
    # Standard errors at 60,000: 0.004 of the mean, 0.006 of the square, 0.04 of the fourth power.
    for column in found.T:
        assert column.mean().abs() < 0.02
        assert column.square().mean() == pytest.approx(1, abs=0.03)
        assert column.pow(4).mean() == pytest.approx(3, abs=0.2)
    covariance = found.T @ found / len(KEYS)
    assert (covariance - torch.eye(count)).abs().max() < 0.03
