"""Lists of puzzles that several tests write and read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ronri.data.formats import Reader
from ronri.data.rows import Batch
from ronri.sudoku.board import to_lines
from ronri.sudoku.geometry import NINE, Geometry

HEADER = "source,question,answer,rating"


def random_boards(count: int, geometry: Geometry = NINE, seed: int = 0) -> np.ndarray:
    """Full grids of random digits: readers do not ask whether they keep the rules."""
    random = np.random.default_rng(seed)
    return random.integers(1, geometry.size + 1, (count, geometry.cells)).astype(np.uint8)


def rows(count: int, seed: int = 0) -> list[str]:
    """Rows of a Sudoku-Extreme list, no two of them alike."""
    solutions = random_boards(count, seed=seed)
    puzzles = solutions * (random_boards(count, seed=seed + 1) < 4)
    lines = zip(to_lines(puzzles), to_lines(solutions), strict=True)
    return [f"list{i % 3},{p},{s},{i / 10}" for i, (p, s) in enumerate(lines)]


def write(folder: Path, content: bytes | Sequence[str], name: str = "list.csv") -> Path:
    """A file of these bytes, or of these lines."""
    if not isinstance(content, bytes):
        content = "".join(f"{line}\n" for line in content).encode()
    path = folder / name
    path.write_bytes(content)
    return path


def joined(batches: Sequence[Batch]) -> Batch:
    return Batch(
        np.concatenate([batch.puzzles for batch in batches]),
        np.concatenate([batch.solutions for batch in batches]),
        np.concatenate([batch.ratings for batch in batches]),
        [source for batch in batches for source in batch.sources],
        np.concatenate([batch.lines for batch in batches]),
    )


def read(path: Path, **options: Any) -> Batch:
    return joined(list(Reader(path, **options)))


def assert_equal(a: Batch, b: Batch) -> None:
    for name in ("puzzles", "solutions", "ratings", "lines"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.sources == b.sources


def digits(text: str) -> list[int]:
    return [int(character.replace(".", "0")) for character in text]
