"""From a wish to a file of puzzles: generated, rated, no two alike, none that is in another set."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import UInt64

from ronri.data.splits import keys_of
from ronri.sudoku import exact, generate, trace
from ronri.sudoku.breeding import breed
from ronri.sudoku.geometry import NINE, Geometry

Kind = Literal["clues", "minimal", "tricky", "hard"]

# Puzzles made at a time, and how many of them in a row may be of no use before we give up.
BATCH = 1_024
PATIENCE = 50_000


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to generate."""

    kind: Kind = "clues"
    count: int
    geometry: Geometry = NINE
    fewest_clues: int = 24
    most_clues: int = 36
    """For puzzles by number of clues: drawn evenly from this range."""
    least_guesses: float = 10.0
    """For hard puzzles: the least mean number of guesses of the exact solver. For tricky ones,
    which are minimal: of a search that follows singles and nothing finer, as in traces."""
    copies: int = 3
    """Symmetric copies over which ratings are averaged; of a tricky puzzle, traces as well."""
    seed: int = 0
    shard: generate.Shard = generate.WHOLE
    ancestors: np.ndarray | None = None
    """For hard puzzles: minimal puzzles to breed from; without them it starts from nothing."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count}")

    @property
    def provenance(self) -> dict[str, str]:
        """The order in words, for the header of a set."""
        words = {"kind": self.kind, "seed": str(self.seed)}
        if self.kind == "clues":
            words["clues"] = f"{self.fewest_clues}-{self.most_clues}"
        if self.kind == "tricky":
            words["least_guesses"] = f"{self.least_guesses:g} over {self.copies} traces"
        if self.kind == "hard":
            words["least_guesses"] = f"{self.least_guesses:g} over {self.copies} copies"
            if self.ancestors is not None:
                words["ancestors"] = f"{len(self.ancestors):,} given"
        if self.shard != generate.WHOLE:
            words["shard"] = f"{self.shard.number}/{self.shard.count}"
        return words


@dataclass(frozen=True, kw_only=True)
class GenerationReport:
    """What came of an order: `made` = `kept` + `twins` + `excluded`, up to the last one kept."""

    kept: int
    made: int
    twins: int
    """Puzzles equal to an earlier one up to symmetry."""
    excluded: int
    """Puzzles that must not be in this set."""
    seconds: float


@runtime_checkable
class Writer(Protocol):
    """Whatever takes puzzles: a stored set, a CSV."""

    def append(
        self, puzzles: np.ndarray, solutions: np.ndarray, ratings: np.ndarray, sources: str
    ) -> None: ...


def fulfil(
    order: Order,
    writer: Writer,
    *,
    name: str = "generated",
    exclude: UInt64[np.ndarray, "excluded"] | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> GenerationReport:
    """Write the first `count` puzzles that are new and whose split key is not in `exclude`.

    The same order gives the same puzzles on any machine, and a smaller count gives the first of
    them. Calls `progress` with the number of puzzles written so far.
    """
    started = time.perf_counter()
    known: set[int] = set()
    kept = made = twins = excluded = fruitless = 0
    batches = _batches(order, threads)
    while kept < order.count:
        if fruitless > PATIENCE:
            raise ValueError(
                f"only {kept:,} different {order.geometry.name} puzzles of this kind came up "
                f"among {made:,}: ask for fewer"
            )
        batch = next(batches)
        keys = keys_of(batch.puzzles, batch.solutions, order.geometry, threads=threads)
        barred = np.isin(keys.split, [] if exclude is None else exclude)
        rows = []
        for row, form in enumerate(keys.puzzles.tolist()):
            made += 1
            fruitless += 1
            if form in known:
                twins += 1
            elif barred[row]:
                excluded += 1
            else:
                known.add(form)
                rows.append(row)
                fruitless = 0
            if kept + len(rows) == order.count:
                break
        ratings = batch.ratings[rows].round(2)
        writer.append(batch.puzzles[rows], batch.solutions[rows], ratings, name)
        kept += len(rows)
        if progress is not None:
            progress(kept)
    return GenerationReport(
        kept=kept,
        made=made,
        twins=twins,
        excluded=excluded,
        seconds=time.perf_counter() - started,
    )


def _batches(order: Order, threads: int | None) -> Iterator[generate.RatedPuzzles]:
    """Puzzles of the right kind for ever, rated; what comes does not depend on how it is cut."""
    if order.kind == "hard":
        yield from breed(
            seed=order.seed,
            least=order.least_guesses,
            copies=order.copies,
            shard=order.shard,
            geometry=order.geometry,
            threads=threads,
            ancestors=order.ancestors,
        )
    elif order.kind == "tricky":
        yield from _tricky(order, threads)
    else:
        yield from _dug(order, min(BATCH, order.count), threads)


def _tricky(order: Order, threads: int | None) -> Iterator[generate.RatedPuzzles]:
    """Minimal puzzles at which a search that follows singles alone guesses often, on average."""
    if not order.least_guesses > 0:
        raise ValueError(f"a tricky puzzle takes more than {order.least_guesses:g} guesses")
    fruitless = 0
    for number, batch in enumerate(_dug(replace(order, kind="minimal"), BATCH, threads)):
        guesses = np.zeros(len(batch))
        for copy in range(order.copies):
            # Other chances than those the puzzles come from.
            guesses += trace.record(
                batch.puzzles,
                seed=(order.seed + 1 + copy) % 2**64,
                start=generate.index_of(order.shard, number * BATCH),
                step=order.shard.count,
                length=1,
                threads=threads,
                geometry=order.geometry,
            ).guesses
        rows = np.flatnonzero(guesses >= order.copies * order.least_guesses)
        fruitless = 0 if len(rows) else fruitless + len(batch)
        if fruitless > PATIENCE:
            raise ValueError(
                f"none of {fruitless:,} minimal {order.geometry.name} puzzles takes "
                f"{order.least_guesses:g} guesses where singles alone are followed: "
                "ask for fewer guesses"
            )
        yield generate.RatedPuzzles(batch.puzzles[rows], batch.solutions[rows], batch.ratings[rows])


def _dug(order: Order, size: int, threads: int | None) -> Iterator[generate.RatedPuzzles]:
    """Puzzles by number of clues, or minimal ones, `size` at a time."""
    start = 0
    while True:
        if order.kind == "minimal":
            made = generate.minimal_puzzles(
                size,
                seed=order.seed,
                start=start,
                shard=order.shard,
                geometry=order.geometry,
                threads=threads,
            )
        else:
            made = generate.puzzles_with_clues(
                size,
                order.fewest_clues,
                order.most_clues,
                seed=order.seed,
                start=start,
                shard=order.shard,
                geometry=order.geometry,
                threads=threads,
            )
        ratings = exact.rate(
            made.puzzles,
            order.copies,
            seed=order.seed,
            start=generate.index_of(order.shard, start),
            step=order.shard.count,
            threads=threads,
            geometry=order.geometry,
        )
        yield generate.RatedPuzzles(made.puzzles, made.solutions, ratings)
        start += size
