"""Ensos that are small enough to be looked at, and lessons for them."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ronri.data.stream import Batch
from ronri.reasoner import Noise
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.model import Enso
from ronri.sudoku.generate import puzzles_with_clues
from ronri.sudoku.geometry import FOUR, Geometry

BOARD = Config(
    width=16,
    heads=2,
    layers=2,
    inner=32,
    latent=6,
    predictor_inner=24,
    decoder_layers=1,
    decoder_width=8,
    decoder_heads=2,
    dropout=0.0,
    steps=8,
)
CELLS = Config(
    latents="cells",
    width=16,
    layers=1,
    inner=32,
    message=8,
    latent=4,
    predictor_inner=24,
    decoder_layers=1,
    dropout=0.0,
    teach="descent",
    radius=2.0,
    latent_noise=1.0,
    energy_weight=0.05,
    variance_weight=0.1,
    covariance_weight=0.001,
    constraint_weight=0.01,
    max_steps=6,
    steps=8,
    step_size=5.0,
    noise=0.1,
    penalty_first=0.05,
    penalty=0.1,
)


def but(config: Config, **changes: Any) -> Config:
    """A config with something changed."""
    return replace(config, **changes)


def model_of(config: Config, geometry: Geometry = FOUR, seed: int = 0) -> Enso:
    torch.manual_seed(seed)
    return Enso(config, geometry)


def lessons(seed: int = 1, slots: int = 6, clues: tuple[int, int] = (5, 8)) -> Batch:
    made = puzzles_with_clues(slots, *clues, seed=seed, geometry=FOUR)
    keys = torch.arange(slots) + 1000 * seed
    return Batch(torch.from_numpy(made.puzzles), torch.from_numpy(made.solutions), keys)


def taught(config: Config, updates: int, slots: int = 48) -> Enso:
    """A model that has learned a little."""
    model = model_of(config).train()
    optimiser = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=3e-3)
    carry = model.initial_carry(torch.arange(slots))
    for update in range(updates):
        progress = torch.tensor(update / updates)
        lesson = model.training_step(lessons(update, slots), carry, progress)
        optimiser.zero_grad()
        lesson.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        model.after_update(progress)
        carry = lesson.carry
    return model.eval()


def point(model: Enso, seed: int = 1) -> tuple[Batch, Tensor, Tensor]:
    """Lessons, their context, and latents somewhere."""
    batch = lessons(seed)
    torch.manual_seed(seed)
    z = 0.5 * torch.randn(len(batch.clues), model.landscape.vectors, model.config.latent)
    with torch.no_grad():
        return batch, model.landscape.known(batch.clues, torch.float32), z


def quiet(rows: int) -> Noise:
    keys = torch.arange(rows)
    return Noise(keys, torch.zeros(rows, dtype=torch.bool), silent=True)


def loud(rows: int) -> Noise:
    keys = torch.arange(rows) * 31 + 5
    return Noise(keys, torch.ones(rows, dtype=torch.bool), silent=False)
