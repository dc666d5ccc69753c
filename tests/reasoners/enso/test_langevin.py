"""The controls of `benchmarks/langevin.py`: what is picked of chains, and encoders beside them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import langevin
import rules
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.trials import Puzzles, diagnosis, hold
from ronri.loading import Loaded
from ronri.reasoner import Budget, Reasoner
from ronri.reasoners.encoder.config import Config
from ronri.reasoners.encoder.model import Encoder
from ronri.reasoners.enso.model import Enso
from ronri.sudoku.geometry import FOUR
from ronri.thinking import think
from small_enso import CELLS, lessons, taught
from walks import ONE, Walk, controls, through_views, walk, weighing, without_slope


def test_what_is_picked_of_chains() -> None:
    wrong = np.array([[[3, 0], [0, 2], [1, 4]], [[0, 0], [5, 0], [6, 2]]])
    energy = np.array([[[2.0, 1.0], [2.0, 1.0], [1.0, 2.0]], [[1.0, 1.5], [3.0, 9.0], [1.0, 2.0]]])
    broken = np.array([[[0.0, 1.0], [1.0, 0.0], [0.5, 1.5]], [[0.0, 0.2], [1.0, 3.0], [2.0, 0.1]]])
    walk = Walk((1, 4), wrong, energy, broken, penalty=2.0)
    assert walk.one(0, 1).tolist() == [3, 0, 1]
    assert walk.lowest(1).tolist() == [0, 2, 1]
    assert walk.lowest(4).tolist() == [0, 5, 6]
    assert walk.best(4).tolist() == [0, 0, 2]
    # 2 and -1, 0 and 1, 0 and -1.
    assert walk.most_consistent(1).tolist() == [0, 0, 4]
    assert walk.least_broken(1).tolist() == [3, 2, 1]
    assert walk.least_broken(4).tolist() == [0, 5, 2]
    many = replace(walk, marks=(1,), wrong=np.tile([1, 0, 0, 0], (1, 4000, 1)))
    assert 0.22 < many.blindly(1).mean() < 0.28


@pytest.fixture(scope="module")
def taught_enso(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return saved(tmp_path_factory.mktemp("enso"), "enso", CELLS, taught(CELLS, 60))


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    config = Config(width=16, heads=2, layers=2, inner=32)
    return saved(tmp_path_factory.mktemp("encoder"), "encoder", config, learned(config, 150))


def saved(folder: Path, kind: str, config: Any, model: Reasoner) -> Loaded:
    weights = model.state_dict()
    loading.save(folder, kind=kind, config=config, geometry=FOUR, weights=weights, which="raw")
    return loading.load(str(folder), device="cpu")


@pytest.fixture(scope="module")
def puzzles() -> Puzzles:
    """Of most cells the answer is known: even networks that have learned nothing solve some."""
    found = Puzzles.of("mini4", open_set("mini4"), 40)
    order = np.random.default_rng(1).permuted(np.tile(np.arange(16), (40, 1)), axis=1)
    empty = order < np.arange(40)[:, None] % 8 + 1
    return replace(found, clues=np.where(empty, 0, found.solutions).astype(np.uint8))


@pytest.fixture(scope="module")
def harder() -> Puzzles:
    """What each part of the energy does by itself solves more or fewer of these."""
    return Puzzles.of("mini4", open_set("mini4"), 40)


def learned(config: Config, updates: int) -> Encoder:
    """An encoder that is right now and then."""
    torch.manual_seed(0)
    model = Encoder(config, FOUR)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for update in range(updates):
        optimiser.zero_grad()
        lesson = model.training_step(lessons(update, 64, (8, 14)), None, torch.tensor(0.0))
        lesson.loss.backward()
        optimiser.step()
    return model.eval()


def test_everything_on_one_suite(
    taught_enso: Loaded, control: Loaded, puzzles: Puzzles, tmp_path: Path
) -> None:
    enso = taught_enso
    before = {key: value.clone() for key, value in enso.reasoner.state_dict().items()}
    found = langevin.compare(enso, [control], puzzles, chains=2, steps=5)
    assert list(found["curve"]) == ["1", "2", "4", "5"]
    assert found["curve"]["1"]["begun at 0"] == found["solved"]["z = 0"]
    assert found["few"]["n"] == 40
    readings = diagnosis(enso.reasoner, puzzles)
    assert found["solved"]["oracle z, from the solution"] == round(40 * readings["oracle"])
    for way, steps in (("z = 0", 1), (ONE, 5)):
        trial = hold(enso, puzzles, Budget(steps=steps))
        assert 0 < trial.scores.puzzle_accuracy < 1
        assert found["solved"][way] == 40 - trial.scores.errors
        assert found["cells"][way] == pytest.approx(trial.scores.cell_accuracy)
    assert found["solved"]["the best chain, by the solution"] >= found["solved"][ONE]
    *_, first = think(enso.reasoner, torch.tensor(puzzles.clues), Budget(steps=1, samples=2))
    right = (first.thought.board == torch.tensor(puzzles.solutions)[first.puzzle]).all(dim=1)
    for way, sample in (("z = 0", 0), ("z from the prior", 1)):
        assert found["solved"][way] == int(right[first.sample == sample].sum())
    assert found["few"]["solved"][f"{ONE}, of these"] == found["solved"][ONE]
    (beside,) = found["encoders"]
    assert (
        0 <= beside["flops_per_puzzle"] / found["flops_per_puzzle"] - 1 < 1 / (beside["views"] - 1)
    )
    # The slope is back where it was.
    for key, value in enso.reasoner.state_dict().items():
        assert torch.equal(value, before[key]), key
    many, more = ({"n": n, "solved": {ONE: right}} for n, right in ((10, 9), (100, 80)))
    assert langevin.hardest([many, more]) == 1
    result: dict[str, Any] = {"suites": [found], "followed": langevin.followed(enso, puzzles, 4)}
    assert len(result["followed"]["walks"]) == langevin.FOLLOWED
    assert "the lowest of 10 latents" in langevin.text(result)
    assert langevin.curve_text(result).count("\n") == 6
    langevin.draw(result, tmp_path / "figure.svg")
    named = {"reasoner": "enso", "weights_sha256": "5" * 64, "device": "cpu", "commit": None}
    page = langevin.page_text(result | named)
    assert langevin.text(result) in page
    assert langevin.curve_text(result) in page


def test_without_a_slope_only_noise_moves_a_chain(taught_enso: Loaded, puzzles: Puzzles) -> None:
    plain = walk(taught_enso, puzzles, 2, (1, 5))
    with without_slope(taught_enso):
        still = walk(taught_enso, puzzles, 2, (1, 5))
    assert np.array_equal(plain.energy[0], still.energy[0])
    # The first chain begins at 0 and is not disturbed.
    begun, later = still.energy[:, :, 0]
    np.testing.assert_allclose(later, begun, rtol=1e-5)
    assert (still.energy[0, :, 1] != still.energy[1, :, 1]).all()
    assert plain.energy[1].mean() < still.energy[1].mean()
    again = walk(taught_enso, puzzles, 2, (1, 5))
    assert np.array_equal(plain.energy, again.energy)


@pytest.mark.parametrize("times", [1.0, 30.0])
@pytest.mark.parametrize("part", ["consistency", "penalty"])
def test_down_one_part_of_the_energy(
    part: str, times: float, taught_enso: Loaded, puzzles: Puzzles
) -> None:
    others = {"consistency": 0.0, "penalty": 0.0} | {part: times}
    with weighing(taught_enso, **others):
        found = walk(taught_enso, puzzles, 1, (1, 2))
    enso = taught_enso.reasoner
    assert isinstance(enso, Enso)
    land, clues = enso.landscape, torch.tensor(puzzles.clues)
    context = land.known(clues, torch.float32)
    heat = land.heat(torch.tensor([0]))
    weights = {"consistency": times * torch.ones(1), "penalty": times * land.weight(heat)}
    at = land.nowhere(len(clues)).requires_grad_()
    height = weights[part] * getattr(land.energy(clues, context, at), part)
    (way,) = torch.autograd.grad(height.sum(), at)
    there = land.energy(clues, context, at - land.log_step_size.exp() * way)
    told = times * {"consistency": 1.0, "penalty": enso.config.penalty}[part]
    told = told * getattr(there, part)
    np.testing.assert_allclose(found.energy[1, :, 0], told.detach(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found.broken[1, :, 0], there.penalty.detach(), rtol=1e-3, atol=1e-4)
    wrong = (there.logits.argmax(dim=-1) + 1 != torch.tensor(puzzles.solutions)).sum(dim=1)
    assert found.wrong[1, :, 0].tolist() == wrong.tolist()


def wrong_down(
    enso: Loaded, puzzles: Puzzles, consistency: float, penalty: float, steps: int
) -> list[int]:
    """Wrong cells of each puzzle, after one chain."""
    with weighing(enso, consistency=consistency, penalty=penalty):
        return walk(enso, puzzles, 1, (steps,)).one(0, steps).tolist()


def test_half_the_energy_is_half_the_energy(taught_enso: Loaded, harder: Puzzles) -> None:
    found = controls(taught_enso, harder, chains=2, steps=2)
    parts = {
        f"{ONE}, of these": (1.0, 1.0),
        f"{ONE}, down consistency alone": (1.0, 0.0),
        f"{ONE}, down broken rules alone": (0.0, 1.0),
    }
    wrong = {way: wrong_down(taught_enso, harder, *parts[way], steps=2) for way in parts}
    assert {way: found[way].tolist() for way in parts} == wrong
    # The test could not tell them apart otherwise.
    assert len({tuple(cells) for cells in wrong.values()}) == 3


def test_rules_of_more_and_more_weight(taught_enso: Loaded, harder: Puzzles) -> None:
    found = rules.measure(taught_enso, harder, steps=5)
    assert (found["suite"], found["n"], found["steps"]) == ("mini4", 40, 5)

    def solved(consistency: float, times: float) -> int:
        return wrong_down(taught_enso, harder, consistency, times, steps=5).count(0)

    alone = {f"rules alone × {times}": solved(0.0, times) for times in rules.TIMES}
    assert found["solved"] == {rules.PLAIN: solved(1.0, 1.0)} | alone
    # The test could not tell weights apart otherwise, nor rules alone from rules beside the rest.
    assert len(set(alone.values())) > 3
    assert [solved(1.0, times) for times in rules.TIMES] != list(alone.values())
    enso = taught_enso.reasoner
    assert isinstance(enso, Enso)
    land, clues = enso.landscape, torch.tensor(harder.clues)
    there = land.energy(clues, land.known(clues, torch.float32), land.nowhere(len(clues)))
    penalty = enso.config.penalty * there.penalty
    share = (penalty / (there.consistency + penalty)).mean()
    assert found["share_at_first"] == pytest.approx(float(share), rel=1e-4)


def test_what_is_said_of_rules() -> None:
    suites = [
        {"suite": "one", "n": 200, "steps": 64, "share_at_first": 0.125, "solved": {"way": 100}},
        {"suite": "two", "n": 1000, "steps": 64, "share_at_first": 0.04, "solved": {"way": 10}},
    ]
    named = {"reasoner": "enso", "weights_sha256": "5" * 64, "device": "cpu", "commit": "a" * 40}
    assert rules.text(named | {"suites": suites}) == (
        "| solved, in percent | `one` (200) | `two` (1,000) |\n"
        "| --- | ---: | ---: |\n"
        "| way | 50.00 (43.14–56.86) | 1.00 (0.54–1.83) |\n\n"
        "One chain of 64 steps, begun at 0; there the rules are 4.0 to 12.5 % of the energy. The "
        "first puzzles of each suite; weights `555555555555` of `enso`, on cpu. By `python "
        "benchmarks/rules.py --write` at commit `aaaaaaa`.\n"
    )


def test_what_views_say_of_a_puzzle(control: Loaded, puzzles: Puzzles) -> None:
    found = through_views(control, puzzles, 6)
    (frame,) = think(control.reasoner, torch.tensor(puzzles.clues), Budget(steps=1, views=6))
    surest, mean = [], []
    for puzzle, solution in enumerate(puzzles.solutions.tolist()):
        rows = (frame.puzzle == puzzle).nonzero()[:, 0].tolist()
        assert len(rows) == 6
        best = max(rows, key=lambda row: float(frame.thought.confidence[row]))
        surest.append(frame.thought.board[best].tolist() == solution)
        together = sum(frame.thought.beliefs[row] for row in rows)
        assert isinstance(together, torch.Tensor)
        mean.append((together.argmax(dim=-1) + 1).tolist() == solution)
    assert found["surest view"].tolist() == surest
    assert found["mean of all views"].tolist() == mean
    # The two ways, and one view, differ: the test could not tell them apart otherwise.
    one = through_views(control, puzzles, 1)["surest view"].tolist()
    assert len({tuple(surest), tuple(mean), tuple(one)}) == 3
