"""Each loss against a reference that is slow or worked out by hand."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ronri.reasoners.enso.losses import Spread, broken_rules, decode_loss, distance
from ronri.sudoku.generate import puzzles_with_clues
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry


def solutions(geometry: Geometry) -> Tensor:
    most = geometry.cells // 2
    return torch.from_numpy(puzzles_with_clues(3, most, most, seed=1, geometry=geometry).solutions)


def units(geometry: Geometry) -> Tensor:
    return torch.from_numpy(geometry.units)


def one_hot(grids: Tensor, size: int) -> Tensor:
    return torch.nn.functional.one_hot(grids.long() - 1, size).float()


@pytest.mark.parametrize("geometry", STANDARD, ids=lambda g: g.name)
def test_a_solution_breaks_no_rule(geometry: Geometry) -> None:
    beliefs = one_hot(solutions(geometry), geometry.size)
    assert broken_rules(beliefs, units(geometry)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("geometry", STANDARD, ids=lambda g: g.name)
def test_two_cells_that_swap_their_digits_break_rules(geometry: Geometry) -> None:
    grids = solutions(geometry)
    # The first and the last cell share no unit: four units of each have a digit too many and lack
    # another, unless both cells hold the same digit.
    cells = [0, geometry.cells - 1]
    different = grids[:, 0] != grids[:, -1]
    grids[:, cells] = grids[:, cells[::-1]]
    found = broken_rules(one_hot(grids, geometry.size), units(geometry))
    assert found.tolist() == [12.0 if some else 0.0 for some in different]
    assert different.any()


@pytest.mark.parametrize("geometry", [FOUR, SIX, NINE], ids=lambda g: g.name)
def test_broken_rules_are_those_of_a_slow_reference(geometry: Geometry) -> None:
    beliefs = torch.randn(2, geometry.cells, geometry.size).softmax(dim=-1)
    for row, found in zip(beliefs.tolist(), broken_rules(beliefs, units(geometry)), strict=True):
        expected = 0.0
        for unit in range(geometry.num_units):
            members = [c for c in range(geometry.cells) if unit in geometry.units_of[c]]
            for digit in range(geometry.size):
                expected += (sum(row[cell][digit] for cell in members) - 1) ** 2
        assert float(found) == pytest.approx(expected, rel=1e-4)


def test_clues_are_not_in_the_decode_loss() -> None:
    clues = torch.tensor([[1, 0, 0, 4]], dtype=torch.uint8)
    grids = torch.tensor([[1, 2, 3, 4]], dtype=torch.uint8)
    logits = torch.zeros(1, 4, 4)
    assert float(decode_loss(logits, grids, clues)) == pytest.approx(math.log(4))
    logits[0, [0, 3]] = torch.tensor([-50.0, 50.0, 50.0, -50.0])
    assert float(decode_loss(logits, grids, clues)) == pytest.approx(math.log(4))
    logits[0, 1, 1] = 50.0
    assert float(decode_loss(logits, grids, clues)) == pytest.approx(math.log(4) / 2)
    # A full board has nothing to learn from.
    assert float(decode_loss(logits, grids, grids)) == 0.0


def test_a_distance_is_squared_and_a_mean_over_vectors() -> None:
    one, other = torch.tensor([[[3.0, 4.0], [0.0, 1.0]]]), torch.zeros(1, 2, 2)
    assert distance(one, other).tolist() == [(25 + 1) / 2]


# VICReg by hand.


def test_variance_is_missed_where_there_is_none() -> None:
    nothing = Spread.of(torch.full((4, 1, 3), 7.0))
    # The root of 1e-4, which keeps the slope finite, is all there is.
    assert float(nothing.variance_loss()) == pytest.approx(0.99, abs=1e-6)
    assert float(nothing.covariance_loss()) == 0.0


def test_two_dimensions_that_say_the_same() -> None:
    # Of 0 and 2 the variance is 2, and so is the covariance: (2^2 + 2^2) / 2 dimensions.
    spread = Spread.of(torch.tensor([[[0.0, 0.0]], [[2.0, 2.0]]]))
    assert float(spread.variance_loss()) == 0.0
    assert float(spread.covariance_loss()) == pytest.approx(4.0)
    assert float(spread.correlation()) == pytest.approx(1.0)


def test_a_little_variance_is_missed_a_little() -> None:
    # Of -0.5 and 0.5 the variance is 0.5; the other dimension has more than enough.
    spread = Spread.of(torch.tensor([[[-0.5, 3.0]], [[0.5, -3.0]]]))
    assert float(spread.variance_loss()) == pytest.approx((1 - math.sqrt(0.5001)) / 2, abs=1e-6)


def test_all_vectors_of_a_board_count() -> None:
    x = torch.randn(5, 7, 3)
    spread = Spread.of(x)
    assert float(spread.count) == 35
    torch.testing.assert_close(spread.covariance, x.flatten(0, 1).T.cov())


def test_rank_counts_directions() -> None:
    assert float(Spread.of(torch.eye(6).double()[:, None]).rank()) == pytest.approx(6.0, rel=1e-4)
    assert float(Spread.of(torch.ones(6, 1, 6).double()).rank()) == pytest.approx(1.0, rel=1e-4)
    some = torch.zeros(6, 1, 6)
    some[:3, 0, 0] = some[3:, 0, 1] = 1.0
    assert float(Spread.of(some.double()).rank()) == pytest.approx(2.0, rel=1e-4)
    # Against the definition, by singular values.
    x = torch.randn(40, 1, 5) * torch.tensor([1.0, 2.0, 0.1, 3.0, 0.5])
    share = torch.linalg.svdvals(x[:, 0])
    share = share / share.sum()
    expected = math.exp(-float((share * share.log()).sum()))
    assert float(Spread.of(x.double()).rank()) == pytest.approx(expected, rel=1e-4)


def test_correlation_does_not_depend_on_scale() -> None:
    x = torch.randn(500, 1, 4)
    one, other = (float(Spread.of(scale * x).correlation()) for scale in (1.0, 100.0))
    assert one == pytest.approx(other, rel=1e-3)
    assert one < 0.15


PROCESS = """
import sys
import torch
import torch.distributed as dist
from ronri.reasoners.enso.losses import Spread

rank, meeting, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
torch.manual_seed(0)
x, weight = torch.randn(8, 3, 4), torch.randn(4, 4).requires_grad_()
spread = Spread.of((x @ weight * 0.3).chunk(2)[rank])
loss = spread.variance_loss() + spread.covariance_loss()
loss.backward()
dist.all_reduce(weight.grad)
torch.save([loss.detach(), weight.grad / 2, spread.rank().detach()], out)
dist.destroy_process_group()
"""


def test_statistics_are_those_of_the_batch_of_all_processes(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), tmp_path / "meeting", tmp_path / str(rank)]
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    torch.manual_seed(0)
    x, weight = torch.randn(8, 3, 4), torch.randn(4, 4).requires_grad_()
    spread = Spread.of(x @ weight * 0.3)
    loss = spread.variance_loss() + spread.covariance_loss()
    loss.backward()
    for rank in range(2):
        whole = [loss.detach(), weight.grad, spread.rank().detach()]
        torch.testing.assert_close(torch.load(tmp_path / str(rank)), whole)
