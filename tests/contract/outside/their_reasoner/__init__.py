"""A reasoner of someone else's package: nothing in Ronri knows it but its entry point."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ronri.recipe import Data, Optim, Recipe
from ronri.registry import Entry
from ronri.sudoku.geometry import Geometry

if TYPE_CHECKING:
    from ronri.reasoner import Reasoner


@dataclass(frozen=True, kw_only=True)
class Config:
    """Votes from every cell for every cell."""

    # Noise on the votes, for samples after the first.
    noise: float = 0.1


def theirs_mini4() -> Recipe[Config]:
    return Recipe(
        reasoner="theirs",
        board="4x4",
        model=Config(),
        data=Data(train=("mini4-train",)),
        optim=Optim(lr=1e-2),
        batch=16,
        steps=100,
    )


def build(config: Config, geometry: Geometry) -> "Reasoner":
    from their_reasoner.model import Votes

    return Votes(config, geometry)


REASONER = Entry(
    summary="Votes: every clue votes, once for each step.",
    config=Config,
    build=build,
    recipes={"theirs": theirs_mini4, "theirs-mini4": theirs_mini4},
)
