"""The one loop: what it writes, how it resumes, how it ends."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import runs
from ronri import loading
from ronri.reasoners.trm.model import TRM
from ronri.recipe import Optim, to_plain
from ronri.training import loop
from ronri.training.checkpoints import Checkpoints, Snapshot
from ronri.training.display import Display
from ronri.training.distributed import World
from ronri.training.loop import Result, train
from ronri.training.release import card_text, release
from ronri.training.run import Run


@pytest.fixture(scope="module")
def puzzles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_puzzles(tmp_path_factory.mktemp("puzzles") / "tiny.ronri")


def last(folder: Path) -> Snapshot:
    found = Checkpoints(folder).latest(lambda line: pytest.fail(line))
    assert found is not None
    return found


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def run_until(
    monkeypatch: pytest.MonkeyPatch, step: int, recipe: Any, folder: Path, **options: Any
) -> Result:
    """Train, and have someone press Ctrl-C at a step."""
    update = Run.update

    def watched(self: Run) -> dict[str, Tensor]:
        measured = update(self)
        if self.step == step:
            os.kill(os.getpid(), signal.SIGINT)
        return measured

    with monkeypatch.context() as patch:
        patch.setattr(Run, "update", watched)
        return train(recipe, folder, **options)


def test_a_run_that_begins_with_easy_puzzles_and_shallow_steps_resumes_exactly(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = runs.by_and_by(puzzles, runs.write_puzzles(tmp_path / "other.ronri", 100))
    train(recipe, tmp_path / "straight")
    for step in (10, 20):
        run_until(monkeypatch, step, recipe, tmp_path / "halting", resume=True)
    train(recipe, tmp_path / "halting", resume=True)
    assert runs.same(last(tmp_path / "straight").tensors, last(tmp_path / "halting").tensors)


def test_a_run_learns_and_writes_what_it_promises(puzzles: Path, tmp_path: Path) -> None:
    recipe = runs.tiny(puzzles, steps=60)
    result = train(recipe, tmp_path / "run")
    assert (result.step, result.stopped) == (60, "done")
    logged = lines(tmp_path / "run")
    assert [line["step"] for line in logged] == list(range(5, 61, 5))
    assert logged[-1]["loss"] < logged[0]["loss"]
    for name in ("lm_loss", "halt_loss", "solved", "gradient_norm", "lr.muon", "lr.adamw", "ema"):
        assert all(name in line for line in logged)
    validated = [line["step"] for line in logged if "validation.puzzle_accuracy" in line]
    assert validated == [15, 30, 45, 60]
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == json.loads(
        json.dumps(to_plain(recipe))
    )
    # The best three are kept, and the run can be loaded by its folder.
    assert len(Checkpoints(tmp_path / "run").ranking()) == 3
    assert loading.load(str(tmp_path / "run")).weights == "ema"


@pytest.mark.parametrize("optimiser", ["muon", "adamw", "adam-atan2"])
def test_resuming_is_as_if_nothing_had_happened(
    optimiser: Any, puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = runs.tiny(puzzles, optim=Optim(name=optimiser, lr=3e-3, warmup=5, ema=0.9))
    train(recipe, tmp_path / "whole")
    for step in (7, 13, 22):
        stopped = run_until(monkeypatch, step, recipe, tmp_path / "cut", resume=step > 7)
        assert (stopped.stopped, stopped.step) == ("interrupted", step)
    assert train(recipe, tmp_path / "cut", resume=True).stopped == "done"
    whole, cut = last(tmp_path / "whole"), last(tmp_path / "cut")
    assert runs.same(whole.tensors, cut.tensors)
    assert whole.facts["admitted"] == cut.facts["admitted"]
    # A window that was cut in two has other means; validations and counts are the same.
    kept = ("step", "admitted", "validation.puzzle_accuracy", "validation.cell_accuracy")
    for one, other in zip(lines(tmp_path / "whole"), lines(tmp_path / "cut"), strict=True):
        assert {k: one.get(k) for k in kept} == {k: other.get(k) for k in kept}


def test_killed_in_the_middle_of_anything(puzzles: Path, tmp_path: Path) -> None:
    """SIGKILL, three times, in another process; `benchmarks/killing.py` does it twenty times."""
    import killing

    report = killing.kill_and_resume(runs.tiny(puzzles, steps=60), tmp_path, kills=3, seed=1)
    assert report["kills"] == 3
    assert report["identical"]


def test_a_damaged_last_checkpoint_is_told_and_passed_over(
    puzzles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = runs.tiny(puzzles)
    train(recipe, tmp_path)
    whole = last(tmp_path)
    newest = max((tmp_path / "checkpoints").iterdir())
    (newest / "state.safetensors").write_bytes(b"nonsense")
    train(recipe, tmp_path, resume=True)
    assert "state.safetensors" in capsys.readouterr().err
    assert runs.same(last(tmp_path).tensors, whole.tensors)


def test_a_run_of_before_there_was_a_setting_goes_on(puzzles: Path, tmp_path: Path) -> None:
    recipe = runs.tiny(puzzles, steps=12)
    train(recipe, tmp_path)
    for state in tmp_path.rglob("state.json"):
        saved = json.loads(state.read_text())
        del saved["facts"]["recipe"]["optim"]["warmup_part"]
        state.write_text(json.dumps(saved))
    assert train(recipe, tmp_path, resume=True).stopped == "done"


def test_alarms_are_told_and_logged(
    puzzles: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TRM, "diagnose", lambda _, batch: {"heat": float(len(batch.keys))})
    monkeypatch.setattr(TRM, "alarms", lambda _, readings: [f"too hot: {readings['heat']:.0f}"])
    train(runs.tiny(puzzles, steps=15), tmp_path)
    held_out = lines(tmp_path)[-1]["validation.heat"]
    assert f"warning: too hot: {held_out:.0f}" in capsys.readouterr().err
    assert lines(tmp_path)[-1]["validation.alarms"] == 1


def test_a_folder_with_a_run_is_not_overwritten(puzzles: Path, tmp_path: Path) -> None:
    recipe = runs.tiny(puzzles, steps=5)
    train(recipe, tmp_path)
    with pytest.raises(ValueError, match="already holds a run at step 5"):
        train(recipe, tmp_path)
    with pytest.raises(ValueError, match="other settings"):
        train(replace(recipe, seed=1), tmp_path, resume=True)


def test_a_run_by_the_clock_ends_and_keeps_its_time(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = runs.tiny(puzzles, steps=None, minutes=0.05)
    stopped = run_until(monkeypatch, 3, recipe, tmp_path)
    assert stopped.stopped == "interrupted"
    before = last(tmp_path).facts["seconds"]
    result = train(recipe, tmp_path, resume=True)
    assert result.stopped == "done"
    assert last(tmp_path).facts["closing"] > 0
    assert last(tmp_path).facts["seconds"] > before > 0
    rates = [line["lr.adamw"] for line in lines(tmp_path)]
    # The schedule follows the clock to its end.
    assert rates[-1] < 0.1 * max(rates)


@pytest.mark.parametrize(("what", "words"), [("loss", "loss"), ("gradient_norm", "gradient")])
def test_what_is_no_number_stops_the_run(
    what: str, words: str, puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Run.update

    def poisoned(self: Run) -> dict[str, Tensor]:
        measured = update(self)
        if self.step >= 13:
            measured[what] = torch.tensor(float("nan"))
        return measured

    monkeypatch.setattr(Run, "update", poisoned)
    message = f"the {words} became nan at step 13; the last good state is step 10"
    with pytest.raises(ValueError, match=message):
        train(runs.tiny(puzzles), tmp_path)
    assert last(tmp_path).step == 10
    # The advice leads to that very state.
    good = tmp_path / "checkpoints" / "step-00000010"
    monkeypatch.setattr(Run, "update", update)
    train(runs.tiny(puzzles, steps=1), tmp_path / "heir", init=str(good))


def test_a_loss_that_explodes_stops_the_run(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Run.update

    def exploding(self: Run) -> dict[str, Tensor]:
        measured = update(self)
        return measured | {"loss": measured["loss"] * (100 if self.step >= 22 else 1)}

    monkeypatch.setattr(Run, "update", exploding)
    message = r"the loss rose to \d+.* at step 22; the last good state is step 20"
    with pytest.raises(ValueError, match=message):
        train(runs.tiny(puzzles), tmp_path)


@pytest.mark.parametrize("place", [(Run, "update"), (TRM, "initial_carry")])
def test_a_batch_that_does_not_fit_says_which_would(
    place: tuple[type, str], puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(*place, no_room)
    with pytest.raises(ValueError, match=r"a batch of 16 does not fit .* try --batch 8"):
        train(runs.tiny(puzzles), tmp_path)


def test_auto_batch_is_frozen_and_scales_the_rates(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "BATCH_ELSEWHERE", 64)
    recipe = runs.tiny(puzzles, batch="auto", optim=Optim(lr=1e-3, warmup=0, schedule="constant"))
    run_until(monkeypatch, 5, recipe, tmp_path)
    assert last(tmp_path).facts["batch"] == 64
    assert lines(tmp_path)[-1]["lr.adamw"] == pytest.approx(2e-3)
    monkeypatch.setattr(loop, "BATCH_ELSEWHERE", 32)
    train(recipe, tmp_path, resume=True)
    assert last(tmp_path).facts["batch"] == 64


def test_starting_from_other_weights(puzzles: Path, tmp_path: Path) -> None:
    recipe = runs.tiny(puzzles, steps=5)
    train(recipe, tmp_path / "ancestor")
    ancestor = loading.load(str(tmp_path / "ancestor"))
    still = Optim(name="adamw", lr=0.0, warmup=0)
    heir = runs.tiny(puzzles, steps=1, optim=still)
    train(heir, tmp_path / "heir", init=str(tmp_path / "ancestor"))
    weights = loading.load(str(tmp_path / "heir"), which="raw")
    assert runs.same(weights.reasoner.state_dict(), ancestor.reasoner.state_dict())
    assert weights.minutes > ancestor.minutes > 0
    wider = replace(recipe.model, width=32)
    with pytest.raises(ValueError, match="does not fit this recipe"):
        train(runs.tiny(puzzles, model=wider), tmp_path / "wide", init=str(tmp_path / "ancestor"))


def elsewhere(
    recipe: Any, folder: Path, *, processes: int = 1, compiled: bool = False, until: int = 0
) -> None:
    """Train, or go on, in processes of its own where no shapes are checked; stop at a step."""
    folder.mkdir(exist_ok=True)
    (folder / "recipe.json").write_text(json.dumps(to_plain(recipe)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [
        "--nproc-per-node",
        str(processes),
        str(Path(runs.__file__).parent / "processes.py"),
    ]
    command += [str(folder / "recipe.json"), str(folder), "compiled" if compiled else "plain"]
    command += [str(until)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_compiled_and_plain_steps_agree(puzzles: Path, tmp_path: Path) -> None:
    recipe = runs.tiny(puzzles, steps=5)
    train(recipe, tmp_path / "plain")
    elsewhere(recipe, tmp_path / "compiled", compiled=True)
    plain, compiled = (last(tmp_path / name).tensors for name in ("plain", "compiled"))
    for name, value in plain.items():
        if name.startswith("weights."):
            torch.testing.assert_close(compiled[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("supervise", ["every", "halted"])
def test_two_processes_learn_what_one_does(supervise: Any, puzzles: Path, tmp_path: Path) -> None:
    recipe = runs.tiny(puzzles, model=replace(runs.tiny(puzzles).model, supervise=supervise))
    train(recipe, tmp_path / "one")
    elsewhere(recipe, tmp_path / "two", processes=2)
    one, two = lines(tmp_path / "one"), lines(tmp_path / "two")
    assert [line["step"] for line in one] == [line["step"] for line in two]
    for mine, ours in zip(one, two, strict=True):
        assert ours["loss"] == pytest.approx(mine["loss"], rel=1e-3)
        assert ours["admitted"] == mine["admitted"]
    # One checkpoint for all: what two processes wrote, one can go on with, and the other way round.
    assert last(tmp_path / "two").tensors["carry.z_H"].shape[0] == recipe.batch
    for first, then in ((1, 2), (2, 1)):
        folder = tmp_path / f"{first} to {then}"
        elsewhere(replace(recipe, steps=30), folder, processes=first, until=12)
        elsewhere(recipe, folder, processes=then)
        for mine, ours in zip(one, lines(folder), strict=True):
            if mine["step"] > 15:
                assert ours["loss"] == pytest.approx(mine["loss"], rel=1e-3)
    one_end, two_end = last(tmp_path / "one").tensors, last(tmp_path / "two").tensors
    for name, value in one_end.items():
        if name.startswith("ema."):
            torch.testing.assert_close(two_end[name], value, rtol=1e-2, atol=1e-3)


def test_a_batch_that_cannot_be_shared() -> None:

    with pytest.raises(ValueError, match="cannot be shared by 3 processes: try --batch 15"):
        World(0, 3, torch.device("cpu")).slots(16)


def test_signals_are_left_as_they_were(puzzles: Path, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    train(runs.tiny(puzzles, steps=1), tmp_path)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_signal_in_the_last_step_comes_too_late(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_until(monkeypatch, 5, runs.tiny(puzzles, steps=5), tmp_path).stopped == "done"


def test_what_a_loss_is_compared_with_survives_a_pause(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = runs.tiny(puzzles)
    run_until(monkeypatch, 12, recipe, tmp_path)
    first = last(tmp_path).facts["first_loss"]
    assert first == lines(tmp_path)[0]["loss"]
    train(recipe, tmp_path, resume=True)
    assert last(tmp_path).facts["first_loss"] == first


def test_a_validation_tells_how_far_it_is(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(Display, "validating", lambda _, done, of: told.append((done, of)))
    recipe = runs.tiny(puzzles, steps=1)
    train(recipe, tmp_path / "run")
    assert told == [(recipe.data.validation_puzzles,) * 2]


def test_readings_that_need_the_answer_are_logged(
    puzzles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TRM, "diagnose", lambda _, batch: {"clues": float(len(batch.clues))})
    train(runs.tiny(puzzles, steps=15), tmp_path)
    assert lines(tmp_path)[-1]["validation.clues"] == 16.0


def test_a_run_becomes_a_model_and_a_card(puzzles: Path, tmp_path: Path) -> None:
    train(runs.tiny(puzzles), tmp_path / "run")
    card = release(tmp_path / "run", tmp_path / "model", name="tiny", recipe="tiny")
    loaded = loading.load(str(tmp_path / "model"))
    best = loading.load(str(tmp_path / "run"))
    assert (loaded.sha256, card["steps_in_run"]) == (card["sha256"], 30)
    for name, value in best.reasoner.state_dict().items():
        assert torch.equal(loaded.reasoner.state_dict()[name], value.bfloat16().float())
    assert "30 updates" in card_text(card)
    assert "At the very beginning" not in card_text(card)
    mixed = {**card["settings"]["data"], "early": ["easy=0.9", "hard=0.1"], "early_part": 0.25}
    settings = {**card["settings"], "data": mixed}
    told = card_text({**card, "settings": settings})
    assert "At the very beginning: `easy=0.9`, `hard=0.1`; over the first 25 % of the run" in told
    assert "untouched" not in told
    told = card_text({**card, "data": {"tricky-made": (98, 2)}})
    assert "`tiny` learned from `tricky-made`, which was made because earlier weights" in told
    assert "erred on `kaggle3m`: what it solves there is no untouched test" in told
