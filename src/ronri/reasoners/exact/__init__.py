"""The exact solver, through the same door as the networks: what perfect looks like."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ronri.registry import Entry
from ronri.sudoku.geometry import Geometry

if TYPE_CHECKING:
    from ronri.reasoner import Reasoner


@dataclass(frozen=True, kw_only=True)
class Config:
    """There is nothing to choose."""


def build(config: Config, geometry: Geometry) -> "Reasoner":
    from ronri.reasoners.exact.model import Exact

    del config
    return Exact(geometry)


REASONER = Entry(
    summary="The exact solver: propagation and search. The control that makes no mistakes.",
    config=Config,
    build=build,
)
