"""Enso: its two ways to learn, and how it notices that it has collapsed."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ronri.data import chance
from ronri.data.stream import Batch
from ronri.reasoner import Lesson
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.landscape import Energy, Landscape
from ronri.reasoners.enso.losses import Spread, broken_rules, decode_loss, distance
from ronri.reasoners.enso.model import Carry, Enso
from small_enso import BOARD, CELLS, but, lessons, loud, model_of, point, taught

both = pytest.mark.parametrize("config", [BOARD, CELLS], ids=["board", "cells"])


@pytest.fixture(scope="module")
def trained() -> dict[str, Enso]:
    return {"board": taught(BOARD, 120), "cells": taught(CELLS, 120)}


# Learning.


@pytest.mark.parametrize(
    ("change", "norm"),
    [({}, 1.0), ({"radius": 3.0}, 3.0), ({"normalise": False}, None), ({"z_encoder": False}, 0.0)],
    ids=str,
)
def test_the_truths_own_latent(change: dict[str, object], norm: float | None) -> None:
    model = model_of(but(BOARD, **change))
    target = model.landscape.wanted(lessons().solutions, torch.float32)
    norms = model.landscape.own_latent(target).norm(dim=-1)
    if norm is None:
        assert norms.std() > 0
    else:
        torch.testing.assert_close(norms, torch.full_like(norms, norm))


def test_without_a_z_encoder_latents_know_nothing_of_the_solution() -> None:
    model = model_of(replace(BOARD, z_encoder=False))
    batch = lessons()
    others = Batch(batch.clues, batch.solutions.roll(1, dims=0), batch.keys)
    seen: list[Tensor] = []
    model.landscape.reader.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    for one in (batch, others):
        model.training_step(one, None, torch.tensor(0.0))
    assert torch.equal(*seen)


@pytest.mark.parametrize("on", ["context", "prediction"])
def test_what_is_kept_from_collapsing(on: str) -> None:
    """The variance term alone: it moves what it is about, and the predictor only if it must."""
    nothing = dict.fromkeys(("energy", "decode", "constraint", "covariance"), 0.0)
    weights = {f"{name}_weight": value for name, value in nothing.items()}
    model = model_of(but(BOARD, vicreg_on=on, **weights))
    model.training_step(lessons(), None, torch.tensor(0.0)).loss.backward()
    first, inputs = (
        model.landscape.get_parameter(name).grad
        for name in ("reader.predictor.0.weight", "context.inputs.weight")
    )
    assert (first is not None and bool(first.any())) == (on == "prediction")
    assert inputs is not None
    assert inputs.any()


def test_slots_keep_their_walk_until_it_is_done() -> None:
    model = model_of(replace(CELLS, max_steps=4, leave=0.0)).train()
    carry = model.initial_carry(torch.arange(6))
    assert carry is not None
    assert carry.done.all()
    assert sorted(carry.steps.tolist()) == [0, 0, 1, 1, 2, 3]
    for update in range(5):
        batch = lessons(update)
        after = model.training_step(batch, carry, torch.tensor(0.0)).carry
        clues = torch.where(carry.done[:, None], batch.clues, carry.clues)
        assert torch.equal(after.clues, clues)
        steps = carry.steps + 1
        assert torch.equal(after.done, steps >= 4)
        assert torch.equal(after.steps, torch.where(after.done, 0, steps))
        kept = ~carry.done
        assert torch.equal(after.loud[kept], carry.loud[kept])
        carry = after


def test_a_slot_with_a_right_board_may_leave() -> None:
    solved = lessons().solutions
    for leave in (0.0, 1.0):
        model = model_of(replace(CELLS, max_steps=100, leave=leave))
        batch = Batch(solved, solved, torch.arange(6))
        carry = model.training_step(
            batch, model.initial_carry(torch.arange(6)), torch.tensor(0.0)
        ).carry
        assert carry.done.all() == (leave == 1.0)
        assert carry.done.any() == (leave == 1.0)


def walked(model: Enso, batch: Batch) -> tuple[Carry, Carry, Lesson]:
    """Slots in the middle of their walks, where one more step has brought them, and its lesson."""
    carry = model.initial_carry(torch.arange(6))
    assert carry is not None
    for seed in (2, 3):
        carry = model.training_step(lessons(seed), carry, torch.tensor(0.0)).carry
    lesson = model.training_step(batch, carry, torch.tensor(0.0))
    return carry, lesson.carry, lesson


def test_a_training_step_is_a_step_of_thinking_and_the_loss_is_of_where_it_leads() -> None:
    model = model_of(replace(CELLS, max_steps=100, leave=0.0, near=0.3, quiet=0.3))
    land, batch = model.landscape, lessons(7)
    before, after, lesson = walked(model, batch)
    assert not before.done.any()
    assert before.loud.any()
    assert not before.loud.all()
    context = land.known(before.clues, torch.float32)
    heat = land.heat(before.steps)
    assert heat.unique().numel() > 1
    down, here = land.slope(before.clues, context, before.z, land.weight(heat))
    shock = chance.normal(chance.fork(batch.keys, 2), land.numbers) * before.loud[:, None]
    z = land.moved(before.z, down, heat, shock)
    torch.testing.assert_close(after.z, z.detach())
    reading = land.read(before.clues, context, z)
    target = land.wanted(before.solutions, torch.float32)
    found = {
        "energy": distance(reading.prediction, target).mean(),
        "decode": decode_loss(reading.logits, before.solutions, before.clues).mean(),
        "constraint": broken_rules(reading.logits.softmax(dim=-1), land.units).mean(),
        "variance": Spread.of(context).variance_loss(),
        "covariance": Spread.of(context).covariance_loss(),
    }
    for name, value in found.items():
        torch.testing.assert_close(lesson.metrics[name], value.detach(), msg=name)
    total = sum(getattr(CELLS, f"{name}_weight") * value for name, value in found.items())
    total = total + CELLS.energy_weight * distance(here.prediction, target).mean()
    torch.testing.assert_close(lesson.loss, total)


def test_the_slope_learns() -> None:
    """Weights follow what a step did, not only what is read after it."""
    model = model_of(CELLS)
    batch, context, z = point(model)
    heat, shock = torch.zeros(len(z)), torch.zeros_like(z).flatten(1)
    gradients = []
    for followed in (True, False):
        down, _ = model.landscape.slope(batch.clues, context, z, torch.full((len(z),), 0.1))
        moved = model.landscape.moved(z, down if followed else down.detach(), heat, shock)
        reading = model.landscape.read(batch.clues, context, moved)
        loss = decode_loss(reading.logits, batch.solutions, batch.clues).mean()
        weight = model.landscape.get_parameter("reader.blocks.0.units.say.weight")
        gradients.append(torch.autograd.grad(loss, weight)[0])
    assert (gradients[0] - gradients[1]).norm() > 0.05 * gradients[1].norm()
    # And a whole training step has the first kind of gradient.
    carry = model.initial_carry(torch.arange(6))
    assert carry is not None
    model.training_step(lessons(), carry, torch.tensor(0.0)).loss.backward()
    assert weight.grad is not None
    whole = weight.grad.clone()
    slope = type(model.landscape).slope

    def detached(self: Landscape, *where: Tensor) -> tuple[Tensor, Energy]:
        down, here = slope(self, *where)
        return down.detach(), here

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model.landscape), "slope", detached)
        model.zero_grad()
        model.training_step(lessons(), carry, torch.tensor(0.0)).loss.backward()
    assert weight.grad is not None
    assert (whole - weight.grad).norm() > 0.02 * whole.norm()


def test_walks_are_of_three_kinds() -> None:
    model = model_of(replace(CELLS, near=0.2, quiet=0.5))
    batch = lessons(slots=6)
    clues, solutions = batch.clues.repeat(100, 1), batch.solutions.repeat(100, 1)
    many = Batch(clues, solutions, torch.arange(600))
    carry = model.training_step(
        many, model.initial_carry(torch.zeros(600, dtype=torch.int64)), torch.tensor(0.0)
    ).carry
    assert carry.near.float().mean() == pytest.approx(0.2, abs=0.06)
    assert (~carry.loud).float().mean() == pytest.approx(0.5, abs=0.07)
    assert not (carry.near & ~carry.loud).any()


@both
def test_thinking_is_langevin_dynamics(config: Config) -> None:
    model = model_of(config).eval()
    clues, noise = lessons().clues, loud(6)
    state = model.begin(clues, noise)
    shocks = []
    for step in range(3):
        before = state
        state, _ = model.advance(state)
        heat = model.landscape.heat(torch.full((6,), step))
        weight = model.landscape.weight(heat)
        with torch.no_grad():
            down, _ = model.landscape.slope(clues, before.context, before.z, weight)
        shocks.append(noise.normal(step + 1, model.landscape.numbers))
        expected = model.landscape.moved(before.z, down, heat, shocks[-1])
        torch.testing.assert_close(state.z, expected.detach())
    assert not torch.equal(shocks[0], shocks[1])


def test_the_documents_way_disturbs_the_truths_latent() -> None:
    model = model_of(BOARD)
    batch = lessons()
    seen: list[Tensor] = []
    model.landscape.reader.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    model.training_step(batch, None, torch.tensor(0.0))
    own = model.landscape.own_latent(model.landscape.wanted(batch.solutions, torch.float32))
    shock = chance.normal(chance.fork(batch.keys, 2), model.landscape.numbers).view(own.shape)
    torch.testing.assert_close(seen[0], own + BOARD.latent_noise * shock)


@pytest.mark.parametrize("taught", ["truth", "descent"])
def test_digits_and_places_are_alike_to_latents_of_cells(taught: str) -> None:
    """Where a symmetry takes a puzzle and its latents, it takes energy and slope."""
    model = model_of(but(CELLS, teach=taught, max_steps=24)).eval()
    batch, _, z = point(model)
    # Another order of the digits, and of the rows in a band.
    digits = torch.tensor([2, 0, 3, 1])
    rows = torch.tensor([1, 0, 2, 3])
    cells = (rows[:, None] * 4 + torch.arange(4)).flatten()
    clues = torch.where(batch.clues > 0, digits[batch.clues.long() - 1] + 1, 0)[:, cells]
    candidates = z.view(6, 16, 4, -1)
    moved = torch.empty_like(candidates)
    moved[:, :, digits] = candidates[:, cells]
    slopes = []
    for given, at in ((batch.clues, z), (clues.to(torch.uint8), moved.view(z.shape))):
        with torch.no_grad():
            context = model.landscape.known(given, torch.float32)
            weight = torch.full((6,), 0.2)
            slopes.append(model.landscape.slope(given, context, at, weight))
    (one, here), (other, there) = slopes
    torch.testing.assert_close(here.consistency, there.consistency, rtol=1e-3, atol=1e-4)
    expected = torch.empty_like(candidates)
    expected[:, :, digits] = one.view(candidates.shape)[:, cells]
    torch.testing.assert_close(other.view(candidates.shape), expected, rtol=1e-3, atol=1e-5)


def test_walks_begin_near_the_truth_at_zero_and_far_away() -> None:
    model = model_of(replace(CELLS, near=0.4, quiet=0.3))
    own = torch.full((5, model.landscape.vectors, 4), 9.0)
    near, zero = (torch.tensor([n in some for n in range(5)]) for some in ((0, 1, 2), (3,)))
    # The same shock, at three levels.
    keys, levels = torch.tensor([7, 7, 7, 8, 9]), torch.tensor([0.0, 0.5, 1.0, 1.0, 1.0])
    start = model._start(keys, own, near, zero, levels)
    away = start - own
    assert not away[0].any()
    assert away[2].std() == pytest.approx(CELLS.latent_noise, rel=0.2)
    torch.testing.assert_close(2 * away[1], away[2])
    assert not start[3].any()
    assert 0 < start[4].norm(dim=-1).mean() < 5


def test_what_began_near_the_truth_is_no_achievement() -> None:
    model = model_of(replace(CELLS, near=0.5))
    carry, batch = model.initial_carry(torch.zeros(6, dtype=torch.int64)), lessons(slots=6)
    assert carry is not None
    near = model.training_step(batch, carry, torch.tensor(0.0)).carry.near
    assert 0 < near.sum() < 6
    # Full boards are right whatever a network says, puzzles are not yet.
    for full, solved in ((near, 0.0), (~near, 1.0)):
        clues = torch.where(full[:, None], batch.solutions, batch.clues)
        lesson = model.training_step(
            Batch(clues, batch.solutions, batch.keys), carry, torch.tensor(0.0)
        )
        assert torch.equal(lesson.carry.near, near)
        assert float(lesson.metrics["solved"]) == solved
