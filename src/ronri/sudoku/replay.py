"""The referee of traces: plays one back in plain Python and says where it breaks a rule.

This shares no code with the recorder but the vocabulary, so that the two check each other.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import numpy as np
from jaxtyping import Int, UInt8

from ronri.sudoku.geometry import NINE, Geometry
from ronri.sudoku.trace import Vocabulary


@dataclass(frozen=True)
class Replay:
    """What the referee says about a trace."""

    valid: bool  # no token breaks a rule; a trimmed trace is valid, but not solved
    error: str | None  # the first token that does, and why
    error_at: int | None  # its index
    board: UInt8[np.ndarray, "cells"]  # at the end, or where the error is
    solved: bool  # `success` was reached
    num_pushes: int
    num_pops: int
    max_depth: int


def replay(tokens: Int[np.ndarray, "length"], *, geometry: Geometry | None = None) -> Replay:
    """Check a trace token by token (9x9 unless told otherwise)."""
    words = Vocabulary(geometry or NINE)
    referee = _Referee(words)
    error = error_at = None
    for position, token in enumerate(tokens.tolist()):
        reason = referee.take(token)
        if reason is not None:
            name = words.text(token) if 0 <= token < words.num_tokens else str(token)
            error, error_at = f"token {position}, {name}: {reason}", position
            break
    else:
        if referee.stage == "clues":
            error, error_at = f"token {len(tokens)}: the trace has no [clues_end]", len(tokens)
    return Replay(
        valid=error is None,
        error=error,
        error_at=error_at,
        board=np.array(referee.board, np.uint8),
        solved=referee.solved,
        num_pushes=referee.num_pushes,
        num_pops=referee.num_pops,
        max_depth=referee.max_depth,
    )


@dataclass
class _Branch:
    """A guess that may be undone: the board before it, its cell, and what was tried there."""

    board: list[int]
    homes: list[set[int]]
    cell: int
    tried: set[int] = field(default_factory=set)


class _Referee:
    """The rules of a trace, in plain Python on sets of cells.

    Slow on purpose, and with nothing in common with the recorder, so that it can judge it.
    `homes[d]` are the cells where digit d stands or may still stand.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        geometry = vocabulary.geometry
        self.words = vocabulary
        self.digits = range(1, geometry.size + 1)
        self.units = [frozenset(unit) for unit in geometry.units.tolist()]
        self.peers = [frozenset(cells) for cells in geometry.peers.tolist()]
        self.units_of = [[self.units[u] for u in three] for three in geometry.units_of.tolist()]
        self.board = [0] * geometry.cells
        self.homes = [set[int](), *(set(range(geometry.cells)) for _ in self.digits)]

        self.stage: Literal["clues", "search", "guess", "over"] = "clues"
        self.branches: list[_Branch] = []
        self.failed = False  # a contradiction, or a cell without a candidate left to try
        self.reopened: _Branch | None = None  # just popped, with candidates left to try
        self.solved = False
        self.num_pushes = self.num_pops = self.max_depth = 0

    def take(self, token: int) -> str | None:
        """Play one token. Returns what is wrong with it, or None."""
        words = self.words
        if not 0 <= token < words.num_tokens:
            return "there is no such token"
        if self.stage == "over":
            return None if token == words.pad else "only padding follows the end of a trace"
        if token < words.num_placements:
            cell, digit = divmod(token, len(self.digits))
            return self._placement(cell, digit + 1)
        if self.stage == "guess":
            return "a push is followed by a placement"
        if self.stage == "clues":
            if token != words.clues_end:
                return "it comes before [clues_end]"
            self.stage = "search"
            return None
        if token == words.push:
            return self._push()
        if token == words.pop:
            return self._pop()
        if token == words.success:
            if 0 in self.board:
                return "the board is not solved"
            self.stage, self.solved = "over", True
            return None
        if token == words.pad:
            if self.branches or not self.failed:
                return "padding before the end of the trace"
            self.stage = "over"
            return None
        return "there is one [clues_end] already"

    def _placement(self, cell: int, digit: int) -> str | None:
        if self.stage == "search" and self.failed:
            return "the branch has failed, so a pop must follow"
        if self.stage == "search" and self.reopened is not None:
            return "after a pop, the next candidate is pushed"
        if self.board[cell]:
            return f"the cell holds {self.board[cell]} already"
        if cell not in self.homes[digit]:
            return f"its row, column or box holds {digit} already"
        if self.stage == "search" and not self._is_forced(cell, digit):
            return "the placement is not forced"
        if self.stage == "guess":
            reason = self._guess(cell, digit)
            if reason is not None:
                return reason
        self._place(cell, digit)
        return None

    def _place(self, cell: int, digit: int) -> None:
        self.board[cell] = digit
        self.homes[digit] -= self.peers[cell]
        lost = [other for other in self._candidates(cell) if other != digit]
        for other in lost:
            self.homes[other].remove(cell)
        # This digit may have lost its place in any unit, the others only in the units of the cell.
        self.failed = (
            self.failed
            or len(set().union(*self.homes)) < len(self.board)
            or any(map(self.homes[digit].isdisjoint, self.units))
            or any(any(map(self.homes[d].isdisjoint, self.units_of[cell])) for d in lost)
        )

    def _candidates(self, cell: int) -> list[int]:
        return [digit for digit in self.digits if cell in self.homes[digit]]

    def _is_forced(self, cell: int, digit: int) -> bool:
        naked = self._candidates(cell) == [digit]
        return naked or any(self.homes[digit] & unit == {cell} for unit in self.units_of[cell])

    def _find_forced(self) -> str | None:
        """The name of any forced placement."""
        for digit in self.digits:
            for unit in self.units:
                places = self.homes[digit] & unit
                if len(places) == 1 and not self.board[min(places)]:
                    return self.words.text(self.words.placement(min(places), digit))
        for cell, count in self._num_candidates().items():
            if count == 1:
                return self.words.text(self.words.placement(cell, self._candidates(cell)[0]))
        return None

    def _num_candidates(self) -> dict[int, int]:
        """How many candidates each empty cell has."""
        counts = Counter(chain.from_iterable(self.homes))
        return {cell: counts[cell] for cell, digit in enumerate(self.board) if not digit}

    def _push(self) -> str | None:
        if self.failed:
            return "the branch has failed, so a pop must follow"
        if 0 not in self.board:
            return "the board is full"
        if self.reopened is None and (forced := self._find_forced()) is not None:
            return f"{forced} is forced, so there is no need to guess"
        self.stage = "guess"
        self.num_pushes += 1
        return None

    def _guess(self, cell: int, digit: int) -> str | None:
        branch = self.reopened
        if branch is None:
            counts = self._num_candidates()
            if counts[cell] > min(counts.values()):
                return "another cell has fewer candidates"
            branch = _Branch(self.board, self.homes, cell)
        elif branch.cell != cell:
            return "after a pop, the guess goes on at the same cell"
        elif digit in branch.tried:
            return f"{digit} has failed in this cell already"
        branch.tried.add(digit)
        self.branches.append(branch)
        self.max_depth = max(self.max_depth, len(self.branches))
        self.board, self.homes = list(branch.board), [set(home) for home in branch.homes]
        self.reopened, self.stage = None, "search"
        return None

    def _pop(self) -> str | None:
        if not self.branches:
            return "there is no push to undo"
        if not self.failed:
            return "there is no contradiction to undo"
        branch = self.branches.pop()
        self.board, self.homes = branch.board, branch.homes
        self.failed = branch.tried.issuperset(self._candidates(branch.cell))
        self.reopened = None if self.failed else branch
        self.num_pops += 1
        return None
