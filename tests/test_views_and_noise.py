"""What each row of thinking gets for itself: its view of the puzzle, and its noise."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from grids import some_puzzles, some_solutions
from puppets import PUZZLES, Puppet, State, thought_of
from ronri.reasoner import Budget, Thought
from ronri.sudoku.geometry import STANDARD, Geometry
from ronri.thinking import think

# Views.


@pytest.mark.parametrize("geometry", STANDARD, ids=str)
def test_views_are_mapped_back(geometry: Geometry) -> None:
    """What is said of the puzzle as it is seen comes back as said of the puzzle as it was given."""
    puzzles = torch.from_numpy(some_puzzles(some_solutions(geometry), seed=1))
    shown: list[Tensor] = []

    def echo(state: State) -> Thought:
        shown.append(state.seen)
        first = (state.seen != 0).int().argmax(dim=1)
        digit = state.seen.gather(1, first[:, None])[:, 0].long()
        # Every third row has nothing to tell.
        quiet = state.row % 3 == 0
        events = [torch.full_like(digit, 7), first.where(~quiet, -1), digit.where(~quiet, 0)]
        return replace(
            thought_of(state.seen), events=torch.stack(events, 1), energy=state.row.float()
        )

    (frame,) = think(Puppet(echo, geometry), puzzles, Budget(steps=1, views=5, samples=2))
    given = puzzles[frame.puzzle]
    assert torch.equal(frame.thought.board, given)
    assert torch.equal(frame.thought.beliefs, thought_of(given).beliefs)
    plain = frame.view == 0
    assert torch.equal(shown[0][plain], given[plain])
    assert (shown[0] != given).any(dim=1)[~plain].float().mean() > 0.9
    # Samples of a view see the same board.
    assert torch.equal(shown[0][0::2], shown[0][1::2])
    assert frame.thought.events is not None
    assert frame.thought.energy is not None
    kind, cell, digit = frame.thought.events.unbind(dim=1)
    quiet = torch.arange(len(kind)) % 3 == 0
    assert (kind == 7).all()
    assert ((cell == -1) & (digit == 0))[quiet].all()
    assert (given.gather(1, cell.clamp(min=0)[:, None])[:, 0] == digit)[~quiet].all()
    assert torch.equal(frame.thought.energy, torch.arange(len(kind)).float())


def test_views_stay_with_their_rows_when_others_are_dropped() -> None:
    def mind(state: State) -> Thought:
        return thought_of(state.seen, halted=state.row % 4 < state.step)

    frames = list(think(Puppet(mind), PUZZLES, Budget(steps=4, views=4, halt="own")))
    assert [len(frame.puzzle) for frame in frames] == [8, 6, 4, 2]
    for frame in frames:
        assert torch.equal(frame.thought.board, PUZZLES[frame.puzzle])


# Noise.


# Puzzle, view, sample and step.
Where = tuple[bytes, int, int, int]


def noise_of(clues: Tensor, budget: Budget, seed: int) -> dict[Where, tuple[Tensor, Tensor]]:
    """The noise that each row gets at each step, and the board it sees."""
    given: list[tuple[Tensor, Tensor]] = []

    def mind(state: State) -> Thought:
        given.extend(zip(state.noise.normal(state.step, 16), state.seen, strict=True))
        return thought_of(state.seen, halted=state.row % 3 < state.step)

    where = []
    # Rows that begin later have taken fewer steps.
    taken: Counter[tuple[int, ...]] = Counter()
    for frame in think(Puppet(mind), clues, budget, seed=seed):
        rows = zip(frame.puzzle.tolist(), frame.view.tolist(), frame.sample.tolist(), strict=True)
        for puzzle, view, sample in rows:
            taken[puzzle, view, sample] += 1
            step = taken[puzzle, view, sample]
            where.append((clues[puzzle].numpy().tobytes(), view, sample, step))
    return dict(zip(where, given, strict=True))


def test_randomness_depends_on_seed_puzzle_view_sample_and_step_alone() -> None:
    budget = Budget(steps=3, samples=3, views=2)
    together = noise_of(PUZZLES, budget, seed=4)
    assert len(together) == 2 * 2 * 3 * 3
    # Alone, in another order, beside a copy, with more samples and views, with rows dropped, by
    # turns.
    for other in (
        noise_of(PUZZLES[:1], budget, seed=4),
        noise_of(PUZZLES[[1, 0, 1]], budget, seed=4),
        noise_of(PUZZLES, replace(budget, samples=4, views=3), seed=4),
        noise_of(PUZZLES, replace(budget, halt="own"), seed=4),
        noise_of(PUZZLES, replace(budget, halt="verified"), seed=4),
    ):
        shared = together.keys() & other.keys()
        assert len(shared) >= 18
        for key in shared:
            assert torch.equal(together[key][0], other[key][0])
            assert torch.equal(together[key][1], other[key][1])
    # No two have the same noise, and the first sample has none.
    loud = []
    for noise in (together, noise_of(PUZZLES, budget, seed=5)):
        for (_, _, sample, _), (numbers, _) in noise.items():
            assert numbers.any() == (sample > 0)
            if sample > 0:
                loud.append(numbers)
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(loud, 2))
