"""Recipes as data: they survive JSON, and are read strictly."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ronri import registry
from ronri.reasoners.trm.config import Config
from ronri.recipe import (
    FORMAT,
    Mixture,
    Recipe,
    changed,
    config_from_plain,
    from_plain,
    read_settings,
    to_plain,
)
from ronri.sudoku.geometry import FOUR, NINE

SMALL: Recipe[Config] = registry.recipe("trm-mini4")


def plain() -> dict[str, Any]:
    """A recipe as it lies on disk."""
    found: dict[str, Any] = json.loads(json.dumps(to_plain(SMALL)))
    return found


@pytest.mark.parametrize("name", registry.recipes())
def test_recipes_survive_json(name: str) -> None:
    recipe = registry.recipe(name)
    written = json.dumps(to_plain(recipe))
    found: Recipe[Any] = from_plain(registry.find(recipe.reasoner).config, json.loads(written))
    assert found == recipe
    assert json.dumps(to_plain(found)) == written
    # Every recipe is about a board and a mixture that exist.
    assert recipe.geometry.name == recipe.board
    assert sum(Mixture.parse(recipe.data.train).weights) == pytest.approx(1)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("colour",), 1, "no setting colour; there are reasoner, board"),
        (("model", "colour"), 1, "no setting model.colour; there are width"),
        (("optim", "colour"), 1, "no setting optim.colour; there are name, lr"),
        (("format",), 2, "format 2, this Ronri reads format 1"),
        (("board",), "5x5", "board is one of 4x4, 6x6, 9x9, not '5x5'"),
        (("model",), 3, "model is a table of settings"),
        (("model", "width"), 1.5, "model.width is a whole number, not 1.5"),
        (("model", "width"), True, "model.width is a whole number, not True"),
        (("model", "mixer"), "soup", "model.mixer is one of attention, mlp, units, not 'soup'"),
        (("model", "max_steps"), 1, "max_steps is at least 2"),
        (("optim", "lr"), "fast", "optim.lr is a number, not 'fast'"),
        (("optim", "betas"), [0.9], "optim.betas is a list, not"),
        (("optim", "betas"), [0.9, "x"], "optim.betas is a number, not 'x'"),
        (("data", "train"), "mini4", "data.train is a list, not 'mini4'"),
        (("data", "augment"), 1, "data.augment is true or false, not 1"),
        (("data", "validation"), 1.0, "data.validation is a fraction between 0 and 1"),
        (("batch",), "huge", "batch is a whole number or 'auto', not 'huge'"),
        (("batch",), 0, "at least one slot"),
        (("steps",), "many", "steps is a whole number, not 'many'"),
        (("steps",), 0, "does nothing"),
        (("steps",), None, "set one of them"),
        (("minutes",), 3, "set one of them"),
        (("log_every",), 0, "at least 1"),
    ],
)
def test_recipes_are_read_strictly(place: tuple[str, ...], value: Any, says: str) -> None:
    wrong = plain()
    table = wrong
    for key in place[:-1]:
        table = table[key]
    table[place[-1]] = value
    with pytest.raises(ValueError, match=says):
        from_plain(Config, wrong)


def test_missing_settings_are_named() -> None:
    wrong = plain()
    del wrong["data"]
    with pytest.raises(ValueError, match=r"settings are missing.*'data'"):
        from_plain(Config, wrong)
    del wrong["format"]
    with pytest.raises(ValueError, match="format None"):
        from_plain(Config, wrong)


def test_whole_numbers_are_numbers() -> None:
    written = plain()
    written["optim"]["lr"] = 1
    found = from_plain(Config, written)
    assert isinstance(found.optim.lr, float)


def test_a_config_alone_is_read_as_strictly() -> None:
    assert config_from_plain(Config, {"width": 64}) == Config(width=64)
    with pytest.raises(ValueError, match=r"no setting model\.colour"):
        config_from_plain(Config, {"colour": 1})


# Settings above a recipe.


def test_settings_change_what_they_name_and_nothing_else() -> None:
    settings = {"seed": 3, "model": {"width": 32}, "data": {"train": ["a", "b=2"]}}
    expected = replace(
        SMALL,
        seed=3,
        model=replace(SMALL.model, width=32),
        data=replace(SMALL.data, train=("a", "b=2")),
    )
    assert changed(SMALL, settings) == expected
    assert changed(SMALL, {}) == SMALL
    # What was written beside a checkpoint is a settings file too.
    assert changed(registry.recipe("trm"), plain()) == SMALL


def test_minutes_take_the_place_of_steps() -> None:
    assert SMALL.steps is not None
    timed = changed(SMALL, {"minutes": 2})
    assert (timed.steps, timed.minutes) == (None, 2.0)
    counted = changed(timed, {"steps": 7})
    assert (counted.steps, counted.minutes) == (7, None)
    with pytest.raises(ValueError, match="set one of them"):
        changed(SMALL, {"steps": 7, "minutes": 2})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"colour": 1}, "no setting colour; there are reasoner, board"),
        ({"optim": {"speed": 1}}, r"no setting optim\.speed; there are name, lr"),
        ({"optim": 3}, "optim is a table of settings"),
        ({"optim": {"lr": "fast"}}, r"optim\.lr is a number"),
        ({"format": FORMAT + 1}, "another format"),
        ({"data": {"early_part": 0.5}}, "set both or neither"),
        ({"data": {"early": ["mini4-train"]}}, "set both or neither"),
        ({"data": {"early": ["mini4-train"], "early_part": 1.5}}, "up to 1"),
    ],
)
def test_settings_are_read_strictly(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        changed(SMALL, settings)


def test_settings_files(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "s.toml", tmp_path / "s.json"
    toml.write_text('seed = 3\n[data]\ntrain = ["a", "b=2"]\n')
    as_json.write_text('{"seed": 3, "data": {"train": ["a", "b=2"]}}')
    assert changed(SMALL, read_settings(toml)) == changed(SMALL, read_settings(as_json))
    for name, text in (("x.toml", "seed = "), ("x.json", "{"), ("y.json", "[1]")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"{name} (cannot be read|holds no settings)"):
            read_settings(tmp_path / name)


# Parts.


def test_boards_have_their_geometry() -> None:
    assert SMALL.geometry == FOUR
    assert registry.recipe("trm").geometry == NINE


@pytest.mark.parametrize(
    ("parts", "names", "weights"),
    [
        (("a",), ("a",), (1.0,)),
        (("a", "b"), ("a", "b"), (0.5, 0.5)),
        (("a=3", "b=1"), ("a", "b"), (0.75, 0.25)),
        (("a", "b=0.5"), ("a", "b"), (2 / 3, 1 / 3)),
        (("runs/x=1/set.ronri=2",), ("runs/x=1/set.ronri",), (1.0,)),
    ],
)
def test_mixtures(
    parts: tuple[str, ...], names: tuple[str, ...], weights: tuple[float, ...]
) -> None:
    found = Mixture.parse(parts)
    assert found.names == names
    assert found.weights == pytest.approx(weights)


@pytest.mark.parametrize(
    "parts", [(), ("a=0",), ("a", "b=-1"), ("a=often",), ("a=",), ("a=nan",), ("a", "b=inf")]
)
def test_mixtures_that_make_no_sense(parts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"NAME=WEIGHT|at least one set"):
        Mixture.parse(parts)
