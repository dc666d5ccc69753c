"""Thinking: when it ends, which board wins, what it cost; frames that go away."""

import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from puppets import PUZZLES, SOLUTIONS, Puppet, State, thought_of
from ronri.reasoner import Budget, Thought
from ronri.sudoku import exact
from ronri.thinking import Frame, answer, think


def scripted(
    right: list[str], *, halts: list[int] | None = None, sure: list[float] | None = None
) -> Puppet:
    """Each row has a script: `.x.` is wrong, right and wrong again, and stays as it ends.

    A row halts from step `halts` on, and is as sure as `sure` says. Wrong boards tell which row
    they are of. Rows of the first half think about the first puzzle; all of them begin together.
    """

    def mind(state: State) -> Thought:
        script = [right[row] for row in state.row.tolist()]
        now = torch.tensor([text[min(state.step, len(text)) - 1] == "x" for text in script])
        solutions = SOLUTIONS[state.row * len(SOLUTIONS) // len(right)]
        wrong = (state.row[:, None] % 4 + 1).expand_as(solutions).to(torch.uint8)
        return thought_of(
            torch.where(now[:, None], solutions, wrong),
            halted=state.step >= torch.tensor(halts or [99] * len(right))[state.row],
            confidence=torch.tensor(sure or [0.0] * len(right))[state.row],
        )

    return Puppet(mind)


# When thinking ends.


def test_fixed_thinking_takes_every_step_and_the_last_board() -> None:
    puppet = scripted([".x..", "...x"], halts=[1, 1])
    frames = list(think(puppet, PUZZLES, Budget(steps=4)))
    assert [frame.step for frame in frames] == [1, 2, 3, 4]
    assert [frame.verified.tolist() for frame in frames][1] == [True, False]
    assert [frame.finished.any().item() for frame in frames] == [False, False, False, True]
    found = answer(puppet, PUZZLES, Budget(steps=4))
    # The first was right once: that does not count.
    assert found.verified.tolist() == [False, True]
    assert torch.equal(found.board[1], SOLUTIONS[1])
    assert found.steps.tolist() == [4, 4]
    assert found.rows.tolist() == [1, 1]
    assert found.row_steps.tolist() == [4, 4]


def test_rows_that_halt_by_themselves_are_dropped() -> None:
    puppet = scripted(["..x.", "x...", ".x..", "...."], halts=[3, 1, 2, 9], sure=[0.0, 1, 2, 3])
    budget = Budget(steps=5, samples=2, halt="own")
    frames = list(think(puppet, PUZZLES, budget))
    assert [frame.sample.tolist() for frame in frames] == [
        [0, 1, 0, 1],
        [0, 0, 1],
        [0, 1],
        [1],
        [1],
    ]
    assert [frame.puzzle.tolist() for frame in frames] == [
        [0, 0, 1, 1],
        [0, 1, 1],
        [0, 1],
        [1],
        [1],
    ]
    assert frames[-1].finished.all()
    found = answer(puppet, PUZZLES, budget)
    # Both rows of the first puzzle were right when they halted, the second of them surer.
    assert found.verified.tolist() == [True, True]
    assert found.steps.tolist() == [1, 2]
    assert found.rows.tolist() == [2, 2]
    assert found.row_steps.tolist() == [3 + 1, 2 + 5]


def by_turns(plain: list[str], noisy: list[list[str]], sure: tuple[float, float]) -> Puppet:
    """A script for the plain row of each puzzle, and one for each of its rows with noise.

    Plain rows are as sure as `sure` says first, and noisy ones as it says then. Wrong boards have 1
    everywhere in plain rows, 2 in noisy ones.
    """

    def mind(state: State) -> Thought:
        number = [0, 0]
        boards, confidence = [], []
        for seen, loud in zip(state.seen, state.noise.loud.tolist(), strict=True):
            puzzle = int(torch.equal(seen, PUZZLES[1]))
            script = noisy[puzzle][number[puzzle]] if loud else plain[puzzle]
            number[puzzle] += loud
            right = script[min(state.step, len(script)) - 1] == "x"
            boards.append(SOLUTIONS[puzzle] if right else torch.full((16,), 1 + loud))
            confidence.append(sure[loud])
        return thought_of(torch.stack(boards).to(torch.uint8), confidence=torch.tensor(confidence))

    return Puppet(mind)


def test_a_puzzle_ends_when_its_board_is_right() -> None:
    puppet = scripted(["..x", "..."], halts=[1, 1])
    budget = Budget(steps=6, halt="verified")
    frames = list(think(puppet, PUZZLES, budget))
    assert [frame.puzzle.tolist() for frame in frames] == [[0, 1]] * 3 + [[1]] * 3
    assert frames[2].finished.tolist() == [True, False]
    found = answer(puppet, PUZZLES, budget)
    assert found.verified.tolist() == [True, False]
    assert torch.equal(found.board[0], SOLUTIONS[0])
    assert found.steps.tolist() == found.row_steps.tolist() == [3, 6]


def test_other_rows_help_where_the_plain_one_fails_and_end_together() -> None:
    puppet = by_turns(["..x", "...."], [["x", "x"], ["...", ".x."]], (0.0, 0.0))
    budget = Budget(steps=4, samples=3, halt="verified")
    frames = list(think(puppet, PUZZLES, budget))
    assert [frame.step for frame in frames] == [1, 2, 3, 4, 5, 6]
    assert [frame.puzzle.tolist() for frame in frames] == [[0, 1]] * 3 + [[1]] + [[1, 1]] * 2
    assert [frame.sample.tolist() for frame in frames] == [[0, 0]] * 3 + [[0]] + [[1, 2]] * 2
    assert [frame.finished.tolist() for frame in frames[3:]] == [[True], [False] * 2, [True] * 2]
    found = answer(puppet, PUZZLES, budget)
    assert found.verified.tolist() == [True, True]
    assert torch.equal(found.board, SOLUTIONS)
    assert found.steps.tolist() == [3, 4 + 2]
    assert found.rows.tolist() == [1, 3]
    assert found.row_steps.tolist() == [3, 4 + 2 * 2]


@pytest.mark.parametrize(("sure", "winner"), [((2.0, 1.0), 1), ((1.0, 2.0), 2), ((1.0, 1.0), 1)])
def test_where_no_row_is_right_the_surest_board_wins(
    sure: tuple[float, float], winner: int
) -> None:
    puppet = by_turns(["..", ".."], [["..."] * 3] * 2, sure)
    found = answer(puppet, PUZZLES, Budget(steps=3, samples=4, halt="verified"))
    assert not found.verified.any()
    assert (found.board == winner).all()
    assert found.confidence.tolist() == [max(sure)] * 2
    assert found.steps.tolist() == [6, 6]
    assert found.rows.tolist() == [4, 4]
    assert found.row_steps.tolist() == [12, 12]


def test_another_view_may_be_right_where_the_puzzle_as_it_is_was_not() -> None:
    """The row that sees the puzzle as it is says nothing; the others say the solution they see."""
    seen_first: list[Tensor] = []

    def mind(state: State) -> Thought:
        seen_first.append(state.seen)
        if len(seen_first) == 1:
            return thought_of(torch.zeros_like(state.seen))
        return thought_of(torch.from_numpy(exact.solve(state.seen.numpy()).solutions.copy()))

    budget = Budget(steps=1, views=2, halt="verified")
    found = answer(Puppet(mind), PUZZLES, budget)
    assert not torch.equal(*seen_first)
    assert torch.equal(found.board, SOLUTIONS)
    assert found.verified.all()
    assert found.steps.tolist() == found.rows.tolist() == [2, 2]


def test_no_reasoner_thinks_longer_than_makes_sense() -> None:
    puppet = scripted(["....", "...."])
    puppet.most_steps = 2
    frames = list(think(puppet, PUZZLES, Budget(steps=5)))
    assert [frame.finished.all().item() for frame in frames] == [False, True]
    assert len(list(think(puppet, PUZZLES, Budget(steps=1)))) == 1


# Which board wins.


@pytest.mark.parametrize(
    ("right", "sure", "winner"),
    [
        ("..x.", [3.0, 2.0, 1.0, 0.0], 2),
        (".xx.", [3.0, 0.5, 1.0, 0.0], 2),
        ("....", [0.0, 1.0, 2.0, -1.0], 2),
        ("....", [1.0, 2.0, 2.0, 2.0], 1),
        ("xx..", [0.0, 0.0, 5.0, 5.0], 0),
        ("....", [float("-inf")] * 4, 0),
    ],
)
def test_valid_boards_win_then_sure_ones_then_the_first(
    right: str, sure: list[float], winner: int
) -> None:
    puppet = scripted([*right, *"...."], sure=[*sure, *sure])
    found = answer(puppet, PUZZLES, Budget(steps=2, samples=4))
    frame = list(think(puppet, PUZZLES, Budget(steps=2, samples=4)))[-1]
    assert found.verified[0] == (right[winner] == "x")
    assert found.confidence[0] == sure[winner]
    assert torch.equal(found.board[0], frame.thought.board[winner])


def test_a_later_board_must_be_better() -> None:
    budget = Budget(steps=3, samples=2, halt="own")
    for right, sure, step in (
        (["...", "..."], [1.0, 1.0], 1),
        (["...", "..."], [1.0, 2.0], 3),
        (["x..", "..."], [1.0, 2.0], 1),
        (["...", "..x"], [2.0, 1.0], 3),
        (["x..", "..x"], [1.0, 2.0], 3),
        (["...", "..."], [float("-inf"), float("-inf")], 1),
    ):
        puppet = scripted([*right, "...", "..."], halts=[1, 3, 1, 1], sure=[*sure, 0.0, 0.0])
        assert answer(puppet, PUZZLES, budget).steps[0] == step


@pytest.mark.parametrize("halt", ["fixed", "own", "verified"])
def test_a_board_that_changes_a_clue_is_never_verified(halt: Any) -> None:
    """The board of another puzzle is a perfect grid, and wrong."""
    swapped = Puppet(
        lambda state: thought_of(SOLUTIONS.flip(0)[state.row], confidence=torch.ones(2))
    )
    found = answer(swapped, PUZZLES, Budget(steps=2, halt=halt))
    assert not found.verified.any()
    assert torch.equal(found.board, SOLUTIONS.flip(0))
    # Nor is a board with nothing in it, and nothing is pasted in.
    silent = Puppet(lambda state: thought_of(torch.zeros_like(state.seen)))
    found = answer(silent, PUZZLES, Budget(steps=1, halt=halt))
    assert not found.verified.any()
    assert not found.board.any()


# Frames.


@pytest.mark.parametrize(("halt", "count"), [("fixed", 9), ("verified", 18)])
def test_frames_do_not_pile_up(halt: Any, count: int) -> None:
    puppet = by_turns(["."] * 2, [["."]] * 2, (0.0, 0.0))
    frames: list[weakref.ref[Frame]] = []
    thoughts: list[weakref.ref[Thought]] = []
    for frame in think(puppet, PUZZLES, Budget(steps=9, samples=2, halt=halt)):
        frames.append(weakref.ref(frame))
        thoughts.append(weakref.ref(frame.thought))
        del frame
        assert sum(ref() is not None for ref in frames) == 0
        assert sum(ref() is not None for ref in thoughts) <= 1
    assert len(frames) == count


def test_answers_can_be_watched() -> None:
    puppet = scripted([".x", "x."])
    watched: list[Frame] = []
    found = answer(puppet, PUZZLES, Budget(steps=2), watch=watched.append)
    assert [frame.step for frame in watched] == [1, 2]
    assert torch.equal(watched[-1].thought.board, found.board)


def test_budgets() -> None:
    assert Budget(steps=3, halt="own").one_pass
    assert not Budget(steps=3, halt="verified").one_pass
    assert not Budget(steps=3, samples=2).one_pass
    assert not Budget(steps=3, views=2).one_pass
    assert Budget(steps=3, halt="verified").depth == Budget(steps=3, samples=2).depth == 3
    assert Budget(steps=3, samples=2, halt="verified").depth == 6
    assert Budget(steps=3, views=2, halt="verified").depth == 6
    for steps, samples, views in ((0, 1, 1), (1, 0, 1), (1, 1, -1)):
        with pytest.raises(ValueError, match="at least 1"):
            Budget(steps=steps, samples=samples, views=views)
