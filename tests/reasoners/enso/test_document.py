"""The document's runs, as `benchmarks/document.py` makes them: here on small boards."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import document
import langevin
import report
from ronri import loading, registry
from ronri.data.sources import open_set
from ronri.evaluation.trials import Puzzles
from ronri.reasoners.enso.config import Config
from ronri.recipe import changed, from_plain
from ronri.training.checkpoints import Checkpoints, Score, Snapshot
from ronri.training.loop import Result
from ronri.training.schedules import scaled_lr

CHANGES = {"steps": 4, "batch": 8, "validate_every": 2, "validation_steps": 3}
RECIPE = changed(registry.recipe("enso-mini4"), CHANGES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    assert document.made(RECIPE, folder, "cpu")
    return folder


@pytest.fixture(scope="module")
def puzzles() -> Puzzles:
    return Puzzles.of("mini4", open_set("mini4"), 20)


@pytest.fixture(scope="module")
def result(folder: Path, puzzles: Puzzles) -> dict[str, Any]:
    return document.measure(folder, [puzzles, puzzles], chains=2, steps=3, device="cpu")


def told() -> dict[str, Any]:
    """A result in which no number is there twice."""
    right = {document.ORACLE: 9000, "z = 0": 10, "z from the prior": 20, document.THINKING: 800}
    right |= {"a chain picked blindly": 700}
    names = ("oracle", "zero", "prior", "puzzle_accuracy", "cell_accuracy")
    validation = {f"validation.{name}": (1 + n) / 10 for n, name in enumerate(names)}
    everyday = {
        "suite": "everyday",
        "n": 10000,
        "chains": 8,
        "steps": 64,
        "solved": right,
        "cells": {way: 0.3 + n / 100 for n, way in enumerate(right)},
        "few": {"n": 1000, "solved": {"chains without a slope": 30}},
    }
    minimal = everyday | {
        "suite": "minimal",
        "n": 5000,
        "solved": {way: solved // 4 for way, solved in right.items()},
        "cells": {way: 0.6 + n / 100 for n, way in enumerate(right)},
        "few": {"n": 0, "solved": {}},
    }
    return {
        "run": {
            "step": 4000,
            "steps_in_run": 5432,
            "batch": 2048,
            "minutes": 20.34,
            "commit": "a" * 40,
            "device": "a machine",
            "recipe": {"minutes": 20.0, "validation_steps": 50},
            "validations": [{"step": 2000, **validation}, {"step": 4000, **validation}],
        },
        "weights_sha256": "5" * 64,
        "device": "cpu",
        "commit": "b" * 40,
        "suites": [everyday, minimal],
    }


def test_how_a_run_went(folder: Path, result: dict[str, Any]) -> None:
    run = result["run"]
    assert (run["steps_in_run"], run["batch"], run["device"]) == (4, 8, "cpu")
    assert from_plain(Config, run["recipe"]) == RECIPE
    assert [one["step"] for one in run["validations"]] == [2, 4]
    last = Checkpoints(folder).latest(print)
    assert last is not None
    assert run["minutes"] == last.facts["seconds"] / 60 > 0


def test_a_run_is_told_by_its_best_checkpoint(tmp_path: Path) -> None:
    facts = {name: name for name in ("recipe", "batch", "commit", "device", "data", "admitted")}
    snapshots = [
        Snapshot(step, {"x": torch.zeros(1)}, facts | {"seconds": 90.0}) for step in (2, 4)
    ]
    checkpoints = Checkpoints(tmp_path)
    for snapshot, solved in zip(snapshots, (0.5, 0.25), strict=True):
        checkpoints.save(snapshot)
        checkpoints.offer(snapshot, Score(solved, 0.75))
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n{"validation.puzzle_accuracy": 0.5}\n')
    run = document.history(tmp_path)
    assert (run["step"], run["steps_in_run"], run["minutes"]) == (2, 4, 1.5)
    assert run["validations"] == [{"validation.puzzle_accuracy": 0.5}]
    assert run["batch"] == "batch"


def test_scored_is_what_is_kept_of_a_run(
    folder: Path, puzzles: Puzzles, result: dict[str, Any]
) -> None:
    loaded = loading.load(folder, device="cpu")
    assert result["weights_sha256"] == loaded.sha256
    first, second = result["suites"]
    assert first == langevin.compare(loaded, [], puzzles, 2, 3)
    assert second == first | {"few": {"n": 0, "solved": {}}}


def test_half_the_energy_is_tried_on_the_first_few_puzzles(
    folder: Path, puzzles: Puzzles, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Puzzles] = []

    def controls(_: Any, some: Puzzles, *__: int) -> dict[str, np.ndarray]:
        tried.append(some)
        return {"a way": np.array([0, 4, 0])}

    monkeypatch.setattr(langevin, "controls", controls)
    found = langevin.compare(loading.load(folder, device="cpu"), [], puzzles, 2, 3, few=3)
    (some,) = tried
    assert (some.clues == puzzles.clues[:3]).all()
    assert (some.solutions == puzzles.solutions[:3]).all()
    assert found["few"] == {"n": 3, "solved": {"a way": 2}}


def test_smaller_batches_are_more_updates() -> None:
    """As the document scales rates: with the root of the batch."""
    plain, planned = registry.recipe("enso-run5"), document.planned("enso-run5", 7.0, 512)
    assert document.planned("enso-run5", 24.0, document.BATCH) == plain
    assert (planned.batch, planned.minutes) == (512, 7.0)
    assert planned.optim.lr == plain.optim.lr
    assert scaled_lr(planned.optim.lr, 512, planned.base_batch) == pytest.approx(3e-4)
    assert planned.validate_every * 512 == plain.validate_every * document.BATCH
    assert planned.checkpoint_every * 512 == plain.checkpoint_every * document.BATCH
    assert document.planned("enso-run5", 7.0, 10**9).validate_every == 1
    with pytest.raises(ValueError, match="at least one slot, not 0"):
        document.planned("enso-run5", 7.0, 0)


def test_a_run_that_is_done_is_not_made_again(folder: Path) -> None:
    before = (folder / "log.jsonl").read_bytes()
    assert document.made(RECIPE, folder, "cpu")
    assert (folder / "log.jsonl").read_bytes() == before


def test_a_run_without_a_validation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no validated checkpoint"):
        document.history(tmp_path)


def test_rows_stand_beside_those_of_the_document() -> None:
    first, below, validations = document.text("enso-run5", told()).split("\n\n")
    head, _, *rows = first.splitlines()
    assert head == (
        "| `enso-run5`, in percent | document: puzzles | document: cells "
        "| `everyday` (10,000) | cells | `minimal` (5,000) | cells |"
    )
    assert rows == [
        "| oracle z, from the solution | 95.6 | 99.3 "
        "| 90.00 (89.40–90.57) | 30.00 | 45.00 (43.63–46.38) | 60.00 |",
        "| z = 0 |  |  | 0.10 (0.05–0.18) | 31.00 | 0.04 (0.01–0.15) | 61.00 |",
        "| z from the prior |  |  | 0.20 (0.13–0.31) | 32.00 | 0.10 (0.04–0.23) | 62.00 |",
        "| the chain of lowest energy | 96.6 | 99.4 "
        "| 8.00 (7.48–8.55) | 33.00 | 4.00 (3.49–4.58) | 63.00 |",
        "| a chain picked blindly |  |  | 7.00 (6.52–7.52) | 34.00 | 3.50 (3.03–4.05) | 64.00 |",
        "| chains without a slope |  |  | 3.00 (2.11–4.25), of 1,000 |  |  |  |",
    ]
    assert below == (
        "Puzzles solved, with the 95 % interval, and empty cells that are right. The run has 5,432 "
        "updates of 2,048 puzzles and took 20.3 minutes on one a machine, compilation and "
        "validation included (the document: some 78,000 of 2,048, and 22 hours); what it is scored "
        "by, the best of its validations, is from update 4,000. 8 chains of 64 steps for each "
        "puzzle, no check; the document's are other puzzles. Weights "
        "`555555555555`, trained at commit `aaaaaaa` and scored at `bbbbbbb`, by `python "
        "benchmarks/document.py enso-run5 --minutes 20 --batch 2048 --write`. On the way, in "
        "percent of held-out puzzles, thinking being one chain of 50 steps:"
    )
    assert validations.splitlines() == [
        "| updates | oracle z | z = 0 | prior z | thinking | its cells |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| 2,000 | 10.0 | 20.0 | 30.0 | 40.0 | 50.0 |",
        "| 4,000 | 10.0 | 20.0 | 30.0 | 40.0 | 50.0 |",
    ]
    assert "| 82.5 | 97.6 |" in document.text("enso-run4", told())


def test_the_page_tells_of_runs_that_were_kept_and_of_those_that_were_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert document.page_text() == "Not made yet: `enso-run4` and `enso-run5` ([log](LOG.md)).\n"
    report.keep("enso-run5", told())
    first, rest = document.page_text().split("Not made yet: ")
    assert first == document.text("enso-run5", told()) + "\n"
    assert rest == "`enso-run4` ([log](LOG.md)).\n"
    report.keep("enso-run4", told())
    assert "Not made yet" not in document.page_text()


def test_the_command_trains_scores_and_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What takes long is replaced: training, puzzles, scores."""
    asked: list[Any] = []
    some = Puzzles.of("mini4", open_set("mini4"), 3)
    ctrl_c = SimpleNamespace()

    def trained(recipe: Any, folder: Path, **options: Any) -> Result:
        asked.append((recipe, folder, options))
        if ctrl_c.during == "preparation":
            raise KeyboardInterrupt
        stopped: Any = "interrupted" if ctrl_c.during == "training" else "done"
        return Result(1, folder, 7.0, None, None, stopped)

    def scored(*what: Any) -> dict[str, Any]:
        asked.append(what)
        if ctrl_c.during == "scoring":
            raise KeyboardInterrupt
        return {"some": "scores"}

    monkeypatch.setattr(document, "train", trained)
    monkeypatch.setattr(document, "measure", scored)
    monkeypatch.setattr(document, "text", lambda *_: "all that there is to say")
    monkeypatch.setattr(Puzzles, "of", lambda *_: some)
    opened: list[str] = []
    monkeypatch.setattr(document, "open_set", opened.append)
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    out, run = tmp_path / "out.json", tmp_path / "run"
    command = ["document.py", "enso-run4", "--minutes", "7", "--batch", "512", "--write"]
    command += ["--run", str(run), "--out", str(out), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", command)
    recipe = document.planned("enso-run4", 7.0, 512)
    training = (recipe, run, {"resume": True, "device": "cpu"})
    for ctrl_c.during in ("preparation", "training", "scoring"):
        with pytest.raises(SystemExit, match="130"):
            document.main()
        assert "start it again" in capsys.readouterr().out
        assert not out.exists()
    ctrl_c.during = "neither"
    document.main()
    scoring = (run, [some, some, some], 8, 50, "cpu")
    assert asked == [training, training, training, scoring, training, scoring]
    assert json.loads(out.read_text()) == report.kept("enso-run4") == {"some": "scores"}
    assert "all that there is to say" in capsys.readouterr().out
    assert opened[:3] == ["everyday", "minimal", "kaggle3m"]
