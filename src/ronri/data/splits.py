"""Train, validation and test that cannot leak, not even up to symmetry.

Every puzzle has a key: a hash of the canonical form of its solution grid, the same for all its
symmetric copies and for all puzzles that share its solution. A rule cuts the range of keys into
three: low keys are test, high keys are validation, the rest is train. Which part a puzzle falls
into depends on the rule and the puzzle, never on what else was loaded.

Small boards have few solution grids (4x4 has two, up to symmetry), so there the key is that of
the canonical puzzle.
"""

import json
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, UInt8, UInt64

from ronri.data.store import PuzzleSet, StoreWriter
from ronri.sudoku import symmetry
from ronri.sudoku.geometry import NINE, Geometry

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = get_args(Part)

FORMAT = 1
_KEYS = 2**64

# How large a part is: a number of puzzles, or a fraction of all.
Size = int | float


@dataclass(frozen=True)
class Keys:
    """Hashes of canonical forms, equal for symmetric copies."""

    puzzles: UInt64[np.ndarray, "batch"]
    solutions: UInt64[np.ndarray, "batch"]
    split_by_puzzle: bool

    @property
    def split(self) -> UInt64[np.ndarray, "batch"]:
        """What puzzles are split by: equal for any two that must not be separated."""
        return self.puzzles if self.split_by_puzzle else self.solutions


def keys_of(
    puzzles: UInt8[np.ndarray, "batch cells"],
    solutions: UInt8[np.ndarray, "batch cells"],
    geometry: Geometry,
    *,
    threads: int | None = None,
) -> Keys:
    """The keys of puzzles with these unique solutions."""
    forms = symmetry.to_canonical(puzzles, solutions, geometry, threads=threads)
    return Keys(
        puzzles=symmetry.canonical_hash(symmetry.apply(forms, puzzles)),
        solutions=symmetry.canonical_hash(symmetry.apply(forms, solutions)),
        split_by_puzzle=geometry.size < NINE.size,
    )


def set_keys(source: PuzzleSet, *, threads: int | None = None) -> Keys:
    """The keys of all puzzles of a set."""
    found = [
        keys_of(chunk.puzzles, chunk.solutions, source.geometry, threads=threads)
        for chunk in source.chunks()
    ]
    none = np.zeros(0, np.uint64)
    return Keys(
        puzzles=np.concatenate([none, *(keys.puzzles for keys in found)]),
        solutions=np.concatenate([none, *(keys.solutions for keys in found)]),
        split_by_puzzle=source.geometry.size < NINE.size,
    )


@dataclass(frozen=True)
class SplitRule:
    """Keys below `test_below` are test, keys from `validation_from` on validation."""

    test_below: int = 0
    validation_from: int = _KEYS

    def __post_init__(self) -> None:
        if not 0 <= self.test_below <= self.validation_from <= _KEYS:
            raise ValueError("test and validation overlap: ask for less of them")

    def mask(self, part: Part, keys: UInt64[np.ndarray, "batch"]) -> Bool[np.ndarray, "batch"]:
        """Which of the keys belong to a part."""
        test = _below(keys, self.test_below)
        validation = ~_below(keys, self.validation_from)
        if part == "test":
            return test
        if part == "validation":
            return validation
        return ~(test | validation)

    @classmethod
    def of(
        cls, keys: UInt64[np.ndarray, "batch"], *, test: Size = 0, validation: Size = 0
    ) -> "SplitRule":
        """The rule that makes parts of these sizes out of these keys.

        A fraction fixes the rule by itself. A count takes as many puzzles as it says, or a few
        less where puzzles share a key; the rule it leads to can be written down and used on other
        sets, and every puzzle lands where it did.
        """
        test_below = _edge(np.sort(keys), test)
        # Validation grows down from the highest key as test grows up from the lowest.
        validation_from = _KEYS - _edge(np.sort(~keys), validation)
        if isinstance(test, float) and isinstance(validation, float):
            # 0.9 and 0.1 are not exactly what they say.
            meet = test + validation <= 1
        else:
            # An edge drawn by a count may lie anywhere between two keys.
            meet = not (~_below(keys, validation_from) & _below(keys, test_below)).any()
        if not meet:
            raise ValueError(
                f"test and validation overlap: there are only {len(keys):,} puzzles, ask for less"
            )
        validation_from = max(validation_from, test_below)
        return cls(test_below, validation_from)

    def to_json(self) -> dict[str, int | str]:
        """Edges as text: they are too large for the numbers of most programs that read JSON."""
        return {"format": FORMAT} | {name: hex(edge) for name, edge in asdict(self).items()}

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_json(), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> "SplitRule":
        """Read what `write` wrote."""
        try:
            fields = dict(json.loads(path.read_text()))
            known = {"test_below", "validation_from"}
            if fields.pop("format", None) != FORMAT or set(fields) != known:
                raise ValueError("its fields are not those of a split rule")
            return cls(**{name: int(edge, 16) for name, edge in fields.items()})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is no split rule of this Ronri: {error}") from error


@dataclass(frozen=True)
class SplitReport:
    """What `split` wrote: the rule, and each part's file and number of puzzles."""

    rule: SplitRule
    counts: Mapping[Part, int]
    files: Mapping[Part, Path]


def split(
    source: PuzzleSet,
    folder: Path,
    *,
    test: Size = 0,
    validation: Size = 0,
    rule: SplitRule | None = None,
    threads: int | None = None,
) -> SplitReport:
    """Write the parts of a set into a folder as `train.ronri`, `validation.ronri`, `test.ronri`.

    The rule is written beside them as `split.json`. Give a `rule` to cut another set the same way.
    The folder must be new or empty, and appears when everything is in it: parts of two splits side
    by side could leak.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already; name a new folder for the parts")
    found = set_keys(source, threads=threads).split
    if rule is None:
        rule = SplitRule.of(found, test=test, validation=validation)
    counts: dict[Part, int] = {}
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.partial")
    partial.mkdir()
    try:
        for part in PARTS:
            rows = np.flatnonzero(rule.mask(part, found))
            copy_rows(source, rows, partial / f"{part}.ronri", {"part": part})
            counts[part] = len(rows)
        rule.write(partial / "split.json")
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return SplitReport(rule, counts, {part: folder / f"{part}.ronri" for part in PARTS})


def copy_rows(
    source: PuzzleSet, rows: np.ndarray, path: Path, provenance: Mapping[str, str]
) -> None:
    """Write some rows of a set as a set of their own, its provenance extended."""
    names = source.header.sources
    with StoreWriter(
        path, source.geometry, provenance={**source.header.provenance, **provenance}
    ) as writer:
        for start in range(0, len(rows), 65_536):
            part = rows[start : start + 65_536]
            writer.append(
                source.puzzles(part),
                source.solutions(part),
                source.ratings(part),
                [names[index] for index in source.sources(part)],
            )


def _below(keys: np.ndarray, edge: int) -> np.ndarray:
    """Whether keys are below an edge, which may be one past the largest key there can be."""
    return np.ones(len(keys), bool) if edge == _KEYS else keys < np.uint64(edge)


def parse_size(text: str) -> Size:
    """Read a size as people write it: 5000, 0.02 or 2%."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if text.isdecimal():
        return int(text)
    if not 0 <= share <= 1:
        raise ValueError(
            f"a size is a count (5000), a fraction (0.02) or a percentage (2%), not {text!r}"
        )
    return share


def _edge(ordered: np.ndarray, size: Size) -> int:
    """The edge that has `size` of the ordered keys below it."""
    if isinstance(size, float):
        if not 0 <= size <= 1:
            raise ValueError(f"a fraction lies between 0 and 1, not {size}")
        return int(size * _KEYS)
    if not 0 <= size <= len(ordered):
        raise ValueError(f"cannot take {size:,} puzzles out of {len(ordered):,}")
    if size == 0:
        return 0
    if size == len(ordered):
        return _KEYS
    # The first key that stays out: all puzzles that share it stay out too.
    return int(ordered[size])
