"""Orders that are fulfilled: counts, twins, exclusions, and the same result every time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards import HARD
from ronri.data import generating
from ronri.data.generating import GenerationReport, Kind, Order, fulfil
from ronri.data.splits import keys_of, set_keys
from ronri.data.store import PuzzleSet, StoreWriter
from ronri.sudoku.board import parse
from ronri.sudoku.exact import rate, solve
from ronri.sudoku.generate import Shard
from ronri.sudoku.geometry import FOUR, NINE, SIX
from ronri.sudoku.trace import record

ANCESTORS = parse(HARD)[None]
ORDERS = {
    "clues": Order(count=40, fewest_clues=26, most_clues=30, seed=1),
    "minimal": Order(kind="minimal", count=40, seed=1),
    "tricky": Order(kind="tricky", count=40, least_guesses=8.0, seed=1),
    "hard": Order(kind="hard", count=40, seed=1, ancestors=ANCESTORS),
    "small": Order(count=60, geometry=FOUR, fewest_clues=5, most_clues=8, seed=1),
}


def made(
    order: Order, path: Path, exclude: np.ndarray | None = None, threads: int | None = None
) -> tuple[PuzzleSet, GenerationReport]:
    with StoreWriter(path, order.geometry, provenance=order.provenance) as writer:
        report = fulfil(order, writer, exclude=exclude, threads=threads)
    return PuzzleSet(path), report


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_is_fulfilled_alike_every_time(tmp_path: Path, name: str) -> None:
    order = ORDERS[name]
    found, report = made(order, tmp_path / "a.ronri", threads=1)
    assert len(found) == report.kept == order.count
    assert report.made == report.kept + report.twins + report.excluded
    puzzles, solutions = found.puzzles(), found.solutions()
    assert (solve(puzzles, geometry=order.geometry).counts == 1).all()
    assert len(np.unique(keys_of(puzzles, solutions, order.geometry).puzzles)) == order.count
    again, _ = made(order, tmp_path / "b.ronri", threads=2)
    assert again.header == found.header
    fewer, _ = made(replace(order, count=10), tmp_path / "c.ronri")
    np.testing.assert_array_equal(fewer.records, found.records[:10])


def test_kinds_differ_as_they_should(tmp_path: Path) -> None:
    sets = {name: made(ORDERS[name], tmp_path / f"{name}.ronri")[0] for name in ORDERS}
    clues = {name: (found.puzzles() > 0).sum(axis=1) for name, found in sets.items()}
    assert clues["clues"].min() >= 26
    assert clues["clues"].max() <= 30
    assert clues["minimal"].max() < 30
    assert clues["tricky"].max() < 30
    assert sets["tricky"].header.provenance["least_guesses"] == "8 over 3 traces"
    assert (sets["hard"].ratings() >= 10).all()
    assert sets["hard"].header.provenance["ancestors"] == "1 given"


def test_ratings_are_means_over_copies(tmp_path: Path) -> None:
    found, _ = made(ORDERS["minimal"], tmp_path / "a.ronri")
    expected = rate(found.puzzles(), 3, seed=1)
    np.testing.assert_allclose(found.ratings(), expected, atol=0.01)


def test_tricky_puzzles_are_minimal_ones_that_take_a_pencil_many_guesses(tmp_path: Path) -> None:
    order = replace(ORDERS["tricky"], count=30)
    tricky, _ = made(order, tmp_path / "tricky.ronri")
    minimal, _ = made(replace(order, kind="minimal", count=2_000), tmp_path / "minimal.ronri")
    puzzles = minimal.puzzles()
    traces = [record(puzzles, seed=order.seed + 1 + copy, length=1) for copy in range(3)]
    guesses = np.mean([trace.guesses for trace in traces], axis=0)
    assert guesses.mean() < 4
    np.testing.assert_array_equal(tricky.records, minimal.records[guesses >= 8][:30])


def test_tricky_puzzles_come_from_any_seed(tmp_path: Path) -> None:
    found, _ = made(replace(ORDERS["tricky"], count=3, seed=2**64 - 1), tmp_path / "a.ronri")
    assert len(found) == 3


def test_tricky_puzzles_that_there_are_not_are_not_looked_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generating, "PATIENCE", 2_000)
    order = replace(ORDERS["tricky"], least_guesses=1e6)
    with pytest.raises(ValueError, match=r"none of 2,048 minimal 9x9 .* ask for fewer guesses"):
        made(order, tmp_path / "a.ronri")
    with pytest.raises(ValueError, match="takes more than 0 guesses"):
        made(replace(order, least_guesses=0.0), tmp_path / "a.ronri")


@pytest.mark.parametrize("name", ["clues", "small"])
def test_excluded_puzzles_do_not_come_back(tmp_path: Path, name: str) -> None:
    first, _ = made(ORDERS[name], tmp_path / "first.ronri")
    keys = set_keys(first).split
    second, report = made(ORDERS[name], tmp_path / "second.ronri", exclude=keys)
    assert not np.isin(set_keys(second).split, keys).any()
    # The same seed makes the same puzzles first, so all of them were met and left out.
    assert report.excluded >= len(first)
    assert len(second) == ORDERS[name].count


def test_twins_are_left_out_of_small_boards(tmp_path: Path) -> None:
    order = replace(ORDERS["small"], count=300)
    _, report = made(order, tmp_path / "a.ronri")
    assert report.twins > 0


def test_shards_of_an_order_differ(tmp_path: Path) -> None:
    sets = []
    for number in (1, 2):
        order = replace(ORDERS["clues"], shard=Shard(number, 2))
        sets.append(made(order, tmp_path / f"{number}.ronri")[0])
    assert not set(set_keys(sets[0]).split.tolist()) & set(set_keys(sets[1]).split.tolist())
    assert sets[1].header.provenance["shard"] == "2/2"


def test_shards_of_tricky_puzzles_together_make_the_whole(tmp_path: Path) -> None:
    whole, _ = made(replace(ORDERS["tricky"], count=60), tmp_path / "whole.ronri")
    found: set[bytes] = set()
    for number in (1, 2):
        order = replace(ORDERS["tricky"], count=60, shard=Shard(number, 2))
        part, _ = made(order, tmp_path / f"{number}.ronri")
        found |= {record.tobytes() for record in part.records}
    assert {record.tobytes() for record in whole.records} <= found


def test_shards_together_make_the_whole_ratings_included(tmp_path: Path) -> None:
    whole, _ = made(replace(ORDERS["minimal"], count=60), tmp_path / "whole.ronri")
    for number in (1, 2, 3):
        order = replace(ORDERS["minimal"], count=20, shard=Shard(number, 3))
        part, _ = made(order, tmp_path / f"{number}.ronri")
        np.testing.assert_array_equal(part.records, whole.records[number - 1 :: 3])


def test_an_order_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="count must be at least 1, not -3"):
        Order(count=-3)


def test_an_order_that_cannot_be_fulfilled_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generating, "PATIENCE", 2_000)
    order = Order(count=1_000, geometry=FOUR, fewest_clues=4, most_clues=4)
    with pytest.raises(ValueError, match=r"only \d+ different 4x4 puzzles"):
        made(order, tmp_path / "a.ronri")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["clues", "minimal", "tricky", "hard"])
def test_progress_rises_to_the_count(tmp_path: Path, kind: Kind) -> None:
    order = replace(ORDERS["hard"], kind=kind, geometry=NINE, count=15)
    seen: list[int] = []
    with StoreWriter(tmp_path / "a.ronri", NINE) as writer:
        fulfil(order, writer, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 15


def test_six_by_six_puzzles_can_be_bred(tmp_path: Path) -> None:
    order = Order(kind="hard", count=5, geometry=SIX, least_guesses=0.5, seed=3)
    found, _ = made(order, tmp_path / "a.ronri")
    assert (found.ratings() >= 0.5).all()
