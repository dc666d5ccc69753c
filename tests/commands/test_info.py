"""`ronri info`"""

import json
import re
from pathlib import Path

import pytest

from boards import PUZZLE
from command_line import Ronri
from ronri import loading, registry
from ronri.reasoners.trm.config import Config
from ronri.sudoku.geometry import FOUR

CARD = {
    "trained_on": "mini4-train",
    "scores": [
        {
            "data": "mini4",
            "n": 500,
            "puzzle_accuracy": accuracy,
            "budget": {"steps": steps, "samples": 1, "views": 1, "halt": "fixed"},
        }
        for steps, accuracy in ((16, 0.975), (64, 0.99))
    ],
}


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model called `small` among the released ones; returns its checksum."""
    monkeypatch.setattr(loading, "RELEASED", tmp_path)
    config = Config(width=16, heads=2, inner=16)
    weights = registry.find("trm").build(config, FOUR).state_dict()
    sha256 = loading.save(
        tmp_path / "small",
        kind="trm",
        config=config,
        geometry=FOUR,
        weights=weights,
        which="ema",
        minutes=1.5,
    )
    (tmp_path / "small" / "card.json").write_text(json.dumps(CARD))
    return sha256


def test_an_overview(ronri: Ronri, released: str) -> None:
    shown = ronri("info")
    for name, entry in registry.reasoners().items():
        assert name in shown
        assert entry.summary[:20] in shown
    for name in registry.recipes():
        assert name in shown
    assert released[:12] in shown
    assert "mini4 97.50%" in shown
    assert "99.00%" not in shown
    found = ronri.json("info")
    assert found["reasoners"]["exact"]["recipes"] == []
    assert found["recipes"]["trm-mini4"]["board"] == "4x4"
    assert found["weights"]["small"]["sha256"] == released
    assert found["weights"]["small"]["card"] == CARD


def test_no_weights_are_none(ronri: Ronri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "RELEASED", tmp_path)
    assert "none yet" in ronri("info")
    assert ronri.json("info")["weights"] == {}


def test_a_recipe_in_full(ronri: Ronri) -> None:
    found = ronri.json("info", "trm-mini4")
    assert set(found) == {"name", "recipe"}
    recipe = registry.recipe("trm-mini4")
    assert found["recipe"]["optim"]["lr"] == recipe.optim.lr
    network = registry.find("trm").build(recipe.model, recipe.geometry)
    assert found["recipe"]["parameters"] == sum(p.numel() for p in network.parameters())
    assert found["recipe"]["trained"] == found["recipe"]["parameters"]
    assert "z_H" in found["recipe"]["taps"]
    shown = ronri("info", "trm-mini4")
    assert f"{found['recipe']['parameters']:,}" in shown
    assert "taps.z_H" in shown


def test_what_follows_others_is_not_trained(ronri: Ronri) -> None:
    """Enso's target encoder is as large as its context encoder."""
    found = ronri.json("info", "enso-mini4")["recipe"]
    recipe = registry.recipe("enso-mini4")
    network = registry.find("enso").build(recipe.model, recipe.geometry)
    target = network.get_submodule("landscape.target")
    assert found["parameters"] - found["trained"] == sum(p.numel() for p in target.parameters()) > 0


def test_one_name_may_mean_several_things(ronri: Ronri) -> None:
    found = ronri.json("info", "encoder")
    assert found["reasoner"]["recipes"] == list(registry.find("encoder").recipes)
    assert found["recipe"]["board"] == "9x9"
    assert set(ronri.json("info", "exact")) == {"name", "reasoner"}


def test_weights_by_name_and_by_folder(ronri: Ronri, tmp_path: Path, released: str) -> None:
    named = ronri.json("info", "small")["weights"]
    assert (named["sha256"], named["weights"], named["minutes"]) == (released, "ema", 1.5)
    assert (named["board"], named["config"]["width"], named["card"]) == ("4x4", 16, CARD)
    assert ronri.json("info", tmp_path / "small")["weights"] == named
    shown = ronri("info", "small")
    assert released in shown.replace("\n", "").replace(" ", "")
    assert re.search(r"mini4 +500 +97.50% +16 +1 +1 +fixed", shown)
    assert re.search(r"mini4 +500 +99.00% +64 +1 +1 +fixed", shown)
    assert "card.trained_on" in shown


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trm-mini", "nothing is called 'trm-mini' (did you mean trm-mini"),
        (PUZZLE, "there are encoder, enso, exact, trm, "),
        (".", "holds neither a model nor the checkpoints of a run"),
    ],
)
def test_what_is_not_there_is_told(
    ronri: Ronri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in ronri("info", name, status=2)
