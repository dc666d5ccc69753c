"""Breeding hard puzzles: mutation and selection, generation by generation.

What comes depends on (seed, shard) and on the ancestors alone, not on threads.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import UInt8

from ronri.sudoku import exact, symmetry
from ronri.sudoku.generate import WHOLE, RatedPuzzles, Shard, checked, index_of, minimal_puzzles
from ronri.sudoku.geometry import NINE, Geometry
from ronri.sudoku.kernels import chance, digging
from ronri.sudoku.kernels.compiled import spread

# A generation of hard puzzles: the parents that live on, and the children of each.
PARENTS, CHILDREN = 128, 4
# A parent's rating counts a little less every generation, so that no lucky reading lives for ever.
FADING = 0.9
# Puzzles this many times harder than asked for are all equally welcome as parents: selection
# beyond that would only find what is hard for one particular solver.
AMBITION = 4.0
# Puzzles that one population gives when there are ancestors: then others of them take its place.
HERD = 4_000
# So many generations in a row that gave nothing end a population, too.
BARREN = 50
# Generations without one new puzzle after which breeding gives up.
PATIENCE = 300


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
    checked(count)
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
    own_seed = np.uint64(chance.draw(chance.fork(chance.as_seed(seed), index_of(shard, 0))))
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
        if ancestors is not None and (given >= HERD or fruitless % BARREN == BARREN - 1):
            parents = _picked(ancestors, picks, geometry, threads)
            ratings = exact.rate(
                parents, copies, seed=int(own_seed), geometry=geometry, threads=threads
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
