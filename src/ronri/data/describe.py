"""What is in a set: how many clues, how hard, what comes twice, what another set has too."""

from dataclasses import dataclass

import numpy as np

from ronri.data.splits import set_keys
from ronri.data.store import PuzzleSet
from ronri.sudoku.exact import solve

# Where one class of ratings ends and the next begins, in guesses.
RATING_EDGES = (0.0, 0.5, 2.0, 5.0, 10.0, 20.0, 50.0, float("inf"))


@dataclass(frozen=True)
class RatingClass:
    """Puzzles whose rating is at least `rating_min` and below `rating_max`."""

    rating_min: float
    rating_max: float
    n: int

    @property
    def label(self) -> str:
        if self.rating_max == float("inf"):
            return f"{self.rating_min:g} or more"
        return f"{self.rating_min:g} to <{self.rating_max:g}"


@dataclass(frozen=True)
class Overlap:
    """What one set shares with another, symmetric copies counted as equal."""

    puzzles: int
    """Puzzles of this set that the other has too."""
    solutions: int
    """Puzzles of this set whose solution grid belongs to some puzzle of the other."""


@dataclass(frozen=True)
class Description:
    """A set in numbers."""

    n: int
    board: str
    provenance: dict[str, str]
    """Where the set comes from, in the words of its maker; what an import refused is named here."""
    sources: dict[str, int]
    clues: dict[int, int]
    """Number of puzzles by number of clues."""
    ratings: list[RatingClass]
    mean_rating: float | None
    rated_here: int
    """Puzzles without a stored rating: these were rated by one run of the exact solver."""
    distinct_puzzles: int
    """Different puzzles, symmetric copies counted once."""
    distinct_solutions: int
    """Different solution grids, symmetric copies counted once."""
    overlap: Overlap | None

    @property
    def duplicates(self) -> int:
        return self.n - self.distinct_puzzles


def describe(
    source: PuzzleSet, other: PuzzleSet | None = None, *, threads: int | None = None
) -> Description:
    """Count everything there is to count in a set, and what it shares with another."""
    sources = np.zeros(len(source.header.sources), np.int64)
    clues = np.zeros(source.geometry.cells + 1, np.int64)
    ratings: list[np.ndarray] = []
    rated_here = 0
    for chunk in source.chunks():
        sources += np.bincount(chunk.sources, minlength=len(sources))
        clues += np.bincount((chunk.puzzles > 0).sum(axis=1), minlength=len(clues))
        found = chunk.ratings.astype(np.float64)
        unknown = np.isnan(found)
        if unknown.any():
            rated_here += int(unknown.sum())
            solved = solve(chunk.puzzles[unknown], 1, threads=threads, geometry=source.geometry)
            found[unknown] = solved.guesses
        ratings.append(found)
    every = np.concatenate([np.zeros(0), *ratings])
    own = set_keys(source, threads=threads)
    overlap = None
    if other is not None:
        if other.geometry != source.geometry:
            raise ValueError(
                f"{source.path.name} has other boards ({source.geometry.name}) than "
                f"{other.path.name} ({other.geometry.name}): they share nothing"
            )
        foreign = set_keys(other, threads=threads)
        overlap = Overlap(
            puzzles=int(np.isin(own.puzzles, foreign.puzzles).sum()),
            solutions=int(np.isin(own.solutions, foreign.solutions).sum()),
        )
    histogram, _ = np.histogram(every, RATING_EDGES)
    return Description(
        n=len(source),
        board=source.geometry.name,
        provenance=dict(source.header.provenance),
        sources={name: int(n) for name, n in zip(source.header.sources, sources, strict=True) if n},
        clues={number: int(n) for number, n in enumerate(clues) if n},
        ratings=[
            RatingClass(low, high, int(n))
            for low, high, n in zip(RATING_EDGES, RATING_EDGES[1:], histogram, strict=False)
        ],
        mean_rating=float(every.mean()) if len(every) else None,
        rated_here=rated_here,
        distinct_puzzles=len(np.unique(own.puzzles)),
        distinct_solutions=len(np.unique(own.solutions)),
        overlap=overlap,
    )
