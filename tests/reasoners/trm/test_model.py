"""TRM: the counts of the paper, where gradients flow, the carry, halting, and every option."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from ronri.reasoner import Budget, Noise
from ronri.reasoners.trm.config import Config
from ronri.reasoners.trm.model import TRM, Carry
from ronri.sudoku.geometry import NINE
from ronri.thinking import think
from small_trm import SLOTS, SMALL, lessons, model_of

NOW = torch.tensor(0.0)


def begun(model: TRM, slots: Tensor) -> Carry:
    carry = model.initial_carry(slots)
    assert carry is not None
    return carry


def sure(model: TRM, q: float) -> TRM:
    """A model that holds its board for right (or, below 0, for wrong) whatever it reads."""
    torch.nn.init.zeros_(model.q_head.weight)
    assert model.q_head.bias is not None
    torch.nn.init.constant_(model.q_head.bias, q)
    return model


def carry_at(model: TRM, steps: list[int]) -> Carry:
    """Slots in the middle of puzzles, with notes that nobody would begin with."""
    carry = begun(model, torch.zeros(len(steps), dtype=torch.int64))
    known = lessons(seed=2, slots=len(steps))
    return replace(
        carry,
        z_H=torch.randn_like(carry.z_H),
        z_L=torch.randn_like(carry.z_L),
        clues=known.clues,
        solutions=known.solutions,
        steps=torch.tensor(steps),
        halted=torch.zeros(len(steps), dtype=torch.bool),
    )


def gradients(model: TRM, loss: Tensor) -> dict[str, Tensor]:
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


# What one step computes.


def test_the_counts_of_the_paper() -> None:
    model = model_of(Config(width=8, heads=2, inner=8))
    calls: Counter[str] = Counter()
    model.recursion.register_forward_hook(lambda *_: calls.update(["recursion"]))
    for block in model.recursion.blocks:
        block.register_forward_hook(lambda *_: calls.update(["block"]))
    model.training_step(lessons(), model.initial_carry(torch.arange(SLOTS)), NOW)
    assert calls == {"recursion": 21, "block": 42}
    calls.clear()
    assert len(list(think(model, lessons().clues, Budget(steps=16)))) == 16
    assert calls == {"recursion": 336, "block": 672}


@pytest.mark.parametrize("carry", [True, False])
def test_only_cycles_without_gradient_may_be_rough(carry: bool) -> None:
    config = Config(width=8, heads=2, inner=8, l_cycles=2, max_steps=2, float8=True, carry=carry)
    model = model_of(config)
    rough: list[int | None] = []
    model.recursion.register_forward_hook(
        lambda _, __, options, ___: rough.append(options["rough"]), with_kwargs=True
    )
    model.training_step(lessons(), model.initial_carry(torch.arange(SLOTS)), NOW)
    # Calls take turns at how they round, all through a step.
    assert rough == [0, 1, 2, 3, 0, 1, None, None, None] * (1 if carry else config.max_steps)
    rough.clear()
    list(think(model, lessons().clues, Budget(steps=1)))
    assert rough == [None] * 9


def test_a_run_may_begin_with_shallow_steps() -> None:
    model = model_of(replace(SMALL, h_cycles=3, shallow=0.25))
    calls: Counter[str] = Counter()
    model.recursion.register_forward_hook(lambda *_: calls.update(["recursion"]))
    for progress, cycles in ((0.0, 1), (0.24, 1), (0.25, 3), (1.0, 3)):
        model.stage = model.stage_at(progress)
        calls.clear()
        model.training_step(lessons(), model.initial_carry(torch.arange(SLOTS)), NOW)
        assert calls["recursion"] == cycles * 3
    # Thinking never is.
    model.stage = 1
    calls.clear()
    list(think(model, lessons().clues, Budget(steps=1)))
    assert calls["recursion"] == 9
    assert model_of(SMALL).stage_at(0.0) == 0


def test_a_processor_computes_nothing_roughly() -> None:
    exact, rough = (model_of(replace(SMALL, float8=float8)) for float8 in (False, True))
    carry = carry_at(exact, [1] * SLOTS)
    losses = [model.training_step(lessons(), carry, NOW).loss for model in (exact, rough)]
    assert torch.equal(*losses)


def test_the_sizes_of_the_paper() -> None:
    """6.8 million parameters with attention; 5 million with a feed-forward layer over positions."""
    attention, mlp = (
        sum(p.numel() for p in TRM(config, NINE).parameters()) / 1e6
        for config in (Config(), Config(mixer="mlp", positions="none"))
    )
    assert (round(attention, 1), round(mlp)) == (6.8, 5)


def written_out(model: TRM, x: Tensor, z_H: Tensor, z_L: Tensor, *, cut: bool) -> Tensor:
    """z_H after one step, by the words at the top of the model; `cut` before the last H cycle."""
    for h in range(model.config.h_cycles):
        if cut and h == model.config.h_cycles - 1:
            z_H, z_L = z_H.detach(), z_L.detach()
        for _ in range(model.config.l_cycles):
            z_L = model.recursion(z_L, z_H + x)
        z_H = model.recursion(z_H, z_L)
    return z_H


def loss_by_hand(model: TRM, z_H: Tensor, solutions: Tensor) -> Tensor:
    logits = model.lm_head(z_H)[:, model.config.context_tokens :].double()
    weight = torch.where(logits < 0, 1 / (1 - logits.clamp(max=0)), logits + 1)
    if model.config.cross_entropy == "softmax":
        weight = logits.exp()
    # Token 1 is an empty cell, and digits follow.
    said = weight / weight.sum(dim=-1, keepdim=True)
    right = said.gather(-1, solutions.long()[..., None] + 1)[..., 0]
    q = model.q_head(z_H[:, 0])[:, 0].double()
    solved = (logits[..., 2:].argmax(dim=-1) + 1 == solutions).all(dim=1)
    halting = -torch.where(solved, q.sigmoid(), (-q).sigmoid()).log()
    return -right.log().mean() + model.config.halt_weight * halting.mean()


@pytest.mark.parametrize("cross_entropy", ["stablemax", "softmax"])
def test_gradients_flow_through_the_last_cycle_only(cross_entropy: Any) -> None:
    model = model_of(replace(SMALL, h_cycles=3, cross_entropy=cross_entropy))
    carry = carry_at(model, [0, 1, 0, 1, 0, 1])
    lesson = model.training_step(lessons(), carry, NOW)
    by_hand = {}
    for cut in (True, False):
        x = model.embed(carry.clues, torch.float32)
        z_H = written_out(model, x, carry.z_H, carry.z_L, cut=cut)
        loss = loss_by_hand(model, z_H, carry.solutions)
        torch.testing.assert_close(lesson.loss, loss.float())
        by_hand[cut] = gradients(model, loss)
    found = gradients(model, lesson.loss)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, by_hand[True][name], rtol=1e-3, atol=1e-6, msg=name)
    # All three cycles would have given something else.
    name = "recursion.blocks.0.feed_forward.down.weight"
    assert not torch.allclose(found[name], by_hand[False][name], rtol=0.01)
    torch.testing.assert_close(lesson.carry.z_H, z_H.detach())
    assert not lesson.carry.z_H.requires_grad


# Every option.

OPTIONS: list[dict[str, Any]] = [
    {},
    {"mixer": "mlp", "positions": "none"},
    {"mixer": "mlp", "positions": "grid"},
    {"mixer": "units", "positions": "none", "message": 4},
    {"mixer": "units", "positions": "none", "latent_init": "learned", "cross_entropy": "softmax"},
    *({"positions": positions} for positions in ("grid", "both", "none")),
    {"width": 24, "heads": 3, "unit_heads": 3},
    {"width": 32, "heads": 4, "unit_heads": 3, "positions": "none"},
    {"shallow": 0.5},
    {"latent_init": "learned"},
    {"supervise": "halted"},
    {"cross_entropy": "softmax"},
    {"context_tokens": 2},
    {"layers": 1, "h_cycles": 1, "l_cycles": 1},
    {"exploration": 0.5, "halt_weight": 2.0, "noise": 1.0},
    {"carry": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_learns_and_thinks(options: dict[str, Any]) -> None:
    model = model_of(replace(SMALL, **options))
    lesson = model.training_step(lessons(), model.initial_carry(torch.arange(SLOTS)), NOW)
    for name, gradient in gradients(model, lesson.loss).items():
        assert gradient.isfinite().all(), name
        assert gradient.any(), f"{name} learns nothing"
    for frame in think(model, lessons().clues, Budget(steps=2, samples=2)):
        beliefs = frame.thought.beliefs
        torch.testing.assert_close(beliefs.sum(dim=-1), torch.ones(2 * SLOTS, 16))
        assert torch.equal(beliefs.argmax(dim=-1) + 1, frame.thought.board.long())


def test_fixed_notes_are_no_parameters() -> None:
    fixed, learned = (model_of(replace(SMALL, latent_init=kind)) for kind in ("fixed", "learned"))
    names = {name for name, _ in learned.named_parameters()}
    assert names - {name for name, _ in fixed.named_parameters()} == {"H_init", "L_init"}
    # Released weights have them either way.
    assert fixed.state_dict().keys() == learned.state_dict().keys()


def test_learned_notes_learn_from_rows_that_begin() -> None:
    """With one H cycle nothing is cut off: the gradient is the true one."""
    model = model_of(replace(SMALL, latent_init="learned", h_cycles=1))
    batch = lessons()
    lesson = model.training_step(batch, begun(model, torch.arange(SLOTS)), NOW)
    begin_H, begin_L = (z.expand(SLOTS, 17, 16) for z in (model.H_init, model.L_init))
    x = model.embed(batch.clues, torch.float32)
    z_H = written_out(model, x, begin_H, begin_L, cut=False)
    expected = gradients(model, loss_by_hand(model, z_H, batch.solutions))
    for name, gradient in gradients(model, lesson.loss).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-6, msg=name)
    going_on = gradients(model, model.training_step(batch, carry_at(model, [1] * 6), NOW).loss)
    assert not going_on["H_init"].any()
    assert not going_on["L_init"].any()


# The carry.


def test_halted_slots_begin_anew_and_the_others_go_on() -> None:
    model = sure(model_of(), -5)
    carry = carry_at(model, [0, 1, 0, 2, 0, 1])
    fresh = torch.tensor([True, False, True, False, False, False])
    batch, mixed = lessons(), replace(carry, halted=fresh)
    lesson = model.training_step(batch, mixed, NOW)
    assert torch.equal(lesson.carry.clues, torch.where(fresh[:, None], batch.clues, carry.clues))
    solutions = torch.where(fresh[:, None], batch.solutions, carry.solutions)
    assert torch.equal(lesson.carry.solutions, solutions)
    assert lesson.carry.steps.tolist() == [1, 2, 1, 3, 1, 2]
    # A halted slot does what it would with empty notes, the others what they would with theirs.
    anew = model.training_step(batch, begun(model, carry.steps), NOW).carry
    gone_on = model.training_step(batch, carry, NOW).carry
    for name in ("z_H", "z_L"):
        expected = torch.where(fresh[:, None, None], getattr(anew, name), getattr(gone_on, name))
        torch.testing.assert_close(getattr(lesson.carry, name), expected)


def test_first_puzzles_are_spread_over_the_steps() -> None:
    model = sure(model_of(), -5)
    carry = begun(model, torch.arange(10, 18))
    assert carry.free.all()
    assert carry.steps.tolist() == [2, 3, 0, 1, 2, 3, 0, 1]
    halts = []
    for seed in range(1, 9):
        carry = model.training_step(lessons(seed, slots=8), carry, NOW).carry
        halts.append(int(carry.halted.sum()))
    assert halts == [2] * 8


def test_without_a_carry_an_update_is_all_steps_of_one() -> None:
    model = sure(model_of(), -5)
    at_once = sure(model_of(replace(SMALL, carry=False)), -5)
    assert at_once.initial_carry(torch.arange(SLOTS)) is None
    whole = at_once.training_step(lessons(), None, NOW)
    carry, losses = begun(model, torch.zeros(SLOTS, dtype=torch.int64)), []
    for _ in range(SMALL.max_steps):
        lesson = model.training_step(lessons(), carry, NOW)
        carry = lesson.carry
        losses.append(lesson.loss)
    assert carry.halted.all()
    torch.testing.assert_close(whole.loss, torch.stack(losses).mean())
    expected = gradients(model, torch.stack(losses).mean())
    for name, gradient in gradients(at_once, whole.loss).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-6, msg=name)
    assert at_once.initial_carry(torch.arange(SLOTS)) is None


# Halting.


def halted(model: TRM, steps: list[int], seed: int = 1) -> Tensor:
    carry = carry_at(model, [step - 1 for step in steps])
    return model.training_step(lessons(seed, slots=len(steps)), carry, NOW).carry.halted


def test_slots_halt_when_they_are_sure_or_out_of_steps() -> None:
    unsure = halted(sure(model_of(), -0.01), [1, 2, 3, 4])
    assert unsure.tolist() == [False, False, False, True]
    assert halted(sure(model_of(), 0.01), [1, 2, 3, 4]).all()
    again = model_of().training_step(lessons(), carry_at(model_of(), [3] * 6), NOW).carry
    assert again.steps.tolist() == [0] * 6


@pytest.mark.parametrize(("least", "q", "halts"), [(0.5, 0.01, True), (0.5, -0.01, False)])
@pytest.mark.parametrize("stricter", [False, True])
def test_rows_that_think_halt_when_they_are_as_sure_as_they_are_asked_to_be(
    least: float, q: float, halts: bool, stricter: bool
) -> None:
    """Slots in training do not know of it."""
    if stricter:
        # A probability of 0.9 is a logit of log 9.
        least, q = 0.9, q + math.log(9)
    model = sure(model_of(replace(SMALL, sure=least)), q)
    (frame,) = think(model, lessons().clues, Budget(steps=1))
    assert frame.thought.halted.tolist() == [halts] * SLOTS
    assert halted(model, [1]).tolist() == [q > 0]


def test_exploration_sends_sure_slots_on() -> None:
    explorer = sure(model_of(replace(SMALL, exploration=1.0)), 5)
    many = 400
    at = {step: halted(explorer, [step] * many).float().mean().item() for step in (1, 2, 3, 4)}
    # The least number of steps is 2, 3 or 4, each as likely as the others.
    assert (at[1], at[4]) == (0, 1)
    assert at[2] == pytest.approx(1 / 3, abs=0.1)
    assert at[3] == pytest.approx(2 / 3, abs=0.1)
    sometimes = sure(model_of(replace(SMALL, exploration=0.25)), 5)
    assert halted(sometimes, [1] * many).float().mean().item() == pytest.approx(0.75, abs=0.1)
    # Whoever is not sure is not changed by it.
    assert not halted(sure(explorer, -5), [2] * many).any()


def test_halted_slots_alone_may_be_taught() -> None:
    every = model_of(replace(SMALL, supervise="every"))
    some = model_of(replace(SMALL, supervise="halted"))
    for model in (every, some):
        sure(model, -5)
    torch.manual_seed(3)
    carry = carry_at(every, [3, 0, 3, 1, 3, 2])
    alone = []
    for slot in (0, 2, 4):
        one = Carry(**{name: value[[slot]] for name, value in carry.tensors().items()})
        alone.append(every.training_step(lessons(slots=1), one, NOW).loss)
    lesson = some.training_step(lessons(), carry, NOW)
    assert lesson.carry.halted.tolist() == [True, False] * 2 + [True, False]
    torch.testing.assert_close(lesson.loss, torch.stack(alone).mean())
    expected = gradients(every, torch.stack(alone).mean())
    for name, gradient in gradients(some, lesson.loss).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-6, msg=name)


def test_nobody_halted_means_nothing_to_learn() -> None:
    model = sure(model_of(replace(SMALL, supervise="halted")), -5)
    lesson = model.training_step(lessons(), carry_at(model, [0] * SLOTS), NOW)
    assert lesson.loss == 0
    assert not any(gradient.any() for gradient in gradients(model, lesson.loss).values())


# Thinking.


def test_samples_differ_by_noise_and_the_first_has_none() -> None:
    model, clues = model_of(), lessons().clues
    plain = list(think(model, clues, Budget(steps=3)))
    noisy = list(think(model, clues, Budget(steps=3, samples=3)))
    for one, many in zip(plain, noisy, strict=True):
        beliefs = many.thought.beliefs.unflatten(0, (SLOTS, 3))
        torch.testing.assert_close(beliefs[:, 0], one.thought.beliefs, rtol=1e-4, atol=1e-5)
        for a, b in itertools.combinations(range(3), 2):
            assert (beliefs[:, a] - beliefs[:, b]).abs().amax(dim=(1, 2)).min() > 0.01
    quiet = model_of(replace(SMALL, noise=0.0))
    *_, last = think(quiet, clues, Budget(steps=3, samples=3))
    beliefs = last.thought.beliefs.unflatten(0, (SLOTS, 3))
    torch.testing.assert_close(beliefs, beliefs[:, :1].expand_as(beliefs))


def test_every_step_has_noise_of_its_own() -> None:
    model = model_of()
    loud = torch.tensor([False, True] * 3)
    begun = model.begin(lessons().clues, Noise(torch.arange(SLOTS), loud, silent=False))
    _, now = model.advance(begun)
    _, later = model.advance(replace(begun, step=begun.step + 1))
    changed = (now.beliefs != later.beliefs).flatten(1).any(dim=1)
    assert torch.equal(changed, loud)


def test_thinking_is_a_training_step_without_teaching() -> None:
    model, batch = model_of(), lessons()
    carry = model.initial_carry(torch.zeros(SLOTS, dtype=torch.int64))
    heard: list[Tensor] = []
    with model.taps.listening({"logits": lambda _, value: heard.append(value)}):
        model.training_step(batch, carry, NOW)
        frame = next(think(model, batch.clues, Budget(steps=1)))
    torch.testing.assert_close(heard[0], heard[1])
    assert heard[0].requires_grad
    assert not heard[1].requires_grad
    assert not frame.thought.beliefs.requires_grad


def test_thinking_may_go_on_longer_than_training() -> None:
    model = model_of()
    frames = list(think(model, lessons().clues, Budget(steps=10)))
    assert frames[-1].step == 10
    assert frames[-1].thought.beliefs.isfinite().all()
