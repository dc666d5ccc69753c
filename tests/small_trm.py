"""A TRM that is small enough to be looked at, and lessons for it."""

import torch

from ronri.data.stream import Batch
from ronri.reasoners.trm.config import Config
from ronri.reasoners.trm.model import TRM
from ronri.sudoku.generate import puzzles_with_clues
from ronri.sudoku.geometry import FOUR, Geometry

SMALL = Config(
    width=16,
    heads=2,
    inner=24,
    mixer_inner=12,
    h_cycles=2,
    l_cycles=2,
    max_steps=4,
    exploration=0.0,
)
SLOTS = 6


def model_of(config: Config = SMALL, geometry: Geometry = FOUR) -> TRM:
    torch.manual_seed(0)
    model = TRM(config, geometry)
    # Halting starts switched off and blind: let it depend on what it reads.
    torch.nn.init.normal_(model.q_head.weight, std=0.1)
    return model


def lessons(seed: int = 1, slots: int = SLOTS) -> Batch:
    made = puzzles_with_clues(slots, 5, 8, seed=seed, geometry=FOUR)
    keys = torch.arange(slots) + 1000 * seed
    return Batch(torch.from_numpy(made.puzzles), torch.from_numpy(made.solutions), keys)
