"""The controls of `benchmarks/langevin.py`: what is picked of chains, and encoders beside them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import langevin
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.trials import Puzzles, diagnosis, hold
from ronri.reasoner import Budget
from ronri.reasoners.encoder.config import Config
from ronri.reasoners.encoder.model import Encoder
from ronri.sudoku.geometry import FOUR
from small_enso import CELLS, model_of
from walks import Walk


def test_what_is_picked_of_chains() -> None:
    wrong = np.array([[[3, 0], [0, 2], [1, 4]], [[0, 0], [5, 0], [6, 2]]])
    energy = np.array([[[2.0, 1.0], [2.0, 1.0], [1.0, 2.0]], [[1.0, 1.5], [3.0, 9.0], [1.0, 2.0]]])
    walk = Walk((1, 4), wrong, energy)
    assert walk.one(0, 1).tolist() == [3, 0, 1]
    assert walk.lowest(1).tolist() == [0, 2, 1]
    assert walk.lowest(4).tolist() == [0, 5, 6]
    assert walk.best(4).tolist() == [0, 0, 2]
    many = Walk((1,), np.tile([1, 0, 0, 0], (1, 4000, 1)), energy)
    assert 0.22 < many.blindly(1).mean() < 0.28


def test_everything_on_one_suite(tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = Config(width=16, heads=2, layers=1, inner=24)
    for kind, config, model in (
        ("enso", CELLS, model_of(CELLS)),
        ("encoder", encoder, Encoder(encoder, FOUR)),
    ):
        loading.save(
            tmp_path / kind,
            kind=kind,
            config=config,
            geometry=FOUR,
            weights=model.state_dict(),
            which="raw",
        )
    enso, control = (loading.load(tmp_path / kind, device="cpu") for kind in ("enso", "encoder"))
    # Of most cells the answer is known: even networks that have learned nothing solve some.
    puzzles = Puzzles.of("mini4", open_set("mini4"), 40)
    order = np.random.default_rng(1).permuted(np.tile(np.arange(16), (40, 1)), axis=1)
    empty = order < np.arange(40)[:, None] % 8 + 1
    puzzles = replace(puzzles, clues=np.where(empty, 0, puzzles.solutions).astype(np.uint8))
    before = {key: value.clone() for key, value in enso.reasoner.state_dict().items()}
    found = langevin.compare(enso, [control], puzzles, chains=2, steps=5)
    assert list(found["curve"]) == ["1", "2", "4", "5"]
    assert found["curve"]["1"]["begun at 0"] == found["solved"]["z = 0"]
    assert found["few"]["n"] == 40
    readings = diagnosis(enso.reasoner, puzzles)
    assert found["solved"]["oracle z, from the solution"] == round(40 * readings["oracle"])
    for way, steps in (("z = 0", 1), (langevin.ONE, 5)):
        trial = hold(enso, puzzles, Budget(steps=steps))
        assert 0 < trial.scores.puzzle_accuracy < 1
        assert found["solved"][way] == 40 - trial.scores.errors
        assert found["cells"][way] == pytest.approx(trial.scores.cell_accuracy)
    assert found["solved"]["the best chain, by the solution"] >= found["solved"][langevin.ONE]
    (beside,) = found["encoders"]
    assert (
        0 <= beside["flops_per_puzzle"] / found["flops_per_puzzle"] - 1 < 1 / (beside["views"] - 1)
    )
    # The slope is back where it was.
    for key, value in enso.reasoner.state_dict().items():
        assert torch.equal(value, before[key]), key
    many, more = ({"n": n, "solved": {langevin.ONE: right}} for n, right in ((10, 9), (100, 80)))
    assert langevin.hardest([many, more]) == 1
    result: dict[str, Any] = {"suites": [found], "followed": langevin.followed(enso, puzzles, 4)}
    assert len(result["followed"]["walks"]) == langevin.FOLLOWED
    assert langevin.document_text(result).count("\n") == 2 + len(langevin.DOCUMENT)
    assert "the lowest of 10 latents" in langevin.text(result)
    assert langevin.curve_text(result).count("\n") == 6
    langevin.draw(result, tmp_path / "figure.svg")
