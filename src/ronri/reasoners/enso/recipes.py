"""Enso's recipes: complete training runs."""

from ronri.reasoners.enso.config import Config
from ronri.recipe import Data, Optim, Recipe

# What ours learns from, and what those of the document do in place of nine million puzzles.
_MIXTURE = ("everyday-train=0.35", "minimal-train=0.45", "clue17-train=0.2")
_EVERYDAY = ("everyday-train",)


def enso() -> Recipe[Config]:
    """Ours: latents for every cell, taught wherever thinking comes by."""
    return Recipe(
        reasoner="enso",
        model=Config(
            latents="cells",
            width=64,
            layers=1,
            inner=128,
            message=64,
            latent=16,
            predictor_inner=128,
            decoder_layers=4,
            dropout=0.0,
            teach="descent",
            radius=4.0,
            latent_noise=1.0,
            energy_weight=0.016,
            variance_weight=0.1,
            covariance_weight=0.001,
            constraint_weight=0.01,
            max_steps=32,
            steps=32,
            step_size=80.0,
            noise=0.1,
            penalty_first=0.009,
            penalty=0.009,
        ),
        data=Data(train=_MIXTURE, validation_puzzles=2048),
        optim=Optim(name="muon", lr=1e-3, matrix_lr=0.006, warmup=200, ema=0.999),
        batch=512,
        base_batch=512,
        minutes=12.0,
        validate_every=4000,
        validation_steps=32,
        checkpoint_every=4000,
        log_every=100,
    )


def enso_mini4() -> Recipe[Config]:
    """The document's network, small: 4x4 boards on a laptop's processor, in a minute or two."""
    return Recipe(
        reasoner="enso",
        board="4x4",
        model=Config(
            width=64,
            heads=4,
            layers=2,
            inner=256,
            latent=32,
            predictor_inner=128,
            decoder_layers=1,
            decoder_width=32,
            dropout=0.0,
        ),
        data=Data(train=("mini4-train",), validation=0.05),
        optim=Optim(name="adamw", lr=1e-3, weight_decay=0.01, warmup=100, ema=0.99),
        batch=128,
        base_batch=128,
        steps=1000,
        validate_every=125,
        validation_steps=50,
        checkpoint_every=250,
    )


def enso_mini6() -> Recipe[Config]:
    """Ours, small: 6x6 boards on a laptop's processor, in a few minutes."""
    return Recipe(
        reasoner="enso",
        board="6x6",
        model=Config(
            latents="cells",
            width=32,
            layers=1,
            inner=64,
            message=32,
            latent=8,
            predictor_inner=64,
            decoder_layers=1,
            dropout=0.0,
            teach="descent",
            radius=2.83,
            latent_noise=1.0,
            energy_weight=0.03,
            variance_weight=0.1,
            covariance_weight=0.001,
            constraint_weight=0.01,
            max_steps=24,
            steps=24,
            step_size=20.0,
            noise=0.1,
            penalty_first=0.015,
            penalty=0.015,
        ),
        data=Data(train=("mini6-train",)),
        optim=Optim(name="muon", lr=1e-3, matrix_lr=0.01, warmup=100, ema=0.99),
        batch=64,
        base_batch=64,
        steps=700,
        validate_every=350,
        validation_steps=24,
        checkpoint_every=350,
    )


def enso_run4() -> Recipe[Config]:
    """The document's fourth run: 7.5 million parameters and one vector for a board."""
    return _run(
        Config(
            width=256,
            layers=6,
            inner=1024,
            latent=128,
            predictor_inner=512,
            decoder_layers=2,
            decoder_width=64,
        )
    )


def enso_run5() -> Recipe[Config]:
    """The document's fifth run: 36.5 million parameters and one vector for a board."""
    return _run(Config())


def _run(model: Config) -> Recipe[Config]:
    return Recipe(
        reasoner="enso",
        model=model,
        data=Data(train=_EVERYDAY),
        optim=Optim(
            name="adamw",
            lr=6e-4,
            betas=(0.9, 0.999),
            weight_decay=0.01,
            warmup=2000,
            ema=0.999,
        ),
        batch=2048,
        base_batch=2048,
        minutes=24.0,
        validate_every=2000,
        validation_steps=50,
        checkpoint_every=2000,
    )
