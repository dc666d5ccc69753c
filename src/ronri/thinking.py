"""Thinking: from a reasoner, puzzles and a budget to frames, and from frames to answers.

One function for all reasoners. It makes a row of every puzzle x view x sample, advances all rows
together, drops those that have ended, and yields frames that never pile up. Where a right board
ends the thinking about a puzzle, its plain row goes first, alone.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from ronri.data import chance
from ronri.data.tensors import Symmetries, random_symmetries, solves
from ronri.reasoner import Budget, Noise, Reasoner, Thought


@final
@dataclass(frozen=True)
class Frame:
    """One step of thinking, with views mapped back: boards and beliefs as the puzzle was given."""

    # Counted from 1, since the first rows of all began.
    step: int
    # Which puzzle, view and sample each row is.
    puzzle: Int64[Tensor, "rows"]
    view: Int64[Tensor, "rows"]
    sample: Int64[Tensor, "rows"]
    thought: Thought
    # Rows whose board keeps every clue and every rule.
    verified: Bool[Tensor, "rows"]
    # Rows that end with this frame.
    finished: Bool[Tensor, "rows"]


@final
@dataclass(frozen=True)
class Answers:
    """One board for each puzzle, and what it cost."""

    board: UInt8[Tensor, "puzzles cells"]
    # Whether it keeps every clue and every rule; nothing else is ever called solved.
    verified: Bool[Tensor, "puzzles"]
    confidence: Float[Tensor, "puzzles"]
    # How low it lies; not a number for reasoners that have no energy.
    energy: Float[Tensor, "puzzles"]
    # The step at which the board was there; all of them where a right one was wanted and not found.
    steps: Int64[Tensor, "puzzles"]
    # Rows of the puzzle that thought, and their steps together.
    rows: Int64[Tensor, "puzzles"]
    row_steps: Int64[Tensor, "puzzles"]

    def energy_of(self, puzzle: int) -> float | None:
        """The energy of a puzzle's board, if there is such a thing."""
        energy = float(self.energy[puzzle])
        return None if math.isnan(energy) else energy


def think(
    reasoner: Reasoner,
    clues: UInt8[Tensor, "puzzles cells"],
    budget: Budget,
    *,
    seed: int = 0,
) -> Iterator[Frame]:
    """Let a reasoner think about puzzles, step by step.

    Rows that have ended are dropped. Where a right board is enough (halt verified), rows with noise
    or in other views begin when the plain rows have ended, for puzzles that these did not solve;
    steps are counted on.
    """
    clues = clues.to(reasoner.device)
    puzzle, view, sample = _expand(len(clues), budget, clues.device)
    solved = torch.zeros(len(clues), dtype=torch.bool, device=clues.device)
    turns = [(torch.ones_like(puzzle, dtype=torch.bool), budget)]
    if budget.halt == "verified":
        plain = (view == 0) & (sample == 0)
        turns = [(plain, replace(budget, samples=1, views=1)), (~plain, budget)]
    before = 0
    for wanted, allowed in turns:
        some = (wanted & ~solved[puzzle]).nonzero()[:, 0]
        if len(some) > 0:
            rows = puzzle[some], view[some], sample[some]
            yield from _together(reasoner, clues, rows, allowed, seed, solved, before)
        before += _most_steps(reasoner, budget)


def _together(
    reasoner: Reasoner,
    clues: UInt8[Tensor, "puzzles cells"],
    rows: tuple[Int64[Tensor, "rows"], ...],
    budget: Budget,
    seed: int,
    solved: Bool[Tensor, "puzzles"],
    before: int,
) -> Iterator[Frame]:
    """Let some rows think: puzzle, view and sample of each. They begin together.

    Where one right board is enough, `solved` learns which puzzles have had one. Others have thought
    for `before` steps already.
    """
    puzzle, view, sample = rows
    puzzle_keys = _puzzle_keys(clues, seed)[puzzle]
    keys = chance.fork(chance.fork(puzzle_keys, view), sample)
    noise = Noise(keys, sample > 0, silent=budget.samples == 1)
    views = None
    seen = clues[puzzle]
    if budget.views > 1:
        view_keys = chance.fork(chance.fork(puzzle_keys, -1), view)
        views = random_symmetries(view_keys, reasoner.geometry).unless(view == 0)
        seen = views.apply(seen)
    state = reasoner.begin(seen, noise)
    last = before + _most_steps(reasoner, budget)
    for step in range(before + 1, last + 1):
        state, thought = reasoner.advance(state)
        if views is not None:
            thought = _mapped_back(thought, views)
        verified = solves(thought.board, clues[puzzle], reasoner.geometry)
        if budget.halt == "verified":
            solved[puzzle[verified]] = True
            finished = solved[puzzle]
        else:
            finished = thought.halted & (budget.halt == "own")
        if step == last:
            finished = torch.ones_like(finished)
        yield Frame(step, puzzle, view, sample, thought, verified, finished)
        left = (~finished).nonzero()[:, 0]
        if len(left) == 0:
            return
        if len(left) < len(puzzle):
            state = reasoner.keep(state, left)
            puzzle, view, sample = puzzle[left], view[left], sample[left]
            views = None if views is None else views.rows(left)


def answer(
    reasoner: Reasoner,
    clues: UInt8[Tensor, "puzzles cells"],
    budget: Budget,
    *,
    seed: int = 0,
    watch: Callable[[Frame], None] | None = None,
) -> Answers:
    """The best board of each puzzle: one that passes the check, then the most confident one."""
    found: Answers | None = None
    for frame in think(reasoner, clues, budget, seed=seed):
        if watch is not None:
            watch(frame)
        if found is None:
            found = _nothing(len(clues), frame.thought)
        found.row_steps.add_(torch.bincount(frame.puzzle, minlength=len(clues)))
        # Every row ends once.
        found.rows.add_(torch.bincount(frame.puzzle[frame.finished], minlength=len(clues)))
        _improve(found, frame)
        if budget.halt == "verified":
            # Without a right board all steps were taken for nothing.
            left = frame.finished & ~found.verified[frame.puzzle]
            found.steps[frame.puzzle[left]] = frame.step
    assert found is not None
    return found


def _most_steps(reasoner: Reasoner, budget: Budget) -> int:
    return min(budget.steps, reasoner.most_steps or budget.steps)


def _expand(
    puzzles: int, budget: Budget, device: torch.device
) -> tuple[Int64[Tensor, "rows"], ...]:
    """Which puzzle, view and sample each row is."""
    grid = torch.meshgrid(
        torch.arange(puzzles, device=device),
        torch.arange(budget.views, device=device),
        torch.arange(budget.samples, device=device),
        indexing="ij",
    )
    return tuple(index.flatten() for index in grid)


def _puzzle_keys(clues: UInt8[Tensor, "puzzles cells"], seed: int) -> Int64[Tensor, "puzzles"]:
    """A key from what the puzzle is, not from where in the batch it stands."""
    cells = torch.arange(clues.shape[1], device=clues.device) * 32
    content = chance.scramble(cells + clues.long()).sum(dim=1)
    return chance.fork(content, chance.scramble_int(seed))


def _mapped_back(thought: Thought, views: Symmetries) -> Thought:
    events = thought.events
    if events is not None:
        kind, cell, digit = events.unbind(dim=1)
        cell = torch.where(cell < 0, cell, views.undo_cells(cell.clamp(min=0)))
        events = torch.stack([kind, cell, views.undo_digits(digit)], dim=1)
    return replace(
        thought,
        beliefs=views.undo_beliefs(thought.beliefs),
        board=views.undo(thought.board),
        events=events,
    )


def _nothing(puzzles: int, like: Thought) -> Answers:
    """No answer yet."""
    steps, rows, row_steps = torch.zeros(
        3, puzzles, dtype=torch.int64, device=like.board.device
    ).unbind()
    return Answers(
        board=like.board.new_zeros(puzzles, like.board.shape[1]),
        verified=like.halted.new_zeros(puzzles),
        confidence=like.confidence.new_full((puzzles,), float("-inf"), dtype=torch.float32),
        energy=like.confidence.new_full((puzzles,), float("nan"), dtype=torch.float32),
        steps=steps,
        rows=rows,
        row_steps=row_steps,
    )


def _improve(found: Answers, frame: Frame) -> None:
    """Let boards that are finished take the place of worse ones."""
    rows = frame.finished.nonzero()[:, 0]
    confidence = frame.thought.confidence.float()
    # The best row of each puzzle comes first; of equals, the first row.
    rows = rows[confidence[rows].argsort(descending=True, stable=True)]
    rows = rows[frame.verified[rows].long().argsort(descending=True, stable=True)]
    rows = rows[frame.puzzle[rows].argsort(stable=True)]
    puzzle = frame.puzzle[rows]
    first = torch.ones_like(puzzle, dtype=torch.bool)
    first[1:] = puzzle[1:] != puzzle[:-1]
    rows, puzzle = rows[first], puzzle[first]
    was, now = found.verified[puzzle], frame.verified[rows]
    surer = confidence[rows] > found.confidence[puzzle]
    better = (found.steps[puzzle] == 0) | (now & ~was) | ((now == was) & surer)
    rows, puzzle = rows[better], puzzle[better]
    found.board[puzzle] = frame.thought.board[rows]
    found.verified[puzzle] = frame.verified[rows]
    found.confidence[puzzle] = confidence[rows]
    if frame.thought.energy is not None:
        found.energy[puzzle] = frame.thought.energy[rows].float()
    found.steps[puzzle] = frame.step
