"""Boards and tables on the screen: still, and while a solver or a network works on them."""

from ronri.terminal.boards import CLUE, FOUND, WRONG, draw, wrong_cells
from ronri.terminal.tables import description

__all__ = ["CLUE", "FOUND", "WRONG", "description", "draw", "wrong_cells"]
