"""Splits that cannot leak, and that do not move when other puzzles come or go."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronri.data.splits import PARTS, SplitRule, keys_of, parse_size, set_keys, split
from ronri.data.store import PuzzleSet, StoreWriter
from ronri.sudoku import symmetry
from ronri.sudoku.generate import minimal_puzzles, puzzles_with_clues
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry

KEYS = st.lists(st.integers(0, 2**64 - 1), max_size=40).map(lambda k: np.array(k, np.uint64))


def stored(path: Path, geometry: Geometry, count: int, clues: tuple[int, int]) -> PuzzleSet:
    made = puzzles_with_clues(count, *clues, seed=1, geometry=geometry)
    with StoreWriter(path, geometry, provenance={"made": "for a test"}) as writer:
        writer.append(made.puzzles, made.solutions, np.arange(count) / 2, "test")
    return PuzzleSet(path)


def test_symmetric_copies_and_siblings_share_a_key() -> None:
    made = minimal_puzzles(50, seed=2)
    keys = keys_of(made.puzzles, made.solutions, NINE).split
    views = symmetry.sample(NINE, 50, seed=3)
    turned = [symmetry.apply(views, grids) for grids in (made.puzzles, made.solutions)]
    np.testing.assert_array_equal(keys_of(turned[0], turned[1], NINE).split, keys)
    # Another puzzle with the same solution must not be separated from this one.
    np.testing.assert_array_equal(keys_of(made.solutions, made.solutions, NINE).split, keys)
    assert len(np.unique(keys)) == 50


@pytest.mark.parametrize("geometry", [FOUR, SIX], ids=str)
def test_small_boards_are_split_by_puzzle(geometry: Geometry) -> None:
    made = minimal_puzzles(60, seed=4, geometry=geometry)
    keys = keys_of(made.puzzles, made.solutions, geometry).split
    forms = symmetry.canonical_puzzles(made.puzzles, made.solutions, geometry)
    assert len(np.unique(keys)) == len(np.unique(forms, axis=0)) > 2


@given(KEYS, st.floats(0, 1), st.floats(0, 1))
def test_parts_are_disjoint_and_complete(keys: np.ndarray, test: float, validation: float) -> None:
    if test + validation > 1:
        test, validation = test / 2, validation / 2
    rule = SplitRule.of(keys, test=test, validation=validation)
    masks = np.stack([rule.mask(part, keys) for part in PARTS])
    assert (masks.sum(axis=0) == 1).all()


@given(KEYS, st.data())
def test_counts_are_kept_as_far_as_keys_are_not_shared(
    keys: np.ndarray, data: st.DataObject
) -> None:
    test = data.draw(st.integers(0, len(keys)))
    validation = data.draw(st.integers(0, len(keys) - test))
    try:
        rule = SplitRule.of(keys, test=test, validation=validation)
    except ValueError:
        assert len(np.unique(keys)) < len(keys)
        return
    sizes = {part: int(rule.mask(part, keys).sum()) for part in PARTS}
    _, times = np.unique(keys, return_counts=True)
    widest = times.max(initial=1)
    assert test - widest < sizes["test"] <= test
    assert validation - widest < sizes["validation"] <= validation


@given(KEYS, KEYS, st.floats(0, 0.4), st.floats(0, 0.4))
def test_a_puzzle_lands_in_the_same_part_whatever_else_is_loaded(
    some: np.ndarray, others: np.ndarray, test: float, validation: float
) -> None:
    both = np.concatenate([some, others])
    alone = SplitRule.of(some, test=test, validation=validation)
    together = SplitRule.of(both, test=test, validation=validation)
    for part in PARTS:
        np.testing.assert_array_equal(
            alone.mask(part, some), together.mask(part, both)[: len(some)]
        )


def test_fractions_come_out_about_right() -> None:
    keys = np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64)
    rule = SplitRule.of(keys, test=0.1, validation=0.02)
    assert abs(rule.mask("test", keys).mean() - 0.1) < 0.01
    assert abs(rule.mask("validation", keys).mean() - 0.02) < 0.005


def test_impossible_sizes_are_refused() -> None:
    keys = np.arange(10, dtype=np.uint64)
    for sizes in ({"test": 0.7, "validation": 0.7}, {"test": 8, "validation": 8}):
        with pytest.raises(ValueError, match="overlap: there are only 10 puzzles"):
            SplitRule.of(keys, **sizes)
    with pytest.raises(ValueError, match="cannot take 11 puzzles out of 10"):
        SplitRule.of(keys, test=11)
    with pytest.raises(ValueError, match="between 0 and 1"):
        SplitRule.of(keys, test=1.5)


@pytest.mark.parametrize(("text", "size"), [("5000", 5000), ("0.02", 0.02), ("2%", 0.02)])
def test_sizes_as_people_write_them(text: str, size: float) -> None:
    assert parse_size(text) == size
    assert type(parse_size(text)) is type(size)


@pytest.mark.parametrize("text", ["", "many", "%", "-x", "-5", "1.5", "120%", "nan"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a size is a count"):
        parse_size(text)


@pytest.mark.parametrize(
    ("geometry", "clues"), [(FOUR, (5, 8)), (SIX, (12, 16)), (NINE, (26, 30))], ids=str
)
def test_a_set_is_cut_without_losing_anything(
    tmp_path: Path, geometry: Geometry, clues: tuple[int, int]
) -> None:
    source = stored(tmp_path / "all.ronri", geometry, 300, clues)
    report = split(source, tmp_path / "parts", test=60, validation=0.1)
    parts = {part: PuzzleSet(path) for part, path in report.files.items()}
    assert {part: len(found) for part, found in parts.items()} == report.counts
    assert sum(report.counts.values()) == 300
    assert 0 < report.counts["test"] <= 60
    keys = {part: set(set_keys(found).split.tolist()) for part, found in parts.items()}
    assert not keys["train"] & keys["test"]
    assert not keys["train"] & keys["validation"]
    assert not keys["test"] & keys["validation"]
    # Ratings number the rows, so every row is there once, and still with its own puzzle.
    for found in parts.values():
        rows = (found.ratings() * 2).astype(int)
        np.testing.assert_array_equal(found.puzzles(), source.puzzles(rows))
        np.testing.assert_array_equal(found.solutions(), source.solutions(rows))
        assert found.header.provenance["made"] == "for a test"
    # The rule that was written cuts a part of the set the same way.
    rule = SplitRule.read(tmp_path / "parts" / "split.json")
    assert rule == report.rule
    with pytest.raises(ValueError, match="name a new folder"):
        split(source, tmp_path / "parts", rule=rule)
    again = split(parts["train"], tmp_path / "again", rule=rule)
    assert again.counts == {"train": report.counts["train"], "validation": 0, "test": 0}


@pytest.mark.parametrize("tenths", range(11))
def test_two_fractions_may_take_everything(tenths: int) -> None:
    keys = np.random.default_rng(1).integers(0, 2**64, 100, np.uint64)
    rule = SplitRule.of(keys, test=tenths / 10, validation=1 - tenths / 10)
    assert not rule.mask("train", keys).any()


def test_an_interrupted_split_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = stored(tmp_path / "all.ronri", FOUR, 50, (5, 8))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SplitRule, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        split(source, tmp_path / "parts", test=0.5)
    assert [path.name for path in tmp_path.iterdir()] == ["all.ronri"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "x": "0x1"}'])
def test_a_bad_rule_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "split.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no split rule"):
        SplitRule.read(path)
