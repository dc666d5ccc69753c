"""How a puzzle and its solution are packed into one record of a stored set.

A record of a board with C cells, in this order, with every number little-endian:

    solution     ceil(C / 2) bytes. Byte k holds cell 2k in its low half (bits 0-3) and cell 2k + 1
                 in its high half (bits 4-7). A half holds digit - 1, so that sixteen digits fit;
                 the half that is left over where C is odd is zero.
    clues        ceil(C / 8) bytes. Bit b (1 << b) of byte k is set where cell 8k + b is a clue;
                 bits past the last cell are zero.
    rating       2 bytes, float16. NaN where nobody knows.
    source       1 byte, an index into the names of the set's sources.

A puzzle is its solution where the clue bits are set, so a record can only hold a puzzle whose
clues agree with its solution.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Float32, UInt8

from ronri.sudoku.geometry import Geometry

MAX_SOURCES = 256
# The largest float16: a rating above it does not fit into a record.
MAX_RATING = 65504.0

# The two cells of every solution byte, side by side: unpacking is one look-up for each byte.
_PAIRS = np.stack([np.arange(256) % 16 + 1, np.arange(256) // 16 + 1], axis=1).astype(np.uint8)
_PAIRS_16 = _PAIRS.view(np.uint16)[:, 0]


@final
@dataclass(frozen=True)
class Layout:
    """Where the parts of a record lie: the byte each one starts at, and the length of all."""

    solution: int
    clues: int
    rating: int
    source: int
    record: int

    @classmethod
    def of(cls, geometry: Geometry) -> "Layout":
        clues = (geometry.cells + 1) // 2
        rating = clues + (geometry.cells + 7) // 8
        return cls(0, clues, rating, rating + 2, rating + 3)


def check_storable(
    puzzles: UInt8[np.ndarray, "batch cells"],
    solutions: UInt8[np.ndarray, "batch cells"],
    ratings: Float[np.ndarray, "batch"],
    geometry: Geometry,
    first_row: int,
) -> None:
    """What cannot be packed must not be: a record has no way to say that it is wrong.

    The error names the row, counted from `first_row`.
    """
    # Digit 0 wraps around to 255 here, so one comparison finds it too.
    unsolved = (solutions - np.uint8(1) >= geometry.size).any(axis=1)
    differs = ((puzzles != solutions) & (puzzles != 0)).any(axis=1)
    too_big = np.abs(ratings) > MAX_RATING
    for bad, what in (
        (unsolved, f"its solution has cells that are not 1 to {geometry.size}"),
        (differs, "its clues are not those of its solution"),
        (too_big, f"its rating is beyond {MAX_RATING:.0f}"),
    ):
        if bad.any():
            row = first_row + int(bad.argmax())
            raise ValueError(f"puzzle {row} cannot be stored: {what}")


def pack(
    puzzles: UInt8[np.ndarray, "batch cells"],
    solutions: UInt8[np.ndarray, "batch cells"],
    ratings: Float[np.ndarray, "batch"],
    sources: UInt8[np.ndarray, "batch"],
    geometry: Geometry,
) -> UInt8[np.ndarray, "batch record"]:
    """Records as they lie on disk, of what has passed `check_storable`."""
    layout = Layout.of(geometry)
    records = np.empty((len(puzzles), layout.record), np.uint8)
    halves = solutions - np.uint8(1)
    packed = records[:, : layout.clues]
    packed[:] = halves[:, 0::2]
    packed[:, : geometry.cells // 2] |= halves[:, 1::2] << np.uint8(4)
    records[:, layout.clues : layout.rating] = np.packbits(puzzles != 0, axis=1, bitorder="little")
    as_bytes = ratings.astype("<f2").view(np.uint8).reshape(-1, 2)
    records[:, layout.rating : layout.source] = as_bytes
    records[:, layout.source] = sources
    return records


def unpack_solutions(
    records: UInt8[np.ndarray, "batch record"], geometry: Geometry
) -> UInt8[np.ndarray, "batch cells"]:
    packed = records[:, : Layout.of(geometry).clues]
    # With an odd number of cells the last byte gives one cell too many.
    return _PAIRS_16[packed].view(np.uint8)[:, : geometry.cells]


def unpack_clues(
    records: UInt8[np.ndarray, "batch record"], geometry: Geometry
) -> UInt8[np.ndarray, "batch cells"]:
    """1 where a cell is a clue, 0 where it is empty."""
    layout = Layout.of(geometry)
    packed = records[:, layout.clues : layout.rating]
    return np.unpackbits(packed, axis=1, count=geometry.cells, bitorder="little")


def unpack_puzzles(
    records: UInt8[np.ndarray, "batch record"], geometry: Geometry
) -> UInt8[np.ndarray, "batch cells"]:
    clues = unpack_clues(records, geometry)
    return np.multiply(clues, unpack_solutions(records, geometry), out=clues)


def unpack_ratings(
    records: UInt8[np.ndarray, "batch record"], geometry: Geometry
) -> Float32[np.ndarray, "batch"]:
    layout = Layout.of(geometry)
    packed = np.ascontiguousarray(records[:, layout.rating : layout.source])
    return packed.view("<f2")[:, 0].astype(np.float32)


def unpack_sources(
    records: UInt8[np.ndarray, "batch record"], geometry: Geometry
) -> UInt8[np.ndarray, "batch"]:
    return records[:, Layout.of(geometry).source].copy()
