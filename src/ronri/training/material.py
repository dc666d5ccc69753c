"""What a run learns from and is checked on: sets, opened and split."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import UInt8

from ronri.data.sources import open_set
from ronri.data.splits import SplitRule, set_keys
from ronri.data.stream import Source
from ronri.recipe import Mixture, Recipe


@final
@dataclass(frozen=True)
class Material:
    """Packed puzzles to learn from, and held-out ones with their solutions."""

    sources: tuple[Source, ...]
    clues: UInt8[np.ndarray, "held_out cells"]
    solutions: UInt8[np.ndarray, "held_out cells"]
    # For each set: puzzles to learn from and held-out ones.
    counts: dict[str, tuple[int, int]]


def gather(recipe: Recipe[Any], warn: Callable[[str], None]) -> Material:
    """Open the sets of a recipe and hold some puzzles out, by canonical form.

    Held-out puzzles come from each set as often as the run draws from it. Rows of a list that had
    to be left out are told to `warn`.
    """
    mixture = Mixture.parse(recipe.data.train)
    early = _early(recipe, mixture)
    sources, clues, solutions = [], [], []
    counts: dict[str, tuple[int, int]] = {}
    for name, weight in zip(mixture.names, mixture.weights, strict=True):
        puzzles = open_set(name)
        if refused := puzzles.header.provenance.get("refused"):
            warn(f"{name}: rows left out: {refused}")
        if puzzles.geometry != recipe.geometry:
            raise ValueError(
                f"{name} has {puzzles.geometry.name} boards and the recipe is for {recipe.board}"
            )
        keys = set_keys(puzzles).split
        rule = SplitRule.of(keys, validation=recipe.data.validation)
        learn, held_out = rule.mask("train", keys), rule.mask("validation", keys)
        if not learn.any() or not held_out.any():
            raise ValueError(
                f"{name} is too small: of its {len(puzzles)} puzzles, {int(held_out.sum())} would "
                f"be held out; give it more, or change data.validation"
            )
        sources.append(Source(np.asarray(puzzles.records[learn]), weight, early.get(name)))
        # Those with the highest keys: a fixed choice that another size of the set hardly changes.
        rows = np.flatnonzero(held_out)
        rows = rows[np.argsort(keys[rows])[::-1]]
        rows = rows[: max(1, round(weight * recipe.data.validation_puzzles))]
        clues.append(puzzles.puzzles(rows))
        solutions.append(puzzles.solutions(rows))
        counts[name] = (int(learn.sum()), int(held_out.sum()))
    return Material(tuple(sources), np.concatenate(clues), np.concatenate(solutions), counts)


def _early(recipe: Recipe[Any], mixture: Mixture) -> dict[str, float]:
    """How often to draw from each set at the very beginning, if that is another mixture."""
    if not recipe.data.early:
        return {}
    early = Mixture.parse(recipe.data.early)
    if unknown := set(early.names) - set(mixture.names):
        raise ValueError(f"data.early names {min(unknown)}, which data.train does not")
    return dict.fromkeys(mixture.names, 0.0) | dict(zip(early.names, early.weights, strict=True))
