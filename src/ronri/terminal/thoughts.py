"""From frames of thinking to what is drawn of them: one row, compared with a step ago."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from ronri.sudoku.rules import units_satisfied
from ronri.terminal.boards import wrong_cells
from ronri.thinking import Frame


@final
@dataclass(frozen=True)
class Moment:
    """What one row thinks at one step, and how many others there are."""

    step: int
    clues: UInt8[np.ndarray, "cells"]
    board: UInt8[np.ndarray, "cells"]
    beliefs: Float32[np.ndarray, "cells digits"]
    # Cells whose digit is another one than a step ago, or, where the row began later, than what
    # another row had.
    changed: Bool[np.ndarray, "cells"]
    # Cells that break a rule. Seeing them takes the rules, not the answer.
    wrong: frozenset[int]
    # Units that hold every digit once.
    satisfied: int
    confidence: float
    halted: bool
    verified: bool
    # Rows that think now, and which view and sample is the one that is shown.
    rows: int
    view: int
    sample: int
    # Of what is shown, now and at every step before.
    energies: tuple[float, ...]
    # Kind, cell and digit.
    event: tuple[int, ...] | None

    @property
    def belief(self) -> float:
        """How much the cells without a clue are believed, on average."""
        empty = self.clues == 0
        return float(self.beliefs.max(axis=1)[empty].mean()) if empty.any() else 1.0


@final
class Observer:
    """Looks at the frames of one puzzle: a board that passes the check, else the surest row."""

    def __init__(self, clues: UInt8[np.ndarray, "cells"]) -> None:
        self._clues = clues
        self._boards: dict[tuple[int, int], np.ndarray] = {}
        self._shown: np.ndarray | None = None
        self._energies: tuple[float, ...] = ()

    def __call__(self, frame: Frame) -> Moment:
        thought = frame.thought
        merit = thought.confidence.float() + frame.verified * 1e9
        row = int(merit.argmax())
        boards = thought.board.cpu().numpy()
        names = list(zip(frame.view.tolist(), frame.sample.tolist(), strict=True))
        board = boards[row]
        # A row that has just begun is compared with what was shown last.
        before = self._boards.get(names[row], board if self._shown is None else self._shown)
        self._boards, self._shown = dict(zip(names, boards, strict=True)), board
        if thought.energy is not None:
            self._energies += (float(thought.energy[row]),)
        return Moment(
            step=frame.step,
            clues=self._clues,
            board=board,
            beliefs=thought.beliefs[row].float().cpu().numpy(),
            changed=board != before,
            wrong=wrong_cells(board, self._clues),
            satisfied=int(units_satisfied(board[None]).sum()),
            confidence=float(thought.confidence[row]),
            halted=bool(thought.halted[row]),
            verified=bool(frame.verified[row]),
            rows=len(boards),
            view=names[row][0],
            sample=names[row][1],
            energies=self._energies,
            event=None if thought.events is None else tuple(thought.events[row].tolist()),
        )
