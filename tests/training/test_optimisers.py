"""Optimisers against slow references, and that saved ones go on as if never interrupted."""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import pytest
import torch
from torch import Tensor, nn

from ronri.nn.linear import Embedding, Linear
from ronri.recipe import Optim
from ronri.training.optimisers import (
    AdamATan2,
    Muon,
    Optimisers,
    build_optimisers,
    clip_gradients,
    newton_schulz,
    orthogonalised,
)

Name = Literal["adamw", "muon", "adam-atan2"]
NAMES: tuple[Name, ...] = get_args(Name)


class Small(nn.Module):
    """One of everything: a table, a vector, stacked, tall and wide matrices, a head with bias."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Embedding(11, 8, std=1.0)
        self.latent = nn.Parameter(torch.randn(8))
        self.qkv = Linear(8, 24, parts=3)
        self.up = Linear(8, 16)
        self.down = Linear(16, 8)
        self.head = Linear(8, 2, bias=True, hidden=False)
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, index: Tensor) -> Tensor:
        x = self.table(index, torch.float32) + self.latent
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        x = x + q * torch.tanh(k) + v
        return self.head(x + self.down(torch.relu(self.up(x))))


HIDDEN = {"qkv.weight", "up.weight", "down.weight"}
OTHERS = {"table.weight", "latent", "head.weight", "head.bias"}


def small(seed: int = 0) -> Small:
    torch.manual_seed(seed)
    return Small()


def config(name: Name, **changes: Any) -> Optim:
    return Optim(**{"name": name, "lr": 0.01, "matrix_lr": 0.02, "weight_decay": 0.1} | changes)


def train(module: nn.Module, optimisers: Optimisers, steps: range) -> list[float]:
    """Fit a fixed function of the index; the lesson of a step depends on its number only."""
    losses = []
    for step in steps:
        index = torch.randint(11, (32,), generator=torch.Generator().manual_seed(step))
        wanted = torch.stack([torch.sin(index.float()), torch.cos(index.float())], dim=-1)
        loss = (module(index) - wanted).square().mean()
        optimisers.zero_grad()
        loss.backward()
        optimisers.set_rates(1 / (1 + step / 100))
        optimisers.step()
        losses.append(loss.item())
    return losses


def copies(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in tensors.items()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert torch.equal(value, expected[name]), name


# Against slow references.


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.27, 2.0)])
def test_adam_atan2_is_what_the_paper_says(a: float, b: float) -> None:
    torch.manual_seed(1)
    lr, (beta1, beta2), decay = 0.1, (0.9, 0.95), 0.3
    parameters = [nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(2, 3))]
    optimiser = AdamATan2(parameters, lr=lr, betas=(beta1, beta2), weight_decay=decay, a=a, b=b)
    slow = [parameter.flatten().tolist() for parameter in parameters]
    means, squares = ([[0.0] * len(row) for row in slow] for _ in range(2))
    counts = [0, 0]
    for step in range(12):
        for which, parameter in enumerate(parameters):
            # The second parameter has no part in some of the steps: its own count goes on later.
            if which == 1 and step % 3 == 0:
                parameter.grad = None
                continue
            parameter.grad = torch.randn_like(parameter) * 10.0 ** (step % 4 - 3)
            parameter.grad.view(-1)[0] = 0
            counts[which] += 1
            for i, gradient in enumerate(parameter.grad.flatten().tolist()):
                means[which][i] = beta1 * means[which][i] + (1 - beta1) * gradient
                squares[which][i] = beta2 * squares[which][i] + (1 - beta2) * gradient**2
                mean = means[which][i] / (1 - beta1 ** counts[which])
                square = squares[which][i] / (1 - beta2 ** counts[which])
                slow[which][i] *= 1 - lr * decay
                slow[which][i] -= lr * a * math.atan2(mean, b * math.sqrt(square))
        optimiser.step()
        for parameter, row in zip(parameters, slow, strict=True):
            expected = torch.tensor(row).view_as(parameter)
            torch.testing.assert_close(parameter.data, expected, rtol=1e-5, atol=1e-5)


def test_adam_atan2_does_not_see_the_scale_of_gradients() -> None:
    found = []
    for scale in (1.0, 2.0**-20):
        torch.manual_seed(2)
        parameter = nn.Parameter(torch.randn(50))
        optimiser = AdamATan2([parameter], lr=0.1, betas=(0.9, 0.95))
        for _ in range(5):
            parameter.grad = torch.randn(50) * scale
            optimiser.step()
        found.append(parameter.data)
    assert torch.equal(*found)


def slow_orthogonal(matrix: Tensor) -> Tensor:
    """Muon's orthogonalisation, matrix by matrix, straight from its definition."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm()
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x @ x.T @ x + 2.0315 * x @ x.T @ x @ x.T @ x
    return x.T if tall else x


def test_muon_is_what_its_author_says() -> None:
    torch.manual_seed(3)
    lr, momentum, decay = 0.05, 0.9, 0.2
    layers = [Linear(8, 24, parts=3), Linear(8, 12), Linear(12, 8), Linear(8, 8)]
    optimiser = Muon(layers, lr=lr, momentum=momentum, weight_decay=decay)
    slow = [layer.weight.data.double() for layer in layers]
    memory = [torch.zeros_like(weight) for weight in slow]
    for step in range(6):
        for which, layer in enumerate(layers):
            layer.weight.grad = torch.randn_like(layer.weight) if (step, which) != (2, 1) else None
            if layer.weight.grad is None:
                continue
            gradient = layer.weight.grad.double()
            memory[which] = momentum * memory[which] + (1 - momentum) * gradient
            ahead = momentum * memory[which] + (1 - momentum) * gradient
            parts = [
                slow_orthogonal(part) * max(1, part.shape[0] / part.shape[1]) ** 0.5
                for part in ahead.chunk(layer.parts)
            ]
            slow[which] = slow[which] * (1 - lr * decay) - lr * torch.cat(parts)
        optimiser.step()
        for layer, weight in zip(layers, slow, strict=True):
            torch.testing.assert_close(layer.weight.data.double(), weight, rtol=1e-4, atol=1e-5)


def test_stacked_matrices_are_orthogonalised_each_for_itself() -> None:
    torch.manual_seed(4)
    stacked, fused = Linear(6, 18, parts=3), Linear(6, 18)
    single = [Linear(6, 6) for _ in range(3)]
    fused.weight.data.copy_(stacked.weight.data)
    for layer, part in zip(single, stacked.weight.data.chunk(3), strict=True):
        layer.weight.data.copy_(part)
    optimisers = [Muon(layers, lr=0.1) for layers in ([stacked], [fused], single)]
    for _ in range(3):
        gradient = torch.randn(18, 6)
        stacked.weight.grad, fused.weight.grad = gradient.clone(), gradient.clone()
        for layer, part in zip(single, gradient.chunk(3), strict=True):
            layer.weight.grad = part.clone()
        for optimiser in optimisers:
            optimiser.step()
    torch.testing.assert_close(stacked.weight.data, torch.cat([one.weight.data for one in single]))
    assert not torch.allclose(stacked.weight.data, fused.weight.data, atol=1e-2)


def test_orthogonalising_changes_singular_values_only() -> None:
    torch.manual_seed(5)
    shapes = [(8, 8), (16, 8), (8, 16), (5, 9), (8, 8), (9, 5)]
    matrices = [torch.randn(shape) * 10.0**k for k, shape in enumerate(shapes, start=-4)]
    for matrix, found in zip(matrices, orthogonalised(matrices), strict=True):
        u, s, vh = torch.linalg.svd(matrix.double(), full_matrices=False)
        values = s / s.norm()
        for _ in range(5):
            values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
        expected = u @ values.diag() @ vh
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-3)


def test_five_iterations_bring_singular_values_near_one() -> None:
    # Singular values that differ by up to a hundred times.
    torch.manual_seed(6)
    u, _, vh = torch.linalg.svd(torch.randn(20, 16, 24), full_matrices=False)
    spread = torch.logspace(-2, 0, 16)
    found = torch.linalg.svdvals(newton_schulz(u @ spread.diag() @ vh))
    assert found.min() > 0.67
    assert found.max() < 1.21
    # Fewer do not, and nothing comes of nothing.
    assert torch.linalg.svdvals(newton_schulz(u @ spread.diag() @ vh, num_iterations=2)).min() < 0.2
    assert not newton_schulz(torch.zeros(1, 3, 4)).any()


@pytest.mark.parametrize("decay", ["matrices", "all"])
def test_adamw_is_the_one_of_torch(decay: Literal["matrices", "all"]) -> None:
    ours, theirs = small(), small()
    optimisers = build_optimisers(ours, config("adamw", decay=decay))
    wanted = [parameter for parameter in theirs.parameters() if parameter.requires_grad]
    plain = torch.optim.AdamW(
        [
            {"params": [p for p in wanted if p.ndim >= 2], "weight_decay": 0.1},
            {
                "params": [p for p in wanted if p.ndim < 2],
                "weight_decay": 0.1 if decay == "all" else 0.0,
            },
        ],
        lr=0.01,
        betas=(0.9, 0.95),
        foreach=False,
    )
    for step in range(10):
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            if one.requires_grad:
                one.grad = torch.randn_like(one)
                other.grad = one.grad.clone()
        for group in plain.param_groups:
            group["lr"] = 0.01 / (step + 1)
        optimisers.set_rates(1 / (step + 1))
        optimisers.step()
        plain.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


# What a recipe makes of them.


def test_muon_takes_hidden_matrices_and_adamw_the_rest() -> None:
    def owned(name: Name) -> set[str]:
        return {key.rpartition(".")[0] for key in build_optimisers(small(), config(name)).tensors()}

    assert owned("muon") == {f"muon.{name}" for name in HIDDEN} | {f"adamw.{n}" for n in OTHERS}
    assert owned("adamw") == {f"adamw.{name}" for name in HIDDEN | OTHERS}
    assert owned("adam-atan2") == {f"adam-atan2.{name}" for name in HIDDEN | OTHERS}
    found = build_optimisers(small(), config("muon")).tensors()
    assert found["muon.qkv.weight.momentum"].shape == (24, 8)
    assert found["adamw.head.bias.step"].shape == ()


def test_muon_alone_and_muon_without_work() -> None:
    layer = Linear(4, 4)
    before = layer.weight.data.clone()
    layer.weight.grad = torch.randn(4, 4)
    build_optimisers(layer, config("muon")).step()
    assert not torch.equal(layer.weight.data, before)
    with pytest.raises(ValueError, match="choose adamw"):
        build_optimisers(Linear(4, 4, hidden=False), config("muon"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("decay", ["matrices", "all"])
def test_weights_decay_without_gradients_where_they_should(name: Name, decay: str) -> None:
    module = small()
    optimisers = build_optimisers(module, config(name, decay=decay))
    before = copies(dict(module.named_parameters()))
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimisers.set_rates(0.5)
    optimisers.step()
    for key, parameter in module.named_parameters():
        lr = 0.02 if name == "muon" and key in HIDDEN else 0.01
        decays = parameter.requires_grad and (decay == "all" or parameter.ndim == 2)
        factor = 1 - 0.5 * lr * 0.1 if decays else 1
        torch.testing.assert_close(parameter.data, before[key] * factor, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_learning_rates_are_scaled_and_told(name: Name) -> None:
    optimisers = build_optimisers(small(), config(name))
    full = {"muon": 0.02, "adamw": 0.01} if name == "muon" else {name: 0.01}
    assert optimisers.learning_rates() == full
    for scale in (0.5, 0.25):
        optimisers.set_rates(scale)
        optimisers.step()
        assert optimisers.learning_rates() == {key: rate * scale for key, rate in full.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_step_reads_nothing_back(name: Name) -> None:
    # Tensors that have no values cannot be read without an error.
    module = small().to("meta")
    optimisers = build_optimisers(module, config(name))
    for parameter in module.parameters():
        parameter.grad = torch.empty_like(parameter) if parameter.requires_grad else None
    assert clip_gradients(module.parameters(), 1.0).is_meta
    assert clip_gradients(module.parameters(), 0.0).is_meta
    for optimiser in optimisers._optimisers.values():
        if isinstance(optimiser, torch.optim.AdamW):
            # Without values torch knows its fused step only by rates that are numbers.
            for group in optimiser.param_groups:
                group["lr"] = 0.01
    optimisers.step()


@pytest.mark.parametrize("name", NAMES)
def test_training_lowers_the_loss(name: Name) -> None:
    module = small()
    losses = train(module, build_optimisers(module, config(name)), range(120))
    assert sum(losses[-10:]) < 0.1 * sum(losses[:10])
    assert torch.equal(module.frozen, torch.ones(3))


# Saved and loaded.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 7])
def test_resumed_training_is_training_without_interruption(name: Name, steps: int) -> None:
    module = small()
    optimisers = build_optimisers(module, config(name))
    train(module, optimisers, range(steps))
    saved = copies(optimisers.tensors())
    weights = copies(module.state_dict())
    straight = train(module, optimisers, range(steps, 15))

    resumed = small(seed=1)
    others = build_optimisers(resumed, config(name))
    # Whatever it did before is forgotten.
    train(resumed, others, range(3))
    resumed.load_state_dict(weights)
    others.load_tensors(saved)
    assert train(resumed, others, range(steps, 15)) == straight
    assert_same(copies(resumed.state_dict()), copies(module.state_dict()))
    assert_same(others.tensors(), optimisers.tensors())


@pytest.mark.parametrize("name", NAMES)
def test_incomplete_and_foreign_state_is_refused(name: Name) -> None:
    optimisers = build_optimisers(small(), config(name))
    state = copies(optimisers.tensors())
    key = next(iter(state))

    def lost(saved: dict[str, Tensor]) -> None:
        del saved[key]

    def foreign(saved: dict[str, Tensor]) -> None:
        saved["sgd.head.weight.momentum"] = torch.zeros(2)

    def reshaped(saved: dict[str, Tensor]) -> None:
        saved[key] = torch.zeros(7, 7)

    spoilers: dict[str, Callable[[dict[str, Tensor]], None]] = {
        f"missing, {key}": lost,
        "belong nowhere, sgd.head": foreign,
        f"{key} was saved with shape": reshaped,
    }
    for complaint, spoil in spoilers.items():
        saved = {name: value + 1 for name, value in state.items()}
        spoil(saved)
        with pytest.raises(ValueError, match=complaint):
            optimisers.load_tensors(saved)
        assert_same(optimisers.tensors(), state)


# Clipping.


@pytest.mark.parametrize("max_norm", [0.0, 1.0, 100.0])
def test_gradients_are_clipped_together(max_norm: float) -> None:
    parameters = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1, 1))]
    idle = nn.Parameter(torch.zeros(3))
    parameters[0].grad, parameters[1].grad = torch.tensor([2.0, 3.0]), torch.tensor([[6.0]])
    norm = clip_gradients(iter([*parameters, idle]), max_norm)
    assert norm.item() == pytest.approx(7)
    factor = 1 / 7 if max_norm == 1 else 1
    torch.testing.assert_close(parameters[0].grad, torch.tensor([2.0, 3.0]) * factor)
    torch.testing.assert_close(parameters[1].grad, torch.tensor([[6.0]]) * factor)
    assert idle.grad is None
