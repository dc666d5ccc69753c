"""The document's runs, as `benchmarks/document.py` makes them: here on small boards."""

from pathlib import Path
from typing import Any

import pytest

import document
import report
from ronri import registry
from ronri.data.sources import open_set
from ronri.evaluation.trials import Puzzles
from ronri.reasoners.enso.config import Config
from ronri.recipe import changed, from_plain


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


CHANGES = {"steps": 4, "batch": 8, "validate_every": 2, "validation_steps": 3}


@pytest.fixture(scope="module")
def result(folder: Path) -> dict[str, Any]:
    recipe = changed(registry.recipe("enso-mini4"), CHANGES)
    puzzles = Puzzles.of("mini4", open_set("mini4"), 20)
    found = document.measure(recipe, folder, puzzles, chains=2, steps=3, device="cpu")
    assert found is not None
    return found


def test_how_a_run_went(result: dict[str, Any]) -> None:
    run = result["run"]
    assert (run["steps_in_run"], run["batch"], run["device"]) == (4, 8, "cpu")
    recipe = from_plain(Config, run["recipe"])
    assert recipe == changed(registry.recipe("enso-mini4"), CHANGES)
    assert [one["step"] for one in run["validations"]] == [2, 4]
    solved = {one["step"]: one["validation.puzzle_accuracy"] for one in run["validations"]}
    assert solved[run["step"]] == max(solved.values())
    assert 0 < run["minutes"] < 10


def test_a_run_that_is_done_is_not_made_again(folder: Path, result: dict[str, Any]) -> None:
    before = (folder / "log.jsonl").read_bytes()
    recipe = changed(registry.recipe("enso-mini4"), CHANGES)
    puzzles = Puzzles.of("mini4", open_set("mini4"), 20)
    again = document.measure(recipe, folder, puzzles, chains=2, steps=3, device="cpu")
    assert again == result
    assert (folder / "log.jsonl").read_bytes() == before


def test_a_run_without_a_validation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no validated checkpoint"):
        document.history(tmp_path)


def test_rows_stand_beside_those_of_the_document(result: dict[str, Any]) -> None:
    # Recipes of the document's runs have minutes.
    run = result["run"]
    run = run | {"recipe": run["recipe"] | {"minutes": 20.0}}
    text = document.text("enso-run5", result | {"run": run})
    rows = [row.strip("| ").split(" | ") for row in text.split("\n\n")[0].splitlines()[2:]]
    suite = result["suite"]
    assert len(rows) == len(suite["solved"]) + len(suite["few"]["solved"])
    assert tuple(row[0] for row in rows[:4]) == document.ROWS
    assert rows[0][-2:] == ["95.6", "99.3"]
    assert rows[3][-2:] == ["96.6", "99.4"]
    assert rows[0][2] == f"{100 * suite['cells'][document.ORACLE]:.2f}"
    assert "enso-run5 --minutes 20 --write`" in text
    assert f"After {run['step']} of 4 updates of 8 puzzles" in text
    assert "(the document: 22 hours)" in text
    first = run["validations"][0]
    told = (first[f"validation.{name}"] for name in ("oracle", "zero", "prior", "puzzle_accuracy"))
    assert f"| 2 | {' | '.join(f'{100 * one:.1f}' for one in told)} |" in text


def test_the_page_tells_of_runs_that_were_kept_and_of_those_that_were_not(
    tmp_path: Path, result: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert document.page_text() == "Not made yet: `enso-run4` and `enso-run5` ([log](LOG.md)).\n"
    result = result | {"run": result["run"] | {"recipe": result["run"]["recipe"] | {"minutes": 20}}}
    report.keep("enso-run5", result)
    first, rest = document.page_text().split("Not made yet: ")
    assert first == document.text("enso-run5", result) + "\n"
    assert rest == "`enso-run4` ([log](LOG.md)).\n"
    report.keep("enso-run4", result)
    assert "Not made yet" not in document.page_text()
