"""The encoder: one pass and no thinking. What depth alone can do."""

from typing import TYPE_CHECKING

from ronri.reasoners.encoder.config import (
    Config,
    encoder,
    encoder_mini4,
    encoder_mini6,
    encoder_units,
)
from ronri.registry import Entry
from ronri.sudoku.geometry import Geometry

if TYPE_CHECKING:
    from ronri.reasoner import Reasoner


def build(config: Config, geometry: Geometry) -> "Reasoner":
    from ronri.reasoners.encoder.model import Encoder

    return Encoder(config, geometry)


REASONER = Entry(
    summary="A network that answers in one pass. The control that does not think.",
    config=Config,
    build=build,
    recipes={
        "encoder": encoder,
        "encoder-units": encoder_units,
        "encoder-mini4": encoder_mini4,
        "encoder-mini6": encoder_mini6,
    },
)
