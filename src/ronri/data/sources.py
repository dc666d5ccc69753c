"""Named data sets: suites, public lists, files. Whatever a user types where data is asked for.

A name can be
- a suite: `everyday`, `mini4`, `mini6` (generated here, the same everywhere), `clue17`, `hard`,
  `minimal`, `kaggle3m` (real lists);
- something to learn from that shares nothing with its suite: `everyday-train`, `mini4-train`,
  `mini6-train` (generated here), `hard-train`, `clue17-train`, `minimal-train` (real lists),
  `tricky-made` (made here), `hard-bred` (made here from puzzles of `hard-train`), both apart from
  every suite;
- a public data set: `kaggle-1m`, `kaggle-3m`, `kaggle-9m`, `sudoku-extreme`,
  `sudoku-extreme-test`, or any other as `kaggle:OWNER/NAME/FILE` or `hf:OWNER/NAME/FILE`;
- a file: a stored set, a CSV or a plain list.

Whatever it is, `open_set` gives a stored set. Sets that had to be generated or imported are kept
in the cache folder, so this is done once.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ronri.data.generating import Order, fulfil
from ronri.data.importing import import_file
from ronri.data.splits import SplitRule, set_keys
from ronri.data.store import MAGIC, PuzzleSet, StoreError, StoreWriter
from ronri.sudoku.geometry import FOUR, SIX

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Suite:
    """A test set that is made here, and the checksum of its records: the same everywhere."""

    order: Order
    sha256: str


GENERATED = {
    "everyday": Suite(
        Order(count=10_000, fewest_clues=24, most_clues=36, seed=0x5EED_0009_0001),
        "742cea472fe9576bc4daae5184358defce13cb02a090995cbd37f3c8b24224bc",
    ),
    "mini4": Suite(
        Order(count=500, geometry=FOUR, fewest_clues=4, most_clues=8, seed=0x5EED_0004_0001),
        "5c62fa7eb1d16fb7ef6d9b030f5bc39f467965b4c687019281f47f90d4e07551",
    ),
    "mini6": Suite(
        Order(count=1_000, geometry=SIX, fewest_clues=10, most_clues=18, seed=0x5EED_0006_0001),
        "9f287a0e5e06a5da234ceae4779e1fc74dc6cd12079a891cb4876454b5768e2a",
    ),
}


@dataclass(frozen=True)
class Learned:
    """A set to learn from that is made here, and the suites that it shares nothing with."""

    order: Order
    apart_from: tuple[str, ...]
    # A list that hard puzzles are bred from.
    ancestors: str | None = None
    # Suites that suggested what to make, by what was wrong there: no untouched tests any more.
    suggested_by: tuple[str, ...] = ()
    # About so many minutes to make on two cores, if it takes long.
    minutes: int | None = None


# The suites with boards of that size.
NINE_BY_NINE = ("everyday", "minimal", "clue17", "hard", "kaggle3m")

# As much of a list as recipes hold out, unless they are told otherwise: nothing is bred from it.
HELD_OUT = 0.02

TRAINING = {
    "everyday-train": Learned(
        Order(count=200_000, fewest_clues=24, most_clues=36, seed=0x5EED_0009_0002, copies=1),
        apart_from=("everyday",),
    ),
    "mini4-train": Learned(
        Order(count=1_500, geometry=FOUR, fewest_clues=4, most_clues=8, seed=0x5EED_0004_0002),
        apart_from=("mini4",),
    ),
    "mini6-train": Learned(
        Order(count=20_000, geometry=SIX, fewest_clues=10, most_clues=18, seed=0x5EED_0006_0002),
        apart_from=("mini6",),
    ),
    "tricky-made": Learned(
        Order(kind="tricky", count=200_000, least_guesses=8.0, seed=0x5EED_0009_0004),
        apart_from=NINE_BY_NINE,
        suggested_by=("kaggle3m",),
        minutes=10,
    ),
    "hard-bred": Learned(
        Order(kind="hard", count=300_000, seed=0x5EED_0009_0003),
        apart_from=NINE_BY_NINE,
        ancestors="hard-train",
        minutes=20,
    ),
}

# Real lists: file names inside the folder of real lists. A stored set NAME.ronri there goes first.
LISTS = {
    "clue17": "clue17-test.csv.gz",
    "hard": "hard-test.csv.gz",
    "minimal": "minimal-test.csv.gz",
    "kaggle3m": "kaggle3m-test.csv.gz",
    "clue17-train": "clue17-train.csv.gz",
    "hard-train": "hard-train.csv.gz",
    "minimal-train": "minimal-train.csv.gz",
}

SUITES = (*GENERATED, "minimal", "clue17", "hard", "kaggle3m")

# Public data sets by short names.
PUBLIC = {
    "kaggle-1m": "kaggle:bryanpark/sudoku/sudoku.csv",
    "kaggle-3m": "kaggle:radcliffe/3-million-sudoku-puzzles-with-ratings/sudoku-3m.csv",
    "kaggle-9m": "kaggle:rohanrao/sudoku/sudoku.csv",
    "sudoku-extreme": "hf:sapientinc/sudoku-extreme/train.csv",
    "sudoku-extreme-test": "hf:sapientinc/sudoku-extreme/test.csv",
}


def cache_folder() -> Path:
    """Where generated and imported sets are kept: `RONRI_CACHE`, or the user's cache folder."""
    if os.environ.get("RONRI_CACHE"):
        return Path(os.environ["RONRI_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ronri"


def lists_folder() -> Path | None:
    """Where the real lists are: `RONRI_DATA`, or `shared/data` here or one folder up."""
    if os.environ.get("RONRI_DATA"):
        return Path(os.environ["RONRI_DATA"])
    for folder in (Path("shared/data"), Path("../shared/data")):
        if folder.is_dir():
            return folder
    return None


def open_set(
    name: str,
    *,
    lists: Path | None = None,
    cache: Path | None = None,
    threads: int | None = None,
) -> PuzzleSet:
    """The set of that name, from the cache or made now. `lists` is the folder of real lists.

    Rows of a list that cannot be used are left out; `header.provenance["refused"]` counts them.
    """
    cache = cache_folder() if cache is None else cache
    if name in GENERATED:
        return _open_suite(name, cache, threads)
    if name in TRAINING:
        return _open_training(name, lists, cache, threads)
    path = locate(name, lists=lists)
    if path.suffix == ".ronri" or is_set(path):
        return PuzzleSet(path)
    # The same file gets the same place; a changed one is imported anew.
    stat = path.stat()
    mark = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    key = hashlib.sha256(mark.encode()).hexdigest()[:12]

    def make(out: Path) -> None:
        report = import_file(path, out, threads=threads)
        if not report.kept:
            why = f" ({report.examples[0]})" if report.examples else ""
            raise ValueError(f"{path} has no puzzle that can be used{why}")

    return _cached(name, cache / f"{path.name.split('.')[0]}-{key}.ronri", make)


def _open_suite(name: str, cache: Path, threads: int | None) -> PuzzleSet:
    suite = GENERATED[name]
    place = cache / f"{name}-{suite.sha256[:12]}.ronri"
    found = _cached(name, place, lambda path: write_suite(name, path, threads=threads))
    if found.header.payload_sha256 != suite.sha256:
        place.unlink()
        raise ValueError(
            f"{name} came out otherwise than everywhere else, so scores on it would not compare; "
            "please report the versions of Python, numba and numpy"
        )
    return found


def _open_training(name: str, lists: Path | None, cache: Path, threads: int | None) -> PuzzleSet:
    learned = TRAINING[name]

    def opened(other: str) -> PuzzleSet:
        return open_set(other, lists=lists, cache=cache, threads=threads)

    known = {other: opened(other) for other in learned.apart_from}
    ancestors = None if learned.ancestors is None else opened(learned.ancestors)
    # A changed order, other ancestors or other suites to keep away from make another file.
    contents = [one.header.payload_sha256 for one in known.values()]
    contents += [] if ancestors is None else [ancestors.header.payload_sha256]
    mark = " ".join([str(learned.order), *contents])
    key = hashlib.sha256(mark.encode()).hexdigest()[:12]

    def make(path: Path) -> None:
        order, provenance = learned.order, {"apart from": ", ".join(known)}
        if ancestors is not None:
            keys = set_keys(ancestors, threads=threads).split
            rows = SplitRule.of(keys, validation=HELD_OUT).mask("train", keys)
            order = replace(order, ancestors=ancestors.puzzles(rows))
            provenance["of"] = f"{learned.ancestors}, without the {HELD_OUT:.0%} that are held out"
        exclude = np.concatenate([set_keys(one, threads=threads).split for one in known.values()])
        provenance |= order.provenance
        with StoreWriter(path, order.geometry, provenance=provenance) as writer:
            fulfil(order, writer, name=name, exclude=exclude, threads=threads)

    return _cached(name, cache / f"{name}-{key}.ronri", make, TRAINING[name].minutes)


def locate(name: str, *, lists: Path | None = None) -> Path:
    """The file behind a name, downloaded if it must be."""
    if name in LISTS:
        folder = lists_folder() if lists is None else lists
        if folder is not None and (folder / f"{name}.ronri").is_file():
            return folder / f"{name}.ronri"
        if folder is None or not (folder / LISTS[name]).is_file():
            looked = f"it is not in {folder}" if folder else "no folder of lists is known"
            raise ValueError(
                f"{name} needs the file {LISTS[name]}, and {looked}; "
                "set RONRI_DATA to the folder that has it, or name a file instead"
            )
        return folder / LISTS[name]
    if name in GENERATED or name in TRAINING:
        what = "a suite" if name in GENERATED else "generated"
        raise ValueError(f"{name} is no list but {what}: name it where a set is asked for")
    address = PUBLIC.get(name, name)
    kind, colon, rest = address.partition(":")
    if colon and kind in ("kaggle", "hf"):
        parts = rest.split("/", 2)
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"write {kind}:OWNER/NAME/FILE, not {name!r}")
        return _download(kind, f"{parts[0]}/{parts[1]}", parts[2])
    if Path(name).is_dir():
        raise ValueError(f"{name} is a folder; name a file in it")
    if not Path(name).is_file():
        names = ", ".join([*GENERATED, *TRAINING, *LISTS, *PUBLIC])
        raise ValueError(f"there is no file {name!r}, and no data set of that name ({names})")
    return Path(name)


def write_suite(name: str, path: Path, *, threads: int | None = None) -> None:
    """Make a generated suite."""
    order = GENERATED[name].order
    provenance = {"suite": name, **order.provenance}
    with StoreWriter(path, order.geometry, provenance=provenance) as writer:
        fulfil(order, writer, name=name, threads=threads)


def is_set(path: Path) -> bool:
    """Whether a file starts like a stored set."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _cached(
    name: str, path: Path, make: Callable[[Path], None], minutes: int | None = None
) -> PuzzleSet:
    """The set at `path`; made first if it is not there, and again if it is damaged."""
    if path.is_file():
        try:
            return PuzzleSet(path)
        except StoreError:
            path.unlink()
    long = f" (some {minutes} minutes on two cores)" if minutes else ""
    log.info("preparing %s, once%s; it is kept for the next time", name, long)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
    except OSError as error:
        raise ValueError(
            f"the cache folder {path.parent} cannot be used ({error.strerror}); "
            "set RONRI_CACHE to a folder you may write to"
        ) from error
    return PuzzleSet(path)


def _download(kind: str, repository: str, file: str) -> Path:
    """Fetch one file of a public data set, by the library of whoever hosts it."""
    by_hand = "or download it by hand and give the path of the file instead"
    module, extra = ("kagglehub", "kaggle") if kind == "kaggle" else ("huggingface_hub", "hub")
    try:
        library: Any = import_module(module)
    except ImportError:
        raise ValueError(
            f"{kind}:{repository} needs {module}: pip install 'ronri[{extra}]', {by_hand}"
        ) from None
    try:
        if kind == "kaggle":
            return Path(library.dataset_download(repository, path=file))
        return Path(library.hf_hub_download(repository, file, repo_type="dataset"))
    except Exception as error:  # these libraries raise whatever their network layer raises
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise ValueError(
            f"{file} of {kind}:{repository} could not be downloaded ({reason}); "
            f"check the name and the connection, {by_hand}"
        ) from error
