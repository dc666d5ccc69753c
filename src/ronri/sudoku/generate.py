"""Making puzzles: random solution grids, puzzles with chosen clues, minimal ones.

Everything is a pure function of its arguments. The i-th grid or puzzle depends on (seed, i) alone,
so threads do not matter, and shard k of n makes every n-th item: n machines together make exactly
what one would have made. Hard puzzles are bred: `breeding.py`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, UInt8

from ronri.sudoku.geometry import NINE, Geometry
from ronri.sudoku.kernels import chance, digging
from ronri.sudoku.kernels.compiled import spread

# How often a puzzle with too many clues left is started anew. Of random 9x9 grids, half can be dug
# down to 24 clues, a few in a thousand to 21.
TRIES = 2_000


@dataclass(frozen=True)
class Shard:
    """One of `count` equal parts of a job, numbered from 1."""

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ValueError(
                f"shard {self.number}/{self.count} does not exist: "
                f"shards of {self.count} are numbered 1 to {self.count}"
            )

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read '2/8'."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal()):
            raise ValueError(f"a shard is written like 2/8, not {text!r}")
        return cls(int(number), int(count))


WHOLE = Shard()


@dataclass(frozen=True)
class Puzzles:
    """Puzzles and their unique solutions."""

    puzzles: UInt8[np.ndarray, "batch cells"]
    solutions: UInt8[np.ndarray, "batch cells"]

    def __len__(self) -> int:
        return len(self.puzzles)


@dataclass(frozen=True)
class RatedPuzzles:
    """Puzzles, their unique solutions, and the mean number of guesses they took."""

    puzzles: UInt8[np.ndarray, "batch cells"]
    solutions: UInt8[np.ndarray, "batch cells"]
    ratings: Float64[np.ndarray, "batch"]

    def __len__(self) -> int:
        return len(self.puzzles)


def random_grids(
    count: int,
    *,
    seed: int,
    start: int = 0,
    shard: Shard = WHOLE,
    geometry: Geometry = NINE,
    threads: int | None = None,
) -> UInt8[np.ndarray, "batch cells"]:
    """Complete grids, filled by a search that guesses at random. Every grid can come up."""
    grids = np.zeros((checked(count), geometry.cells), np.uint8)

    def work(first: int, stop: int) -> None:
        index = index_of(shard, start + first)
        digging.fill_batch(
            chance.as_seed(seed), index, shard.count, geometry.tables, grids[first:stop]
        )

    spread(work, count, threads, chunk=64)
    return grids


def puzzles_with_clues(
    count: int,
    fewest: int,
    most: int | None = None,
    *,
    seed: int,
    start: int = 0,
    shard: Shard = WHOLE,
    geometry: Geometry = NINE,
    threads: int | None = None,
) -> Puzzles:
    """Puzzles whose number of clues is drawn evenly from `fewest` to `most` (default: exactly
    `fewest`), dug out of random grids clue by clue in random order."""
    most = fewest if most is None else most
    if not 1 <= fewest <= most <= geometry.cells:
        raise ValueError(
            f"clues from {fewest} to {most} make no sense: "
            f"a {geometry.name} board has 1 to {geometry.cells}"
        )
    return _dig(count, fewest, most, seed, start, shard, geometry, threads)


def minimal_puzzles(
    count: int,
    *,
    seed: int,
    start: int = 0,
    shard: Shard = WHOLE,
    geometry: Geometry = NINE,
    threads: int | None = None,
) -> Puzzles:
    """Puzzles from which no clue can be taken without losing the unique solution."""
    return _dig(count, 0, 0, seed, start, shard, geometry, threads)


def _dig(
    count: int,
    fewest: int,
    most: int,
    seed: int,
    start: int,
    shard: Shard,
    geometry: Geometry,
    threads: int | None,
) -> Puzzles:
    puzzles = np.zeros((checked(count), geometry.cells), np.uint8)
    solutions = np.zeros_like(puzzles)
    clues = np.zeros(count, np.int64)

    def work(first: int, stop: int) -> None:
        part = slice(first, stop)
        digging.dig_batch(
            chance.as_seed(seed),
            index_of(shard, start + first),
            shard.count,
            fewest,
            most,
            TRIES,
            geometry.tables,
            puzzles[part],
            solutions[part],
            clues[part],
        )

    spread(work, count, threads, chunk=16)
    if not clues.all():
        raise ValueError(
            f"no {geometry.name} puzzle with as few as {fewest} clues found in {TRIES} grids: "
            "ask for more clues"
        )
    return Puzzles(puzzles, solutions)


def index_of(shard: Shard, item: int) -> int:
    """The place of a shard's item in the whole."""
    return shard.number - 1 + item * shard.count


def checked(count: int) -> int:
    if count < 0:
        raise ValueError(f"count must not be negative: {count}")
    return count
