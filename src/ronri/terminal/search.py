"""The exact solver at work: the board, and beside it the search."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ronri.sudoku.exact import Step
from ronri.sudoku.geometry import SYMBOLS, Geometry, geometry_of
from ronri.terminal.boards import draw

# How much of the search stands beside the board: as many lines as a 9x9 board has.
LINES_OF_SEARCH = 13
# What a board and a search of usual depth need.
_ROOM_FOR_SEARCH = 64


def search_line(step: Step, geometry: Geometry) -> Text:
    """One line of a search: the guess, indented by the guesses it stands on."""
    placement = f"{geometry.cell_name(step.cell)} = {SYMBOLS[step.digit]}"
    if step.kind == "guess":
        return Text("│ " * (step.depth - 1) + f"? {placement}", style="yellow")
    return Text("│ " * step.depth + f"✗ {placement} is impossible", style="red")


@dataclass(frozen=True)
class Moment:
    """One picture of the solver at work: the board, and the search so far."""

    board: Text
    search: list[Text]


def moments(steps: Iterable[Step], clues: UInt8[np.ndarray, "cells"]) -> Iterator[Moment]:
    """A picture of each step; `search` is one list that grows from picture to picture."""
    geometry = geometry_of(clues)
    before, search = clues, []
    for step in steps:
        marked = step.cell if step.digit else None
        if marked is not None:
            search.append(search_line(step, geometry))
        board = draw(
            step.board,
            clues,
            before=before,
            guess=marked if step.kind == "guess" else None,
            wrong=() if marked is None or step.kind != "refuted" else (marked,),
        )
        yield Moment(board, search)
        before = step.board


def watch(
    steps: Iterable[Step],
    clues: UInt8[np.ndarray, "cells"],
    console: Console,
    *,
    delay: float = 0.12,
) -> None:
    """Show the solver at work: in a terminal a moving picture, and everywhere the whole search."""
    search: list[Text] = []
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for moment in moments(steps, clues):
            search = moment.search
            if console.is_terminal:
                live.update(picture(moment, console.width), refresh=True)
                time.sleep(delay)
    for line in search:
        console.print(line)


def picture(moment: Moment, width: int) -> RenderableType:
    """The board, and beside it the end of the search if there is room."""
    if width < _ROOM_FOR_SEARCH:
        return moment.board
    beside = Table.grid(padding=(0, 3))
    beside.add_row(moment.board, Group(*moment.search[-LINES_OF_SEARCH:]))
    return beside
