"""What can be chosen about an encoder, and its recipes."""

from dataclasses import dataclass
from typing import Literal

from ronri.recipe import Data, Optim, Recipe


@dataclass(frozen=True, kw_only=True)
class Config:
    """A network that reads a board in one pass."""

    # How positions exchange what they know: cells by attention; or by units, and then a position is
    # a digit in a cell and hears the sum of what is said in its row, column, box and cell.
    mixer: Literal["attention", "units"] = "attention"
    # Numbers in a vector.
    width: int = 256
    # Attention heads, for the attention mixer.
    heads: int = 4
    # Numbers that a position says to its units, for the units mixer.
    message: int = 64
    # Blocks of exchange and feed-forward layers.
    layers: int = 8
    # SwiGLU's inner width.
    inner: int = 512


def encoder() -> Recipe[Config]:
    """A transformer of two million parameters; data and minutes are those of the recipe `enso`."""
    return _control(Config(width=128, heads=4, layers=12, inner=256))


def encoder_units() -> Recipe[Config]:
    """The blocks of the recipe `enso`, about as many numbers; data and minutes are the same."""
    return _control(Config(mixer="units", width=64, message=64, layers=6, inner=128))


def _control(model: Config) -> Recipe[Config]:
    return Recipe(
        reasoner="encoder",
        model=model,
        data=Data(
            train=("everyday-train=0.35", "minimal-train=0.45", "clue17-train=0.2"),
            validation_puzzles=2048,
        ),
        optim=Optim(name="muon", lr=1e-3, matrix_lr=0.01),
        minutes=12.0,
        validation_steps=1,
        validate_every=4000,
        checkpoint_every=4000,
    )


def encoder_mini4() -> Recipe[Config]:
    """4x4 boards on a laptop's processor, in a minute."""
    return Recipe(
        reasoner="encoder",
        board="4x4",
        model=Config(width=64, heads=2, layers=4, inner=128),
        data=Data(train=("mini4-train",), validation=0.05),
        optim=Optim(name="muon", lr=2e-3, matrix_lr=0.01, warmup=50, ema=0.99),
        batch=128,
        base_batch=128,
        steps=1500,
        validate_every=250,
        validation_steps=1,
        checkpoint_every=250,
    )


def encoder_mini6() -> Recipe[Config]:
    """6x6 boards and the units mixer, on a laptop's processor, in a minute or two."""
    return Recipe(
        reasoner="encoder",
        board="6x6",
        model=Config(mixer="units", width=32, message=32, layers=4, inner=64),
        data=Data(train=("mini6-train",)),
        optim=Optim(name="muon", lr=2e-3, matrix_lr=0.01, warmup=50, ema=0.99),
        batch=64,
        base_batch=64,
        steps=700,
        validate_every=350,
        validation_steps=1,
        checkpoint_every=350,
    )
