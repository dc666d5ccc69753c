"""A board as text, clues apart from what was found."""

from collections.abc import Callable, Container

import numpy as np
from jaxtyping import UInt8
from rich.style import Style
from rich.text import Text

from ronri.sudoku.board import to_text
from ronri.sudoku.geometry import SYMBOLS
from ronri.sudoku.rules import conflicts

CLUE, FOUND, FRESH, GUESS, WRONG = "bold", "cyan", "bold green", "bold yellow", "bold red"


def paint(
    board: UInt8[np.ndarray, "cells"],
    style_of: Callable[[int], str | Style],
    frame: str | Style = "dim",
) -> Text:
    """A board in its frame, each cell in its style."""
    drawn, cell = Text(), 0
    for character in to_text(board):
        if character in SYMBOLS:
            drawn.append(character, style_of(cell))
            cell += 1
        else:
            drawn.append(character, frame)
    return drawn


def draw(
    board: UInt8[np.ndarray, "cells"],
    clues: UInt8[np.ndarray, "cells"],
    *,
    before: UInt8[np.ndarray, "cells"] | None = None,
    guess: int | None = None,
    wrong: Container[int] = (),
) -> Text:
    """A board as text: clues bold, digits that were not in `before` green, some cells marked."""

    def style_of(cell: int) -> str:
        if cell in wrong:
            return WRONG
        if cell == guess:
            return GUESS
        if clues[cell]:
            return CLUE
        if before is not None and board[cell] and not before[cell]:
            return FRESH
        return FOUND if board[cell] else "dim"

    return paint(board, style_of)


def wrong_cells(
    board: UInt8[np.ndarray, "cells"], clues: UInt8[np.ndarray, "cells"]
) -> frozenset[int]:
    """Cells that break a rule, as anyone can see: a digit twice in a unit, or a clue changed.

    Of a digit and a clue that do not go together, it is the digit that is wrong.
    """
    twice = {cell for conflict in conflicts(board) for cell in conflict.cells}
    kept = np.flatnonzero((clues > 0) & (board == clues))
    changed = np.flatnonzero((clues > 0) & (board != clues))
    return frozenset((twice - set(kept.tolist())) | set(changed.tolist()))
