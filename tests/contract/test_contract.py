"""The contract, for every reasoner there is: those of the house, and one of someone else's."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ronri import loading, registry, thinking
from ronri.data.packing import pack
from ronri.data.stream import Source
from ronri.data.tensors import Symmetries, random_symmetries
from ronri.nn.ema import restore_tensors
from ronri.nn.taps import Taps
from ronri.reasoner import Budget, Carry, Lesson, Lessons, Noise, Reasoner, Thought
from ronri.recipe import from_plain, to_plain
from ronri.sudoku import rules
from ronri.sudoku.generate import Puzzles, puzzles_with_clues
from ronri.sudoku.geometry import FOUR, Geometry
from ronri.thinking import answer, think

OUTSIDE = Path(__file__).parent / "outside"
# A reasoner stands for its `mini4` recipe; other small recipes build other networks of it.
OTHERS = [
    name
    for entry in registry.reasoners().values()
    for name in entry.recipes
    if "mini" in name and not name.endswith("mini4")
]
NAMES = [*registry.reasoners(), *OTHERS, "theirs"]
WIDE = Budget(steps=3, samples=2, views=2)

every_reasoner = pytest.mark.parametrize("name", NAMES)
LEARNS = [n for n in NAMES if n in (*OTHERS, "theirs") or registry.find(n).learns]
every_learner = pytest.mark.parametrize("name", LEARNS)


@pytest.fixture(scope="module", autouse=True)
def _outside() -> Iterator[None]:
    """Install the package of someone else's, for these tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(OUTSIDE)
        registry.reasoners.cache_clear()
        yield
    registry.reasoners.cache_clear()


@pytest.fixture(scope="module")
def made() -> Puzzles:
    return puzzles_with_clues(6, 5, 8, seed=1, geometry=FOUR)


@pytest.fixture(scope="module")
def clues(made: Puzzles) -> Tensor:
    return torch.from_numpy(made.puzzles)


def kind_of(name: str) -> str:
    """The reasoner that a name stands for."""
    return registry.recipe(name).reasoner if name in OTHERS else name


def config_of(name: str) -> Any:
    if name in OTHERS:
        return registry.recipe(name).model
    entry = registry.find(name)
    return registry.recipe(f"{name}-mini4").model if entry.learns else entry.config()


def built(name: str) -> Reasoner:
    """A small instance on 4x4 boards, all of whose weights do something."""
    torch.manual_seed(0)
    reasoner = registry.find(kind_of(name)).build(config_of(name), FOUR)
    with torch.no_grad():
        for parameter in reasoner.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return reasoner.eval()


def lessons_of(reasoner: Reasoner, made: Puzzles, slots: int = 8) -> Lessons:
    nothing = np.zeros(len(made), np.uint8)
    records = pack(made.puzzles, made.solutions, np.zeros(len(made)), nothing, FOUR)
    return reasoner.lessons([Source(records, 1.0)], torch.arange(slots), seed=3, augment=True)


def study(reasoner: Reasoner, lessons: Lessons, carry: Any, steps: int) -> list[Lesson]:
    """Training steps as the loop takes them, without an optimiser."""
    taken = []
    for _ in range(steps):
        free = torch.ones(8, dtype=torch.bool) if carry is None else carry.free
        lesson = reasoner.training_step(lessons.take(free), carry, torch.tensor(0.5))
        carry = lesson.carry
        taken.append(lesson)
    return taken


def tensors_of(thought: Thought) -> dict[str, Tensor]:
    return {name: value for name, value in vars(thought).items() if value is not None}


def assert_close(one: Thought, other: Thought) -> None:
    """The same thoughts. Sums may be taken in another order where batches differ."""
    assert tensors_of(one).keys() == tensors_of(other).keys()
    for name, value in tensors_of(one).items():
        torch.testing.assert_close(value, tensors_of(other)[name], rtol=1e-3, atol=1e-4, msg=name)


def rows_of(thought: Thought, rows: Tensor) -> Thought:
    return Thought(**{name: value[rows] for name, value in tensors_of(thought).items()})


# What the house knows of it.


@every_learner
def test_clues_are_kept_where_they_are_pasted_in(name: str, clues: Tensor) -> None:
    """By a network that knows nothing; one that says clues itself does not know them either."""
    reasoner = built(name)
    keys = torch.arange(len(clues))
    noise = Noise(keys, torch.zeros_like(keys, dtype=torch.bool), silent=True)
    _, thought = reasoner.advance(reasoner.begin(clues, noise))
    kept = bool(((thought.board == clues) | (clues == 0)).all())
    assert kept == registry.find(kind_of(name)).clues_given


@pytest.mark.parametrize("name", [*registry.reasoners(), "theirs"])
def test_an_entry_is_complete(name: str) -> None:
    entry = registry.find(name)
    assert entry.summary
    assert "\n" not in entry.summary
    # A config is a frozen dataclass, and says everything by itself.
    assert is_dataclass(entry.config)
    assert len({entry.config(), entry.config()}) == 1
    if entry.learns:
        assert name in entry.recipes, f"the default recipe of {name} is called {name}"
        assert f"{name}-mini4" in entry.recipes, "a small recipe, to try it out and to test it"
    for make in entry.recipes.values():
        recipe = make()
        assert recipe.reasoner == name
        assert from_plain(entry.config, to_plain(recipe)) == recipe


# Thinking.


@every_reasoner
def test_thoughts_are_what_they_should_be(name: str, made: Puzzles, clues: Tensor) -> None:
    reasoner = built(name)
    rows = 6 * WIDE.samples * WIDE.views
    for frame in think(reasoner, clues, WIDE):
        thought = frame.thought
        assert thought.beliefs.shape == (rows, 16, 4)
        assert thought.beliefs.dtype == torch.float32
        torch.testing.assert_close(thought.beliefs.sum(dim=-1), torch.ones(rows, 16))
        assert (thought.beliefs >= 0).all()
        assert (thought.board.shape, thought.board.dtype) == ((rows, 16), torch.uint8)
        assert (thought.board <= 4).all()
        assert (thought.halted.shape, thought.halted.dtype) == ((rows,), torch.bool)
        assert thought.confidence.shape == (rows,)
        assert not thought.confidence.isnan().any()
        assert not any(tensor.requires_grad for tensor in tensors_of(thought).values())
        given = made.puzzles[frame.puzzle.numpy()]
        expected = rules.solves(thought.board.numpy(), given, FOUR)
        np.testing.assert_array_equal(frame.verified.numpy(), expected)
    assert reasoner.usual_steps >= 1


@every_reasoner
def test_the_same_seed_gives_the_same_thoughts(name: str, clues: Tensor) -> None:
    reasoner = built(name)
    state = torch.get_rng_state()
    twice = [list(think(reasoner, clues, WIDE, seed=7)) for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), state), "chance comes from Noise alone"
    for one, other in zip(*twice, strict=True):
        for key, value in tensors_of(one.thought).items():
            assert torch.equal(value, tensors_of(other.thought)[key]), key


@every_reasoner
@pytest.mark.parametrize("budget", [Budget(steps=3), WIDE], ids=["one row", "many rows"])
def test_a_puzzle_gets_the_same_answer_in_any_batch(
    name: str, budget: Budget, clues: Tensor
) -> None:
    reasoner = built(name)
    rows = budget.samples * budget.views
    together = list(think(reasoner, clues, budget, seed=5))
    for order in ([2], [4, 2, 0]):
        for one, all_of_them in zip(
            think(reasoner, clues[order], budget, seed=5), together, strict=True
        ):
            where = (torch.tensor(order)[:, None] * rows + torch.arange(rows)).flatten()
            assert_close(one.thought, rows_of(all_of_them.thought, where))


@every_reasoner
def test_dropped_rows_do_not_change_the_others(name: str, clues: Tensor) -> None:
    reasoner = built(name)
    noise = Noise(torch.arange(6) * 977, torch.arange(6) % 2 == 1, silent=False)
    state, _ = reasoner.advance(reasoner.begin(clues, noise))
    some = torch.tensor([1, 2, 5])
    kept = reasoner.keep(state, some)
    for _ in range(2):
        state, everyone = reasoner.advance(state)
        kept, left = reasoner.advance(kept)
        assert_close(left, rows_of(everyone, some))
    # Once more: what was kept can be kept again.
    state, everyone = reasoner.advance(state)
    _, last = reasoner.advance(reasoner.keep(kept, torch.tensor([2])))
    assert_close(last, rows_of(everyone, torch.tensor([5])))


@every_reasoner
def test_views_are_thoughts_about_a_symmetric_puzzle(
    name: str, clues: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each view is what the reasoner thinks of that copy by itself, turned back."""
    reasoner = built(name)
    used: list[Symmetries] = []

    def remembered(keys: Tensor, geometry: Geometry) -> Symmetries:
        used.append(random_symmetries(keys, geometry))
        return used[-1]

    monkeypatch.setattr(thinking, "random_symmetries", remembered)
    frames = list(think(reasoner, clues, Budget(steps=2, views=3)))
    views = used[0].unless(frames[0].view == 0)
    copies = views.apply(clues[frames[0].puzzle])
    for turned, plain in zip(frames, think(reasoner, copies, Budget(steps=2)), strict=True):
        assert torch.equal(views.apply(turned.thought.board), plain.thought.board)
        beliefs = views.undo_beliefs(plain.thought.beliefs)
        torch.testing.assert_close(turned.thought.beliefs, beliefs, rtol=1e-3, atol=1e-4)


@every_reasoner
def test_a_puzzle_without_a_solution_is_never_solved(name: str, made: Puzzles) -> None:
    impossible = made.puzzles.copy()
    # Each puzzle has one solution, and now it has a clue that is not in it.
    for puzzle, solution in zip(impossible, made.solutions, strict=True):
        cell = np.flatnonzero(puzzle == 0)[0]
        puzzle[cell] = solution[cell] % 4 + 1
    budget = Budget(steps=3, samples=2, views=2, halt="verified")
    found = answer(built(name), torch.from_numpy(impossible), budget)
    assert not found.verified.any()


@every_reasoner
def test_what_was_saved_thinks_the_same(name: str, clues: Tensor, tmp_path: Path) -> None:
    reasoner = built(name)
    entry = registry.find(kind_of(name))
    if entry.learns:
        loading.save(
            tmp_path / "model",
            kind=kind_of(name),
            config=config_of(name),
            geometry=FOUR,
            weights=reasoner.state_dict(),
            which="raw",
        )
        loaded = loading.load(tmp_path / "model", device="cpu")
        assert (loaded.kind, loaded.weights) == (kind_of(name), "raw")
        assert not any(weight.requires_grad for weight in loaded.reasoner.parameters())
    else:
        loaded = loading.load(name, device="cpu", geometry=FOUR)
        assert (loaded.kind, loaded.weights, loaded.sha256) == (name, None, None)
    for one, other in zip(
        think(reasoner, clues, WIDE), think(loaded.reasoner, clues, WIDE), strict=True
    ):
        assert torch.equal(one.thought.beliefs, other.thought.beliefs)
        assert torch.equal(one.thought.board, other.thought.board)


def test_the_exact_solver_is_right_in_every_view(made: Puzzles, clues: Tensor) -> None:
    solutions = torch.from_numpy(made.solutions)
    (frame,) = think(built("exact"), clues, Budget(steps=4, views=5))
    assert torch.equal(frame.thought.board, solutions[frame.puzzle])
    assert torch.equal(frame.thought.beliefs.argmax(dim=-1) + 1, solutions[frame.puzzle].long())
    assert frame.verified.all()


# Learning.


@every_learner
def test_every_weight_learns_or_follows_those_that_do(name: str, made: Puzzles) -> None:
    reasoner = built(name).train()
    (lesson,) = study(
        reasoner, lessons_of(reasoner, made), reasoner.initial_carry(torch.arange(8)), 1
    )
    assert lesson.loss.shape == ()
    assert lesson.loss.isfinite()
    lesson.loss.backward()
    followers = {}
    for key, parameter in reasoner.named_parameters():
        if not parameter.requires_grad:
            followers[key] = parameter.clone()
            continue
        assert parameter.grad is not None, f"{key} gets no gradient"
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.any(), f"{key} learns nothing"
        parameter.data -= parameter.grad
    reasoner.after_update(torch.tensor(0.5))
    for key, before in followers.items():
        assert not torch.equal(reasoner.get_parameter(key), before), f"{key} stands still"
    assert lesson.carry is None or isinstance(lesson.carry, Carry)
    for metric in lesson.metrics.values():
        assert metric.shape == ()
        assert not metric.requires_grad


@every_learner
def test_a_few_steps_lower_the_loss(name: str, made: Puzzles) -> None:
    reasoner = built(name).train()
    batch = lessons_of(reasoner, made).take(torch.ones(8, dtype=torch.bool))
    carry = reasoner.initial_carry(torch.arange(8))
    optimiser = torch.optim.Adam(reasoner.parameters(), lr=3e-3)
    losses = []
    # Networks over units are slow to begin with.
    steps = 60 if name in OTHERS else 25
    for step in range(steps):
        progress = torch.tensor(step / steps)
        lesson = reasoner.training_step(batch, carry, progress)
        optimiser.zero_grad()
        lesson.loss.backward()
        optimiser.step()
        reasoner.after_update(progress)
        carry = lesson.carry
        losses.append(lesson.loss.item())
    assert losses[-1] < 0.8 * losses[0]


@every_learner
def test_a_carry_keeps_its_tensors_apart_and_in_shape(name: str, made: Puzzles) -> None:
    """What a later step remembers may be written over what an earlier one did."""
    reasoner = built(name).train()
    carry = reasoner.initial_carry(torch.arange(8))
    if carry is None:
        return
    later = study(reasoner, lessons_of(reasoner, made), carry, 2)[-1].carry
    first, last = carry.tensors(), later.tensors()
    assert {key: (t.shape, t.dtype) for key, t in first.items()} == {
        key: (t.shape, t.dtype) for key, t in last.items()
    }
    assert len({t.untyped_storage().data_ptr() for t in first.values()}) == len(first)
    assert all(t.is_contiguous() for t in first.values())


@every_learner
def test_learning_resumes_as_if_nothing_had_happened(name: str, made: Puzzles) -> None:
    reasoner = built(name).train()
    lessons = lessons_of(reasoner, made)
    before = study(reasoner, lessons, reasoner.initial_carry(torch.arange(8)), 3)
    carry = before[-1].carry
    saved = {} if carry is None else {key: t.clone() for key, t in carry.tensors().items()}
    position = {key: tensor.clone() for key, tensor in lessons.tensors().items()}
    straight = study(reasoner, lessons, carry, 3)
    again = lessons_of(reasoner, made)
    again.load_tensors(position)
    carry = reasoner.initial_carry(torch.arange(8))
    restore_tensors({} if carry is None else carry.tensors(), saved)
    resumed = study(reasoner, again, carry, 3)
    assert [lesson.loss.item() for lesson in straight] == [lesson.loss.item() for lesson in resumed]
    assert again.admitted == lessons.admitted


# Taps.


@every_learner
def test_listening_changes_nothing(name: str, clues: Tensor) -> None:
    reasoner = built(name)
    taps = getattr(reasoner, "taps", Taps())
    heard: set[str] = set()
    idle = list(think(reasoner, clues, WIDE))
    with taps.listening({site: lambda at, _: heard.add(at.name) for site in taps.sites}):
        active = list(think(reasoner, clues, WIDE))
    assert heard == set(taps.sites)
    for frames in (active, list(think(reasoner, clues, WIDE))):
        for one, other in zip(idle, frames, strict=True):
            assert torch.equal(one.thought.beliefs, other.thought.beliefs)
            assert torch.equal(one.thought.confidence, other.thought.confidence)


@every_learner
def test_one_can_reach_in_at_every_site(name: str, clues: Tensor) -> None:
    reasoner = built(name)
    taps = getattr(reasoner, "taps", Taps())
    idle = list(think(reasoner, clues, WIDE))
    for site in taps.sites:
        with taps.listening({site: lambda _, activation: 0.5 * activation}):
            changed = list(think(reasoner, clues, WIDE))
        frames = zip(idle, changed, strict=True)
        assert any(
            not torch.equal(value, tensors_of(other.thought)[key])
            for one, other in frames
            for key, value in tensors_of(one.thought).items()
        ), site
