"""Chains of an Enso, looked at on their way, and an encoder's views: for `langevin.py`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ronri.data import chance
from ronri.evaluation.chunks import in_chunks
from ronri.evaluation.trials import Puzzles
from ronri.loading import Loaded
from ronri.reasoner import Budget
from ronri.reasoners.enso.model import Enso
from ronri.thinking import think

# Rows that a GPU thinks about at a time: chains, and views of an encoder.
ROWS, VIEW_ROWS = 4096, 32768


@dataclass(frozen=True)
class Walk:
    """Chains of puzzles, wherever they were looked at."""

    # Steps taken. The first one shows latents that have not moved yet.
    marks: tuple[int, ...]
    # Cells that are wrong, and energies: [marks, puzzles, chains].
    wrong: np.ndarray
    energy: np.ndarray

    def one(self, chain: int, mark: int) -> np.ndarray:
        """Wrong cells of each puzzle, in one of its chains."""
        return self.wrong[self.marks.index(mark)][:, chain]

    def lowest(self, mark: int) -> np.ndarray:
        """In the chain of the lowest energy."""
        at = self.marks.index(mark)
        return _picked(self.wrong[at], self.energy[at].argmin(axis=1))

    def blindly(self, mark: int) -> np.ndarray:
        """In some chain."""
        wrong = self.wrong[self.marks.index(mark)]
        some = chance.below(torch.arange(len(wrong)), torch.full((len(wrong),), wrong.shape[1]))
        return _picked(wrong, some.numpy())

    def best(self, mark: int) -> np.ndarray:
        """In the best chain, which only the solution knows."""
        return self.wrong[self.marks.index(mark)].min(axis=1)


def _picked(wrong: np.ndarray, chain: np.ndarray) -> np.ndarray:
    return np.take_along_axis(wrong, chain[:, None], axis=1)[:, 0]


def walk(
    loaded: Loaded, puzzles: Puzzles, chains: int, marks: Sequence[int], rows: int = ROWS
) -> Walk:
    """Let chains think, and look at them at some steps."""
    reasoner = loaded.reasoner
    budget = Budget(steps=max(marks), samples=chains)

    def look(part: slice) -> tuple[np.ndarray, np.ndarray]:
        clues = torch.tensor(puzzles.clues[part], device=reasoner.device)
        solutions = torch.tensor(puzzles.solutions[part], device=reasoner.device)
        wrong, energy = [], []
        for frame in think(reasoner, clues, budget):
            if frame.step in marks:
                thought = frame.thought
                assert thought.energy is not None
                wrong.append((thought.board != solutions[frame.puzzle]).sum(dim=1))
                energy.append(thought.energy)
        shape = len(wrong), len(clues), chains
        return (
            torch.stack(wrong).view(shape).cpu().numpy(),
            torch.stack(energy).view(shape).float().cpu().numpy(),
        )

    parts = list(in_chunks(look, len(puzzles.clues), rows_each=chains, max_rows=rows))
    wrong, energy = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return Walk(tuple(marks), wrong, energy)


@torch.no_grad()
def from_the_truth(loaded: Loaded, puzzles: Puzzles) -> np.ndarray:
    """Wrong cells where z is made of the solution, which nobody has who thinks."""
    enso = loaded.reasoner
    assert isinstance(enso, Enso)

    def look(part: slice) -> np.ndarray:
        clues = torch.tensor(puzzles.clues[part], device=enso.device)
        solutions = torch.tensor(puzzles.solutions[part], device=enso.device)
        landscape, dtype = enso.landscape, enso.compute_dtype
        z = landscape.own_latent(landscape.wanted(solutions, dtype))
        logits = landscape.read(clues, landscape.known(clues, dtype), z).logits
        return (logits.argmax(dim=-1) + 1 != solutions).sum(dim=1).cpu().numpy()

    parts = in_chunks(look, len(puzzles.clues), rows_each=1, max_rows=ROWS)
    return np.concatenate(list(parts))


def without_slope(loaded: Loaded, puzzles: Puzzles, chains: int, steps: int) -> Walk:
    """The same chains and the same noise, and nothing that pulls."""
    log_step_size = loaded.reasoner.get_submodule("landscape").log_step_size
    assert isinstance(log_step_size, torch.Tensor)
    before = log_step_size.clone()
    with torch.no_grad():
        log_step_size.fill_(-math.inf)
        try:
            return walk(loaded, puzzles, chains, (steps,))
        finally:
            log_step_size.copy_(before)


def through_views(loaded: Loaded, puzzles: Puzzles, views: int) -> dict[str, np.ndarray]:
    """What an encoder makes of symmetric views: its surest one, and the mean of its beliefs."""
    reasoner = loaded.reasoner

    def look(part: slice) -> tuple[np.ndarray, np.ndarray]:
        clues = torch.tensor(puzzles.clues[part], device=reasoner.device)
        solutions = torch.tensor(puzzles.solutions[part], device=reasoner.device)
        (frame,) = think(reasoner, clues, Budget(steps=1, views=views))
        shape = len(clues), views
        boards = frame.thought.board.view(*shape, -1)
        surest = frame.thought.confidence.view(shape).argmax(dim=1)
        picked = boards[torch.arange(len(clues), device=surest.device), surest]
        mean = frame.thought.beliefs.view(*shape, *frame.thought.beliefs.shape[1:]).mean(dim=1)
        together = (mean.argmax(dim=-1) + 1).to(torch.uint8)
        found = [(board == solutions).all(dim=1).cpu().numpy() for board in (picked, together)]
        return found[0], found[1]

    parts = list(in_chunks(look, len(puzzles.clues), rows_each=views, max_rows=VIEW_ROWS))
    picked, together = (np.concatenate(part) for part in zip(*parts, strict=True))
    return {"surest view": picked, "mean of all views": together}
