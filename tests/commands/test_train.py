"""`ronri train`: settings from recipe, file and flags, and what the loop is told."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Ronri
from ronri import registry
from ronri.recipe import Recipe, to_plain
from ronri.training import loop
from ronri.training.loop import Result
from runs import write_puzzles


class Loop:
    """Stands in for the training loop: remembers how it was called."""

    def __init__(self) -> None:
        self.recipe: Recipe[Any] | None = None
        self.folder = Path()
        self.options: dict[str, Any] = {}
        self.stopped = "done"

    def __call__(self, recipe: Recipe[Any], folder: Path, **options: Any) -> Result:
        self.recipe, self.folder, self.options = recipe, folder, options
        return Result(1200, folder, 3.5, 0.875, 0.98, self.stopped)  # type: ignore[arg-type]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    stand_in = Loop()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "train", stand_in)
        yield stand_in


def plain(recipe: Recipe[Any] | None) -> dict[str, Any]:
    assert recipe is not None
    return json.loads(json.dumps(to_plain(recipe)))


def begin_run(folder: Path, recipe: Recipe[Any]) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(to_plain(recipe)))


def test_a_recipe_as_it_is(ronri: Ronri, trained: Loop) -> None:
    shown = ronri("train", "trm-mini4", "--out", "runs/a")
    assert trained.recipe == registry.recipe("trm-mini4")
    assert trained.folder == Path("runs/a")
    assert trained.options == {
        "resume": False,
        "init": None,
        "device": None,
        "track": (),
        "compile": None,
    }
    assert shown.splitlines() == [
        "done after 1,200 steps and 3.5 minutes",
        "best validation: 87.50% of puzzles, 98.00% of cells",
        "run: runs/a",
        "evaluate with: ronri eval runs/a --data mini4",
    ]
    assert "--data everyday" in ronri("train", "trm", "--out", "runs/b")


def test_a_run_has_a_folder_of_its_own(ronri: Ronri, trained: Loop) -> None:
    ronri("train", "encoder-mini4")
    assert trained.folder.parent == Path("runs")
    assert trained.folder.name.startswith("encoder-mini4-20")


def test_several_processes_share_a_folder_and_one_speaks(
    ronri: Ronri, trained: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert ronri("train", "trm-mini4", "--out", "runs/a") == ""
    assert trained.folder == Path("runs/a")
    assert "say which with --out DIR" in ronri("train", "trm-mini4", status=2)


def test_how_the_run_is_run(ronri: Ronri, trained: Loop) -> None:
    ronri(
        *("train", "trm-mini4", "--init", "trm", "--device", "cpu", "--compile", "off"),
        *("--track", "wandb", "--track", "tensorboard"),
    )
    assert trained.options == {
        "resume": False,
        "init": "trm",
        "device": "cpu",
        "track": ("wandb", "tensorboard"),
        "compile": False,
    }


def test_a_file_changes_the_recipe_and_flags_change_the_file(
    ronri: Ronri, trained: Loop, tmp_path: Path
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("batch = 32\nseed = 5\n[optim]\nlr = 0.5\nwarmup = 7\n[model]\nwidth = 32\n")
    flags = ("--seed", 6, "--optim.lr", 0.25, "--data.train", "a=0.5", "b=0.5", "--data.no-augment")
    ronri("train", "trm-mini4", "--config", file, *flags)
    expected = plain(registry.recipe("trm-mini4"))
    expected |= {"batch": 32, "seed": 6}
    expected["optim"] |= {"lr": 0.25, "warmup": 7}
    expected["model"] |= {"width": 32}
    expected["data"] |= {"train": ["a=0.5", "b=0.5"], "augment": False}
    assert plain(trained.recipe) == expected


def test_only_what_file_and_flags_make_together_must_make_sense(
    ronri: Ronri, trained: Loop, tmp_path: Path
) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"model": {"mixer": "attention"}}')
    assert "positions" in ronri("train", "trm", "--model.positions", "grid", status=2)
    ronri("train", "trm", f"--config={file}", "--model.positions", "grid")
    assert plain(trained.recipe)["model"]["positions"] == "grid"


@pytest.mark.parametrize(
    ("recipe", "file", "flags", "limits"),
    [
        ("trm-mini4", "", "--minutes 2", (None, 2.0)),
        ("trm", "", "--steps 10", (10, None)),
        ("trm", "steps = 10", "", (10, None)),
        ("trm", "steps = 10", "--minutes=4", (None, 4.0)),
        ("trm-mini4", "minutes = 4.0", "--steps 3", (3, None)),
        ("trm", "minutes = 4.0", "--minutes 5", (None, 5.0)),
    ],
)
def test_a_limit_takes_back_the_other(
    ronri: Ronri,
    trained: Loop,
    tmp_path: Path,
    recipe: str,
    file: str,
    flags: str,
    limits: tuple[int | None, float | None],
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(file)
    ronri("train", recipe, "--config", settings, *flags.split())
    assert trained.recipe is not None
    assert (trained.recipe.steps, trained.recipe.minutes) == limits


def test_a_run_resumes_with_its_own_recipe(ronri: Ronri, trained: Loop, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    ronri("train", "trm-mini4", "--seed", 9, "--out", folder)
    assert trained.recipe is not None
    begun = trained.recipe
    begin_run(folder, begun)
    for recipe in ([], ["trm-mini4"]):
        ronri("train", *recipe, "--resume", "--out", folder)
        assert trained.recipe == begun
        assert trained.options["resume"] is True
    message = ronri("train", "encoder-mini4", "--resume", "--out", folder, status=2)
    assert f"the run in {folder} trains trm, not encoder-mini4" in message
    # Whoever gives settings gets them; the loop compares them with those of the run.
    ronri("train", "trm-mini4", "--seed", 8, "--resume", "--out", folder)
    assert trained.recipe.seed == 8
    # The same command begins a run where there is none yet.
    ronri("train", "trm-mini4", "--resume", "--out", tmp_path / "new")
    assert trained.recipe == registry.recipe("trm-mini4")


def test_an_interrupted_run_says_how_to_go_on(ronri: Ronri, trained: Loop) -> None:
    trained.stopped = "interrupted"
    shown = ronri("train", "trm-mini4", "--out", "runs/a", status=130)
    assert "interrupted after 1,200 steps" in shown
    assert "go on with: ronri train --resume --out runs/a" in shown


def test_the_pages(ronri: Ronri) -> None:
    page = ronri("train", "--help")
    for name in registry.recipes():
        assert name in page
    page = ronri("train", "trm-mini4", "--help")
    for text in ("--optim.lr FLOAT", "Learning rate, for batches", "--model.width", "--data.train"):
        assert text in page
    assert "--resume" in page
    assert "(default: 128)" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "name the recipe first: `ronri train RECIPE`; there are encoder, "),
        ("--minutes 3 trm", "name the recipe first"),
        ("nosuch", "there is no recipe 'nosuch'; there are encoder, "),
        ("trm --steps 3 --minutes 3", "a run ends after --steps or after --minutes"),
        ("trm --reasoner encoder", "name another recipe instead"),
        ("trm --config {tmp}/nosuch.toml", "nosuch.toml: No such file or directory"),
        ("trm --config {tmp}/typo.toml", "typo.toml: there is no setting optim.lrr; there are"),
        ("trm --config {tmp}/broken.toml", "broken.toml cannot be read"),
        ("trm --resume", "say which run to resume: --out DIR"),
        ("--resume", "say which run to resume: --out DIR"),
        ("--resume --out {tmp}", "there is no run in {tmp}: config.json is missing"),
        ("--resume --out {tmp}/broken", "config.json is not the recipe of a run"),
        ("--resume --out {tmp} --seed 3", "unknown option --seed for train"),
    ],
)
def test_mistakes_are_one_line(
    ronri: Ronri, trained: Loop, tmp_path: Path, arguments: str, message: str
) -> None:
    (tmp_path / "typo.toml").write_text("[optim]\nlrr = 1.0\n")
    (tmp_path / "broken.toml").write_text("optim = \n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    found = ronri("train", *arguments.format(tmp=tmp_path).split(), status=2)
    assert message.format(tmp=tmp_path) in found
    assert trained.recipe is None


def test_from_training_to_solving(
    ronri: Ronri, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop itself, a few steps, and what it leaves behind."""
    puzzles, run = write_puzzles(tmp_path / "four.ronri"), tmp_path / "run"
    order = (
        *("train", "trm-mini4", "--steps", 3, "--batch", 8, "--data.train", puzzles),
        *("--model.width", 16, "--model.inner", 16, "--out", run, "--device", "cpu"),
        *("--data.validation", 0.1, "--data.validation-puzzles", 8),
    )
    from ronri.cli import main

    assert main([str(word) for word in order]) == 0
    assert "done after 3 steps" in capsys.readouterr().out
    found = ronri.json("solve", "12..............", "--reasoner", run, status=1)
    assert found["reasoner"] == str(run)
    facts = ronri.json("info", run)["weights"]
    assert (facts["reasoner"], facts["config"]["width"]) == ("trm", 16)
