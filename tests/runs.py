"""Training runs that are over in seconds."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ronri.data.generating import Order, fulfil
from ronri.data.store import StoreWriter
from ronri.reasoners.trm.config import Config
from ronri.recipe import Data, Optim, Recipe
from ronri.sudoku.geometry import FOUR


def write_puzzles(path: Path, count: int = 200) -> Path:
    """A small set of 4x4 puzzles."""
    with StoreWriter(path, FOUR) as writer:
        fulfil(Order(count=count, geometry=FOUR, fewest_clues=4, most_clues=8), writer)
    return path


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Whether two states have the same tensors, bit by bit."""
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def tiny(puzzles: Path, **changes: Any) -> Recipe[Config]:
    """A recipe for a network of two thousand weights."""
    settings: dict[str, Any] = {
        "reasoner": "trm",
        "board": "4x4",
        "model": Config(width=16, heads=2, inner=32, layers=1, h_cycles=2, l_cycles=1, max_steps=4),
        "data": Data(train=(str(puzzles),), validation=0.1, validation_puzzles=16),
        "optim": Optim(name="muon", lr=3e-3, matrix_lr=0.02, warmup=5, ema=0.9),
        "batch": 16,
        "base_batch": 16,
        "steps": 30,
        "validate_every": 15,
        "validation_steps": 2,
        "checkpoint_every": 10,
        "log_every": 5,
    }
    return Recipe(**{**settings, **changes})


def by_and_by(puzzles: Path, other: Path) -> Recipe[Config]:
    """A run that begins with the other puzzles alone, and with shallow steps."""
    recipe = tiny(puzzles)
    return replace(
        recipe,
        model=replace(recipe.model, shallow=0.5),
        data=replace(
            recipe.data,
            train=(f"{puzzles}=0.5", f"{other}=0.5"),
            early=(str(other),),
            early_part=0.8,
        ),
    )
