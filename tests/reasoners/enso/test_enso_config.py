"""What cannot be chosen about an Enso, and every recipe."""

from typing import Any

import pytest

from ronri.reasoners.enso import REASONER
from ronri.reasoners.enso.config import Config

CELLS: dict[str, Any] = {"latents": "cells", "dropout": 0.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width is at least 1"),
        ({"steps": 0}, "steps is at least 1"),
        ({"width": 30}, "a width of 30 cannot be shared by 8 heads"),
        ({"decoder_width": 30}, "a decoder_width of 30 cannot be shared by 4 decoder_heads"),
        ({"latents": "cells"}, "set dropout to 0"),
        ({"teach": "descent"}, "set latents to cells"),
        (CELLS | {"teach": "descent", "z_encoder": False}, "keep z_encoder"),
        ({"dropout": 1.5}, "dropout is a part"),
        ({"near": -0.1}, "near is a part"),
        ({"near": 0.6, "quiet": 0.6}, "together at most 1"),
        ({"step_size": -1.0}, "step_size is above 0"),
        ({"noise": -1.0}, "noise is not below 0"),
        ({"penalty": -1.0}, "penalty is not below 0"),
        ({"decode_weight": -1.0}, "decode_weight is not below 0"),
        ({"message": 32}, "message does nothing unless latents is cells: leave it at 64"),
        (CELLS | {"heads": 4}, "heads does nothing unless latents is board: leave it at 8"),
        ({"near": 0.5}, "near does nothing unless teach is descent"),
        ({"z_encoder": False, "radius": 2.0}, "radius does nothing unless z_encoder is True"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config(**changes)


def test_heads_do_not_matter_where_there_are_none() -> None:
    assert Config(**CELLS, width=30).width == 30


def test_the_documents_runs_are_as_it_says() -> None:
    four, five = (REASONER.recipes[f"enso-run{n}"]() for n in (4, 5))
    for run in (four, five):
        assert (run.optim.lr, run.batch, run.optim.warmup, run.optim.weight_decay) == (
            6e-4,
            2048,
            2000,
            0.01,
        )
        model = run.model
        assert (model.latent_noise, model.momentum, model.constraint_weight) == (0.1, 0.996, 0.1)
        assert (model.steps, model.step_size, model.noise) == (50, 0.01, 0.005)
    assert (four.model.width, four.model.layers, four.model.latent) == (256, 6, 128)
    assert (five.model.width, five.model.layers, five.model.latent) == (512, 8, 256)
