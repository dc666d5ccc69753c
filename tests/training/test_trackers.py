"""The numbers of a run: each step once, however often the run was killed."""

import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronri.training import trackers
from ronri.training.trackers import JsonLines, Many, TensorBoard, WeightsAndBiases, open_trackers


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def log(path: Path, steps: range, resume_at: int | None = None) -> JsonLines:
    """Log some steps and leave the file open, as a killed run does."""
    lines = JsonLines(path, resume_at)
    for step in steps:
        lines.log(step, {"loss": 1 / step})
    return lines


def test_a_line_is_there_as_soon_as_it_is_logged(tmp_path: Path) -> None:
    lines = log(tmp_path / "log.jsonl", range(1, 3))
    assert read(tmp_path / "log.jsonl") == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]
    lines.close()


def test_numbers_json_does_not_know_are_null(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "log.jsonl")
    lines.log(1, {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 0.1})
    lines.close()
    assert read(tmp_path / "log.jsonl") == [{"step": 1, "a": None, "b": None, "c": None, "d": 0.1}]


@given(st.integers(0, 12), st.integers(0, 12), st.binary(max_size=30))
def test_a_resumed_log_is_that_of_a_run_without_interruption(
    tmp_path_factory: pytest.TempPathFactory, resume_at: int, killed_at: int, rest: bytes
) -> None:
    folder = tmp_path_factory.mktemp("log")
    whole, log_file = folder / "whole.jsonl", folder / "log.jsonl"
    log(whole, range(1, 16)).close()
    log(log_file, range(1, max(resume_at, killed_at) + 1)).close()
    with log_file.open("ab") as file:
        file.write(rest.replace(b"\n", b""))  # the line at which the run was killed
    log(log_file, range(resume_at + 1, 16), resume_at).close()
    assert log_file.read_bytes() == whole.read_bytes()


def test_a_new_run_begins_anew_and_a_resumed_one_may_have_no_log_yet(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log(path, range(1, 3), resume_at=0).close()
    log(path, range(5, 7)).close()
    assert [line["step"] for line in read(path)] == [5, 6]


@pytest.mark.parametrize("line", ["no JSON", "[1]", "{}"])
def test_a_strange_line_is_not_thrown_away(tmp_path: Path, line: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"step": 1}}\n{line}\n{{"step": 3}}\n')
    with pytest.raises(ValueError, match=r"line 2 of .* is no line of a log"):
        JsonLines(path, resume_at=5)
    assert line in path.read_text()


class Recorder:
    """Stands in for a module, a writer or a run: remembers what was called, and with what."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> "Recorder":
            self.calls.append((name, args, kwargs))
            return self

        return call


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **contents: object) -> None:
    module = ModuleType(name)
    module.__dict__.update(contents)
    monkeypatch.setitem(sys.modules, name, module)


class WandbError(Exception):
    pass


def test_weights_and_biases_finds_its_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = Recorder()
    stand_in(monkeypatch, "wandb", init=wandb.init, Error=WandbError)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    run = tmp_path / "my-run"
    run.mkdir()
    for resume_at in (None, 4, None):
        tracker = WeightsAndBiases(run, {"recipe": "small"}, resume_at)
        tracker.log(5, {"loss": 0.5})
        tracker.close()
    assert [name for name, _, _ in wandb.calls] == ["init", "log", "finish"] * 3
    first, resumed, anew = (kwargs for name, _, kwargs in wandb.calls if name == "init")
    assert first == resumed
    assert first["id"] != anew["id"]
    assert (first["project"], first["name"], first["resume"]) == ("ronri", "my-run", "allow")
    assert first["config"] == {"recipe": "small"}
    assert wandb.calls[1] == ("log", ({"loss": 0.5},), {"step": 5})


def test_a_person_who_is_not_logged_in_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise WandbError("No API key configured.")

    stand_in(monkeypatch, "wandb", init=refuse, Error=WandbError)
    with pytest.raises(ValueError, match=r"No API key configured\. .*WANDB_MODE=offline"):
        WeightsAndBiases(tmp_path, {})


def test_tensorboard_hides_what_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Recorder()
    stand_in(monkeypatch, "torch.utils.tensorboard", SummaryWriter=writer.SummaryWriter)
    for resume_at in (None, 4):
        tracker = TensorBoard(tmp_path, {"recipe": "small"}, resume_at)
        tracker.log(5, {"loss": 0.5, "lr": 0.1})
        tracker.close()
    opened = [call for call in writer.calls if call[0] == "SummaryWriter"]
    folder = str(tmp_path / "tensorboard")
    assert opened == [
        ("SummaryWriter", (folder,), {"purge_step": None}),
        ("SummaryWriter", (folder,), {"purge_step": 5}),
    ]
    texts = [call for call in writer.calls if call[0] == "add_text"]
    assert len(texts) == 1
    scalars = [args for name, args, _ in writer.calls if name == "add_scalar"]
    assert scalars == [("loss", 0.5, 5), ("lr", 0.1, 5)] * 2
    assert writer.calls[-1][0] == "close"


@pytest.mark.parametrize(
    ("name", "module"), [("wandb", "wandb"), ("tensorboard", "torch.utils.tensorboard")]
)
def test_a_missing_extra_is_named_and_costs_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    log(tmp_path / "log.jsonl", range(1, 4)).close()
    monkeypatch.setitem(sys.modules, module, None)
    words = rf"needs {name}: pip install 'ronri\[{name}\]'"
    with pytest.raises(ValueError, match=words):
        open_trackers(tmp_path, (name,), {}, None)
    assert len(read(tmp_path / "log.jsonl")) == 3


def test_an_unknown_tracker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no tracker is called 'mlflow', only tensorboard and wa"):
        open_trackers(tmp_path, ("mlflow",), {}, None)


class Notes:
    """A tracker that only remembers."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.closed = False

    def log(self, step: int, values: dict[str, float]) -> None:
        self.logged.append((step, values))

    def close(self) -> None:
        self.closed = True


def test_every_run_writes_lines_whatever_else_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = Notes()
    monkeypatch.setitem(trackers.EXTRAS, "extra", lambda *_: extra)
    for names in ((), ("extra",)):
        tracker = open_trackers(tmp_path / "run", names, {}, None)
        tracker.log(1, {"loss": 0.5})
        tracker.close()
        assert read(tmp_path / "run" / "log.jsonl") == [{"step": 1, "loss": 0.5}]
    assert extra.logged == [(1, {"loss": 0.5})]
    assert extra.closed


def test_one_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    class Broken(Notes):
        def close(self) -> None:
            raise OSError("the network is gone")

    first, last = Notes(), Notes()
    with pytest.raises(OSError, match="gone"):
        Many((first, Broken(), last)).close()
    assert first.closed
    assert last.closed


def test_with_the_real_tensorboard(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for steps, resume_at in ((range(1, 8), None), (range(5, 10), 4)):
        tracker = TensorBoard(tmp_path, {"recipe": "small"}, resume_at)
        for step in steps:
            tracker.log(step, {"loss": 1 / step})
        tracker.close()
    found = events.EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    assert [event.step for event in found.Scalars("loss")] == list(range(1, 10))


def test_with_the_real_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for resume_at in (None, 4):
        tracker = WeightsAndBiases(tmp_path, {"recipe": "small"}, resume_at)
        tracker.log(5, {"loss": 0.5})
        tracker.close()
    name = (tmp_path / "wandb.id").read_text().strip()
    assert len(list(tmp_path.glob(f"wandb/offline-run-*-{name}/run-{name}.wandb"))) == 2
