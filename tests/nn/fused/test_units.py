"""The block over units is its formula: same values, same gradients, one graph."""

import pytest
import torch
from torch import Tensor

from formulas import (
    CUDA,
    assert_near,
    assert_one_graph,
    assert_same,
    hidden,
    norm,
    normal,
    swiglu,
    triton,
)
from formulas import loops_mended as loops_mended
from formulas import rounding_mended as rounding_mended
from formulas import seeded as seeded
from ronri.nn import fused
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry


def unit_block(
    x: Tensor,
    w_say: Tensor,
    w_hear: Tensor,
    w_gate_up: Tensor,
    w_down: Tensor,
    *,
    geometry: Geometry,
) -> Tensor:
    """A block over units as the formula has it: a matrix says who is in a unit with whom."""
    cells, digits = torch.arange(geometry.cells), torch.arange(geometry.size)
    row, column, box = torch.from_numpy(geometry.units_of).T
    units = [torch.cartesian_prod(place, digits) for place in (row, column, box)]
    units.append(torch.cartesian_prod(cells, digits)[:, :1])
    said = hidden(x, w_say)
    for unit, ear in zip(units, w_hear.chunk(4, dim=1), strict=True):
        together = (unit[:, None] == unit[None]).all(dim=-1).to(x)
        x = x + together @ said @ ear.T
    x = norm(x)
    return norm(x + swiglu(x, w_gate_up, w_down))


def unit_weights(width: int, message: int, inner: int) -> tuple[Tensor, ...]:
    return (
        normal(2 * message, width, scale=width**-0.5),
        normal(width, 4 * message, scale=0.3 * message**-0.5),
        normal(2 * inner, width, scale=width**-0.5),
        normal(width, inner, scale=inner**-0.5),
    )


# One puzzle, which Triton compiles otherwise; and more: tiles have candidates of several.
@triton
@pytest.mark.parametrize("geometry", [FOUR, SIX, NINE], ids=str)
@pytest.mark.parametrize("shape", fused.UNIT_SHAPES, ids=str)
@pytest.mark.parametrize("puzzles", [1, 3])
def test_unit_block(puzzles: int, geometry: Geometry, shape: tuple[int, int, int]) -> None:
    assert fused.fits_units(geometry.size, *shape)
    box = geometry.box_height, geometry.box_width
    inputs = (normal(puzzles, geometry.cells * geometry.size, shape[0]), *unit_weights(*shape))
    for grad in (True, False):
        assert_same(
            lambda *tensors: fused.unit_block(*tensors, box=box),
            lambda *tensors: unit_block(*tensors, geometry=geometry),
            *inputs,
            grad=grad,
        )


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("shape", fused.UNIT_SHAPES, ids=str)
def test_a_unit_block_of_many_puzzles(shape: tuple[int, int, int]) -> None:
    """As many as there are in training."""
    x, weights = normal(768, 729, shape[0]), unit_weights(*shape)
    tensors = [one.requires_grad_() for one in (x, *weights)]
    seed = torch.randn_like(x)
    found = fused.unit_block(*tensors, box=(3, 3))
    gradients = torch.autograd.grad(found, tensors, seed)
    expected = [torch.zeros_like(one, dtype=torch.float64) for one in tensors]
    for start in range(0, len(x), 8):
        some = slice(start, start + 8)
        parts = [x[some].detach().double(), *(one.detach().double() for one in weights)]
        parts = [one.requires_grad_() for one in parts]
        truth = unit_block(*parts, geometry=NINE)
        assert_near(found[some], truth)
        for total, part in zip(
            expected, torch.autograd.grad(truth, parts, seed[some].double()), strict=True
        ):
            (total[some] if total.shape == x.shape else total).add_(part)
    for gradient, truth in zip(gradients, expected, strict=True):
        assert_near(gradient, truth)


@triton
def test_a_block_over_units_is_one_graph() -> None:
    assert_one_graph(
        lambda *tensors: fused.unit_block(*tensors, box=(2, 2)),
        normal(2, 64, 32),
        normal(32, 32, scale=1 / 6),
        normal(32, 64, scale=1 / 8),
        normal(128, 32, scale=1 / 6),
        normal(32, 64, scale=1 / 8),
    )
