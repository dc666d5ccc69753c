"""A set of puzzles on disk: one file, memory-mapped, 55 bytes for a 9x9 puzzle and its solution.

The file, with every number little-endian:

    byte 0       magic: 89 52 4F 4E 52 49 0D 0A. The first byte is no text, the last two are the
                 line end that a copy in text mode would change.
    byte 8       length of the header, uint32
    byte 12      SHA-256 of the header
    byte 44      the header: JSON in UTF-8, then zeros
    byte 16384   the records, one after another, nothing between or behind them

What a record holds, bit by bit, is told in `packing`. Equal puzzles make equal files, byte for
byte: no times, no paths.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Float32, Integer, UInt8

from ronri.data.files import whole_file
from ronri.data.packing import (
    MAX_SOURCES,
    Layout,
    check_storable,
    pack,
    unpack_puzzles,
    unpack_ratings,
    unpack_solutions,
    unpack_sources,
)
from ronri.sudoku.geometry import Geometry

FORMAT = 1
MAGIC = b"\x89RONRI\r\n"
PAYLOAD_OFFSET = 16384

_LENGTH_AT, _CHECKSUM_AT, _HEADER_AT = 8, 12, 44
_AGAIN = "make or download it again"

# Which rows of a set: a slice, row numbers, or a mask as long as the set.
Rows = slice | Integer[np.ndarray, "rows"] | Bool[np.ndarray, "rows"]
ALL = slice(None)


class StoreError(ValueError):
    """A file that is no whole, undamaged set: which file, what is wrong, what to do."""


@final
@dataclass(frozen=True, kw_only=True)
class Header:
    """What a set says about itself."""

    geometry: Geometry
    count: int
    # Names that the `source` byte of a record points at.
    sources: tuple[str, ...]
    # How the set came to be, in whatever words its maker chose.
    provenance: Mapping[str, str]
    payload_sha256: str

    @property
    def layout(self) -> Layout:
        return Layout.of(self.geometry)

    @property
    def file_size(self) -> int:
        return PAYLOAD_OFFSET + self.count * self.layout.record

    def encode(self) -> bytes:
        """The first bytes of the file, up to the records."""
        fields = asdict(self) | {
            "format": FORMAT,
            "geometry": [self.geometry.box_height, self.geometry.box_width],
            "provenance": dict(self.provenance),
            "layout": asdict(self.layout),
        }
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False).encode()
        checksum = hashlib.sha256(text).digest()
        head = MAGIC + len(text).to_bytes(4, "little") + checksum + text
        if len(head) > PAYLOAD_OFFSET:
            raise ValueError(
                f"the names of the {len(self.sources)} sources and the provenance take "
                f"{len(head):,} bytes, a set has room for {PAYLOAD_OFFSET:,}: shorten them"
            )
        return head.ljust(PAYLOAD_OFFSET, b"\0")

    @classmethod
    def decode(cls, head: bytes) -> "Header":
        """The header in the first bytes of a file; `StoreError` says what is wrong with it."""
        if not head:
            raise StoreError(f"the file is empty; {_AGAIN}")
        if head[:_LENGTH_AT] != MAGIC:
            raise StoreError("this is no Ronri set; import a CSV or a text list to make one")
        length = int.from_bytes(head[_LENGTH_AT:_CHECKSUM_AT], "little")
        text = head[_HEADER_AT : _HEADER_AT + length]
        if hashlib.sha256(text).digest() != head[_CHECKSUM_AT:_HEADER_AT]:
            raise StoreError(f"the header is damaged; {_AGAIN}")
        try:
            fields = dict(json.loads(text))
        except (TypeError, ValueError) as error:
            raise StoreError(f"the header is no JSON object; {_AGAIN}") from error
        if fields.get("format") != FORMAT:
            raise StoreError(
                f"the file has format {fields.get('format')}, this Ronri reads format {FORMAT}; "
                "use the Ronri that made it, or make it again"
            )
        if odd := sorted({*cls.__dataclass_fields__, "format", "layout"} ^ set(fields)):
            raise StoreError(f"the header has missing or unknown keys: {', '.join(odd)}; {_AGAIN}")
        if not _well_typed(fields):
            raise StoreError(f"the header's values are of the wrong kind; {_AGAIN}")
        try:
            geometry = Geometry(*fields["geometry"])
        except ValueError as error:
            raise StoreError(f"{error}; {_AGAIN}") from error
        header = cls(
            geometry=geometry,
            count=fields["count"],
            sources=tuple(fields["sources"]),
            provenance=fields["provenance"],
            payload_sha256=fields["payload_sha256"],
        )
        # Writing it again must give the same bytes: the layout that belongs to the board, the
        # zeros behind the header, everything.
        if header.encode() != head:
            raise StoreError(f"the header or the zeros behind it are damaged; {_AGAIN}")
        return header


def _well_typed(fields: dict[str, Any]) -> bool:
    match fields:
        case {
            "geometry": [int(), int()],
            "count": int(count),
            "sources": list(sources),
            "provenance": dict(provenance),
            "payload_sha256": str(),
        }:
            texts = [*sources, *provenance, *provenance.values()]
            return count >= 0 and all(isinstance(text, str) for text in texts)
    return False


@final
@dataclass(frozen=True)
class Entries:
    """Some puzzles of a set, unpacked."""

    puzzles: UInt8[np.ndarray, "batch cells"]
    solutions: UInt8[np.ndarray, "batch cells"]
    ratings: Float32[np.ndarray, "batch"]
    # Indices into the header's `sources`.
    sources: UInt8[np.ndarray, "batch"]


@final
class PuzzleSet:
    """A set on disk, open for reading. Nothing is loaded before it is asked for.

    Opening reads the file once to compare its checksum; `verify=False` leaves that out and checks
    only the header and the length.
    """

    def __init__(self, path: str | Path, *, verify: bool = True) -> None:
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                self.header = self._check(file, verify)
        except StoreError as error:
            raise StoreError(f"{self.path}: {error}") from None
        shape = (self.header.count, self.header.layout.record)
        # The packed records, as they lie on disk. An empty file cannot be mapped.
        self.records: UInt8[np.ndarray, "count record"] = (
            np.memmap(self.path, np.uint8, "r", PAYLOAD_OFFSET, shape)
            if self.header.count
            else np.empty(shape, np.uint8)
        )

    @staticmethod
    def _check(file: io.BufferedReader, verify: bool) -> Header:
        header = Header.decode(file.read(PAYLOAD_OFFSET))
        size = os.fstat(file.fileno()).st_size
        if size != header.file_size:
            what = "cut short" if size < header.file_size else "too long"
            raise StoreError(
                f"the file is {what}: {size:,} bytes instead of {header.file_size:,}; {_AGAIN}"
            )
        # `file` stands at the first record now.
        if verify and hashlib.file_digest(file, "sha256").hexdigest() != header.payload_sha256:
            raise StoreError(f"the records are damaged: their checksum differs; {_AGAIN}")
        return header

    def __len__(self) -> int:
        return self.header.count

    @property
    def geometry(self) -> Geometry:
        return self.header.geometry

    def puzzles(self, rows: Rows = ALL) -> UInt8[np.ndarray, "batch cells"]:
        return unpack_puzzles(self._take(rows), self.geometry)

    def solutions(self, rows: Rows = ALL) -> UInt8[np.ndarray, "batch cells"]:
        return np.ascontiguousarray(unpack_solutions(self._take(rows), self.geometry))

    def ratings(self, rows: Rows = ALL) -> Float32[np.ndarray, "batch"]:
        """NaN where the rating is unknown. Kept as float16, so three digits are sure."""
        return unpack_ratings(self._take(rows), self.geometry)

    def sources(self, rows: Rows = ALL) -> UInt8[np.ndarray, "batch"]:
        """Indices into `header.sources`."""
        return unpack_sources(self._take(rows), self.geometry)

    def chunks(self, size: int = 65536) -> Iterator[Entries]:
        """The whole set in order, `size` puzzles at a time."""
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            yield Entries(
                self.puzzles(rows), self.solutions(rows), self.ratings(rows), self.sources(rows)
            )

    def _take(self, rows: Rows) -> UInt8[np.ndarray, "batch record"]:
        return np.asarray(self.records[rows])


@final
class StoreWriter:
    """Writes a set, batch by batch, in constant memory.

    with StoreWriter("hard.ronri", NINE) as writer:
        writer.append(puzzles, solutions, ratings, "forum")

    The set appears when the block ends without an exception. Its header is written last, so the
    partial file of a killed process does not even start like a set.
    """

    def __init__(
        self, path: str | Path, geometry: Geometry, *, provenance: Mapping[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        self.geometry = geometry
        self.count = 0
        # May be added to until the block ends.
        self.provenance = dict(provenance or {})
        self._digest = hashlib.sha256()
        self._sources: dict[str, int] = {}
        self._writing = self._write()

    def __enter__(self) -> "StoreWriter":
        self._writing.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._writing.__exit__(*exception)

    @contextmanager
    def _write(self) -> Iterator[None]:
        with whole_file(self.path) as self._file:
            self._file.seek(PAYLOAD_OFFSET)
            yield
            header = Header(
                geometry=self.geometry,
                count=self.count,
                sources=tuple(self._sources),
                provenance=self.provenance,
                payload_sha256=self._digest.hexdigest(),
            )
            self._file.seek(0)
            self._file.write(header.encode())

    def append(
        self,
        puzzles: UInt8[np.ndarray, "batch cells"],
        solutions: UInt8[np.ndarray, "batch cells"],
        ratings: Float[np.ndarray, "batch"] | None = None,
        sources: str | Sequence[str] = "",
    ) -> None:
        """Add puzzles with their solutions. `sources` is one name for all, or one for each."""
        if ratings is None:
            ratings = np.full(len(puzzles), np.nan, np.float16)
        names = [sources] * len(puzzles) if isinstance(sources, str) else sources
        cells = self.geometry.cells
        if puzzles.shape != (len(names), cells) or solutions.shape != puzzles.shape:
            raise ValueError(
                f"this set holds boards of {cells} cells, as many puzzles as solutions and sources;"
                f" got {puzzles.shape}, {solutions.shape} and {len(names)}"
            )
        check_storable(puzzles, solutions, ratings, self.geometry, first_row=self.count)
        known = list(dict.fromkeys([*self._sources, *names]))
        if len(known) > MAX_SOURCES:
            raise ValueError(
                f"a set can name {MAX_SOURCES} sources, and {known[MAX_SOURCES]!r} would be one "
                "more: does the source column really name where puzzles come from?"
            )
        self._sources = {name: index for index, name in enumerate(known)}
        indices = np.array([self._sources[name] for name in names], np.uint8)
        records = pack(puzzles, solutions, ratings, indices, self.geometry)
        self._digest.update(records.data)
        self._file.write(records.data)
        self.count += len(records)
