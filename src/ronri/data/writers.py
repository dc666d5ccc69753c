"""Lists of puzzles written as CSV or plain text, for any program to read; `formats` reads them."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, UInt8

from ronri.data.files import zipped
from ronri.data.store import StoreWriter
from ronri.sudoku.board import to_lines
from ronri.sudoku.geometry import Geometry

_HEADER = b"source,question,answer,rating\n"


@final
@dataclass(frozen=True)
class CsvWriter:
    """See `csv_writer`."""

    stream: io.BufferedIOBase

    def append(
        self,
        puzzles: UInt8[np.ndarray, "batch cells"],
        solutions: UInt8[np.ndarray, "batch cells"] | None = None,
        ratings: Float[np.ndarray, "batch"] | None = None,
        sources: str | Sequence[str] = "",
    ) -> None:
        """Write rows. A solution of zeros and a rating of NaN stand for "unknown"."""
        count = len(puzzles)
        names = [sources] * count if isinstance(sources, str) else sources
        if solutions is None:
            answers = [""] * count
        else:
            unknown = "." * solutions.shape[1]
            answers = [line if line != unknown else "" for line in to_lines(solutions)]
        if ratings is None:
            ratings = np.full(count, np.nan, np.float32)
        # As text a number has the fewest digits that tell it from its neighbours of its own type.
        scores = np.where(np.isnan(ratings), "", ratings.astype(str)).tolist()
        rows = zip(names, to_lines(puzzles), answers, scores, strict=True)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.stream.write(text.getvalue().encode())


@final
@dataclass(frozen=True)
class TextWriter:
    """See `text_writer`."""

    stream: io.BufferedIOBase

    def append(self, puzzles: UInt8[np.ndarray, "batch cells"], *_others: object) -> None:
        """Write puzzles; plain text has no place for what else is known about them."""
        self.stream.write("".join(f"{line}\n" for line in to_lines(puzzles)).encode())


@contextmanager
def csv_writer(path: str | Path) -> Iterator[CsvWriter]:
    """A CSV with the columns of Sudoku-Extreme; gzip if the name ends in `.gz`.

    The file appears when the block ends without an exception. Equal rows make equal bytes.
    """
    with zipped(path) as stream:
        stream.write(_HEADER)
        yield CsvWriter(stream)


@contextmanager
def text_writer(path: str | Path) -> Iterator[TextWriter]:
    """Plain text, one puzzle a line; otherwise like `csv_writer`."""
    with zipped(path) as stream:
        yield TextWriter(stream)


def open_writer(
    path: Path, geometry: Geometry, provenance: Mapping[str, str]
) -> AbstractContextManager[StoreWriter | CsvWriter | TextWriter]:
    """A writer for the kind of file that the name asks for."""
    kind = path.name.removesuffix(".gz")
    if path.suffix == ".ronri":
        return StoreWriter(path, geometry, provenance=provenance)
    if kind.endswith(".csv"):
        return csv_writer(path)
    if kind.endswith(".txt"):
        return text_writer(path)
    raise ValueError(f"{path}: the name must end in .ronri, .csv, .csv.gz, .txt or .txt.gz")
