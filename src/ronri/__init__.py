"""Ronri: a laboratory for neural reasoning.

Importing this package does nothing but make its modules reachable: no seeds, no devices,
no compilation. Look in `ronri.sudoku` for the game and in `ronri.data` for puzzles.
"""

__version__ = "0.1.0"
