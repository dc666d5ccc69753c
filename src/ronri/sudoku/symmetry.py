"""The symmetries of the board: sample, apply, compose and invert them; canonical forms.

A symmetry renames the digits and moves the cells so that rows, columns and boxes are still rows,
columns and boxes: it permutes the bands, the rows inside each band, the stacks and the columns
inside each stack, and it may transpose the board where boxes are square. A puzzle and its image
are the same puzzle in other clothes.

The canonical form is the one image that all images of a grid share. Two solution grids with the
same canonical form are equal up to symmetry; so are two puzzles.
"""

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
from jaxtyping import Int64, Integer, UInt8, UInt64

from ronri.sudoku.geometry import Geometry, geometry_of
from ronri.sudoku.kernels.compiled import spread
from ronri.sudoku.kernels.group import sample_symmetries
from ronri.sudoku.kernels.minlex import canonicalise, hash_all
from ronri.sudoku.rules import is_solved


@dataclass(frozen=True, eq=False)
class Symmetries:
    """A batch of symmetries: `new[cell] = digit_to[old[cell_from[cell]]]`.

    Where two batches meet (symmetries and grids, or two batches of symmetries) they go row by
    row, and a batch of one meets every row of the other.
    """

    cell_from: Int64[np.ndarray, "batch cells"]
    # One entry more than there are digits: an empty cell, 0, stays empty.
    digit_to: UInt8[np.ndarray, "batch digits"]

    def __len__(self) -> int:
        return len(self.cell_from)

    def __getitem__(self, rows: slice | Integer[np.ndarray, "rows"]) -> "Symmetries":
        return Symmetries(self.cell_from[rows], self.digit_to[rows])

    @cached_property
    def cell_to(self) -> Int64[np.ndarray, "batch cells"]:
        """Where each cell goes: the inverse of `cell_from`."""
        return _inverse(self.cell_from)


def order(geometry: Geometry) -> int:
    """How many symmetries there are."""
    height, width = geometry.box_height, geometry.box_width
    # There are `width` bands of `height` rows, and `height` stacks of `width` columns.
    rows = factorial(width) * factorial(height) ** width
    columns = factorial(height) * factorial(width) ** height
    transposes = 2 if height == width else 1
    return transposes * rows * columns * factorial(geometry.size)


def identity(geometry: Geometry) -> Symmetries:
    """The symmetry that changes nothing, as a batch of one."""
    cells = np.arange(geometry.cells, dtype=np.int64)
    digits = np.arange(geometry.size + 1, dtype=np.uint8)
    return Symmetries(cells[None], digits[None])


def sample(geometry: Geometry, count: int, seed: int, start: int = 0, step: int = 1) -> Symmetries:
    """Random symmetries, every one equally likely; the i-th depends on (seed, start + i * step)."""
    for name, value, bound in (("count", count, 63), ("seed", seed, 64), ("start", start, 63)):
        if not 0 <= value < 2**bound:
            raise ValueError(f"{name} must be at least 0 and below 2**{bound}, not {value}")
    cell_from = np.empty((count, geometry.cells), np.int64)
    digit_to = np.empty((count, geometry.size + 1), np.uint8)
    sample_symmetries(
        geometry.box_height, geometry.box_width, np.uint64(seed), start, step, cell_from, digit_to
    )
    return Symmetries(cell_from, digit_to)


def compose(first: Symmetries, second: Symmetries) -> Symmetries:
    """The symmetry that does what `first` and then `second` would do."""
    _check_fit(first.cell_from, second.cell_from)
    return Symmetries(
        np.take_along_axis(first.cell_from, second.cell_from, axis=1),
        np.take_along_axis(second.digit_to, first.digit_to, axis=1),
    )


def invert(symmetries: Symmetries) -> Symmetries:
    """The symmetries that undo these."""
    return Symmetries(symmetries.cell_to, _inverse(symmetries.digit_to))


def apply(
    symmetries: Symmetries, grids: UInt8[np.ndarray, "batch cells"]
) -> UInt8[np.ndarray, "images cells"]:
    """The images of grids: of puzzles and of solutions alike."""
    _check_fit(symmetries.cell_from, grids)
    moved = np.take_along_axis(grids, symmetries.cell_from, axis=1)
    return np.take_along_axis(symmetries.digit_to, moved, axis=1)


def apply_to_placements(
    symmetries: Symmetries,
    cells: Integer[np.ndarray, "batch placements"],
    digits: Integer[np.ndarray, "batch placements"],
) -> tuple[Int64[np.ndarray, "images placements"], UInt8[np.ndarray, "images placements"]]:
    """Where digits put into cells go, and which digits they become there."""
    _check_rows(len(symmetries), len(cells))
    return (
        np.take_along_axis(symmetries.cell_to, cells, axis=1),
        np.take_along_axis(symmetries.digit_to, digits, axis=1),
    )


def apply_to_tokens(
    symmetries: Symmetries, tokens: Integer[np.ndarray, "batch length"]
) -> Integer[np.ndarray, "images length"]:
    """The images of placements written as `cell * size + digit - 1`; other tokens stay."""
    cells, size = symmetries.cell_from.shape[1], symmetries.digit_to.shape[1] - 1
    is_placement = (tokens >= 0) & (tokens < cells * size)
    cell, digit_less_1 = np.divmod(np.where(is_placement, tokens, 0).astype(np.int64), size)
    new_cell, new_digit = apply_to_placements(symmetries, cell, digit_less_1 + 1)
    moved = new_cell * size + new_digit - 1
    return np.where(is_placement, moved, tokens).astype(tokens.dtype)


def to_canonical(
    puzzles: UInt8[np.ndarray, "batch cells"],
    solutions: UInt8[np.ndarray, "batch cells"],
    geometry: Geometry | None = None,
    *,
    threads: int | None = None,
) -> Symmetries:
    """Symmetries that take puzzles to their canonical form (see `canonical_puzzles`).

    They take the solutions to their canonical form too; give the solutions twice if only these
    matter. A puzzle that is symmetric in itself has several such symmetries: this is one of them.
    """
    geometry = _checked_geometry(puzzles, solutions, geometry)
    found = Symmetries(
        np.empty((len(puzzles), geometry.cells), np.int64),
        np.empty((len(puzzles), geometry.size + 1), np.uint8),
    )

    def work(start: int, stop: int) -> None:
        part = _to_canonical(puzzles[start:stop], solutions[start:stop], geometry)
        found.cell_from[start:stop] = part.cell_from
        found.digit_to[start:stop] = part.digit_to

    spread(work, len(puzzles), threads)
    return found


def canonical_puzzles(
    puzzles: UInt8[np.ndarray, "batch cells"],
    solutions: UInt8[np.ndarray, "batch cells"],
    geometry: Geometry | None = None,
    *,
    threads: int | None = None,
) -> UInt8[np.ndarray, "batch cells"]:
    """The canonical forms of puzzles, found through their unique solutions.

    Of all symmetries that take the solution to its canonical form, one takes the puzzle to the
    smallest image, cells compared in order with 0 for an empty one. That image is the form.
    """
    geometry = _checked_geometry(puzzles, solutions, geometry)
    canonical = np.empty_like(puzzles)

    def work(start: int, stop: int) -> None:
        part = _to_canonical(puzzles[start:stop], solutions[start:stop], geometry)
        canonical[start:stop] = apply(part, puzzles[start:stop])

    spread(work, len(puzzles), threads)
    return canonical


def canonical_solutions(
    solutions: UInt8[np.ndarray, "batch cells"],
    geometry: Geometry | None = None,
    *,
    threads: int | None = None,
) -> UInt8[np.ndarray, "batch cells"]:
    """The canonical forms of complete grids: of all images, the smallest in reading order."""
    return canonical_puzzles(solutions, solutions, geometry, threads=threads)


def canonical_hash(canonical: UInt8[np.ndarray, "batch cells"]) -> UInt64[np.ndarray, "batch"]:
    """64 well mixed bits for each canonical form: data sets are split by them.

    The hash is fixed for ever, on every machine. In arithmetic modulo 2**64, let `mix` be

        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9
        x = (x ^ x >> 27) * 0x94D049BB133111EB
        x = x ^ x >> 31

    Start with `mix(cells)`; then, cell by cell, `hash = mix(hash + digit + 1)`.
    """
    hashes = np.empty(len(canonical), np.uint64)
    hash_all(_own(canonical), hashes)
    return hashes


def _inverse(permutations: np.ndarray) -> np.ndarray:
    """The inverse of each row."""
    inverse = np.empty_like(permutations)
    values = np.arange(permutations.shape[1], dtype=permutations.dtype)
    np.put_along_axis(inverse, permutations, values[None], axis=1)
    return inverse


def _check_fit(one: np.ndarray, other: np.ndarray) -> None:
    _check_rows(len(one), len(other))
    if one.shape[1] != other.shape[1]:
        raise ValueError(f"boards of {one.shape[1]} and {other.shape[1]} cells do not go together")


def _check_rows(one: int, other: int) -> None:
    if one != other and 1 not in (one, other):
        raise ValueError(
            f"batches of {one} and {other} rows do not go together: "
            "they must be equally long, or one of them a single row"
        )


def _checked_geometry(
    puzzles: np.ndarray, solutions: np.ndarray, geometry: Geometry | None
) -> Geometry:
    """The geometry of these boards, once solutions and puzzles are known to be what they should."""
    if puzzles.shape != solutions.shape:
        raise ValueError(
            f"every puzzle needs its solution: {len(puzzles)} puzzles of {puzzles.shape[1]} cells "
            f"and {len(solutions)} solutions of {solutions.shape[1]}"
        )
    geometry = geometry_of(solutions, geometry)
    wrong = np.flatnonzero(~is_solved(solutions, geometry))
    if len(wrong):
        raise ValueError(f"row {wrong[0]} is not a complete and valid {geometry.name} grid")
    wrong = np.flatnonzero(((puzzles != 0) & (puzzles != solutions)).any(axis=1))
    if len(wrong):
        raise ValueError(f"the puzzle in row {wrong[0]} has a clue that its solution contradicts")
    return geometry


def _to_canonical(puzzles: np.ndarray, solutions: np.ndarray, geometry: Geometry) -> Symmetries:
    cell_from = np.empty((len(puzzles), geometry.cells), np.int64)
    digit_to = np.empty((len(puzzles), geometry.size + 1), np.uint8)
    canonicalise(_own(puzzles), _own(solutions), geometry.box_height, cell_from, digit_to)
    return Symmetries(cell_from, digit_to)


def _own(grids: np.ndarray) -> np.ndarray:
    """A copy in plain layout: slices and read-only maps would each be compiled for anew."""
    return np.array(grids, order="C")
