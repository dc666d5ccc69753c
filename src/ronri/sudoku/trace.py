"""Solving traces with guesses and backtracking: the words and the recorder.

A trace is what a person with a pencil might write down. First the clues, then `clues_end`, then
the events of the search: placements that are forced (naked and hidden singles), and, when nothing
is forced, a `push` followed by a guess at a cell with the fewest candidates. A contradiction is
followed by a `pop`, which takes the board back to where it was before that push; then the next
candidate of the same cell is pushed, the last one too although it is certain by then. When all of
them have failed, so has the branch around them, and another `pop` follows. `success` ends a trace.

The candidates of a cell are the digits that its row, column and box do not hold, nothing finer.
Whatever may be chosen freely is chosen uniformly at random: the next of the forced placements, the
cell to guess at, the order of its candidates. `replay` checks a trace, rule by rule.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Bool, Int, Int16, Int32, Int64, UInt8

from ronri.sudoku.geometry import NINE, Geometry, playable
from ronri.sudoku.kernels import tracing
from ronri.sudoku.kernels.chance import as_seed
from ronri.sudoku.kernels.compiled import spread

# A search is given up after this many tokens, about a tenth of a second. Traces of hard puzzles
# have thousands; a puzzle without a solution may need them all.
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
    step: int = 1,
    length: int,
    shuffle_clues: bool = False,
    limit: int = LIMIT,
    threads: int | None = None,
    geometry: Geometry | None = None,
) -> Traces:
    """Solve each puzzle at random and write down how, in rows of `length` tokens.

    The chance of puzzle i comes from (seed, start + i * step) alone. Clues come row by row, or in
    random order with `shuffle_clues`. Longer traces are trimmed: `lengths` and `fits` say so. A
    puzzle with several solutions gets one of them; one without any, clashing clues included, is
    reported as IMPOSSIBLE, and its trace ends without `success` after the last pop. A search of
    more than `limit` tokens is reported as UNFINISHED.
    """
    geometry = playable(puzzles, geometry)
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
            as_seed(seed),
            start + begin * step,
            step,
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
