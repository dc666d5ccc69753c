"""Models on disk: what was saved comes back, and what cannot be loaded says why."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import ronri
from boards import PUZZLE, SOLUTION
from ronri import loading
from ronri.loading import load, save
from ronri.reasoners.trm.config import Config
from ronri.reasoners.trm.model import TRM
from ronri.recipe import Data, Optim, Recipe, to_plain
from ronri.sudoku.board import parse, to_text
from ronri.sudoku.geometry import FOUR, NINE
from ronri.training.checkpoints import Checkpoints, Score, Snapshot

CONFIG = Config(width=8, heads=2, inner=8, h_cycles=1, l_cycles=1, max_steps=2)


def weights_of(seed: int) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    return TRM(CONFIG, FOUR).state_dict()


def saved(folder: Path, **changes: Any) -> Path:
    settings: dict[str, Any] = {
        "kind": "trm",
        "config": CONFIG,
        "geometry": FOUR,
        "weights": weights_of(0),
        "which": "ema",
    }
    save(folder, **{**settings, **changes})
    return folder


def assert_holds(found: loading.Loaded, weights: dict[str, Tensor]) -> None:
    torch.testing.assert_close(dict(found.reasoner.state_dict()), weights, rtol=0, atol=0)


# Models.


def test_a_model_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "model"
    sha256 = save(
        folder,
        kind="trm",
        config=CONFIG,
        geometry=FOUR,
        weights=weights_of(0),
        which="raw",
        minutes=1.5,
    )
    found = load(folder, device="cpu")
    assert_holds(found, weights_of(0))
    assert (found.name, found.kind, found.weights) == (str(folder), "trm", "raw")
    assert (found.sha256, found.minutes) == (sha256, 1.5)
    assert found.reasoner.geometry == FOUR
    assert isinstance(found.reasoner, TRM)
    assert found.reasoner.config == CONFIG
    assert not found.reasoner.training
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "weights.safetensors"]


def test_rounded_weights_take_half_the_room(tmp_path: Path) -> None:
    whole, rounded = saved(tmp_path / "whole"), saved(tmp_path / "rounded", dtype=torch.bfloat16)
    expected = {name: value.bfloat16().float() for name, value in weights_of(0).items()}
    assert_holds(load(rounded, device="cpu"), expected)
    sizes = [(folder / "weights.safetensors").stat().st_size for folder in (whole, rounded)]
    values = sum(value.numel() for value in expected.values())
    assert sizes[0] - sizes[1] == pytest.approx(2 * values, rel=0.05)


def test_released_weights_go_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "RELEASED", tmp_path)
    saved(tmp_path / "trm")
    (tmp_path / "draft").mkdir()
    assert loading.released() == ["trm"]
    assert_holds(load("trm", device="cpu"), weights_of(0))


def flip(folder: Path) -> None:
    path = folder / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut(folder: Path) -> None:
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


def lose(folder: Path) -> None:
    (folder / "weights.safetensors").unlink()


def scribble(folder: Path) -> None:
    (folder / "model.json").write_text("{")


def change(**changes: Any) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        path = folder / "model.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return changed


def forget(folder: Path) -> None:
    path = folder / "model.json"
    facts = json.loads(path.read_text())
    del facts["board"]
    path.write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (flip, "weights.safetensors is damaged: its checksum differs"),
        (cut, "holds no whole model"),
        (lose, "holds no whole model"),
        (scribble, "holds no whole model"),
        (forget, "holds no whole model: KeyError.*board"),
        (change(format=99), "model has format 99, this Ronri reads format 1"),
        (change(reasoner="nobody"), "no reasoner 'nobody'; there are .*trm"),
        (change(board="5x5"), "no board is called '5x5'"),
        (change(config={"colour": 3}), "no setting model.colour; there are width, heads"),
        (change(config={"width": "wide"}), "model.width is a whole number, not 'wide'"),
        (change(config={"width": 16, "heads": 2}), "the weights do not fit the config"),
        (change(board="9x9"), "the weights do not fit the config: lm_head.weight|embed"),
    ],
)
def test_what_cannot_be_used_says_why(
    tmp_path: Path, damage: Callable[[Path], None], says: str
) -> None:
    folder = saved(tmp_path / "model")
    damage(folder)
    with pytest.raises(ValueError, match=says):
        load(folder, device="cpu")


def test_unknown_names_tell_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "RELEASED", tmp_path)
    saved(tmp_path / "small-one")
    with pytest.raises(ValueError, match=r"no such folder; there are small-one, .*exact"):
        load("nobody")
    with pytest.raises(ValueError, match="'trm' cannot be loaded: no weights of it were released"):
        load("trm")
    with pytest.raises(ValueError, match="neither a model nor the checkpoints of a run"):
        load(tmp_path)
    with pytest.raises(ValueError, match="a device is cpu, cuda or mps, not 'abacus'"):
        load("exact", device="abacus")


# Runs.


def snapshot(step: int) -> Snapshot:
    """A run at a step: its averaged weights are those of seed `step`, its raw ones of the next."""
    recipe = Recipe(
        reasoner="trm",
        board="4x4",
        model=CONFIG,
        data=Data(train=("mini4-train",)),
        optim=Optim(lr=1e-3),
        steps=10,
    )
    tensors = {
        **{f"ema.{name}": value for name, value in weights_of(step).items()},
        **{f"weights.{name}": value for name, value in weights_of(step + 1).items()},
        "carry.steps": torch.zeros(3),
    }
    facts = {
        "recipe": to_plain(recipe),
        "seconds": 30.0 * step,
        "processes": 1,
        "ancestors_minutes": 2.0,
    }
    return Snapshot(step, tensors, facts)


def test_of_a_run_the_best_checkpoint_is_taken(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(snapshot(1))
    checkpoints.save(snapshot(2))
    # Nothing was validated yet: the last one.
    found = load(tmp_path, device="cpu")
    assert_holds(found, weights_of(2))
    assert (found.weights, found.minutes) == ("ema", 3.0)
    for step, score in ((1, Score(0.5, 0.9)), (3, Score(0.5, 0.8)), (4, Score(0.4, 1.0))):
        checkpoints.offer(snapshot(step), score)
    assert_holds(load(tmp_path, device="cpu"), weights_of(1))
    raw = load(tmp_path, which="raw", device="cpu")
    assert_holds(raw, weights_of(2))
    assert raw.weights == "raw"
    best = checkpoints.best()
    assert best is not None
    assert_holds(load(best, device="cpu"), weights_of(1))
    # Of equals the later one, as when the run itself is asked.
    checkpoints.offer(snapshot(5), Score(0.5, 0.9))
    assert_holds(load(tmp_path, device="cpu"), weights_of(5))


def test_what_a_killed_run_left_behind_does_not_count(tmp_path: Path) -> None:
    Checkpoints(tmp_path).save(snapshot(1))
    Checkpoints(tmp_path).save(snapshot(2))
    folder = tmp_path / "checkpoints"
    partial = (folder / "step-00000002").rename(folder / "step-00000002.partial")
    (partial / "state.safetensors").unlink()
    assert_holds(load(tmp_path, device="cpu"), weights_of(1))


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    Checkpoints(tmp_path).save(snapshot(1))
    path = tmp_path / "checkpoints" / "step-00000001" / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match="its checksum differs"):
        load(tmp_path, device="cpu")


# Solving.


def test_a_loaded_reasoner_solves() -> None:
    exact = ronri.load("exact", device="cpu")
    for puzzle in (PUZZLE, parse(PUZZLE)):
        solved = exact.solve(puzzle)
        assert solved.verified
        assert str(solved) == to_text(parse(SOLUTION))
        assert (solved.steps, solved.row_steps) == (1, 1)
    assert exact.solve(PUZZLE, views=3, samples=2, halt="fixed").row_steps == 6
    # A clue that breaks no rule, and with which there is no solution.
    impossible = exact.solve(PUZZLE[:2] + "1" + PUZZLE[3:])
    assert not impossible.verified
    with pytest.raises(ValueError, match="digit 5 stands twice in row 1"):
        exact.solve("55" + PUZZLE[2:])


def test_boards_must_fit(tmp_path: Path) -> None:
    small = load(saved(tmp_path / "model"), device="cpu")
    with pytest.raises(ValueError, match="plays on 4x4 boards and the puzzle is 9x9"):
        small.solve(PUZZLE)
    small.check_fits(FOUR)
    assert load("exact", device="cpu", geometry=FOUR).reasoner.geometry == FOUR
    assert load("exact", device="cpu").reasoner.geometry == NINE


def test_budgets_follow_the_reasoner(tmp_path: Path) -> None:
    small = load(saved(tmp_path / "model"), device="cpu")
    assert (small.budget().steps, small.budget().halt) == (4 * CONFIG.max_steps, "verified")
    assert small.budget(steps=7, halt="fixed").steps == 7
    # Several rows can be told apart by the check alone.
    assert small.budget(samples=2, halt="own").halt == "own"
