"""Trained reasoners on disk: save one, load one by name or by path, let it solve a puzzle.

A model is a folder with two files; a released one has a card beside them:

    weights.safetensors    the weights, by name
    model.json             format, kind of reasoner, board, config, which weights, their SHA-256

`load` takes the name of released weights (`trm`), the name of a reasoner that needs none
(`exact`), the folder of a model, or the folder of a run, of which it takes the best checkpoint.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import torch
from jaxtyping import UInt8
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ronri import registry
from ronri.nn import devices, fused
from ronri.nn.ema import restore_tensors
from ronri.nn.linear import undrawn
from ronri.reasoner import Budget, Halt, Reasoner
from ronri.recipe import config_from_plain
from ronri.sudoku.board import parse, to_text
from ronri.sudoku.geometry import NINE, STANDARD, Geometry, geometry_of
from ronri.thinking import answer

FORMAT = 1
RELEASED = Path(__file__).parent / "weights"

# How much longer than in training a reasoner may think about a puzzle that someone wants solved.
PATIENCE = 4

# Which weights: the moving average, or those that the last update left.
Which = Literal["ema", "raw"]


@final
@dataclass(frozen=True)
class Solved:
    """What came of one puzzle."""

    clues: UInt8[np.ndarray, "cells"]
    board: UInt8[np.ndarray, "cells"]
    # Whether the board keeps every clue and every rule. If not, it is not a solution.
    verified: bool
    confidence: float
    # How low the board lies; None where the reasoner has no energy.
    energy: float | None
    steps: int
    row_steps: int

    def __str__(self) -> str:
        return to_text(self.board)


@final
@dataclass(frozen=True)
class Loaded:
    """A reasoner that is ready to think, and where it comes from."""

    reasoner: Reasoner
    # As the user called it.
    name: str
    # The kind of reasoner: a folder of ronri/reasoners, or an entry point.
    kind: str
    # None where there is nothing to load.
    weights: Which | None
    sha256: str | None
    # Minutes of training in these weights, those of all ancestors included.
    minutes: float = 0.0
    compiled: bool = False

    def as_compiled(self) -> AbstractContextManager[object]:
        """Within it nothing is compiled any more: what would have to be runs as it is written."""
        if not self.compiled:
            return nullcontext()
        return torch.compiler.set_stance("eager_on_recompile")

    def budget(
        self,
        *,
        steps: int | None = None,
        samples: int = 1,
        views: int = 1,
        halt: Halt | None = None,
    ) -> Budget:
        """A budget for someone who wants an answer: think long, and stop when a board is right."""
        return Budget(
            steps=PATIENCE * self.reasoner.usual_steps if steps is None else steps,
            samples=samples,
            views=views,
            halt=halt or "verified",
        )

    def check_fits(self, geometry: Geometry) -> None:
        """Say so if these boards are not the ones this reasoner has learned."""
        own = self.reasoner.geometry
        if geometry != own:
            raise ValueError(
                f"{self.name} plays on {own.name} boards and the puzzle is {geometry.name}: "
                f"name another reasoner, or train one for {geometry.name}"
            )

    def solve(
        self,
        puzzle: str | UInt8[np.ndarray, "cells"],
        *,
        steps: int | None = None,
        samples: int = 1,
        views: int = 1,
        halt: Halt | None = None,
        seed: int = 0,
    ) -> Solved:
        """Think about one puzzle, given as text or as an array of cells."""
        clues = parse(puzzle) if isinstance(puzzle, str) else puzzle
        self.check_fits(geometry_of(clues))
        budget = self.budget(steps=steps, samples=samples, views=views, halt=halt)
        found = answer(self.reasoner, torch.from_numpy(clues[None]), budget, seed=seed)
        return Solved(
            clues=clues,
            board=found.board[0].cpu().numpy(),
            verified=bool(found.verified[0]),
            confidence=float(found.confidence[0]),
            energy=found.energy_of(0),
            steps=int(found.steps[0]),
            row_steps=int(found.row_steps[0]),
        )


def save(
    folder: Path,
    *,
    kind: str,
    config: Any,
    geometry: Geometry,
    weights: Mapping[str, Tensor],
    which: Which,
    minutes: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> str:
    """Write a model; returns the SHA-256 of its weights. bfloat16 halves what is released."""
    folder.mkdir(parents=True, exist_ok=True)
    rounded = {
        name: (value.to(dtype) if value.is_floating_point() else value).cpu().contiguous()
        for name, value in weights.items()
    }
    file = folder / "weights.safetensors"
    save_file(rounded, file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    facts = {
        "format": FORMAT,
        "reasoner": kind,
        "board": geometry.name,
        "config": asdict(config),
        "weights": which,
        "minutes": minutes,
        "sha256": sha256,
    }
    (folder / "model.json").write_text(json.dumps(facts, indent=2) + "\n")
    return sha256


def released() -> list[str]:
    """Names of the weights that come with the package."""
    return sorted(path.parent.name for path in RELEASED.glob("*/model.json"))


def load(
    name: str | Path,
    *,
    which: Which = "ema",
    device: str | torch.device | None = None,
    geometry: Geometry = NINE,
    compile: bool = False,
) -> Loaded:
    """The reasoner of that name or in that folder, ready to think.

    `geometry` is asked for only where nothing was trained: weights bring their own. What there is
    to `compile` takes about a minute at the first step, which pays where many puzzles follow.
    """
    place = device if isinstance(device, torch.device) else devices.pick(device)
    name = str(name)
    folder = RELEASED / name
    if not (folder / "model.json").is_file():
        entry = registry.reasoners().get(name)
        if entry is not None and not entry.learns:
            reasoner = entry.build(entry.config(), geometry).to(place)
            return Loaded(reasoner, name, name, None, None)
        folder = Path(name)
        if not folder.is_dir():
            raise ValueError(_unknown(name))
    stored = _read(folder, which)
    facts = stored.facts
    entry = registry.find(facts["reasoner"])
    own = next((g for g in STANDARD if g.name == facts["board"]), None)
    if own is None:
        raise ValueError(f"{folder}: no board is called {facts['board']!r}")
    with undrawn():
        reasoner = entry.build(config_from_plain(entry.config, facts["config"]), own)
    try:
        restore_tensors(reasoner.state_dict(), stored.tensors)
    except ValueError as error:
        raise ValueError(f"{folder}: the weights do not fit the config: {error}") from error
    # It thinks and learns no more: gradients, where thinking takes them, are not for weights.
    reasoner.to(place).eval().requires_grad_(requires_grad=False)
    reasoner.compute_dtype = devices.compute_dtype(place)
    fused.look(place)
    parts = reasoner.thinking_parts() if compile else ()
    for part in parts:
        part.compile()
    return Loaded(
        reasoner,
        name,
        facts["reasoner"],
        stored.which,
        facts["sha256"],
        facts["minutes"],
        compiled=bool(parts),
    )


def _unknown(name: str) -> str:
    names = [*released(), *(n for n, entry in registry.reasoners().items() if not entry.learns)]
    learns = name in registry.reasoners()
    why = "no weights of it were released" if learns else "there is no such folder"
    return f"{name!r} cannot be loaded: {why}; there are {', '.join(names)}, or name a folder"


@final
@dataclass(frozen=True)
class _Stored:
    """A model as it lies on disk."""

    facts: dict[str, Any]
    tensors: dict[str, Tensor]
    which: Which


def _read(folder: Path, which: Which) -> _Stored:
    """What the folder of a model, of a checkpoint or of a run holds."""
    try:
        if (folder / "model.json").is_file():
            model = json.loads((folder / "model.json").read_text())
            if model["format"] != FORMAT:
                raise ValueError(
                    f"{folder} has format {model['format']}, this Ronri reads format {FORMAT}"
                )
            weights = load_file(folder / "weights.safetensors")
            _compare(folder / "weights.safetensors", model["sha256"])
            names = ("reasoner", "board", "config", "minutes", "sha256")
            return _Stored({name: model[name] for name in names}, weights, model["weights"])
        state = _checkpoint(folder)
        saved = json.loads((state / "state.json").read_text())
        run, sha256 = saved["facts"], saved["sha256"]
        recipe = run["recipe"]
        _compare(state / "state.safetensors", sha256)
        prefix = "ema." if which == "ema" else "weights."
        tensors = load_file(state / "state.safetensors")
        weights = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        facts = {
            "reasoner": recipe["reasoner"],
            "board": recipe["board"],
            "config": recipe["model"],
            "minutes": run["processes"] * run["seconds"] / 60 + run["ancestors_minutes"],
            "sha256": sha256,
        }
        return _Stored(facts, weights, which)
    except (SafetensorError, json.JSONDecodeError, KeyError, FileNotFoundError) as error:
        raise ValueError(f"{folder} holds no whole model: {error!r}") from error


def _checkpoint(folder: Path) -> Path:
    """The folder itself if it is a checkpoint, or the best (else the last) one of a run."""
    if (folder / "state.json").is_file():
        return folder
    best = sorted(_snapshots(folder / "best"), key=_merit)
    last = sorted(_snapshots(folder / "checkpoints"))
    for found in (best, last):
        if found:
            return found[-1].parent
    raise ValueError(f"{folder} holds neither a model nor the checkpoints of a run")


def _snapshots(folder: Path) -> list[Path]:
    """What a killed run has left half written does not count."""
    found = folder.glob("step-*/state.json")
    return [state for state in found if state.parent.suffix != ".partial"]


def _merit(state: Path) -> tuple[float, float, int]:
    saved = json.loads(state.read_text())
    score = saved["score"]
    return score["puzzle_accuracy"], score["cell_accuracy"], saved["step"]


def _compare(file: Path, sha256: str) -> None:
    with file.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
            raise ValueError(f"{file} is damaged: its checksum differs; copy or download it again")
