"""Ronri: a laboratory for neural reasoning.

Importing this package does nothing but make its modules reachable: no seeds, no devices,
no compilation. Look in `ronri.sudoku` for the game, in `ronri.data` for puzzles, and ask
`ronri.load` for a reasoner:

    ronri.load("trm").solve("53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ronri.loading import Loaded

__version__ = "0.1.0"


def load(name: str, **options: Any) -> "Loaded":
    """A reasoner by the name of released weights or by the folder of a model or a run."""
    from ronri import loading

    return loading.load(name, **options)
