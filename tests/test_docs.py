"""What the documents say is what is in the tree."""

import hashlib
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from torch import tensor

import ablations
import arms
import carry
import chains
import document
import game
import importing
import killing
import langevin
import laptop
import latents
import lessons
import release
import report
import results
import rules
import suites
import training
from ronri import loading, registry
from ronri.data.sources import SUITES, open_set
from ronri.reasoner import Budget
from ronri.recipe import changed, from_plain
from ronri.sudoku.board import parse
from ronri.sudoku.geometry import NINE
from ronri.terminal import pencil
from ronri.terminal.thoughts import Observer
from ronri.terminal.watching import picture
from ronri.thinking import think
from ronri.training.release import card_text

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ONE_STEP = Budget(steps=1)


def test_the_rates_in_the_readme_are_those_of_the_result_file() -> None:
    result = report.kept("game")
    rates = [game.Rate(**rate) for rate in result["rates"]]
    assert report.block(game.PAGE, "game") == game.markdown(result, rates)
    assert all(rate.kept for rate in rates)


def test_the_suites_in_the_documents_are_those_of_the_result_file() -> None:
    found = report.kept("suites")["suites"]
    expected = report.table(suites.head(), suites.rows(found))
    assert report.block(suites.PAGE, "suites") == expected
    assert [row["suite"] for row in found] == list(SUITES)
    for row in found:
        assert row["n"] == row["distinct_puzzles"]
        assert not row["shared_with_training"]


def test_the_import_in_the_documents_is_that_of_the_result_file() -> None:
    found = report.kept("importing")
    assert report.block(importing.PAGE, "importing") == importing.sentence(found)
    assert found["kept"] == found["rows"]
    assert found["peak_bytes"] < 2**30


def test_lessons_in_the_documents_are_those_of_the_result_file() -> None:
    found = report.kept("lessons")
    assert report.block(lessons.PAGE, "lessons") == lessons.text(found)
    for one in found["measured"]:
        changes = lessons.LESSONS[one["lesson"]].changes
        recipe = changed(registry.recipe("enso-mini4"), changes)
        assert from_plain(type(recipe.model), one["recipe"] | {"seed": 0}) == recipe


def test_figures_of_enso_are_those_of_the_result_files(tmp_path: Path) -> None:
    """As far as texts tell: how letters are drawn depends on the machine."""
    found, thought = report.kept("latents"), report.kept("langevin")
    assert [one["step"] for one in found["latents"]] == list(latents.SHOWN)
    latents.draw(found, tmp_path / latents.FIGURE.name)
    langevin.draw(thought, tmp_path / langevin.FIGURE.name)
    for figure, told in (
        (latents.FIGURE, f"after {latents.SHOWN[-1]} updates"),
        (langevin.FIGURE, f"{langevin.FOLLOWED} puzzles of {thought['followed']['suite']}"),
    ):
        again = (tmp_path / figure.name).read_text()
        texts = [re.findall("<!-- (.*) -->", text) for text in (again, figure.read_text())]
        assert texts[0] == texts[1]
        assert any(told in text for text in texts[0])


def test_thinking_was_measured_with_the_released_weights() -> None:
    """Of Enso, and of the controls beside it."""
    thought = report.kept("langevin")
    hashes = {
        name: json.loads((loading.RELEASED / name / "card.json").read_text())["sha256"]
        for name in ("enso", *langevin.ENCODERS)
    }
    assert thought["weights_sha256"] == hashes["enso"]
    assert report.kept("rules")["weights_sha256"] == hashes["enso"]
    for suite in thought["suites"]:
        assert [(one["reasoner"], one["weights_sha256"]) for one in suite["encoders"]] == [
            (name, hashes[name]) for name in langevin.ENCODERS
        ]


def test_scores_in_the_readme_are_those_of_the_card() -> None:
    for folder in loading.RELEASED.glob("*/card.json"):
        card = json.loads(folder.read_text())
        assert (folder.parent / "card.md").read_text() == card_text(card)
        weights = (folder.parent / "weights.safetensors").read_bytes()
        assert hashlib.sha256(weights).hexdigest() == card["sha256"]
    assert report.block(release.PAGE, "scores") == release.summary(release.cards())


def test_suites_that_are_scored_again_take_the_place_of_the_old_scores() -> None:
    before = [
        {"data": "everyday", "n": 1},
        {"data": "minimal", "n": 1},
        {"data": "minimal", "n": 2},
    ]
    found = [{"data": "hard", "n": 3}, {"data": "minimal", "n": 3}]
    assert release.merged(before, found) == [before[0], found[1], found[0]]
    assert release.merged([], found) == found[::-1]


@pytest.mark.parametrize("name", loading.released())
def test_the_default_recipe_made_the_released_weights(name: str) -> None:
    recipe = registry.recipe(name)
    card = json.loads((loading.RELEASED / name / "card.json").read_text())
    assert from_plain(type(recipe.model), card["settings"]) == recipe
    network = registry.find(recipe.reasoner).build(recipe.model, recipe.geometry)
    sizes = [(weight.numel(), weight.requires_grad) for weight in network.parameters()]
    assert card["parameters"] == sum(size for size, _ in sizes)
    assert card["trained"] == sum(size for size, trained in sizes if trained)


def test_results_are_those_of_the_result_files() -> None:
    """And these are of the released weights: the page refuses others."""
    assert results.PAGE.read_text() == results.page()


def test_every_arm_on_the_page_is_what_it_was_when_it_was_measured() -> None:
    measured = report.kept("ablations")["measured"]
    assert all(ablations.same(one) for one in measured)
    seeds: dict[tuple[str, float], list[int]] = {}
    for one in measured:
        seeds.setdefault((one["arm"], one["minutes"]), []).append(one["recipe"]["seed"])
    for (name, _), found in seeds.items():
        assert found == list(range(arms.ARMS[name].seeds))


def test_runs_measured_again_take_the_place_of_the_old_ones() -> None:
    measured = report.kept("ablations")["measured"]
    again = {**measured[1], "updates": 1}
    merged = ablations.merged(measured, [again])
    assert merged == [measured[0], again, *measured[2:]]
    assert ablations.merged([], measured[::-1]) == measured
    assert ablations.merged([{**measured[0], "puzzles": 7}], [again]) == [again]
    small = {**measured[0], "recipe": {**measured[0]["recipe"], "batch": 16}}
    with pytest.raises(ValueError, match="plain: measured with other settings"):
        ablations.merged(measured, [small])
    few = {**measured[0], "scores": [{**found, "n": 4} for found in measured[0]["scores"]]}
    with pytest.raises(ValueError, match="as many puzzles"):
        ablations.merged(measured, [few])


def test_first_seeds_are_measured_first() -> None:
    every = ablations.runs(["plain", "width 32"], None)
    assert every == [("plain", 0), ("width 32", 0), ("plain", 1), ("plain", 2), ("plain", 3)]
    assert ablations.runs(["plain", "width 32"], [2]) == [("plain", 2)]


def test_the_arm_of_the_release_has_what_the_recipe_has() -> None:
    """But for what all arms have, and what does not change how it learns."""
    recipe = registry.recipe("trm")
    arm = arms.settings(arms.ARMS["the recipe of the release"], recipe.seed, 24.0, ablations.BATCH)
    common = {
        "model": {"sure": arm.model.sure},
        "optim": {"ema": arm.optim.ema},
        "data": {"validation_puzzles": arm.data.validation_puzzles},
        "validation_steps": arm.validation_steps,
    }
    assert changed(recipe, {**common, "minutes": 24.0, "batch": ablations.BATCH}) == arm


def test_a_difference_no_larger_than_seeds_are_apart_is_none() -> None:
    plain = ablations.Seeds((80.0, 84.0))
    assert ablations.Seeds((86.0,)).against(plain) is None
    assert ablations.Seeds((87.0,)).against(plain) == 5.0
    assert ablations.Seeds((76.0, 77.0)).against(plain) == -5.5
    # Its own seeds are too far apart.
    assert ablations.Seeds((82.0, 94.0)).against(plain) is None


def test_what_was_measured_is_what_the_documents_say() -> None:
    for name, page, text in (
        ("carry", carry.PAGE, carry.text),
        ("chains", chains.PAGE, chains.text),
        ("langevin", langevin.PAGE, langevin.page_text),
        ("laptop", laptop.PAGE, laptop.text),
        ("rules", rules.PAGE, rules.text),
        ("killing", killing.PAGE, killing.text),
        ("training", training.PAGE, training.text),
    ):
        assert report.block(page, name) == text(report.kept(name))
    assert report.block(document.PAGE, "document") == document.page_text()
    assert report.kept("killing")["identical"]


def test_the_map_of_the_house_names_every_module() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    source = ROOT / "src" / "ronri"
    for path in source.rglob("*.py"):
        if path.parent.name != "kernels" and not path.name.startswith("__"):
            assert path.name in text, f"{path.relative_to(ROOT)} is not on the map"
    for name in re.findall(r"\b\w+\.py\b", text):
        there = list(source.rglob(name)) or list((ROOT / "benchmarks").glob(name))
        assert there, f"{name} is on the map, but not in the house"


def test_links_between_documents_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def demo() -> str:
    found = re.search(r"^HARD := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found
    return found[1]


def test_a_window_as_large_as_the_readme_says_shows_candidates() -> None:
    """And a smaller one does not."""
    told = re.search(r"window of (\d+) by (\d+)\s+or (\d+) by (\d+) characters", README)
    assert told
    clues = parse(demo())
    (frame,) = think(loading.load("trm", device="cpu").reasoner, tensor(clues[None]), ONE_STEP)
    moment = Observer(clues)(frame)

    def lines(width: int, height: int) -> int:
        console = Console(width=width, height=height, file=io.StringIO())
        shown = picture(moment, ONE_STEP, "trm", width, height)
        return len(console.render_lines(shown))

    for width, height in (map(int, told.groups()[:2]), map(int, told.groups()[2:])):
        assert pencil.extent(NINE)[1] <= lines(width, height) <= height
        assert lines(width - 1, height) < pencil.extent(NINE)[1]
        assert lines(width, height - 1) < pencil.extent(NINE)[1]


def test_the_demo_is_one_puzzle() -> None:
    for page in ("README.md", "docs/demo.py"):
        assert demo() in (ROOT / page).read_text()


@pytest.mark.usefixtures("real_data")
def test_the_demo_is_of_the_suite_hard() -> None:
    assert (open_set("hard").puzzles(slice(None)) == parse(demo())).all(axis=1).any()


def test_python_in_the_readme_runs() -> None:
    code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(code.replace("hard_puzzles(100", "hard_puzzles(2").replace("NINE, 100", "NINE, 2"), names)
    assert "same" in names
