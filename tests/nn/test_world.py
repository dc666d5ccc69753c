"""Means over all processes: a batch that is spread gives the gradient of the whole one."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ronri.nn.world import global_mean, world_size


def test_one_process_takes_plain_means() -> None:
    assert world_size() == 1
    values = torch.tensor([1.0, 2.0, 6.0])
    assert global_mean(values) == 3
    assert global_mean(values, torch.tensor([True, False, True])) == 3.5


def test_nothing_chosen_means_zero_and_asks_for_no_change() -> None:
    weight = torch.ones((), requires_grad=True)
    values = weight * torch.tensor([1.0, 2.0])
    found = global_mean(values, torch.zeros(2, dtype=torch.bool))
    assert found == 0
    found.backward()
    assert weight.grad == 0


def test_values_that_were_not_chosen_do_not_count_whatever_they_are() -> None:
    values = torch.tensor([2.0, float("inf")], requires_grad=True)
    found = global_mean(values, torch.tensor([True, False]))
    assert found == 2
    found.backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1.0, 0.0]


PROCESS = """
import sys
import torch
import torch.distributed as dist
from ronri.nn.world import global_mean, world_size

rank, meeting, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
assert world_size() == 2
weight = torch.tensor(1.0, requires_grad=True)
x = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])[rank]
# Two are chosen here, none there; then one here and three there.
chosen = torch.tensor([[[1, 1, 0], [0, 0, 0]], [[0, 1, 0], [1, 1, 1]]]).bool()[:, rank]
found = []
for which in (None, *chosen):
    loss = global_mean(weight * x, which)
    (gradient,) = torch.autograd.grad(loss, weight)
    dist.all_reduce(gradient)
    found.append(gradient / 2)
torch.save(found, out)
dist.destroy_process_group()
"""


def test_averaged_gradients_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), tmp_path / "meeting", tmp_path / str(rank)]
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    expected = [(1 + 2 + 4 + 8 + 16 + 32) / 6, (1 + 2) / 2, (2 + 8 + 16 + 32) / 4]
    for rank in range(2):
        assert [float(x) for x in torch.load(tmp_path / str(rank))] == pytest.approx(expected)
