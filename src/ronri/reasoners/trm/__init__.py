"""TRM: recursion on a scratchpad, trained with a carry."""

from typing import TYPE_CHECKING

from ronri.reasoners.trm import recipes
from ronri.reasoners.trm.config import Config
from ronri.registry import Entry
from ronri.sudoku.geometry import Geometry

if TYPE_CHECKING:
    from ronri.reasoner import Reasoner


def build(config: Config, geometry: Geometry) -> "Reasoner":
    from ronri.reasoners.trm.model import TRM

    return TRM(config, geometry)


REASONER = Entry(
    summary="The Tiny Recursive Model: one small network corrects its own notes, again and again.",
    config=Config,
    build=build,
    recipes={
        "trm": recipes.trm,
        "trm-mini4": recipes.trm_mini4,
        "trm-mini6": recipes.trm_mini6,
        "trm-walkthrough": recipes.trm_walkthrough,
        "trm-paper": recipes.trm_paper,
        "trm-paper-mlp": recipes.trm_paper_mlp,
    },
)
