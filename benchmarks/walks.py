"""Chains of an Enso, looked at on their way, and an encoder's views: for `langevin.py`."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ronri.data import chance
from ronri.evaluation.chunks import in_chunks, usual_rows
from ronri.evaluation.trials import Puzzles
from ronri.loading import Loaded
from ronri.reasoner import Budget, Reasoner
from ronri.reasoners.enso.landscape import Energy
from ronri.reasoners.enso.losses import broken_rules
from ronri.reasoners.enso.model import Enso
from ronri.thinking import think

# Rows that a GPU thinks about at a time: chains, and views of an encoder. Others take fewer.
ROWS, VIEW_ROWS = 4096, 32768
ONE = "one chain, begun at 0"


@dataclass(frozen=True)
class Walk:
    """Chains of puzzles, wherever they were looked at."""

    # Steps taken. The first one shows latents that have not moved yet.
    marks: tuple[int, ...]
    # Cells that are wrong, energies, and the rules that are broken, of which a part of the energy
    # is made: [marks, puzzles, chains].
    wrong: np.ndarray
    energy: np.ndarray
    broken: np.ndarray
    # What they weigh in it.
    penalty: float

    def one(self, chain: int, mark: int) -> np.ndarray:
        """Wrong cells of each puzzle, in one of its chains."""
        return self.wrong[self.marks.index(mark)][:, chain]

    def lowest(self, mark: int) -> np.ndarray:
        """In the chain of the lowest energy."""
        return self._least(self.energy, mark)

    def most_consistent(self, mark: int) -> np.ndarray:
        """In the chain whose energy is lowest without what broken rules add to it."""
        return self._least(self.energy - self.penalty * self.broken, mark)

    def least_broken(self, mark: int) -> np.ndarray:
        """In the chain that breaks the rules least, by what it believes: no energy is needed."""
        return self._least(self.broken, mark)

    def _least(self, merit: np.ndarray, mark: int) -> np.ndarray:
        at = self.marks.index(mark)
        return _picked(self.wrong[at], merit[at].argmin(axis=1))

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


def walk(loaded: Loaded, puzzles: Puzzles, chains: int, marks: Sequence[int]) -> Walk:
    """Let chains think, and look at them at some steps."""
    enso = _enso(loaded)
    budget = Budget(steps=max(marks), samples=chains)

    def look(part: slice) -> list[np.ndarray]:
        clues = torch.tensor(puzzles.clues[part], device=enso.device)
        solutions = torch.tensor(puzzles.solutions[part], device=enso.device)
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        for frame in think(enso, clues, budget):
            if frame.step in marks:
                thought = frame.thought
                assert thought.energy is not None
                wrong = (thought.board != solutions[frame.puzzle]).sum(dim=1)
                broken = broken_rules(thought.beliefs, enso.landscape.units)
                seen.append((wrong, thought.energy.float(), broken))
        shape = len(seen), len(clues), chains
        return [torch.stack(one).view(shape).cpu().numpy() for one in zip(*seen, strict=True)]

    parts = list(in_chunks(look, len(puzzles.clues), rows_each=chains, max_rows=_room(enso, ROWS)))
    wrong, energy, broken = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return Walk(tuple(marks), wrong, energy, broken, enso.config.penalty)


def _room(reasoner: Reasoner, rows: int) -> int:
    return rows if reasoner.device.type == "cuda" else usual_rows(reasoner.device)


def _enso(loaded: Loaded) -> Enso:
    assert isinstance(loaded.reasoner, Enso)
    return loaded.reasoner


@torch.no_grad()
def from_the_truth(loaded: Loaded, puzzles: Puzzles) -> np.ndarray:
    """Wrong cells where z is made of the solution, which nobody has who thinks."""
    enso = _enso(loaded)

    def look(part: slice) -> np.ndarray:
        clues = torch.tensor(puzzles.clues[part], device=enso.device)
        solutions = torch.tensor(puzzles.solutions[part], device=enso.device)
        landscape, dtype = enso.landscape, enso.compute_dtype
        z = landscape.own_latent(landscape.wanted(solutions, dtype))
        logits = landscape.read(clues, landscape.known(clues, dtype), z).logits
        return (logits.argmax(dim=-1) + 1 != solutions).sum(dim=1).cpu().numpy()

    parts = in_chunks(look, len(puzzles.clues), rows_each=1, max_rows=_room(enso, ROWS))
    return np.concatenate(list(parts))


@contextmanager
def without_slope(loaded: Loaded) -> Iterator[None]:
    """Steps of no length: the same chains and the same noise, and nothing that pulls."""
    log_step_size = _enso(loaded).landscape.log_step_size
    before = log_step_size.clone()
    with torch.no_grad():
        log_step_size.fill_(-math.inf)
    try:
        yield
    finally:
        with torch.no_grad():
            log_step_size.copy_(before)


@contextmanager
def weighing(loaded: Loaded, *, consistency: float = 1.0, penalty: float = 1.0) -> Iterator[None]:
    """The parts of the energy weigh so many times what they do, in its slope and as it is told."""
    landscape = _enso(loaded).landscape
    plain = landscape.energy

    def energy(*where: Tensor, twice: bool = False) -> Energy:
        there = plain(*where, twice=twice)
        return replace(
            there, consistency=consistency * there.consistency, penalty=penalty * there.penalty
        )

    vars(landscape)["energy"] = energy
    try:
        yield
    finally:
        del vars(landscape)["energy"]


def controls(loaded: Loaded, some: Puzzles, chains: int, steps: int) -> dict[str, np.ndarray]:
    """What is left of thinking without its slope, without its steps, without half its energy."""
    looks = chains * steps

    def walked(chains: int, steps: int) -> Walk:
        return walk(loaded, some, chains, (steps,))

    with without_slope(loaded):
        still = walked(chains, steps).lowest(steps)
    ways = {
        "chains without a slope, the lowest": still,
        # As many looks as all chains take together, at as many latents, none of which moves.
        f"the lowest of {looks:,} latents that do not move": walked(looks, 1).lowest(1),
        f"{ONE}, of these": walked(1, steps).one(0, steps),
    }
    with weighing(loaded, penalty=0.0):
        ways[f"{ONE}, down consistency alone"] = walked(1, steps).one(0, steps)
    with weighing(loaded, consistency=0.0):
        ways[f"{ONE}, down broken rules alone"] = walked(1, steps).one(0, steps)
    return ways


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

    parts = list(
        in_chunks(look, len(puzzles.clues), rows_each=views, max_rows=_room(reasoner, VIEW_ROWS))
    )
    picked, together = (np.concatenate(part) for part in zip(*parts, strict=True))
    return {"surest view": picked, "mean of all views": together}
