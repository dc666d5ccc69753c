"""Enso: a joint-embedding energy-based model. Thinking is walking down an energy, with noise."""

from typing import TYPE_CHECKING

from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.recipes import enso, enso_mini4, enso_mini6, enso_run4, enso_run5
from ronri.registry import Entry
from ronri.sudoku.geometry import Geometry

if TYPE_CHECKING:
    from ronri.reasoner import Reasoner


def build(config: Config, geometry: Geometry) -> "Reasoner":
    from ronri.reasoners.enso.model import Enso

    return Enso(config, geometry)


REASONER = Entry(
    summary="A learned energy over latents, walked down by Langevin dynamics.",
    config=Config,
    build=build,
    clues_given=True,
    recipes={
        "enso": enso,
        "enso-mini4": enso_mini4,
        "enso-mini6": enso_mini6,
        "enso-run4": enso_run4,
        "enso-run5": enso_run5,
    },
)
