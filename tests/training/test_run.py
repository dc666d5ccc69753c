"""One update: done in place, recorded and replayed; and a run as it was written down."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
import torch
from torch import Tensor

import runs
from ronri.recipe import Optim
from ronri.training.distributed import World
from ronri.training.material import gather
from ronri.training.replay import Replay
from ronri.training.run import Run


@pytest.fixture(scope="module")
def puzzles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_puzzles(tmp_path_factory.mktemp("puzzles") / "tiny.ronri")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_puzzles(tmp_path_factory.mktemp("puzzles") / "other.ronri", 100)


def begun(recipe: Any) -> Run:
    world = World(0, 1, torch.device("cpu"))
    return Run(recipe, world, recipe.batch, gather(recipe, pytest.fail))


def losses(run: Run, count: int) -> list[Tensor]:
    found = []
    for _ in range(count):
        found.append(run.update()["loss"])
        run.tick(0.0)
    return found


def test_work_in_place_is_the_same_work(puzzles: Path) -> None:
    """What is recorded on a GPU keeps its carry where it was."""
    recipe = runs.tiny(puzzles)
    plain, in_place = begun(recipe), begun(recipe)
    in_place._work = in_place._work_in_place
    places = {name: x.data_ptr() for name, x in in_place.carry.tensors().items()}
    assert losses(plain, 9) == losses(in_place, 9)
    assert runs.same(plain.snapshot().tensors, in_place.snapshot().tensors)
    assert places == {name: x.data_ptr() for name, x in in_place.carry.tensors().items()}


def test_a_run_by_the_clock_leaves_time_for_its_last_validation(
    puzzles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(runs.tiny(puzzles, steps=None, minutes=10.0))
    # A slow validation of 40 seconds, then one of 4.
    clock = iter([0.0, 40.0, 100.0, 104.0])
    seconds = SimpleNamespace(perf_counter=lambda: next(clock))
    monkeypatch.setattr("ronri.training.run.time", seconds)
    run.validate()
    run.tick(559.0)
    assert not run.over
    run.tick(561.0)
    assert run.over
    # It stays over, however fast the last one is.
    run.validate()
    run.tick(565.0)
    assert run.over
    again = begun(run.recipe)
    again.restore(run.snapshot())
    assert again.over
    # A run that is older than this.
    older = run.snapshot()
    del older.facts["closing"]
    again.restore(older)
    assert not again.over


def test_a_process_without_puzzles_has_no_say(
    puzzles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(runs.tiny(puzzles))
    count = len(run.material.clues)
    monkeypatch.setattr(type(run.reasoner), "diagnose", lambda *_: {"read": 3.0})
    monkeypatch.setattr(World, "gathered", lambda _, mine: [(0, {}), mine])
    found = run._readings(run.material.clues, run.material.solutions)
    assert count > 0
    assert found == {"read": 3.0}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
# Of torch's compiler, on its way.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", get_args(get_type_hints(Optim)["name"]))
def test_replayed_updates_are_the_same_updates(
    name: Any, compiled: bool, puzzles: Path, other: Path
) -> None:
    """Over a change of stage and of mixture, after a validation, and again from the beginning."""
    recipe = runs.by_and_by(puzzles, other)
    recipe = replace(recipe, optim=replace(recipe.optim, name=name))
    world = World(0, 1, torch.device("cuda"))
    plain, replayed = (Run(recipe, world, 16, gather(recipe, pytest.fail)) for _ in range(2))
    if compiled:
        # Rounding is the compiler's: both have it.
        plain.compile()
        plain._work = plain._work_once
        replayed.compile()
    else:
        replayed._work = Replay(replayed._work_in_place)
    before = replayed.snapshot()
    before = replace(before, tensors={name: x.clone() for name, x in before.tensors.items()})
    expected = torch.stack(losses(plain, 10) + losses(plain, 20))
    for _ in range(3):
        first = losses(replayed, 10)
        replayed.validate()
        found = torch.stack(first + losses(replayed, 20))
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        mine, theirs = replayed.snapshot().tensors, plain.snapshot().tensors
        for key in ("lessons.begun", "lessons.taken"):
            assert torch.equal(mine[key], theirs[key])
        for key, value in theirs.items():
            if key.startswith(("weights", "ema")):
                torch.testing.assert_close(mine[key], value, rtol=1e-2, atol=1e-3)
        replayed.restore(before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning")
@pytest.mark.parametrize("name", get_args(get_type_hints(Optim)["name"]))
def test_an_update_waits_for_nothing(name: Any, puzzles: Path, other: Path) -> None:
    recipe = runs.by_and_by(puzzles, other)
    recipe = replace(recipe, optim=replace(recipe.optim, name=name))
    run = Run(recipe, World(0, 1, torch.device("cuda")), 16, gather(recipe, pytest.fail))
    run.update()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run._work()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_what_was_written_down_can_be_restored_twice(puzzles: Path) -> None:
    run = begun(runs.tiny(puzzles))
    run._work = run._work_in_place
    losses(run, 3)
    before = run.snapshot()
    before = replace(before, tensors={name: x.clone() for name, x in before.tensors.items()})
    straight = losses(run, 3)
    for _ in range(2):
        run.restore(before)
        assert losses(run, 3) == straight


def test_early_puzzles_are_some_of_all(puzzles: Path) -> None:
    recipe = runs.tiny(puzzles)
    data = replace(recipe.data, early=("mini4-train",), early_part=0.5)
    with pytest.raises(ValueError, match="early names mini4-train, which"):
        gather(replace(recipe, data=data), pytest.fail)
