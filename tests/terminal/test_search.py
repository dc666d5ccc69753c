"""The exact solver at work, on a screen."""

import io
import re

import pytest
from rich.console import Console

from boards import HARD
from ronri.sudoku.board import parse
from ronri.sudoku.exact import steps
from ronri.terminal.search import watch


@pytest.mark.parametrize("width", [40, 90])
def test_the_moving_picture_moves(width: int) -> None:
    """There are many pictures, on a narrow screen without the search beside them."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, height=40)
    watch(steps(parse(HARD)), parse(HARD), console, delay=0.0)
    shown = screen.getvalue()
    assert shown.count("┌") > 20
    beside = re.search(r"┐.*\? .*r8c7", shown) is not None
    assert beside == (width == 90)
