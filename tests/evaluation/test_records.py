"""Records and trials of a reasoner whose every answer is written down beforehand."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from boards import shifted_grid
from ronri.data.stream import Batch
from ronri.evaluation.figures import curves_of, draw
from ronri.evaluation.paired import pairs
from ronri.evaluation.records import Records, score
from ronri.evaluation.scores import scores
from ronri.evaluation.tables import operations, percent, thinking
from ronri.evaluation.trials import Puzzles, Trial, budgets, diagnosis, hold
from ronri.evaluation.work import measure
from ronri.loading import Loaded, load
from ronri.reasoner import Budget, Lesson, Noise, Reasoner, Thought
from ronri.sudoku.board import to_line
from ronri.sudoku.geometry import FOUR, SIX

SOLUTION = shifted_grid(FOUR)  # 1234 3412 2341 4123


def changed(cells: dict[int, int]) -> np.ndarray:
    """The solution with some cells changed."""
    board = SOLUTION.copy()
    for cell, digit in cells.items():
        board[cell] = digit
    return board


def puzzle(*empty: int) -> np.ndarray:
    return changed(dict.fromkeys(empty, 0))


# Two cells of the first row are swapped: the row and its box are whole, two columns are not.
SWAPPED = changed({0: 2, 1: 1})
# A valid grid in which every 1 is a 2 and every 2 a 1: it breaks no rule, but some clues.
RENAMED = np.array([0, 2, 1, 3, 4], np.uint8)[SOLUTION]

CLUES = np.stack([puzzle(0, 1, 2), puzzle(0, 1, 2, 3), puzzle(0, 1), puzzle(4, 5, 6, 7, 8)])
SOLUTIONS = np.stack([SOLUTION] * 4)
# What is said about each puzzle, step by step; after the last step it stays as it is.
SCRIPT = (
    (SOLUTION,),
    (SWAPPED,),
    (RENAMED,),
    (SWAPPED, SOLUTION),
)


@dataclass(frozen=True)
class State:
    which: Tensor
    step: int


class Scripted(Reasoner):
    """Plays what it is told to, and has no room for more than some rows."""

    usual_steps = 2

    def __init__(self, room: int = 1000) -> None:
        super().__init__(FOUR)
        self.room = room
        self.crowds: list[int] = []

    def training_step(self, batch: Batch, carry: Any, progress: Tensor) -> Lesson:
        raise NotImplementedError

    def diagnose(self, batch: Batch) -> dict[str, float]:
        return {"empty": float((batch.clues == 0).sum(dim=1).float().mean())}

    def begin(self, clues: Tensor, noise: Noise) -> State:
        del noise
        if len(clues) > self.room:
            raise torch.OutOfMemoryError("no room")
        self.crowds.append(len(clues))
        known = {to_line(CLUES[i]): i for i in range(len(CLUES))}
        return State(torch.tensor([known[to_line(row)] for row in clues.numpy()]), 0)

    def advance(self, state: State) -> tuple[State, Thought]:
        step = state.step
        plays = [SCRIPT[which] for which in state.which.tolist()]
        board = torch.tensor(np.stack([play[min(step, len(play) - 1)] for play in plays]))
        thought = Thought(
            beliefs=F.one_hot(board.long() - 1, 4).float(),
            board=board,
            halted=torch.tensor([step + 1 >= len(play) for play in plays]),
            confidence=state.which.float() / 10,
        )
        return State(state.which, step + 1), thought

    def keep(self, state: State, rows: Tensor) -> State:
        return State(state.which[rows], state.step)


def same(one: Records, other: Records) -> bool:
    names = [field.name for field in fields(Records) if field.name != "seconds"]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_records_by_hand() -> None:
    found = score(Scripted(), CLUES, SOLUTIONS, Budget(steps=2))
    assert found.solved.tolist() == [True, False, False, True]
    assert found.verified.tolist() == [True, False, False, True]
    # RENAMED keeps every rule and yet is no solution: clues of the third puzzle were changed.
    assert found.clues_kept.tolist() == [True, True, False, True]
    assert found.cells_right.tolist() == [3, 2, 0, 5]
    assert found.cells_empty.tolist() == [3, 4, 2, 5]
    assert found.units_satisfied.tolist() == [1, 10 / 12, 1, 1]
    assert found.steps.tolist() == [2, 2, 2, 2]
    assert found.row_steps.tolist() == [2, 2, 2, 2]
    np.testing.assert_array_equal(found.board, [SOLUTION, SWAPPED, RENAMED, SOLUTION])
    np.testing.assert_allclose(found.confidence, [0, 0.1, 0.2, 0.3], rtol=1e-6)
    assert found.seconds > 0


def test_scores_by_hand() -> None:
    found = scores(score(Scripted(), CLUES, SOLUTIONS, Budget(steps=2, halt="own")))
    assert (found.n, found.errors, found.puzzle_accuracy) == (4, 2, 0.5)
    assert found.puzzle_accuracy_ci95 == pytest.approx((0.1500, 0.8500), abs=5e-5)
    assert found.cell_accuracy == 10 / 14
    assert found.constraint_satisfaction == pytest.approx((3 + 10 / 12) / 4)
    assert (found.clues_kept, found.verified) == (0.75, 0.5)
    # Left to itself it says three of its boards at once.
    assert (found.mean_steps, found.row_steps_per_puzzle) == (5 / 4, 5 / 4)


def test_a_board_found_too_late_is_not_solved() -> None:
    assert score(Scripted(), CLUES, SOLUTIONS, Budget(steps=1)).solved.tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_all_rows_of_a_puzzle_are_counted() -> None:
    budget = Budget(steps=2, samples=3, halt="verified")
    found = score(Scripted(), CLUES, SOLUTIONS, budget)
    # The plain row of the first and the last is right; it is alone until it has failed.
    assert found.rows.tolist() == [1, 3, 3, 1]
    assert found.row_steps.tolist() == [1, 6, 6, 2]


@pytest.mark.parametrize("max_rows", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("samples", [1, 2])
def test_chunks_do_not_change_records(max_rows: int, samples: int) -> None:
    budget = Budget(steps=2, samples=samples, halt="own")
    whole = score(Scripted(), CLUES, SOLUTIONS, budget)
    reasoner, told = Scripted(), list[int]()
    parts = score(reasoner, CLUES, SOLUTIONS, budget, max_rows=max_rows, progress=told.append)
    assert same(whole, parts)
    # A puzzle's rows stay together, even where they are more than there should be.
    assert max(reasoner.crowds) <= max(max_rows, samples)
    assert told[-1] == 4
    assert told == sorted(set(told))


def test_records_of_parts_are_joined() -> None:
    budget = Budget(steps=2)
    whole = score(Scripted(), CLUES, SOLUTIONS, budget)
    parts = [
        score(Scripted(), CLUES[rows], SOLUTIONS[rows], budget)
        for rows in (slice(3), slice(3, 3), slice(3, None))
    ]
    joined = Records.joined(parts)
    assert same(whole, joined)
    assert len(parts[1]) == 0
    assert joined.seconds == sum(part.seconds for part in parts)


def test_what_does_not_fit_into_memory_is_halved() -> None:
    narrow = Scripted(room=3)
    found = score(narrow, CLUES, SOLUTIONS, Budget(steps=2, samples=1))
    assert same(found, score(Scripted(), CLUES, SOLUTIONS, Budget(steps=2)))
    assert narrow.crowds == [2, 2]


def test_one_puzzle_that_does_not_fit_is_told() -> None:
    with pytest.raises(ValueError, match=r"one puzzle \(4 rows\) needs more memory"):
        score(Scripted(room=3), CLUES, SOLUTIONS, Budget(steps=1, samples=4))


def test_nothing_cannot_be_scored() -> None:
    nothing = score(Scripted(), CLUES[:0], SOLUTIONS[:0], Budget(steps=1))
    with pytest.raises(ValueError, match="no puzzles"):
        scores(nothing)


class Counted(Reasoner):
    """Products whose operations can be counted by hand."""

    def __init__(self, *, right: bool = False) -> None:
        super().__init__(FOUR)
        self.board = torch.from_numpy(SOLUTION) if right else torch.ones(16, dtype=torch.uint8)
        self.a = nn.Parameter(torch.zeros(16, 7))
        self.b = nn.Parameter(torch.zeros(7, 64))

    def training_step(self, batch: Batch, carry: Any, progress: Tensor) -> Lesson:
        raise NotImplementedError

    @torch.no_grad()
    def begin(self, clues: Tensor, noise: Noise) -> Tensor:
        del noise
        return clues.to(self.compute_dtype) @ self.a

    @torch.no_grad()
    def advance(self, state: Tensor) -> tuple[Tensor, Thought]:
        heads = (state @ self.b).view(-1, 1, 16, 4)
        beliefs = F.scaled_dot_product_attention(heads, heads, heads)[:, 0].softmax(dim=-1)
        nobody = torch.zeros(len(state), dtype=torch.bool)
        board = self.board.expand(len(state), -1)
        return state, Thought(beliefs, board, nobody, beliefs[:, 0, 0])

    def keep(self, state: Tensor, rows: Tensor) -> Tensor:
        return state[rows]


@pytest.mark.parametrize("puzzles", [1, 4])
def test_operations_are_counted(puzzles: int) -> None:
    work = measure(Counted(), CLUES[:puzzles])
    assert work is not None
    assert work.begin == 2 * 16 * 7
    # A product, and an attention of 16 cells to 16 cells over vectors of 4: scores, then values.
    assert work.advance == 2 * 7 * 64 + 2 * (2 * 16 * 16 * 4)
    assert work.flops(rows=3.0, row_steps=5.5) == 3 * work.begin + 5.5 * work.advance


@pytest.mark.parametrize(("right", "rows", "row_steps"), [(True, 1.0, 1.0), (False, 3.0, 6.0)])
def test_rows_that_never_begin_cost_nothing(right: bool, rows: float, row_steps: float) -> None:
    loaded = Loaded(Counted(right=right), "counted", "counted", None, None)
    work = measure(loaded.reasoner, CLUES)
    assert work is not None
    trial = hold(loaded, PUZZLES, Budget(steps=2, samples=3, halt="verified"))
    assert trial.scores.puzzle_accuracy == right
    assert trial.flops_per_puzzle == work.flops(rows, row_steps)


def test_counting_leaves_the_reasoner_alone() -> None:
    reasoner = Counted()
    reasoner.compute_dtype = torch.float64
    reasoner.double()
    measure(reasoner, CLUES)
    assert reasoner.compute_dtype == reasoner.a.dtype == torch.float64


def test_what_torch_does_not_see_is_not_counted() -> None:
    assert measure(load("exact", device="cpu", geometry=FOUR).reasoner, CLUES) is None


# Trials.

RATINGS = np.array([0, 3, np.nan, 60], np.float32)
PUZZLES = Puzzles("four", FOUR, CLUES, SOLUTIONS, RATINGS)


def scripted(name: str = "scripted") -> Loaded:
    return Loaded(Scripted(), name, "scripted", None, None)


def exact() -> Loaded:
    return load("exact", device="cpu", geometry=FOUR)


def test_a_trial_holds_together() -> None:
    trial = hold(scripted(), PUZZLES, Budget(steps=2, halt="own"))
    told = trial.to_json()
    assert told["puzzle_accuracy"] == 0.5
    assert told["flops_per_puzzle"] is None
    # The puzzle without a rating is in no class.
    assert [(s["rating_min"], s["rating_max"], s["n"]) for s in told["by_rating"]] == [
        (0.0, 0.5, 1),
        (2.0, 5.0, 1),
        (50.0, None, 1),
    ]
    lines = list(trial.lines())
    assert [line["rating"] for line in lines] == [0.0, 3.0, None, 60.0]
    assert [line["index"] for line in lines] == [0, 1, 2, 3]
    assert lines[0]["puzzle"] == "...4341223414123"
    assert lines[1]["board"] == "2134341223414123"
    assert [line["solved"] for line in lines] == [True, False, False, True]


def test_operations_of_a_trial_count_every_row() -> None:
    loaded = Loaded(Counted(), "counted", "counted", None, None)
    trial = hold(loaded, PUZZLES, Budget(steps=5, samples=2, views=3))
    work = measure(loaded.reasoner, CLUES)
    assert work is not None
    assert trial.flops_per_puzzle == 6 * work.begin + 30 * work.advance


def test_boards_of_another_size_are_refused() -> None:
    grid = shifted_grid(SIX)[None]
    other = Puzzles("six", SIX, grid, grid, np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="exact plays on 4x4 boards and six has 6x6 ones"):
        hold(exact(), other, Budget(steps=1))


def test_readings_are_averaged_over_puzzles() -> None:
    for max_rows in (1, 3, 100):
        found = diagnosis(Scripted(), PUZZLES, max_rows=max_rows)
        assert found["empty"] == pytest.approx(14 / 4)


def test_many_puzzles_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a processor thinks about at a time: how they spread is told of all."""
    monkeypatch.setattr(Scripted, "diagnose", lambda _, batch: {"read": float(len(batch.keys))})
    grid = shifted_grid(FOUR)[None].repeat(1500, axis=0)
    many = Puzzles("many", FOUR, grid, grid, np.zeros(1500, np.float32))
    found = diagnosis(Scripted(), many)
    assert found["read"] == pytest.approx((1024 * 1024 + 476 * 476) / 1500)


def test_budgets_are_combined_and_come_in_order() -> None:
    found = budgets(Scripted(), steps=(4, 1), samples=(1, 2), views=(1,), halt="own")
    assert [(b.steps, b.samples) for b in found] == [(1, 1), (1, 2), (4, 1), (4, 2)]
    assert {b.halt for b in found} == {"own"}
    assert [b.steps for b in budgets(Scripted())] == [2]
    # The exact solver takes one step, whatever it is allowed.
    assert [b.steps for b in budgets(exact().reasoner, steps=(1, 4, 16))] == [1]


def some_trials() -> list[Trial]:
    one = [hold(scripted(), PUZZLES, Budget(steps=steps)) for steps in (1, 2)]
    return [*one, hold(exact(), PUZZLES, Budget(steps=1))]


def test_pairs_are_tested_at_their_largest_budgets() -> None:
    trials = some_trials()
    [pair] = pairs(trials)
    assert pair.first is trials[1]
    assert pair.second is trials[2]
    # The exact solver finds some solution of puzzles that have several: compare what it found.
    ours, theirs = trials[1].records.solved, trials[2].records.solved
    assert pair.test.only_second == (theirs & ~ours).sum() > 0
    assert pair.to_json()["first_budget"]["steps"] == 2


def test_curves_run_along_what_varies() -> None:
    grid = [
        hold(scripted(), PUZZLES, Budget(steps=steps, samples=samples))
        for steps in (1, 2)
        for samples in (1, 3)
    ]
    curves = curves_of([*grid, *some_trials()[2:]])
    assert [(curve.label, len(curve.trials)) for curve in curves] == [
        ("scripted, 1 sample", 2),
        ("scripted, 3 samples", 2),
        ("exact", 1),
    ]
    assert curves[0].colour == curves[1].colour != curves[2].colour
    assert curves[0].line != curves[1].line
    # Where only samples vary they make one curve.
    assert [curve.label for curve in curves_of(grid[:2])] == ["scripted"]


def test_paths_are_shortened_where_they_stay_different() -> None:
    budget = Budget(steps=1)
    trials = [hold(scripted(name), PUZZLES, budget) for name in ("a/x", "b/x", "b/y")]
    assert [curve.label for curve in curves_of(trials)] == ["a/x", "b/x", "y"]


def test_figures_are_the_same_for_the_same_trials(tmp_path: Path) -> None:
    loaded = Loaded(Counted(), "counted", "counted", None, None)
    trials = [*some_trials(), hold(loaded, PUZZLES, Budget(steps=2))]
    png, svg = draw(trials, tmp_path / "new" / "one")
    assert png.read_bytes()[:4] == b"\x89PNG"
    again = draw(trials, tmp_path / "two")
    assert again[1].read_text() == svg.read_text()
    # Without operations there is no second panel.
    fewer = draw(some_trials(), tmp_path / "three")
    assert len(fewer[1].read_text()) < len(svg.read_text())


def test_numbers_are_written_for_people() -> None:
    assert percent(1.0) == "100.00%"
    assert percent(0.99999) == ">99.99%"
    assert percent(0.98764) == "98.76%"
    assert operations(1.52e9) == "1.52 GFLOP"
    assert operations(12.0) == "12 FLOP"
    assert operations(None) == "–"
    assert thinking(Budget(steps=1)) == "1 step"
    assert thinking(Budget(steps=1600, views=8)) == "1,600 steps, 8 views"
