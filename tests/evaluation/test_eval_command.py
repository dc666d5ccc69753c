"""`ronri eval` and `ronri compare`, as a user would call them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tyro
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from tyro.conf import FlagCreatePairsOff

import small_enso
from ronri import registry
from ronri.commands.compare import compare
from ronri.commands.eval import evaluate
from ronri.data.sources import open_set
from ronri.evaluation.work import measure
from ronri.loading import load, save
from ronri.reasoners.trm.config import Config
from ronri.sudoku.board import parse, to_lines
from ronri.sudoku.geometry import FOUR

# What the documentation of `eval --json` promises, and the number of errors.
KEYS = {
    *("reasoner", "data", "n", "errors", "puzzle_accuracy", "puzzle_accuracy_ci95"),
    *("cell_accuracy", "constraint_satisfaction", "clues_kept", "verified", "mean_steps"),
    *("row_steps_per_puzzle", "ms_per_puzzle", "flops_per_puzzle", "budget", "one_pass"),
    *("by_rating", "seed"),
    *("weights", "weights_sha256", "dtype", "device", "compiled", "commit", "extra"),
}
SMALL = Config(width=16, heads=2, layers=1, inner=24, h_cycles=2, l_cycles=2, max_steps=3)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RONRI_CACHE", str(cache))


@pytest.fixture(scope="module")
def trm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A TRM for 4x4 boards that has learned nothing."""
    folder = tmp_path_factory.mktemp("models") / "trm"
    torch.manual_seed(0)
    model = registry.find("trm").build(SMALL, FOUR)
    save(
        folder,
        kind="trm",
        config=SMALL,
        geometry=FOUR,
        weights=model.state_dict(),
        which="ema",
    )
    return str(folder)


def run(command: Any, *arguments: object) -> None:
    """A command with arguments as the command line reads them."""
    words = [str(argument) for argument in (*arguments, "--device", "cpu")]
    assert tyro.cli(command, args=words, config=(FlagCreatePairsOff,)) == 0


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_exact_solver_makes_no_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    run(evaluate, "exact", "--data", "mini4", "--limit", 20, "--json", "-")
    told = printed(capsys)
    assert set(told) == KEYS
    assert (told["reasoner"], told["data"], told["n"], told["errors"]) == ("exact", "mini4", 20, 0)
    for name in ("puzzle_accuracy", "cell_accuracy", "constraint_satisfaction", "clues_kept"):
        assert told[name] == 1
    assert told["verified"] == 1
    assert told["puzzle_accuracy_ci95"] == pytest.approx([0.8389, 1], abs=5e-5)
    assert told["budget"] == {"steps": 1, "samples": 1, "views": 1, "halt": "fixed"}
    assert sum(stratum["n"] for stratum in told["by_rating"]) == 20
    assert told["flops_per_puzzle"] is told["weights"] is told["weights_sha256"] is None


def test_a_network_is_scored(trm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--data", "mini4", "--limit", 20, "--samples", 2, "--views", 2, "--seed", 7)
    file = tmp_path / "new" / "result.json"
    run(evaluate, trm, *options, "--json", file, "--show", 2)
    told, shown = json.loads(file.read_text()), capsys.readouterr().out
    assert set(told) == KEYS
    assert told["budget"] == {"steps": 3, "samples": 2, "views": 2, "halt": "fixed"}
    assert (told["mean_steps"], told["row_steps_per_puzzle"], told["seed"]) == (3, 12, 7)
    loaded = load(trm, device="cpu")
    assert (told["weights"], told["weights_sha256"]) == ("ema", loaded.sha256)
    assert (told["dtype"], told["device"]) == ("float32", "cpu")
    work = measure(loaded.reasoner, open_set("mini4").puzzles(slice(2)))
    assert work is not None
    assert told["flops_per_puzzle"] == work.flops(4.0, 12.0)
    assert f"{told['errors']} errors" in shown
    assert shown.count("not solved") == shown.count("answered") == shown.count("belongs there") == 2
    assert "samples, 2 views, halt fixed, ema weights" in shown


@pytest.mark.parametrize("command", [evaluate, compare])
def test_networks_are_compiled_where_asked(
    command: Any,
    trm: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = []

    def remember(part: nn.Module) -> None:
        compiled.append(type(part))

    monkeypatch.setattr(nn.Module, "compile", remember)
    monkeypatch.chdir(tmp_path)
    for asked in (False, True):
        words = ["--compile"] if asked else []
        run(command, trm, "--data", "mini4", "--limit", 2, "--json", "-", *words)
        found = printed(capsys)
        [told] = found.get("trials", [found])
        assert told["compiled"] == asked
        parts = load(trm, device="cpu").reasoner.thinking_parts() if asked else ()
        assert compiled == [type(part) for part in parts]


def test_operations_of_a_gradient_count() -> None:
    """Down a slope and back up it is twice as much as looking alone: no weight wants a gradient."""
    puzzles = open_set("mini4").puzzles(slice(2))
    model = small_enso.model_of(small_enso.CELLS).eval()
    work = measure(model, puzzles)
    assert work is not None
    clues = torch.from_numpy(puzzles)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        context = model.landscape.known(clues, torch.float32)
        known = counter.get_total_flops()
        model.landscape.energy(clues, context, model.landscape.nowhere(2))
    energy = counter.get_total_flops() - known
    assert work.begin == known / 2
    assert 1.8 * energy / 2 < work.advance < 2.2 * energy / 2


def test_operations_of_a_network_are_those_of_its_layers(trm: str) -> None:
    work = measure(load(trm, device="cpu").reasoner, open_set("mini4").puzzles(slice(2)))
    assert work is not None
    places, width, inner, digits = 1 + 16, SMALL.width, SMALL.inner, 4
    attention = 4 * places * width**2 + 2 * places**2 * width
    block = attention + 3 * places * width * inner
    calls = SMALL.h_cycles * (SMALL.l_cycles + 1)
    # The board is read from the cells alone.
    heads = 16 * width * (digits + 2) + width
    # Looking up what stands in a cell is a product of matrices too.
    assert work.begin == 2 * 16 * (digits + 2) * width
    assert work.advance == 2 * (calls * block + heads)


def test_records_are_one_line_a_puzzle(trm: str, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    run(evaluate, trm, "--data", "mini4", "--limit", 20, "--halt", "own", "--records", file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    source = open_set("mini4")
    assert [line["index"] for line in lines] == list(range(20))
    np.testing.assert_array_equal(
        [parse(line["puzzle"]) for line in lines], source.puzzles(slice(20))
    )
    for line, solution, rating in zip(lines, source.solutions(), source.ratings(), strict=False):
        board = parse(line["board"], check=False)
        assert line["solved"] == line["verified"] == bool((board == solution).all())
        assert line["rating"] == rating
        assert line["row_steps"] == line["steps"] == 3
        assert 0 < line["confidence"] < 1


def test_solutions_are_found_where_a_list_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = open_set("mini4")
    bare = tmp_path / "bare.txt"
    bare.write_text("\n".join(to_lines(source.puzzles(slice(30)))) + "\n")
    run(evaluate, "exact", "--data", bare, "--json", "-")
    told = printed(capsys)
    assert (told["n"], told["puzzle_accuracy"]) == (30, 1)


def test_rows_that_were_left_out_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = open_set("mini4")
    spoiled = tmp_path / "spoiled.txt"
    spoiled.write_text("\n".join([*to_lines(source.puzzles(slice(3))), "11.............."]) + "\n")
    run(evaluate, "exact", "--data", spoiled)
    assert "rows left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--data", "mini6"), "plays on 4x4 boards and mini6 has 6x6 ones"),
        (("--data", "mini4", "--weights", "raw"), "has no raw weights, only ema weights"),
        (("--data", "mini4", "--show", "1", "--json", "-"), "choose one"),
        (("--data", "mini4", "--limit", "0"), "at least one puzzle"),
        (("--data", "nowhere"), "no file 'nowhere'"),
        (("--data", "mini4", "--steps", "0"), "at least 1"),
    ],
)
def test_mistakes_are_told_in_a_sentence(trm: str, arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        run(evaluate, trm, *arguments)


def test_a_bad_path_is_found_before_the_work(
    trm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ronri.evaluation.trials.hold", None)
    for option in ("--json", "--records"):
        with pytest.raises(ValueError, match="is a folder"):
            run(evaluate, trm, "--data", "mini4", option, tmp_path)


def test_reasoners_are_compared(
    trm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = (trm, "exact", "--data", "mini4", "--limit", 20)
    run(compare, *names, "--steps", 1, 3, "--samples", 1, 2, "--out", tmp_path, "--json", "-")
    told = printed(capsys)
    assert all(set(trial) == KEYS for trial in told["trials"])
    spent = [(t["reasoner"], t["row_steps_per_puzzle"]) for t in told["trials"]]
    assert spent == [(trm, 1), (trm, 2), (trm, 3), (trm, 6), ("exact", 1), ("exact", 2)]
    [pair] = told["pairs"]
    right = {
        (t["reasoner"], t["row_steps_per_puzzle"]): t["n"] - t["errors"] for t in told["trials"]
    }
    assert (pair["first"], pair["second"], pair["only_first"]) == (trm, "exact", 0)
    assert pair["only_second"] == 20 - right[trm, 6]
    assert pair["p"] == 2 * 0.5 ** pair["only_second"]
    assert [Path(figure).suffix for figure in told["figures"]] == [".png", ".svg"]
    assert all(Path(figure).stat().st_size > 1000 for figure in told["figures"])


def test_a_comparison_is_shown_uncut(
    trm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--limit", 5, "--out", tmp_path, "--seed", 1, "--views", 2, "--halt", "verified")
    run(compare, trm, "exact", trm, "--data", "mini4", *options)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "100.00% (56.55–100.00)" in shown
    # Whether a board was checked is told beside its score.
    head, *rows = shown.splitlines()[1:4]
    assert head.split()[:3] == ["reasoner", "thinking", "halt"]
    assert all(" verified " in row for row in rows)
    # Named twice, compared once.
    assert shown.count("only second") == 1


def test_the_exact_solver_plays_on_boards_of_every_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(compare, "exact", "--data", "mini4", "mini6", "--limit", 5, "--out", tmp_path)
    shown = capsys.readouterr().out
    assert "mini4: 5 puzzles" in shown
    assert "mini6: 5 puzzles" in shown


@pytest.mark.parametrize("arguments", [("--data", "mini4"), ("exact", "--data")])
def test_a_comparison_of_nothing_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="at least one reasoner, and after --data at least one"):
        run(compare, *arguments)


def test_boards_that_do_not_fit_stop_a_comparison(trm: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="4x4 boards and mini6"):
        run(compare, trm, "--data", "mini4", "mini6", "--out", tmp_path)
