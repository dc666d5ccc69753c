"""Matrices and tables: how they begin, and the precision they compute in."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ronri.nn.linear import Embedding, Linear, truncated_normal_


@pytest.mark.parametrize("std", [0.02, 1.0])
def test_truncated_normal_has_the_deviation_that_was_asked_for(std: float) -> None:
    drawn = truncated_normal_(torch.empty(200_000), std, torch.Generator().manual_seed(0))
    # The deviation of a sample of 200,000 is itself good to about 0.15 %.
    assert drawn.std().item() == pytest.approx(std, rel=0.01)
    assert abs(drawn.mean().item()) < 0.01 * std
    # Not a normal distribution: nothing lies beyond two deviations of the one that was cut.
    assert 2.2 * std < drawn.abs().max().item() <= 2 * std / 0.8796


def test_truncated_normal_follows_its_generator() -> None:
    first, again, other = (
        truncated_normal_(torch.empty(5, 3), 1.0, torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not truncated_normal_(torch.ones(4), 0.0).any()


@pytest.mark.parametrize("bias", [False, True])
def test_linear_computes_in_the_precision_of_its_input(bias: bool) -> None:
    layer = Linear(6, 4, bias=bias)
    if layer.bias is not None:
        assert not layer.bias.any()
        layer.bias.data.normal_()
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    expected = torch.einsum("oi,bni->bno", layer.weight.double(), x)
    if layer.bias is not None:
        expected = expected + layer.bias.double()
    found = layer(x)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.float32
    torch.testing.assert_close(layer.weight.grad.double(), x.sum((0, 1)).expand(4, 6))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(6,), (82, 6), (2, 3, 6), (0, 6)])
def test_products_without_gradient_are_the_same(shape: tuple[int, ...], bias: bool) -> None:
    layer, x = Linear(6, 4, bias=bias), torch.randn(shape)
    if layer.bias is not None:
        layer.bias.data.normal_()
    with FlopCounterMode(display=False) as work:
        expected = layer(x)
    with torch.no_grad(), FlopCounterMode(display=False) as same_work:
        found = layer(x)
    torch.testing.assert_close(found, expected)
    assert same_work.get_total_flops() == work.get_total_flops() == 2 * 4 * x.numel()
    with torch.no_grad():
        torch.testing.assert_close(layer(x.expand(2, *shape)), torch.stack([expected] * 2))


@pytest.mark.parametrize("shape", [(8,), (3, 8), (2, 3, 8)])
def test_gates_are_the_first_part_and_values_the_second(shape: tuple[int, ...]) -> None:
    layer = Linear(8, 6, parts=2)
    x = torch.randn(shape)
    gates, values = layer.weight[:3], layer.weight[3:]
    expected = torch.sigmoid(x @ gates.T) * (x @ gates.T) * (x @ values.T)
    with FlopCounterMode(display=False) as work:
        torch.testing.assert_close(layer.gated(x), expected)
    # Without a gradient oneDNN multiplies.
    with torch.no_grad(), FlopCounterMode(display=False) as same_work:
        torch.testing.assert_close(layer.gated(x), expected)
    assert same_work.get_total_flops() == work.get_total_flops() == 2 * 6 * x.numel()
    with pytest.raises(AssertionError, match="gates and values"):
        Linear(8, 6, parts=3).gated(x)
    with pytest.raises(AssertionError, match="no bias"):
        Linear(8, 6, parts=2, bias=True).gated(x)


def test_linear_keeps_the_variance_of_its_input() -> None:
    torch.manual_seed(0)
    found = Linear(256, 512)(torch.randn(200, 256))
    assert found.var().item() == pytest.approx(1, rel=0.05)


def test_linear_says_what_it_is_made_of() -> None:
    assert (Linear(4, 12, parts=3).parts, Linear(4, 12, parts=3).hidden) == (3, True)
    assert (Linear(4, 10, hidden=False).parts, Linear(4, 10, hidden=False).hidden) == (1, False)
    with pytest.raises(AssertionError, match="3 equal parts"):
        Linear(4, 10, parts=3)


def test_embedding_looks_up_and_casts() -> None:
    table = Embedding(7, 5, std=0.1)
    index = torch.tensor([[0, 6], [3, 3]])
    for dtype in (torch.float32, torch.bfloat16):
        assert torch.equal(table(index, dtype), table.weight[index].to(dtype))


def test_embedding_sums_its_gradients_in_float32() -> None:
    table = Embedding(2, 3, std=1.0)
    table(torch.zeros(1000, dtype=torch.int64), torch.bfloat16).sum().backward()
    assert table.weight.grad is not None
    # A sum of ones in bfloat16 stays at 256.
    assert torch.equal(table.weight.grad, torch.tensor([[1000.0] * 3, [0.0] * 3]))
