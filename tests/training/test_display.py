"""A run to look at, on terminals of every kind and where there is none."""

import io
import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from ronri.training.display import Display, History, Status, Validation, line, picture

WEAK = Validation(100, {"puzzle_accuracy": 0.25, "cell_accuracy": 0.75})
STRONG = Validation(200, {"puzzle_accuracy": 0.5, "cell_accuracy": 0.875})
STATUS = Status(
    step=250,
    steps=1000,
    elapsed=3700.0,
    minutes=None,
    metrics={"loss": 0.125, "q_halt_loss": 3.5, "cell_accuracy": 0.625},
    learning_rates={"weights": 1e-4, "embeddings": 1e-2},
    validation=STRONG,
    best=STRONG,
    admitted=123_456,
    admitted_per_second=4321.0,
    ms_per_step=40.0,
)
HISTORIES = {name: History() for name in STATUS.metrics}


def shown(status: Status, width: int) -> str:
    console = Console(file=io.StringIO(), record=True, width=width, force_terminal=True)
    console.print(picture(status, HISTORIES, "trm · small", "cpu", width))
    return console.export_text()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_everything_is_on_the_picture(width: int) -> None:
    text = shown(STATUS, width)
    for words in (
        ["trm · small"],
        ["25 %"],
        ["step 250 of 1,000", "1:01:40 gone, 0:00:30 left"],
        ["123,456 puzzles admitted", "4,321 puzzles/s", "40 ms a step"],
        ["loss", "0.1250"],
        ["q halt loss", "3.500"],
        ["cell accuracy", "62.50 %"],
        ["validation", "now ★", "best"],
        ["puzzle accuracy", "50.00 %", "50.00 %"],
        ["weights", "1.00e-04"],
        ["embeddings", "1.00e-02"],
        ["cpu"],
    ):
        pattern = ".*".join(re.escape(word) for word in words)
        assert re.search(pattern, text), words
    assert {len(row) for row in text.splitlines()} == {width}


def test_the_star_is_for_the_best_only() -> None:
    text = shown(replace(STATUS, validation=replace(WEAK, step=240)), 80)
    assert "★" not in text
    assert re.search(r"puzzle accuracy +25\.00 % +50\.00 %", text)
    assert re.search(r"step +240 +200", text)


def test_before_the_first_validation_there_is_none() -> None:
    assert "validation" not in shown(replace(STATUS, validation=None, best=None), 80)


def test_a_run_ends_by_steps_or_by_time_whichever_comes_first() -> None:
    assert (STATUS.done, STATUS.seconds_left) == (0.25, 30)
    timed = replace(STATUS, steps=None, minutes=100.0)
    assert timed.done == pytest.approx(3700 / 6000)
    assert timed.seconds_left == pytest.approx(2300)
    assert str(line(timed)).startswith("step 250 (62 %)")
    both = replace(STATUS, minutes=62.0)
    assert both.seconds_left == 20
    assert both.done == pytest.approx(3700 / 3720)
    over = replace(STATUS, step=1001)
    assert (over.done, over.seconds_left) == (1, 0)
    assert "left" not in str(line(over))


def test_a_loss_that_is_no_number_is_shown_as_such() -> None:
    broken = replace(STATUS, metrics={"loss": math.nan})
    assert re.search(r"loss +nan", shown(broken, 80))
    assert "loss nan" in str(line(broken))


@given(
    st.lists(st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf]), max_size=700),
    st.integers(1, 60),
)
@example([0.0, 5e-324], 2)
def test_a_curve_has_room_for_any_history(values: list[float], width: int) -> None:
    history = History()
    for value in values:
        history.add(value)
    assert len(history.points) < History.most
    assert len(history.curve(width)) == min(width, len(history.points))


@given(st.integers(1, 1000), st.integers(2, 60))
def test_what_only_falls_is_drawn_falling(count: int, width: int) -> None:
    history = History()
    for i in range(count):
        history.add(1000 * 0.99**i)
    curve = history.curve(width)
    assert all(left >= right for left, right in pairwise(curve))
    if len(curve) > 1:
        assert (curve[0], curve[-1]) == ("█", "▁")


def test_a_terminal_shows_a_picture_and_keeps_two_lines() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=30, _environ={})
    with Display(console, "trm · small", "cpu") as display:
        display.update(replace(STATUS, step=249, elapsed=3600.0))
        before = file.tell()
        display.update(replace(STATUS, elapsed=3600.1))
        assert file.tell() == before  # too soon to draw again
        display.warn("the newest checkpoint is damaged")
        display.update(STATUS)
    output = file.getvalue()
    assert "step 249 of 1,000" in output
    assert "warning: the newest checkpoint is damaged" in output
    # The picture is wiped out at the end, line by line; what follows stays.
    left = output[output.rindex("\x1b[2K") :]
    assert "╭" not in left
    assert str(line(STATUS)) in left
    assert "best validation at step 200: puzzle accuracy 50.00 %" in left


@pytest.mark.parametrize("kind", ["no terminal", "dumb terminal"])
def test_a_log_gets_a_line_now_and_then(kind: str) -> None:
    file = io.StringIO()
    console = Console(
        file=file,
        force_terminal=kind == "dumb terminal",
        width=80,
        color_system=None,
        _environ={"TERM": "dumb"},
    )
    with Display(console, "trm · small", "cpu") as display:
        display.warn("look")
        for second in range(0, 150):
            validation = None if second < 70 else WEAK if second < 80 else STRONG
            status = replace(STATUS, step=second, elapsed=float(second), validation=validation)
            display.update(status)
    lines = file.getvalue().splitlines()
    assert lines[:2] == ["trm · small on cpu", "warning: look"]
    steps = [int(found[1]) for found in map(re.compile(r"step (\d+) of").match, lines) if found]
    # Every minute, at each validation, and at the end.
    assert steps == [0, 60, 70, 80, 140, 149]
    assert [text for text in lines if "validation" in text] == [
        "validation at step 100: puzzle accuracy 25.00 %, cell accuracy 75.00 %",
        "validation at step 200: puzzle accuracy 50.00 %, cell accuracy 87.50 %",
        "best validation at step 200: puzzle accuracy 50.00 %, cell accuracy 87.50 %",
    ]
    assert "\x1b" not in file.getvalue()


def test_a_terminal_shows_how_far_a_validation_is() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=40, _environ={})
    with Display(console, "trm · small", "cpu") as display:
        display.update(STATUS)
        drawn = file.tell()
        display.validating(64, 2048)
        below = file.getvalue()[drawn:]
        assert "step 250 of 1,000" in below  # the picture stays
        assert "validating: 64 of 2,048 puzzles" in below


def test_a_log_tells_now_and_then_how_far_a_validation_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("ronri.training.display.time.monotonic", lambda: now)
    file = io.StringIO()
    with Display(Console(file=file, color_system=None), "trm", "cpu") as display:
        display.update(STATUS)
        for done in range(10, 110, 10):
            now += 25.0
            display.validating(done, 100)
    told = [text for text in file.getvalue().splitlines() if text.startswith("validating")]
    # Whenever a minute has passed since the line before.
    assert told == [f"validating: {done} of 100 puzzles" for done in (30, 60, 90)]


def test_a_log_ends_with_its_last_line_once() -> None:
    file = io.StringIO()
    with Display(Console(file=file, color_system=None), "trm", "cpu") as display:
        display.update(STATUS)
    assert file.getvalue().count(str(line(STATUS))) == 1


def test_an_error_passes_through_and_the_last_line_is_left() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True)

    def train() -> None:
        with Display(console, "trm", "cpu") as display:
            display.update(STATUS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert "best validation" in file.getvalue()
