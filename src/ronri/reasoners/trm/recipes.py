"""TRM's recipes: complete training runs."""

from dataclasses import replace

from ronri.reasoners.trm.config import Config
from ronri.recipe import Data, Optim, Recipe

# Our own network.
_OURS = Config(
    mixer="units",
    width=64,
    message=64,
    inner=128,
    positions="none",
    h_cycles=2,
    l_cycles=5,
    cross_entropy="softmax",
    sure=0.95,
)


def trm() -> Recipe[Config]:
    """Ours, small because all digits, all rows, all columns and all boxes are alike to it."""
    return Recipe(
        reasoner="trm",
        model=replace(_OURS, max_steps=32, exploration=0.05),
        data=Data(
            train=(
                "minimal-train=0.15",
                "tricky-made=0.2",
                "clue17-train=0.1",
                "hard-train=0.25",
                "hard-bred=0.3",
            ),
            validation_puzzles=4096,
        ),
        optim=Optim(name="muon", lr=4e-4, matrix_lr=0.004, warmup=200, ema=0.999),
        minutes=24.0,
        validate_every=5000,
        validation_steps=64,
        checkpoint_every=5000,
        log_every=100,
    )


def trm_mini4() -> Recipe[Config]:
    """4x4 boards on a laptop's processor, in a minute or two."""
    return Recipe(
        reasoner="trm",
        board="4x4",
        model=Config(
            width=64,
            heads=2,
            inner=128,
            positions="both",
            h_cycles=2,
            l_cycles=2,
            max_steps=8,
        ),
        data=Data(train=("mini4-train",), validation=0.05),
        optim=Optim(name="muon", lr=2e-3, matrix_lr=0.01, warmup=50, ema=0.99),
        batch=128,
        base_batch=128,
        steps=800,
        validate_every=200,
        validation_steps=8,
        checkpoint_every=200,
    )


def trm_mini6() -> Recipe[Config]:
    """6x6 boards on a laptop's processor, in a minute or two."""
    return Recipe(
        reasoner="trm",
        board="6x6",
        model=replace(_OURS, width=32, message=16, inner=64, l_cycles=2, max_steps=8),
        data=Data(train=("mini6-train",)),
        optim=Optim(name="muon", lr=1e-3, matrix_lr=0.01, warmup=50, ema=0.98),
        batch=64,
        base_batch=64,
        steps=600,
        validate_every=200,
        validation_steps=16,
        checkpoint_every=200,
    )


def trm_walkthrough() -> Recipe[Config]:
    """The two documents this reasoner follows, with loss on every slot and spread counters."""
    published = trm_paper()
    return replace(
        published,
        model=Config(latent_init="learned"),
        data=Data(train=("hard-train",)),
        optim=replace(published.optim, name="adamw"),
    )


def trm_paper() -> Recipe[Config]:
    """The published attention network and its settings, 6.8 million parameters, on all the data."""
    return Recipe(
        reasoner="trm",
        model=Config(),
        data=Data(train=("sudoku-extreme",)),
        optim=Optim(
            name="adam-atan2",
            lr=1e-4,
            weight_decay=1.0,
            decay="all",
            warmup=2000,
            schedule="constant",
            clip=0.0,
        ),
        steps=65_104,
    )


def trm_paper_mlp() -> Recipe[Config]:
    """The same with a feed-forward layer over positions, 4.9 million parameters."""
    return replace(trm_paper(), model=Config(mixer="mlp", positions="none"))
