"""Boards in the terminal: still, and while a solver works on them."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ronri.data.describe import Description
from ronri.sudoku.board import to_text
from ronri.sudoku.exact import Step
from ronri.sudoku.geometry import SYMBOLS, Geometry, geometry_of

CLUE, FOUND, FRESH, GUESS, WRONG = "bold", "cyan", "bold green", "bold yellow", "bold red"

# How much of the search stands beside the board: as many lines as a 9x9 board has.
LINES_OF_SEARCH = 13
# What a board and a search of usual depth need.
_ROOM_FOR_SEARCH = 64


def draw(
    board: np.ndarray,
    clues: np.ndarray,
    *,
    before: np.ndarray | None = None,
    guess: int | None = None,
    wrong: int | None = None,
) -> Text:
    """A board as text: clues bold, digits that were not in `before` green, one cell marked."""
    drawn, cell = Text(), 0
    for character in to_text(board):
        if character not in SYMBOLS:
            drawn.append(character, style="dim")
            continue
        if cell == wrong:
            style = WRONG
        elif cell == guess:
            style = GUESS
        elif clues[cell]:
            style = CLUE
        elif before is not None and board[cell] and not before[cell]:
            style = FRESH
        else:
            style = FOUND if board[cell] else "dim"
        drawn.append(character, style=style)
        cell += 1
    return drawn


def search_line(step: Step, geometry: Geometry) -> Text:
    """One line of a search: the guess, indented by the guesses it stands on."""
    placement = f"{geometry.cell_name(step.cell)} = {SYMBOLS[step.digit]}"
    if step.kind == "guess":
        return Text("│ " * (step.depth - 1) + f"? {placement}", style="yellow")
    return Text("│ " * step.depth + f"✗ {placement} is impossible", style="red")


@dataclass(frozen=True)
class Frame:
    """One picture of the solver at work: the board, and the search so far."""

    board: Text
    search: list[Text]


def frames(steps: Iterable[Step], clues: np.ndarray) -> Iterator[Frame]:
    """A picture of each step; `search` is one list that grows from frame to frame."""
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
            wrong=marked if step.kind == "refuted" else None,
        )
        yield Frame(board, search)
        before = step.board


def watch(
    steps: Iterable[Step], clues: np.ndarray, console: Console, *, delay: float = 0.12
) -> None:
    """Show the solver at work: in a terminal a moving picture, and everywhere the whole search."""
    search: list[Text] = []
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for frame in frames(steps, clues):
            search = frame.search
            if console.is_terminal:
                live.update(_picture(frame, console.width), refresh=True)
                time.sleep(delay)
    for line in search:
        console.print(line)


def _picture(frame: Frame, width: int) -> RenderableType:
    """The board, and beside it the end of the search if there is room."""
    if width < _ROOM_FOR_SEARCH:
        return frame.board
    picture = Table.grid(padding=(0, 3))
    picture.add_row(frame.board, Group(*frame.search[-LINES_OF_SEARCH:]))
    return picture


def description(name: str, found: Description, against: str | None, width: int) -> RenderableType:
    """What `ronri data describe` shows on a screen that is `width` characters wide."""
    known = Table.grid(padding=(0, 2))
    known.add_row("puzzles", f"{found.n:,} ({found.board})")
    for what, words in found.provenance.items():
        known.add_row(what, words)
    if len(found.sources) > 1 or "" not in found.sources:
        for source, n in found.sources.items():
            known.add_row("source", f"{source}: {n:,}")
    known.add_row("different up to symmetry", f"{found.distinct_puzzles:,}")
    known.add_row("solution grids up to symmetry", f"{found.distinct_solutions:,}")
    if found.mean_rating is not None:
        here = f" ({found.rated_here:,} rated here)" if found.rated_here else ""
        known.add_row("mean rating", f"{found.mean_rating:.2f}{here}")
    if found.overlap is not None:
        known.add_row(f"also in {against}", f"{found.overlap.puzzles:,} puzzles")
        known.add_row("with the same solution as one of it", f"{found.overlap.solutions:,} puzzles")
    clues = _histogram("clues", [(str(clues), n) for clues, n in found.clues.items()], width)
    ratings = _histogram("rating", [(c.label, c.n) for c in found.ratings], width)
    return Group(Text(name, style="bold"), known, Text(), clues, Text(), ratings)


def _histogram(what: str, bars: list[tuple[str, int]], width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(what, justify="right")
    table.add_column("puzzles", justify="right")
    table.add_column()
    longest = max((n for _, n in bars), default=0)
    room = max(5, min(40, width - 28))
    for label, n in bars:
        table.add_row(label, f"{n:,}", Text("█" * round(room * n / max(longest, 1)), style="cyan"))
    return table
