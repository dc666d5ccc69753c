"""What is drawn of a network that thinks."""

import io
import re
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from rich.console import Console

from boards import PUZZLE, SOLUTION
from command_line import Config, Oracle
from ronri.reasoner import Budget
from ronri.sudoku.board import parse
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry
from ronri.terminal import pencil
from ronri.terminal.thoughts import Moment, Observer
from ronri.terminal.watching import FASTEST, FILM, SLOWEST, Watch, line, pace, picture
from ronri.thinking import Frame, answer, think

CLUES = parse(PUZZLE)
BUDGET = Budget(steps=8, halt="own")


def frames(clues: np.ndarray = CLUES, budget: Budget = BUDGET, needs: int = 4) -> list[Frame]:
    geometry = next(g for g in (FOUR, SIX, NINE) if g.cells == len(clues))
    oracle = Oracle(Config(needs=needs), geometry)
    return list(think(oracle, torch.from_numpy(clues[None]), budget))


def moments(clues: np.ndarray = CLUES, budget: Budget = BUDGET, needs: int = 4) -> list[Moment]:
    return list(map(Observer(clues), frames(clues, budget, needs)))


def brightness(colour: str) -> int:
    return sum(bytes.fromhex(colour.removeprefix("#")))


def rendered(moment: Moment, width: int, height: int, budget: Budget = BUDGET) -> str:
    screen = io.StringIO()
    console = Console(file=screen, width=width, height=height)
    console.print(picture(moment, budget, "oracle", width, height))
    return screen.getvalue()


def test_a_moment_is_what_can_be_seen_without_the_answer() -> None:
    first, second, third, last = moments()
    # All ones: every cell that is no clue breaks a rule, and every clue but 1 is not kept.
    assert (first.step, first.satisfied, first.verified, first.halted) == (1, 0, False, False)
    assert first.wrong == frozenset(range(81)) - {cell for cell in range(81) if CLUES[cell] == 1}
    assert not first.changed.any()
    ones = parse(SOLUTION)[CLUES == 0] == 1
    assert first.belief == pytest.approx(np.where(ones, 1.0, 0.75).mean())
    # Half and half: the first of equals is said.
    assert not second.changed.any()
    assert third.board.tolist() == parse(SOLUTION).tolist()
    assert third.changed.sum() == (parse(SOLUTION) != 1).sum()
    assert (third.satisfied, third.verified, third.halted) == (27, True, False)
    assert third.wrong == frozenset()
    assert (last.halted, last.confidence, last.belief) == (True, 1.0, 1.0)
    assert not last.changed.any()


def test_the_surest_row_is_shown_and_compared_with_itself() -> None:
    seen = moments(budget=Budget(steps=8, samples=3, halt="own"))
    assert [moment.rows for moment in seen] == [3, 3, 3, 3, 2]
    assert [moment.sample for moment in seen] == [0, 0, 0, 0, 1]
    # The quiet row has ended; the loud one is a step behind, and was right at the step before.
    assert not seen[-1].changed.any()


def test_rows_that_begin_later_are_shown_when_they_think() -> None:
    budget = Budget(steps=2, samples=3, halt="verified")
    seen = moments(budget=budget, needs=99)
    assert [moment.rows for moment in seen] == [1, 1, 2, 2]
    assert [moment.sample for moment in seen] == [0, 0, 1, 1]
    told = [line(moment, budget).plain for moment in seen]
    assert [text.split(", ")[0] for text in told] == [f"step {n} of 4" for n in (1, 2, 3, 4)]
    assert "rows 1 of 3 think" in told[0]
    assert "rows 2 of 3 think" in told[-1]


def test_a_row_that_begins_later_is_compared_with_what_was_shown() -> None:
    first, second = frames(budget=Budget(steps=1, samples=2, halt="verified"), needs=99)
    observe = Observer(CLUES)
    shown = observe(first)
    board = second.thought.board.clone()
    board[0, :5] = shown.board[0] % 9 + 1
    later = observe(replace(second, thought=replace(second.thought, board=board)))
    assert later.sample == 1
    assert later.changed.tolist() == (board[0].numpy() != shown.board).tolist()
    assert later.changed[:5].any()


def test_a_board_that_passes_the_check_comes_first() -> None:
    [frame] = frames(budget=Budget(steps=1, samples=2), needs=1)
    wrong = frame.thought.board.clone()
    wrong[0, 0] = 9
    confidence = torch.tensor([0.9, 0.1])
    thought = replace(frame.thought, board=wrong, confidence=confidence)
    thought.board[1] = torch.from_numpy(parse(SOLUTION))
    judged = replace(frame, thought=thought, verified=torch.tensor([False, True]))
    assert Observer(CLUES)(judged).sample == 1


def test_tiles_fade_with_belief_and_grow_when_decided() -> None:
    moment = moments()[0]
    cell = 2
    assert CLUES[cell] == 0
    beliefs = moment.beliefs.copy()
    beliefs[cell] = [0.0, 0.01, 0.05, 0.6, 0.3, 0.04, 0.0, 0.0, 0.0]
    board = moment.board.copy()
    board[cell] = 4
    undecided = replace(moment, beliefs=beliefs, board=board, wrong=frozenset())
    tile = pencil.tile(undecided, cell)
    assert not tile.decided
    assert list(tile.digits) == [3, 4, 5, 6]
    shades = {digit: brightness(colour) for digit, colour in tile.digits.items()}
    assert shades[4] > shades[5] > shades[3] >= shades[6] > brightness(tile.paper)
    beliefs[cell] = 0.005
    beliefs[cell, 3] = 0.96
    tile = pencil.tile(undecided, cell)
    assert tile.decided
    assert tile.digits == {4: pencil.SAID}


def test_tiles_tell_clues_changes_and_contradictions_apart() -> None:
    moment = moments()[-1]
    empty, clue = 2, 0
    assert pencil.tile(moment, clue).digits == {5: pencil.CLUE}
    assert pencil.tile(moment, empty).digits == {4: pencil.SAID}
    wrong = pencil.tile(replace(moment, wrong=frozenset({empty})), empty)
    assert (wrong.digits, wrong.paper) == ({4: pencil.WRONG}, pencil.TILE_WRONG)
    changed = pencil.tile(replace(moment, changed=np.arange(81) == empty), empty)
    assert (changed.digits, changed.paper) == ({4: pencil.CHANGED}, pencil.TILE_CHANGED)
    # A doubtful contradiction is written in red, on quiet paper.
    doubtful = moments()[0]
    assert empty in doubtful.wrong
    assert pencil.tile(doubtful, empty).paper in pencil.TILES
    # Nothing is said yet, and nothing is decided.
    board = moment.board.copy()
    board[empty] = 0
    assert not pencil.tile(replace(moment, board=board), empty).decided


@pytest.mark.parametrize("geometry", [FOUR, SIX, NINE], ids=lambda geometry: geometry.name)
def test_the_large_board_is_as_large_as_it_says(geometry: Geometry) -> None:
    clues = np.zeros(geometry.cells, np.uint8)
    for moment in moments(clues):
        lines = pencil.large(moment).plain.split("\n")
        columns, rows = pencil.extent(geometry)
        assert [len(line) for line in lines] == [columns] * rows


def test_the_picture_takes_the_room_there_is() -> None:
    moment = moments()[0]
    candidates, frame = "1 2", "┌───"
    beside = rendered(moment, 110, 40)
    assert "┃" in beside  # a large digit of a clue
    assert re.search(r"step +1 of 8", beside)
    below = rendered(moment, 80, 40)
    assert "┃" in below
    assert below.rstrip().splitlines()[-1].startswith("units")
    for width, height in ((80, 24), (60, 60), (30, 20)):
        small = rendered(moment, width, height)
        assert frame in small
        assert "┃" not in small
        assert candidates not in small
        assert ("step" in small) == (width >= 60)
        assert len(small.splitlines()) <= height


def test_what_stands_beside_the_board() -> None:
    first, *_, last = moments()
    assert line(first, BUDGET).plain.startswith("step 1 of 8, belief")
    assert "halts not yet" in line(first, BUDGET).plain
    assert line(last, BUDGET).plain.endswith("units 27 of 27 hold, halts sure, check ✓ passed")
    rows = Budget(steps=8, samples=3, views=2)
    assert "rows 1 of 6 think, shown view 1, sample 1" in line(first, rows).plain
    # Reasoners with more to say, and with a confidence that is no share.
    more = replace(first, energies=(8.0, 1.0, -12.5), event=(1, 10, 7), confidence=-3.25)
    assert "energy █▆▁ -12.5, event 1 r2c2 = 7" in line(more, BUDGET).plain
    assert "confidence -3.25," in line(more, BUDGET).plain
    assert line(replace(first, event=(2, -1, 0)), BUDGET).plain.endswith("event 2")


def test_watching_shows_a_picture_of_every_step() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=110, height=40)
    oracle = Oracle(Config(needs=4), NINE)
    with Watch(console, CLUES, BUDGET, "oracle", delay=0.0) as watch:
        answer(oracle, torch.from_numpy(CLUES[None]), BUDGET, watch=watch)
    for step in range(1, 5):
        assert f"{step} of 8" in screen.getvalue()
    assert "5 of 8" not in screen.getvalue()


def test_the_picture_of_the_readme_moves() -> None:
    path = Path(__file__).parents[2] / "docs" / "demo.py"
    spec = spec_from_file_location("demo", path)
    assert spec is not None
    assert spec.loader is not None
    demo = module_from_spec(spec)
    spec.loader.exec_module(demo)
    tree = ElementTree.fromstring(demo.svg(moments(), "oracle"))
    pictures = [element for element in tree if element.tag.endswith("}g")]
    assert len(pictures) == 4
    assert [picture.get("display") for picture in pictures] == ["none"] * 3 + [None]
    last = [text.text for text in pictures[-1] if text.get("class") == "l"]
    assert "".join(map(str, last)) == SOLUTION


def test_a_film_begins_slowly_and_is_over_in_time() -> None:
    for depth in (32, 128):
        paces = [pace(step, depth) for step in range(1, depth + 1)]
        assert sorted(paces, reverse=True) == paces
        assert sum(paces) == pytest.approx(FILM, rel=0.15)
        # Ten steps are no flicker.
        assert sum(paces[:10]) > 2.5
    assert pace(1, 1) == SLOWEST
    assert pace(5000, 5000) == FASTEST
