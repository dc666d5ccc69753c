"""Enso: the mathematics of its energy and of thinking."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ronri.reasoner import Budget, Noise
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.model import Enso
from ronri.sudoku.generate import puzzles_with_clues
from ronri.sudoku.geometry import NINE
from ronri.thinking import answer, think
from small_enso import BOARD, CELLS, but, lessons, loud, model_of, point, quiet, taught

both = pytest.mark.parametrize("config", [BOARD, CELLS], ids=["board", "cells"])


@pytest.fixture(scope="module")
def trained() -> dict[str, Enso]:
    return {"board": taught(BOARD, 120), "cells": taught(CELLS, 120)}


# The energy and its slope.


@both
@pytest.mark.parametrize("energy", ["consistency", "norm"])
def test_the_slope_is_that_of_finite_differences(config: Config, energy: str) -> None:
    model = model_of(but(config, energy=energy)).eval()
    batch, context, z = point(model)
    weight = torch.full((len(z),), 0.7)
    with torch.no_grad():
        slope, _ = model.landscape.slope(batch.clues, context, z, weight)

        def total(at: Tensor) -> Tensor:
            here = model.landscape.energy(batch.clues, context, at)
            return here.consistency + 0.7 * here.penalty

        way = torch.randn_like(z)
        width = 1e-2
        found = (total(z + width * way) - total(z - width * way)) / (2 * width)
    torch.testing.assert_close((slope * way).sum(dim=(1, 2)), found, rtol=2e-2, atol=2e-3)
    assert slope.abs().sum() > 0


@both
def test_the_slope_is_the_same_with_and_without_a_gradient_of_its_own(config: Config) -> None:
    model = model_of(config).eval()
    batch, context, z = point(model)
    weight = torch.full((len(z),), 0.7)
    with torch.no_grad():
        plain, here = model.landscape.slope(batch.clues, context, z, weight)
    taught, there = model.landscape.slope(batch.clues, context, z, weight)
    torch.testing.assert_close(plain, taught, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(here.logits, there.logits)
    assert taught.requires_grad
    assert not plain.requires_grad


@pytest.mark.parametrize("name", ["log_step_size", "reader.blocks.0.units.say.weight"])
def test_a_step_is_differentiated_too(name: str) -> None:
    """The loss after a step, against finite differences in a weight that only the slope uses."""
    model = model_of(CELLS)
    batch, context, z = point(model)
    parameter = model.landscape.get_parameter(name)
    way = torch.randn_like(parameter)

    def loss() -> Tensor:
        down, _ = model.landscape.slope(batch.clues, context, z, torch.full((len(z),), 0.1))
        still = torch.zeros_like(z).flatten(1)
        return model.landscape.moved(z, down, torch.zeros(len(z)), still).square().sum()

    (gradient,) = torch.autograd.grad(loss(), parameter)
    width, values = 2e-3, []
    for side in (1, -1):
        with torch.no_grad():
            parameter.add_(side * width * way)
        values.append(float(loss().detach()))
        with torch.no_grad():
            parameter.sub_(side * width * way)
    found = (values[0] - values[1]) / (2 * width)
    assert float((gradient * way).sum()) == pytest.approx(found, rel=3e-2)
    assert found != 0


@pytest.mark.parametrize("name", ["board", "cells"])
def test_thinking_lowers_the_energy_of_a_trained_model(name: str, trained: dict[str, Enso]) -> None:
    model = trained[name]
    batch = lessons(999, 64)
    frames = list(think(model, batch.clues, Budget(steps=12)))
    first, last = frames[0].thought.energy, frames[-1].thought.energy
    assert first is not None
    assert last is not None
    assert (last < first).float().mean() > 0.9
    assert last.mean() < 0.8 * first.mean() if name == "cells" else last.mean() < first.mean()


def test_thinking_solves_what_no_latent_solves_that_has_not_moved(trained: dict[str, Enso]) -> None:
    model = trained["cells"]
    batch = lessons(999, 200)
    right = [
        (answer(model, batch.clues, Budget(steps=steps)).board == batch.solutions).all(dim=1).sum()
        for steps in (1, 12)
    ]
    assert right[1] > right[0] + 50


@both
def test_a_thought_is_about_the_very_latent_whose_energy_it_tells(config: Config) -> None:
    model = model_of(config).eval()
    batch = lessons()
    state = model.begin(batch.clues, loud(len(batch.clues)))
    for _ in range(3):
        before = state
        state, thought = model.advance(state)
        with torch.no_grad():
            here = model.landscape.energy(batch.clues, before.context, before.z)
        energy = here.consistency + config.penalty * here.penalty
        torch.testing.assert_close(thought.energy, energy, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(thought.beliefs, here.logits.softmax(dim=-1))
        assert not torch.equal(before.z, state.z)


@both
def test_the_chain_of_lowest_energy_wins(config: Config) -> None:
    model = model_of(config).eval()
    clues = lessons().clues
    budget = Budget(steps=3, samples=4)
    *_, last = think(model, clues, budget)
    found = answer(model, clues, budget)
    assert last.thought.energy is not None
    assert not last.verified.any()
    energy = last.thought.energy.view(len(clues), 4)
    boards = last.thought.board.view(len(clues), 4, -1)
    assert torch.equal(found.board, boards[torch.arange(len(clues)), energy.argmin(dim=1)])
    assert torch.equal(found.energy, energy.amin(dim=1))
    assert found.energy_of(0) == float(energy[0].min())


# Where thinking begins, and how it is disturbed.


@both
def test_a_quiet_row_begins_at_zero_and_a_loud_one_where_latents_to_learn_with_are(
    config: Config,
) -> None:
    model = model_of(config)
    clues = lessons(slots=40).clues
    assert not model.begin(clues, quiet(40)).z.any()
    mixed = Noise(torch.arange(40), torch.arange(40) % 2 == 1, silent=False)
    z = model.begin(clues, mixed).z
    assert not z[::2].any()
    shock = config.latent_noise * config.latent**0.5
    expected = (config.radius**2 + shock**2) ** 0.5
    assert z[1::2].norm(dim=-1).square().mean().sqrt() == pytest.approx(expected, rel=0.1)


def test_noise_fades_and_rules_gain_weight() -> None:
    model = model_of(replace(CELLS, penalty_first=1.0, penalty=3.0, steps=10))
    heat = model.landscape.heat(torch.tensor([0, 5, 10, 25]))
    assert heat.tolist() == [1.0, 0.5, 0.0, 0.0]
    assert model.landscape.weight(heat).tolist() == [1.0, 2.0, 3.0, 3.0]
    z = torch.zeros(4, model.landscape.vectors, 4)
    moved = model.landscape.moved(z, z, heat, torch.ones(4, z[0].numel()))
    torch.testing.assert_close(moved[:, 0, 0], torch.tensor([0.1, 0.05, 0.0, 0.0]))


def test_a_row_halts_when_its_board_has_settled() -> None:
    model = model_of(replace(CELLS, settled=3, step_size=1e-9)).eval()
    halted = [
        frame.thought.halted.all() for frame in think(model, lessons().clues, Budget(steps=5))
    ]
    assert halted == [False, False, False, True, True]


@both
def test_clues_are_certain(config: Config) -> None:
    model = model_of(config).eval()
    batch, context, z = point(model)
    beliefs = model.landscape.read(batch.clues, context, z).logits.softmax(dim=-1)
    given = batch.clues > 0
    expected = torch.nn.functional.one_hot(batch.clues[given].long() - 1, 4).float()
    assert torch.equal(beliefs[given], expected)
    assert (beliefs[~given] < 1).all()


# The target encoder.


@both
def test_every_weight_of_the_target_follows(config: Config) -> None:
    model = model_of(config)
    sources = dict(model.landscape.context.named_parameters())
    targets = dict(model.landscape.target.named_parameters())
    assert sources.keys() == targets.keys()
    assert "inputs.weight" in targets
    assert not any(target.requires_grad for target in targets.values())
    for key, source in sources.items():
        assert torch.equal(source, targets[key]), "it begins as a copy"
        source.data += torch.randn_like(source)
    before = {key: target.clone() for key, target in targets.items()}
    for progress, keeps in ((0.0, 0.996), (0.5, 0.998), (1.0, 1.0)):
        model.after_update(torch.tensor(progress))
        for key, target in targets.items():
            expected = keeps * before[key] + (1 - keeps) * sources[key]
            torch.testing.assert_close(target, expected.detach())
            before[key] = target.clone()


def test_puzzles_and_solutions_have_the_same_channels() -> None:
    model = model_of(BOARD)
    seen: list[Tensor] = []
    model.landscape.target.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    batch = lessons()
    model.landscape.wanted(batch.solutions, torch.float32)
    (board,) = seen
    assert board.shape == (6, 16, 5)
    assert not board[..., 0].any()
    assert torch.equal(board[..., 1:].argmax(dim=-1) + 1, batch.solutions.long())
    seen.clear()
    model.landscape.wanted(batch.clues, torch.float32)
    assert torch.equal(seen[0][..., 0] == 1, batch.clues == 0)


def test_the_published_sizes() -> None:
    from ronri import registry

    sizes = {}
    for name in ("enso-run4", "enso-run5"):
        with torch.device("meta"):
            model = Enso(registry.recipe(name).model, NINE)
        sizes[name] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert 7.4e6 < sizes["enso-run4"] < 7.5e6
    assert 36.4e6 < sizes["enso-run5"] < 36.6e6


# On a GPU.

CUDA = torch.cuda.is_available()


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_fused_kernels_give_the_same_slope() -> None:
    from ronri.nn import fused

    config = replace(CELLS, width=64, message=64, inner=128, latent=16)
    model = model_of(config, NINE).eval().cuda()
    model.compute_dtype = torch.bfloat16
    fused.look(torch.device("cuda"))
    clues = torch.from_numpy(puzzles_with_clues(8, 26, 30, seed=1).puzzles).cuda()
    z = torch.randn(8, 729, 16, device="cuda")
    weight = torch.full((8,), 0.1, device="cuda")
    slopes = []
    with torch.no_grad():
        context = model.landscape.known(clues, torch.bfloat16)
        for on in (True, False):
            with fused.switched(on):
                slopes.append(model.landscape.slope(clues, context, z, weight)[0])
    difference = (slopes[0] - slopes[1]).norm() / slopes[1].norm()
    assert difference < 0.03
