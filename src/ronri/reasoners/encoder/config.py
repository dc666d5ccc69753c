"""What can be chosen about an encoder, and its recipes."""

from dataclasses import dataclass

from ronri.recipe import Data, Optim, Recipe


@dataclass(frozen=True, kw_only=True)
class Config:
    """A transformer over the cells of a board."""

    # Numbers in a vector.
    width: int = 256
    # Attention heads.
    heads: int = 4
    # Blocks of attention and feed-forward layers.
    layers: int = 8
    # SwiGLU's inner width.
    inner: int = 512


def encoder() -> Recipe[Config]:
    """Two million parameters, on the three real lists to learn from."""
    return Recipe(
        reasoner="encoder",
        model=Config(width=192, heads=3, layers=8, inner=256),
        data=Data(train=("minimal-train=0.5", "clue17-train=0.35", "hard-train=0.15")),
        optim=Optim(name="muon", lr=1e-3, matrix_lr=0.01),
        minutes=9.0,
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
