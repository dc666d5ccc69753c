"""The lines of a text, block by block, found all together and not copied out of their block."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Bool, Int64

from ronri.sudoku.geometry import MAX_SIZE

# Bytes of text read at a time: some 20,000 rows.
BLOCK_BYTES = 4 << 20
# A longer line is no row of any list; without this bound such a file would fill the memory.
LONGEST_LINE = 100_000
# Behind every block, so that whoever copies a board from a line need not ask where the block ends:
# as many bytes as the largest board has cells.
PADDING = bytes(MAX_SIZE**2)


@final
@dataclass(frozen=True)
class FirstLine:
    """The first line that says anything."""

    number: int
    raw: bytes

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace").strip()


def first_line(stream: io.BufferedIOBase, path: Path) -> FirstLine:
    """Read past blank lines and comments to the first other line."""
    raw = _rest_of_line(stream, path)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path}: the text is in UTF-16; save it as UTF-8")
    if b"\0" in raw:
        raise ValueError(f"{path}: this is no text file, so no list of puzzles")
    line = FirstLine(1, raw.removeprefix(b"\xef\xbb\xbf"))
    while line.raw and (not line.text or line.text.startswith("#")):
        line = FirstLine(line.number + 1, _rest_of_line(stream, path))
    if not line.raw:
        raise ValueError(f"{path}: there is nothing in this file")
    if "\r" in line.text:
        raise ValueError(f"{path}: lines end in carriage returns alone; save it with line feeds")
    return line


def blocks(stream: io.BufferedIOBase, start: bytes, path: Path) -> Iterator[bytes]:
    """Whole lines, a few megabytes at a time: `start` and then what the stream still has.

    Every line ends with a line feed, the last one too; behind it comes the padding.
    """
    while block := start + stream.read(BLOCK_BYTES):
        start = b""
        rest = b"" if block.endswith(b"\n") else _rest_of_line(stream, path)
        line_feed = b"" if (rest or block).endswith(b"\n") else b"\n"
        # Under the same name, or the bytes as they were read would stay in memory beside these.
        block = b"".join((block, rest, line_feed, PADDING))
        yield block


def _rest_of_line(stream: io.BufferedIOBase, path: Path) -> bytes:
    rest = stream.readline(LONGEST_LINE)
    if len(rest) == LONGEST_LINE:
        raise ValueError(
            f"{path}: a line is longer than {LONGEST_LINE:,} bytes; this is no list of puzzles"
        )
    return rest


@final
@dataclass(frozen=True)
class Lines:
    """Some lines of a block, by where they start and end in it (line ends left out)."""

    block: bytes
    # Whether `#` starts a comment.
    comments: bool
    numbers: Int64[np.ndarray, "lines"]
    starts: Int64[np.ndarray, "lines"]
    ends: Int64[np.ndarray, "lines"]

    @classmethod
    def of(cls, block: bytes, first_number: int, comments: bool) -> "Lines":
        """All lines of a block."""
        characters = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(characters == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        numbers = np.arange(first_number, first_number + len(ends))
        # An empty line starts at its own end: the byte before belongs to another line.
        ends = ends - ((ends > starts) & (characters[ends - 1] == ord("\r")))
        return cls(block, comments, numbers, starts, ends)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: slice | Bool[np.ndarray, "lines"]) -> "Lines":
        return replace(
            self, numbers=self.numbers[rows], starts=self.starts[rows], ends=self.ends[rows]
        )

    def text(self, i: int) -> str:
        text = self.block[self.starts[i] : self.ends[i]].decode("utf-8", "replace")
        return text.partition("#")[0] if self.comments else text

    def with_text(self) -> "Lines":
        """Those that say more than blanks and comments."""
        kept = self.ends > self.starts
        first = np.frombuffer(self.block, np.uint8)[self.starts]
        # Any other first character is text; after one of these the whole line must be looked at.
        doubtful = kept & ((first <= ord(" ")) | (first == ord("#")) | (first >= 128))
        for i in np.flatnonzero(doubtful).tolist():
            kept[i] = bool(self.text(i).strip())
        return self.take(kept)
