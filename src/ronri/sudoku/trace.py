"""Solving traces with guesses and backtracking: the words, the recorder and the referee.

A trace is what a person with a pencil might write down. First the clues, then `clues_end`, then
the events of the search: placements that are forced (naked and hidden singles), and, when nothing
is forced, a `push` followed by a guess at a cell with the fewest candidates. A contradiction is
followed by a `pop`, which takes the board back to where it was before that push; then the next
candidate of the same cell is pushed, the last one too although it is certain by then. When all of
them have failed, so has the branch around them, and another `pop` follows. `success` ends a trace.

The candidates of a cell are the digits that its row, column and box do not hold, nothing finer.
Whatever may be chosen freely is chosen uniformly at random: the next of the forced placements, the
cell to guess at, the order of its candidates.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import chain
from operator import index
from typing import Any, Literal, SupportsIndex

import numpy as np
from jaxtyping import Bool, Int, Int16, Int32, Int64, UInt8

from ronri.sudoku.geometry import NINE, Geometry, standard
from ronri.sudoku.kernels import tracing
from ronri.sudoku.kernels.compiled import spread

# A search is given up after this many tokens, about a tenth of a second. The longest of 72,000
# traces of hard puzzles had 18 thousand; a puzzle without a solution may need them all.
LIMIT = 1_000_000

_SPECIAL = ("[clues_end]", "[push]", "[pop]", "[success]", "[pad]")
_PLACEMENT = re.compile(r"\[R(\d+)C(\d+)=(\d+)\]")


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of one geometry: a placement for each cell and digit, then five special ones."""

    geometry: Geometry = NINE

    @cached_property
    def num_placements(self) -> int:
        return self.geometry.cells * self.geometry.size

    @cached_property
    def num_tokens(self) -> int:
        return self.num_placements + len(_SPECIAL)

    @cached_property
    def clues_end(self) -> int:
        return self.num_placements

    @cached_property
    def push(self) -> int:
        return self.num_placements + 1

    @cached_property
    def pop(self) -> int:
        return self.num_placements + 2

    @cached_property
    def success(self) -> int:
        return self.num_placements + 3

    @cached_property
    def pad(self) -> int:
        return self.num_placements + 4

    @cached_property
    def cell_of(self) -> Int64[np.ndarray, "tokens"]:
        """The cell of each placement, -1 for special tokens: `cell_of[tokens]`."""
        tokens = np.arange(self.num_tokens)
        return np.where(tokens < self.num_placements, tokens // self.geometry.size, -1)

    @cached_property
    def digit_of(self) -> Int64[np.ndarray, "tokens"]:
        """The digit of each placement, 0 for special tokens: `digit_of[tokens]`."""
        tokens = np.arange(self.num_tokens)
        return np.where(tokens < self.num_placements, tokens % self.geometry.size + 1, 0)

    def placement(self, cell: Any, digit: Any) -> Any:
        """The token that puts a digit in a cell: for two numbers, or for arrays of them."""
        return cell * np.int64(self.geometry.size) + digit - 1

    def is_placement(self, tokens: Any) -> Any:
        """Is it a placement? For one token, or for an array of them."""
        return (tokens >= 0) & (tokens < self.num_placements)

    def text(self, token: SupportsIndex) -> str:
        """`[R3C5=9]` or `[push]`; rows and columns count from 1."""
        token = index(token)
        if not 0 <= token < self.num_tokens:
            raise ValueError(f"{token} is no token: there are {self.num_tokens}, counted from 0")
        if token >= self.num_placements:
            return _SPECIAL[token - self.num_placements]
        cell, digit = divmod(token, self.geometry.size)
        row, column = divmod(cell, self.geometry.size)
        return f"[R{row + 1}C{column + 1}={digit + 1}]"

    def token(self, text: str) -> int:
        """The token that `text` calls so."""
        if text in _SPECIAL:
            return self.num_placements + _SPECIAL.index(text)
        match = _PLACEMENT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no token: tokens look like [R3C5=9] or [push]")
        row, column, digit = (int(number) - 1 for number in match.groups())
        size = self.geometry.size
        if not (0 <= row < size and 0 <= column < size and 0 <= digit < size):
            raise ValueError(f"{text!r} is outside a {self.geometry.name} board")
        return (row * size + column) * size + digit

    def decode(self, tokens: Int[np.ndarray, "length"]) -> str:
        """A whole trace as text, with spaces between the tokens and without the padding."""
        return " ".join(self.text(token) for token in tokens.tolist() if token != self.pad)

    def encode(self, text: str) -> Int16[np.ndarray, "length"]:
        """The tokens of a text as `decode` writes it."""
        return np.array([self.token(word) for word in text.split()], np.int16)


class Status(IntEnum):
    """How a search ended."""

    SOLVED = tracing.SOLVED
    IMPOSSIBLE = tracing.IMPOSSIBLE  # searched to the end: there is no solution
    UNFINISHED = tracing.UNFINISHED  # given up at the limit: there may be one


@dataclass(frozen=True)
class Traces:
    """A batch of traces, padded, or trimmed where they are longer than the rows."""

    tokens: Int16[np.ndarray, "batch length"]
    lengths: Int32[np.ndarray, "batch"]  # of the full trace; where UNFINISHED, of what there is
    guesses: Int32[np.ndarray, "batch"]  # pushes
    pops: Int32[np.ndarray, "batch"]
    status: UInt8[np.ndarray, "batch"]

    @property
    def solved(self) -> Bool[np.ndarray, "batch"]:
        return self.status == Status.SOLVED

    @property
    def fits(self) -> Bool[np.ndarray, "batch"]:
        """Is the trace here from beginning to end?"""
        return self.lengths <= self.tokens.shape[1]


@dataclass(frozen=True)
class PackedTraces:
    """Traces one after the other: the i-th is `tokens[offsets[i] : offsets[i + 1]]`."""

    tokens: Int16[np.ndarray, "tokens"]
    offsets: Int64[np.ndarray, "bounds"]


def record(
    puzzles: UInt8[np.ndarray, "batch cells"],
    *,
    seed: int,
    start: int = 0,
    length: int,
    shuffle_clues: bool = False,
    limit: int = LIMIT,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> Traces:
    """Solve each puzzle at random and write down how, in rows of `length` tokens.

    The chance of puzzle i comes from (seed, start + i) alone. Clues come row by row, or in random
    order with `shuffle_clues`. Longer traces are trimmed: `lengths` and `fits` say so. A puzzle
    with several solutions gets one of them; one without any, clashing clues included, is reported
    as IMPOSSIBLE, and its trace ends without `success` after the last pop. A search of more than
    `limit` tokens is reported as UNFINISHED.
    """
    geometry = geometry or standard(puzzles.shape[1])
    if puzzles.shape[1] != geometry.cells:
        raise ValueError(
            f"a {geometry.name} board has {geometry.cells} cells, not {puzzles.shape[1]}"
        )
    if puzzles.size and puzzles.max() > geometry.size:
        raise ValueError(f"a {geometry.name} puzzle cannot hold the digit {puzzles.max()}")
    # This way a trace that was given up fills its row, and nobody takes padding for its end.
    if not 1 <= length <= limit:
        raise ValueError(f"length must be between 1 and the limit of {limit} tokens, not {length}")

    batch = len(puzzles)
    traces = Traces(
        tokens=np.full((batch, length), Vocabulary(geometry).pad, np.int16),
        lengths=np.empty(batch, np.int32),
        guesses=np.empty(batch, np.int32),
        pops=np.empty(batch, np.int32),
        status=np.empty(batch, np.uint8),
    )
    # Read-only or strided arrays would make the compiler build the kernel once more for them.
    puzzles = np.require(puzzles, requirements=["C", "W"])

    def work(begin: int, end: int) -> None:
        part = slice(begin, end)
        tracing.trace_batch(
            puzzles[part],
            np.uint64(seed),
            start + begin,
            limit,
            shuffle_clues,
            tracing.cover_of(geometry),
            traces.tokens[part],
            traces.lengths[part],
            traces.guesses[part],
            traces.pops[part],
            traces.status[part],
        )

    spread(work, batch, threads)
    return traces


def pack(traces: Traces) -> PackedTraces:
    """Take the padding away. Trimmed traces stay trimmed."""
    width = traces.tokens.shape[1]
    lengths = np.minimum(traces.lengths, width).astype(np.int64)
    kept = np.arange(width) < lengths[:, None]
    return PackedTraces(traces.tokens[kept], np.concatenate([[0], lengths.cumsum()]))


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
