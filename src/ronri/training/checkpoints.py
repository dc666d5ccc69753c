"""What a run needs to go on as if nothing had happened, and the best it has been so far.

    RUN/checkpoints/step-00001200/   the newest two: where to resume
    RUN/best/step-00000900/          the best few, by validation

Each of these folders holds one snapshot in two files. `state.safetensors` has every tensor under a
flat name with dots, `state.json` has the rest:

    {"format": 1, "step": 1200, "sha256": "of state.safetensors",
     "score": {"puzzle_accuracy": 0.8, "cell_accuracy": 0.9} or null, "facts": {...}}

`read_snapshot(folder)` reads one, and checks it. A folder can be moved or copied as it is.

A name `step-…` always stands for a complete snapshot: it is written as `step-….partial`, brought
to the disk and then renamed, and a folder that goes becomes `.partial` before it is emptied. A
snapshot that is about to be replaced is called `step-….old` for the moment between two renames, and
counts as long as it exists. So a run can be killed at any time, and the next save sweeps up what it
left. Readers change nothing. There is one writer at a time.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import torch
from safetensors import torch as safetensors
from torch import Tensor

FORMAT = 1
TENSORS, STATE = "state.safetensors", "state.json"

_NAME = re.compile(r"step-(\d{8,})(\.old)?")


@dataclass(frozen=True)
class Snapshot:
    """A run at one step: its tensors, and what else there is to know, as JSON has it."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]


@dataclass(frozen=True, order=True)
class Score:
    """What snapshots are chosen by: whole puzzles first, cells where these are equal."""

    puzzle_accuracy: float
    cell_accuracy: float

    def __post_init__(self) -> None:
        assert 0 <= self.puzzle_accuracy <= 1
        assert 0 <= self.cell_accuracy <= 1


@dataclass(frozen=True)
class Kept:
    """One of the best snapshots, and where it lies."""

    score: Score
    step: int
    folder: Path


class Damaged(ValueError):
    """A snapshot that cannot be used. The message names the file and says what is wrong with it."""


def read_snapshot(folder: Path) -> Snapshot:
    """Read a snapshot, its tensors onto the CPU."""
    state = _read_state(folder)
    content = _read(folder / TENSORS)
    if hashlib.sha256(content).hexdigest() != state.sha256:
        raise Damaged(f"{folder / TENSORS} does not match its checksum")
    return Snapshot(state.step, safetensors.load(content), state.facts)


@final
class Checkpoints:
    """The snapshots in the folder of a run."""

    def __init__(self, folder: Path, keep_best: int = 3) -> None:
        self._newest = folder / "checkpoints"
        self._best = folder / "best"
        self._keep_best = keep_best
        self._damaged: set[Path] = set()

    def save(self, snapshot: Snapshot) -> None:
        """Make this the snapshot to resume from; of those before it, the newest one stays."""
        _sweep(self._newest)
        folder = _write(self._newest, snapshot, score=None)
        self._damaged.discard(folder)
        older = [
            path
            for path in _folders(self._newest)
            if _step(path) < snapshot.step and path not in self._damaged
        ]
        # A later one belongs to a future that was given up: the run did not resume from it.
        _keep_only(self._newest, {folder, *older[:1]})

    def latest(self, warn: Callable[[str], None]) -> Snapshot | None:
        """The newest intact snapshot, or none if none was saved yet.

        Tells `warn`, one line each, of newer ones that are damaged.
        """
        problems: list[str] = []
        for folder in _folders(self._newest):
            try:
                snapshot = read_snapshot(folder)
            except Damaged as damage:
                problems.append(str(damage))
                self._damaged.add(folder)
                continue
            for problem in problems:
                warn(f"{problem}; using {folder} instead")
            return snapshot
        if problems:
            raise ValueError(
                f"no snapshot in {self._newest} can be used, start the run anew: "
                + "; ".join(problems)
            )
        return None

    def offer(self, snapshot: Snapshot, score: Score) -> bool:
        """Keep a snapshot if it is among the best, and remove what fell out.

        Of equal scores the later step is better. A step that is offered again is judged anew.
        """
        _sweep(self._best)
        others = [kept for kept in self.ranking() if kept.step != snapshot.step]
        better = [kept for kept in others if (kept.score, kept.step) > (score, snapshot.step)]
        if len(better) >= self._keep_best:
            return False
        folder = _write(self._best, snapshot, score)
        _keep_only(self._best, {folder, *(kept.folder for kept in others[: self._keep_best - 1])})
        return True

    def ranking(self) -> list[Kept]:
        """The snapshots that were kept as the best, best first."""
        found: dict[int, Kept] = {}
        for folder in _folders(self._best):
            try:
                state = _read_state(folder)
            except Damaged:
                continue  # without a score it has no place here
            if state.score is not None:
                found.setdefault(state.step, Kept(state.score, state.step, folder))
        return sorted(found.values(), key=lambda kept: (kept.score, kept.step), reverse=True)

    def best(self) -> Path | None:
        """The folder of the best snapshot."""
        ranking = self.ranking()
        return ranking[0].folder if ranking else None


@dataclass(frozen=True)
class _State:
    """What `state.json` says."""

    step: int
    sha256: str
    score: Score | None
    facts: dict[str, Any]


def _read_state(folder: Path) -> _State:
    path = folder / STATE
    content = _read(path)
    try:
        fields = json.loads(content)
        version = fields["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(f"{path} is not the JSON it should be") from error
    if version != FORMAT:
        # Not damage to fall back from: the run is in the hands of another Ronri.
        raise ValueError(f"{path} has format {version}, this Ronri reads format {FORMAT}")
    del fields["format"]
    try:
        if fields["score"] is not None:
            fields["score"] = Score(**fields["score"])
        return _State(**fields)
    except (KeyError, TypeError) as error:
        raise Damaged(f"{path} does not have the fields it should have") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Damaged(f"{path} is missing") from error
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror})") from error


def _write(parent: Path, snapshot: Snapshot, score: Score | None) -> Path:
    """Write a snapshot among its siblings: all of it, or nothing that has a name."""
    # Copies of their own: views, expanded tensors and tied weights share memory, which the format
    # does not know.
    tensors = {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in snapshot.tensors.items()
    }
    content = safetensors.save(tensors)
    state = _State(snapshot.step, hashlib.sha256(content).hexdigest(), score, snapshot.facts)
    written = json.dumps({"format": FORMAT, **asdict(state)}) + "\n"

    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / f"step-{snapshot.step:08d}"
    partial, old = _suffixed(folder, ".partial"), _suffixed(folder, ".old")
    partial.mkdir()
    _write_through(partial / TENSORS, content)
    _write_through(partial / STATE, written.encode())
    _sync(partial)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    _sync(parent)
    return folder


def _folders(parent: Path) -> list[Path]:
    """The snapshots in a folder, latest first; one that is being replaced follows the new one."""
    found = [path for path in parent.glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (_step(path), not path.suffix), reverse=True)


def _step(folder: Path) -> int:
    name = _NAME.fullmatch(folder.name)
    assert name is not None
    return int(name[1])


def _keep_only(parent: Path, keep: set[Path]) -> None:
    for folder in _folders(parent):
        if folder not in keep:
            _remove(folder)


def _remove(folder: Path) -> None:
    # Renamed first: a name that stands for a whole snapshot never stands for half of one.
    partial = _suffixed(folder, ".partial")
    folder.rename(partial)
    shutil.rmtree(partial)


def _sweep(parent: Path) -> None:
    """Bring to an end what killed writers have begun."""
    for partial in parent.glob("step-*.partial"):
        shutil.rmtree(partial)
    for old in parent.glob("step-*.old"):
        folder = old.with_suffix("")
        if folder.exists():
            _remove(old)
        else:
            old.rename(folder)


def _suffixed(folder: Path, suffix: str) -> Path:
    return folder.with_name(folder.name + suffix)


def _write_through(path: Path, content: bytes) -> None:
    """Write a file to the disk itself, not to a cache that a power cut empties."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """The names in a folder are content too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
