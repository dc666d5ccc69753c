"""Boards in the terminal: still, and while a solver works on them."""

import time
from collections.abc import Iterable

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

# How much of the search stands beside the board, in lines.
_LINES_OF_SEARCH = 13


def draw(
    board: np.ndarray,
    clues: np.ndarray,
    *,
    before: np.ndarray | None = None,
    guess: int | None = None,
    wrong: int | None = None,
    geometry: Geometry | None = None,
) -> Text:
    """A board as text: clues bold, digits that were not in `before` green, one cell marked."""
    geometry = geometry_of(board, geometry)
    drawn, cell = Text(), 0
    for character in to_text(board, geometry):
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


def watch(
    steps: Iterable[Step], clues: np.ndarray, console: Console, *, delay: float = 0.12
) -> Step:
    """Show the solver at work; returns its last step.

    A terminal gets a moving picture and then the whole search; a pipe or a file only the search.
    """
    geometry = geometry_of(clues)
    lines: list[Text] = []
    if not console.is_terminal:
        for step in steps:
            if step.kind in ("guess", "refuted"):
                console.print(search_line(step, geometry))
        return step
    before = clues
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for step in steps:
            marked = step.cell if step.digit else None
            if marked is not None:
                lines.append(search_line(step, geometry))
            board = draw(
                step.board,
                clues,
                before=before,
                guess=marked if step.kind == "guess" else None,
                wrong=marked if step.kind == "refuted" else None,
            )
            live.update(_beside(board, lines[-_LINES_OF_SEARCH:]), refresh=True)
            before = step.board
            time.sleep(delay)
    for line in lines:
        console.print(line)
    return step


def _beside(board: Text, lines: list[Text]) -> RenderableType:
    """The board, and beside it the end of the search."""
    grid = Table.grid(padding=(0, 3))
    grid.add_row(board, Group(*lines))
    return grid


def description(name: str, found: Description) -> RenderableType:
    """What `ronri data describe` shows."""
    known = Table.grid(padding=(0, 2))
    known.add_row("puzzles", f"{found.n:,} ({found.board})")
    if len(found.sources) > 1 or "" not in found.sources:
        for source, n in found.sources.items():
            known.add_row("source", f"{source}: {n:,}")
    known.add_row("different up to symmetry", f"{found.distinct_puzzles:,}")
    known.add_row("solution grids up to symmetry", f"{found.distinct_solutions:,}")
    if found.mean_rating is not None:
        here = f" ({found.rated_here:,} rated here)" if found.rated_here else ""
        known.add_row("mean rating", f"{found.mean_rating:.2f} guesses{here}")
    if found.overlap is not None:
        known.add_row(f"also in {found.overlap.other}", f"{found.overlap.puzzles:,} puzzles")
        known.add_row("with a solution grid of it", f"{found.overlap.solutions:,} puzzles")
    clues = _histogram("clues", [(str(clues), n) for clues, n in found.clues.items()])
    ratings = _histogram(
        "guesses", [(f"{c.rating_min:g} to <{c.rating_max:g}", c.n) for c in found.ratings]
    )
    return Group(Text(name, style="bold"), known, Text(), clues, Text(), ratings)


def _histogram(what: str, bars: list[tuple[str, int]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(what, justify="right")
    table.add_column("puzzles", justify="right")
    table.add_column()
    longest = max((n for _, n in bars), default=0)
    for label, n in bars:
        table.add_row(label, f"{n:,}", Text("█" * round(40 * n / max(longest, 1)), style="cyan"))
    return table
