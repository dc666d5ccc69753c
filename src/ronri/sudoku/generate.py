"""Making puzzles: random solution grids, puzzles with chosen clues, minimal ones, hard ones.

Everything is a pure function of its arguments. The i-th grid or puzzle depends on (seed, i) alone,
so threads do not matter, and shard k of n makes every n-th item: n machines together make exactly
what one would have made. Hard puzzles are bred in generations and depend on (seed, shard).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, UInt8

from ronri.sudoku import exact, symmetry
from ronri.sudoku.geometry import NINE, Geometry
from ronri.sudoku.kernels import chance, digging
from ronri.sudoku.kernels.compiled import spread

# How often a puzzle with too many clues left is started anew. Of random 9x9 grids, half can be dug
# down to 24 clues, a few in a thousand to 21.
TRIES = 2_000

# A generation of hard puzzles: the parents that live on, and the children of each.
PARENTS, CHILDREN = 128, 4
# A parent's rating counts a little less every generation, so that no lucky reading lives for ever.
FADING = 0.9
# Puzzles this many times harder than asked for are all equally welcome as parents: selection
# beyond that would only find what is hard for one particular solver.
AMBITION = 4.0
# Puzzles that one population gives when there are ancestors: then others of them take its place.
HERD = 4_000
# Generations without one new puzzle after which breeding gives up.
PATIENCE = 300


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
    grids = np.zeros((_checked(count), geometry.cells), np.uint8)

    def work(first: int, stop: int) -> None:
        index = _index(shard, start + first)
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


def hard_puzzles(
    count: int,
    *,
    seed: int,
    least: float = 10.0,
    copies: int = 3,
    shard: Shard = WHOLE,
    geometry: Geometry = NINE,
    threads: int | None = None,
    ancestors: UInt8[np.ndarray, "ancestors cells"] | None = None,
) -> RatedPuzzles:
    """The first `count` puzzles that `breed` gives."""
    _checked(count)
    batches: list[RatedPuzzles] = []
    generations = breed(
        seed=seed,
        least=least,
        copies=copies,
        shard=shard,
        geometry=geometry,
        threads=threads,
        ancestors=ancestors,
    )
    while sum(map(len, batches)) < count:
        batches.append(next(generations))
    empty = np.zeros((0, geometry.cells), np.uint8)
    return RatedPuzzles(
        np.concatenate([empty, *(batch.puzzles for batch in batches)])[:count],
        np.concatenate([empty, *(batch.solutions for batch in batches)])[:count],
        np.concatenate([np.zeros(0), *(batch.ratings for batch in batches)])[:count],
    )


def breed(
    *,
    seed: int,
    least: float = 10.0,
    copies: int = 3,
    shard: Shard = WHOLE,
    geometry: Geometry = NINE,
    threads: int | None = None,
    ancestors: UInt8[np.ndarray, "ancestors cells"] | None = None,
) -> Iterator[RatedPuzzles]:
    """Hard puzzles for ever, a batch per generation, no two alike up to symmetry.

    A child loses a clue or two of its parent, is completed to another unique puzzle and made
    minimal. Those that take `least` guesses or more, averaged over `copies` symmetric copies, are
    given out; the hardest become parents. It starts from minimal puzzles of its own, or from
    `ancestors`, and from others of those after every `HERD` puzzles. The first generations after a
    start from nothing give little.
    """
    if copies < 1:
        raise ValueError(f"copies must be at least 1, not {copies}")
    if not least > 0:
        raise ValueError(f"a hard puzzle takes more than {least:g} guesses")
    # Populations of different shards share nothing.
    own_seed = np.uint64(chance.draw(chance.fork(chance.as_seed(seed), _index(shard, 0))))
    if ancestors is None:
        parents = minimal_puzzles(
            PARENTS, seed=int(own_seed), geometry=geometry, threads=threads
        ).puzzles
    else:
        if not len(ancestors):
            raise ValueError("there is no ancestor to breed from")
        picks = chance.fork(own_seed, 0)
        parents = _picked(ancestors, picks, geometry, threads)
    # Rated as their children are: what is hard in them must not die with the first generation.
    ratings = exact.rate(parents, copies, seed=int(own_seed), geometry=geometry, threads=threads)
    known: set[int] = set()
    born = fruitless = given = 0
    while fruitless < PATIENCE:
        if ancestors is not None and given >= HERD:
            parents = _picked(ancestors, picks, geometry, threads)
            ratings = exact.rate(
                parents,
                copies,
                seed=(int(own_seed) + born) % 2**64,
                geometry=geometry,
                threads=threads,
            )
            given = 0
        mothers = np.repeat(parents, CHILDREN, axis=0)
        children, child_ratings = _children(mothers, own_seed, born, copies, geometry, threads)
        born += len(mothers)
        fruitless += 1
        hard = np.flatnonzero(child_ratings >= least)
        solutions = exact.solve(children[hard], threads=threads, geometry=geometry).solutions
        forms = symmetry.canonical_puzzles(children[hard], solutions, geometry, threads=threads)
        fresh = []
        for row, form in enumerate(symmetry.canonical_hash(forms).tolist()):
            if form not in known:
                known.add(form)
                fresh.append(row)
        if fresh:
            fruitless = 0
            chosen = hard[fresh]
            given += len(fresh)
            yield RatedPuzzles(children[chosen], solutions[fresh], child_ratings[chosen])
        # Children first: where ratings are equal, the young replace the old.
        everyone = np.concatenate([children, parents])
        marks = np.concatenate([child_ratings, FADING * ratings])
        _, distinct = np.unique(everyone, axis=0, return_index=True)
        distinct.sort()
        best = np.argsort(-np.minimum(marks[distinct], AMBITION * least), kind="stable")
        survivors = distinct[best[:PARENTS]]
        parents, ratings = everyone[survivors], marks[survivors]
    raise ValueError(
        f"no new {geometry.name} puzzle that takes {least:g} guesses among {born} bred: "
        "ask for fewer guesses"
    )


def _picked(
    ancestors: np.ndarray, picks: np.ndarray, geometry: Geometry, threads: int | None
) -> np.ndarray:
    """Some of the ancestors, as parents; `picks` moves on."""
    rows = [chance.below(picks, len(ancestors)) for _ in range(PARENTS)]
    parents = ancestors[rows]
    if (exact.solve(parents, threads=threads, geometry=geometry).counts != 1).any():
        raise ValueError("every ancestor must be a puzzle with exactly one solution")
    return parents


def _children(
    mothers: np.ndarray,
    seed: np.uint64,
    born: int,
    copies: int,
    geometry: Geometry,
    threads: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """One child of each mother and its rating; child i depends on the seed and `born + i`."""
    children, ratings = np.empty_like(mothers), np.empty(len(mothers))

    def work(first: int, stop: int) -> None:
        part = slice(first, stop)
        digging.breed_batch(
            mothers[part],
            seed,
            born + first,
            copies,
            geometry.tables,
            children[part],
            ratings[part],
        )

    spread(work, len(mothers), threads, chunk=16)
    return children, ratings


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
    puzzles = np.zeros((_checked(count), geometry.cells), np.uint8)
    solutions = np.zeros_like(puzzles)
    clues = np.zeros(count, np.int64)

    def work(first: int, stop: int) -> None:
        part = slice(first, stop)
        digging.dig_batch(
            chance.as_seed(seed),
            _index(shard, start + first),
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


def _index(shard: Shard, item: int) -> int:
    """The place of a shard's item in the whole."""
    return shard.number - 1 + item * shard.count


def _checked(count: int) -> int:
    if count < 0:
        raise ValueError(f"count must not be negative: {count}")
    return count
