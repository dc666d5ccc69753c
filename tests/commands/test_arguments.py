"""Mistakes on the command line: one line each that says what is wrong and what to do."""

import re

import pytest

from boards import PUZZLE
from command_line import Ronri
from ronri.commands.arguments import meant

SOLVE, GENERATE = f"solve {PUZZLE}", "data generate a.ronri --count 3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"{SOLVE} --stepz 3", "unknown option --stepz for solve (did you mean --steps?)"),
        (f"{SOLVE} --stepz=3", "unknown option --stepz for solve (did you mean --steps?)"),
        (f"{SOLVE} -x", "unknown option -x for solve;"),
        (f"{SOLVE} more", "solve cannot make sense of 'more'"),
        ("solve", "solve needs PUZZLE"),
        # What is unknown explains what is missing.
        ("data generate a.ronri --cont 3", "unknown option --cont for data generate (did you mean"),
        ("data generate", "data generate needs FILE and --count"),
        ("data generate a.ronri --count", "--count needs a value"),
        ("data generate a.ronri --count many", "--count is a whole number, not 'many'"),
        (f"{GENERATE} --guesses some", "--guesses is a number, not 'some'"),
        (f"{GENERATE} --kind soft", "--kind is 'clues', 'minimal', 'tricky', 'hard', not 'soft'"),
        ("train trm --batch large", "--batch is a whole number or auto, not 'large'"),
        ("train trm --optim.betas 0.9", "--optim.betas needs 2 values"),
        ("train trm --lr 3", "unknown option --lr for train trm (did you mean --optim.lr?)"),
        ("train trm --model.max-steps 1", "max_steps is at least 2"),
    ],
)
def test_a_mistake_is_one_line(ronri: Ronri, arguments: str, message: str) -> None:
    found = ronri(*arguments.split(), status=2)
    assert message in found
    assert found.endswith(" --help` tells more\n")


def test_a_choice_that_may_be_left_out_is_not_none(ronri: Ronri) -> None:
    found = ronri("solve", "1", "--halt", "never", status=2)
    told = re.fullmatch(r"ronri: --halt is (.*), not 'never'; .*\n", found)
    assert told
    assert sorted(told[1].split(", ")) == ["'fixed'", "'own'", "'verified'"]


@pytest.mark.parametrize("width", ["30", "200"])
def test_the_line_does_not_depend_on_the_screen(
    ronri: Ronri, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("FORCE_COLOR", "1")
    message = ronri(*f"{GENERATE} --guesses some".split(), status=2)
    assert message == (
        "ronri: --guesses is a number, not 'some'; `ronri data generate --help` tells more\n"
    )


def test_options_may_be_written_with_underscores(ronri: Ronri) -> None:
    message = ronri("train", "trm", "--optim.weight_decay", "heavy", status=2)
    assert "--optim.weight-decay is a number, not 'heavy'" in message


def test_a_guess_at_what_was_meant() -> None:
    known = ["--optim.lr", "--model.width", "--steps", "-h"]
    assert meant("--lr", known) == " (did you mean --optim.lr?)"
    assert meant("--step", known) == " (did you mean --steps?)"
    assert meant("--nonsense", known) == ""
