"""Enso: what it reads of latents that have not moved, and how it notices that it has collapsed."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from ronri.data import chance
from ronri.reasoner import Budget
from ronri.reasoners.enso.collapse import collapsed
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.losses import distance
from ronri.reasoners.enso.model import Enso
from ronri.thinking import answer
from small_enso import BOARD, CELLS, lessons, model_of, taught

both = pytest.mark.parametrize("config", [BOARD, CELLS], ids=["board", "cells"])


@pytest.fixture(scope="module")
def trained() -> dict[str, Enso]:
    return {"board": taught(BOARD, 120), "cells": taught(CELLS, 120)}


@pytest.mark.parametrize("name", ["board", "cells"])
def test_a_collapsed_encoder_sets_off_the_alarm(name: str, trained: dict[str, Enso]) -> None:
    model = deepcopy(trained[name])
    batch = lessons(slots=32)
    assert not model.alarms(model.diagnose(batch))
    with torch.no_grad():
        for parameter in model.landscape.context.parameters():
            parameter.zero_()
    alarms = model.alarms(model.diagnose(batch))
    assert len(alarms) >= 1
    assert all("the context has collapsed" in alarm for alarm in alarms)
    model.landscape.target.load_state_dict(model.landscape.context.state_dict())
    assert any("the target has collapsed" in alarm for alarm in model.alarms(model.diagnose(batch)))


@both
def test_readings_are_of_latents_that_have_not_moved(config: Config) -> None:
    model = model_of(config).eval()
    batch = lessons(slots=32)
    readings = model.diagnose(batch)
    found = answer(model, batch.clues, Budget(steps=1))
    assert readings["zero"] == float((found.board == batch.solutions).all(dim=1).float().mean())
    land = model.landscape
    target = land.wanted(batch.solutions, torch.float32)
    reading = land.read(
        batch.clues, land.known(batch.clues, torch.float32), land.own_latent(target)
    )
    right = (reading.logits.argmax(dim=-1) + 1 == batch.solutions).all(dim=1).float().mean()
    assert readings["oracle"] == float(right)
    expected = distance(reading.prediction, target).mean()
    assert readings["energy"] == pytest.approx(float(expected.detach()), rel=1e-4)
    assert {"disturbed", "prior", "context_rank", "target_rank"} <= readings.keys()


@pytest.mark.parametrize("name", ["board", "cells"])
def test_disturbed_latents_and_those_of_the_prior_are_read(
    name: str, trained: dict[str, Enso]
) -> None:
    """With so much noise that these readings differ, on boards that lack a few cells."""
    model = Enso(replace(trained[name].config, latent_noise=6.0), trained[name].geometry).eval()
    model.load_state_dict(trained[name].state_dict())
    batch, land = lessons(5, 100, (12, 14)), model.landscape
    own = land.own_latent(land.wanted(batch.solutions, torch.float32))
    shock = chance.normal(chance.fork(batch.keys, 2), land.numbers).view(own.shape)
    latents = {
        "oracle": own,
        "disturbed": own + 6.0 * shock,
        "zero": torch.zeros_like(own),
        "prior": land.prior(chance.normal(chance.fork(batch.keys, 1), 2 * land.numbers)),
    }
    readings, expected = model.diagnose(batch), {}
    for way, z in latents.items():
        logits = land.read(batch.clues, land.known(batch.clues, torch.float32), z).logits
        right = (logits.argmax(dim=-1) + 1 == batch.solutions).all(dim=1)
        expected[way] = float(right.float().mean())
    assert {way: readings[way] for way in latents} == pytest.approx(expected)
    assert len({expected[way] for way in ("oracle", "disturbed", "prior")}) == 3


def test_a_rank_that_is_too_low_is_an_alarm_by_itself() -> None:
    def alarms(config: Config, context: float, target: float) -> list[str]:
        stds = {"context_std": 0.5, "target_std": 0.5}
        return collapsed(stds | {"context_rank": context, "target_rank": target}, config)

    assert not alarms(BOARD, 4.0, 4.0)
    (alarm,) = alarms(BOARD, 4.0, 1.2)
    assert alarm.startswith("the target has collapsed")
    assert "RankMe is 1.2, below 1.5" in alarm
    (alarm,) = alarms(replace(BOARD, width=512), 20.0, 30.0)
    assert "the context" in alarm
    assert "below 25.6" in alarm
    # Of right boards there are two vectors, and that is no alarm.
    assert not alarms(CELLS, 4.0, 1.2)
    assert len(alarms(CELLS, 1.2, 1.2)) == 1
