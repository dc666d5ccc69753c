"""Lessons for ever: a function of (seed, slot, n) and of the mixture, each a real puzzle."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ronri.data.packing import pack
from ronri.data.stream import Batch, PuzzleStream, Source
from ronri.data.tensors import unpack
from ronri.sudoku.generate import puzzles_with_clues
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry
from ronri.sudoku.rules import solves
from ronri.sudoku.symmetry import canonical_puzzles

CLUES = {FOUR: (5, 8), SIX: (14, 18), NINE: (28, 34)}


def source(count: int, geometry: Geometry = FOUR, *, seed: int = 0, weight: float = 1.0) -> Source:
    made = puzzles_with_clues(count, *CLUES[geometry], seed=seed, geometry=geometry)
    nothing = np.zeros(count, np.uint8)
    records = pack(made.puzzles, made.solutions, np.zeros(count), nothing, geometry)
    return Source(records, weight)


def stream(slots: torch.Tensor, *, seed: int = 5) -> PuzzleStream:
    mixed = (source(30, weight=0.7), source(20, seed=1, weight=0.3))
    return PuzzleStream(mixed, FOUR, slots, seed=seed)


def some_free(slots: torch.Tensor, step: int) -> torch.Tensor:
    """Slots that happen to be free at a step; at first all are."""
    return ((slots * 7 + step * 5) % 3 == 0) | (step == 0)


def take(lessons: PuzzleStream, slots: torch.Tensor, steps: range) -> list[Batch]:
    return [lessons.take(some_free(slots, step)) for step in steps]


def assert_same(one: Batch, other: Batch) -> None:
    assert torch.equal(one.clues, other.clues)
    assert torch.equal(one.solutions, other.solutions)
    assert torch.equal(one.keys, other.keys)


def test_slots_may_be_spread_over_processes() -> None:
    slots = torch.arange(12)
    whole = take(stream(slots), slots, range(6))
    for part in (slots[:5], slots[5:], slots.flip(0)):
        for batch, found in zip(whole, take(stream(part), part, range(6)), strict=True):
            expected = Batch(batch.clues[part], batch.solutions[part], batch.keys[part])
            assert_same(found, expected)


def test_a_stream_resumes_where_it_was() -> None:
    slots = torch.arange(8)
    first = stream(slots)
    take(first, slots, range(4))
    saved = {name: tensor.clone() for name, tensor in first.tensors().items()}
    rest = take(first, slots, range(4, 8))
    resumed = stream(slots)
    resumed.load_tensors(saved)
    for one, other in zip(rest, take(resumed, slots, range(4, 8)), strict=True):
        assert_same(one, other)
    assert resumed.admitted == first.admitted


def test_busy_slots_keep_their_puzzle() -> None:
    slots = torch.arange(40)
    lessons = stream(slots)
    before = lessons.take(torch.ones(40, dtype=torch.bool))
    for step in range(1, 5):
        free = some_free(slots, step)
        batch = lessons.take(free)
        kept = (batch.clues == before.clues).all(dim=1)
        assert kept[~free].all()
        # A slot may draw one puzzle twice, but hardly ever.
        assert kept[free].float().mean() < 0.3
        before = batch


def test_the_nth_lesson_does_not_depend_on_when_it_is_taken() -> None:
    slots = torch.arange(6)
    all_free = torch.ones(6, dtype=torch.bool)
    quick, slow = stream(slots), stream(slots)
    for _ in range(3):
        third = quick.take(all_free)
    for step in range(9):
        late = slow.take(all_free & (step % 3 == 0))
    assert torch.equal(third.clues, late.clues)
    assert torch.equal(third.solutions, late.solutions)


def test_seeds_slots_and_steps_have_keys_of_their_own() -> None:
    slots = torch.arange(50)
    nothing_free = torch.zeros(50, dtype=torch.bool)
    keys = [
        lessons.take(nothing_free).keys
        for lessons in (stream(slots), stream(slots, seed=6))
        for _ in range(20)
    ]
    assert len(set(torch.cat(keys).tolist())) == 2 * 20 * 50
    everything = torch.ones(50, dtype=torch.bool)
    one, other = (stream(slots, seed=seed).take(everything).clues for seed in (5, 6))
    assert (one != other).any(dim=1).float().mean() > 0.7


def test_admitted_counts_lessons_that_were_begun() -> None:
    slots = torch.arange(10)
    lessons = stream(slots)
    assert lessons.admitted == 0
    begun = 0
    for step in range(5):
        free = some_free(slots, step)
        lessons.take(free)
        begun += int(free.sum())
        assert lessons.admitted == begun


@pytest.mark.parametrize("geometry", CLUES, ids=str)
def test_every_lesson_is_a_puzzle_of_the_set_in_other_clothes(geometry: Geometry) -> None:
    only = source(10, geometry)
    slots = torch.arange(60)
    plain, moved = (
        PuzzleStream([only], geometry, slots, seed=1, augment=augment).take(slots >= 0)
        for augment in (False, True)
    )
    made = puzzles_with_clues(10, *CLUES[geometry], seed=0, geometry=geometry)
    originals = {
        p.tobytes(): s.tobytes() for p, s in zip(made.puzzles, made.solutions, strict=True)
    }
    for clues, solution in zip(plain.clues.numpy(), plain.solutions.numpy(), strict=True):
        assert originals[clues.tobytes()] == solution.tobytes()
    clues, solutions = moved.clues.numpy(), moved.solutions.numpy()
    assert solves(solutions, clues, geometry).all()
    # The same puzzles were drawn, and nearly all of them were moved.
    np.testing.assert_array_equal(
        canonical_puzzles(clues, solutions, geometry),
        canonical_puzzles(plain.clues.numpy(), plain.solutions.numpy(), geometry),
    )
    assert (moved.clues != plain.clues).any(dim=1).float().mean() > 0.8


def test_a_mixture_moves_from_early_to_late() -> None:
    easy, hard = source(30, weight=0.2), source(20, seed=1, weight=0.8)
    sources = (replace(easy, early=1.0), replace(hard, early=0.0))
    slots = torch.arange(4000)
    lessons = PuzzleStream(sources, FOUR, slots, seed=5, early_part=0.5)
    for progress, share in ((0.0, 0.0), (0.25, 0.4), (0.5, 0.8), (1.0, 0.8)):
        lessons.move_to(progress)
        lessons.take(slots >= 0)
        assert abs(lessons.tensors()["which"].float().mean() - share) < 0.03


def test_busy_slots_keep_their_puzzle_when_the_mixture_moves() -> None:
    sources = (
        replace(source(30, weight=0.2), early=1.0),
        replace(source(20, seed=1, weight=0.8), early=0.0),
    )
    slots = torch.arange(40)
    first = PuzzleStream(sources, FOUR, slots, seed=5, early_part=0.5)
    before = first.take(slots >= 0)
    resumed = PuzzleStream(sources, FOUR, slots, seed=5, early_part=0.5)
    resumed.load_tensors({name: tensor.clone() for name, tensor in first.tensors().items()})
    free = some_free(slots, 1)
    for lessons in (first, resumed):
        lessons.move_to(0.5)
    after = first.take(free)
    assert torch.equal(after.clues[~free], before.clues[~free])
    assert_same(after, resumed.take(free))


def test_sets_are_drawn_by_weight_and_their_puzzles_alike() -> None:
    # No puzzle twice, so that each one tells which set it came from.
    every = np.unique(source(200).records, axis=0)[:62]
    sizes, weights = (4, 50, 8), (1.0, 6.0, 3.0)
    parts = np.split(every, np.cumsum(sizes)[:-1])
    sources = [Source(part, weight) for part, weight in zip(parts, weights, strict=True)]
    clues, _ = unpack(torch.from_numpy(every), FOUR)
    number = {row.tobytes(): i for i, row in enumerate(clues.numpy())}
    assert len(number) == len(every)
    slots = torch.arange(20_000)
    drawn = PuzzleStream(sources, FOUR, slots, seed=3, augment=False).take(slots >= 0)
    times = np.bincount([number[row.tobytes()] for row in drawn.clues.numpy()], minlength=62)
    shares = np.repeat(np.array(weights) / sum(weights) / sizes, sizes)
    chi_square = ((times - 20_000 * shares) ** 2 / (20_000 * shares)).sum()
    # 61 degrees of freedom: its mean is 61 and its deviation 11.
    assert 61 - 4 * 11 < chi_square < 61 + 4 * 11
