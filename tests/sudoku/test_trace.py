"""The recorder, against the referee and by hand."""

import csv
import gzip
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import shifted_grid
from ronri.sudoku import symmetry
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry, standard
from ronri.sudoku.replay import replay
from ronri.sudoku.rules import solves
from ronri.sudoku.trace import Status, Vocabulary, pack, record
from traces import (
    IMPOSSIBLE,
    INKALA,
    NESTED_TRACE,
    RECTANGLE,
    TINY,
    TINY_SOLUTION,
    TINY_TRACE,
    blanked,
    board_of,
    geometries,
    is_solution,
    seeds,
    singles,
    trace_of,
)

# What is recorded


@given(geometries, seeds, st.floats(0, 1), st.booleans())
@settings(max_examples=150)
def test_every_recorded_trace_keeps_the_rules(
    geometry: Geometry, seed: int, share: float, shuffle_clues: bool
) -> None:
    puzzle = blanked(geometry, seed, share)
    traces = record(
        puzzle[None], seed=seed, length=100_000, shuffle_clues=shuffle_clues, geometry=geometry
    )
    assert traces.solved.all()
    assert traces.fits.all()
    judged = replay(traces.tokens[0, : traces.lengths[0] + 1], geometry=geometry)
    assert judged.error is None
    assert judged.valid
    assert judged.solved
    assert is_solution(judged.board, geometry)
    assert (judged.board == puzzle)[puzzle > 0].all()
    assert judged.num_pushes == traces.guesses[0]
    assert judged.num_pops == traces.pops[0]
    clues = np.flatnonzero(puzzle) * geometry.size + puzzle[puzzle > 0] - 1
    written = traces.tokens[0, : len(clues)]
    assert written.tolist() == clues.tolist() or (shuffle_clues and set(written) == set(clues))
    assert traces.tokens[0, len(clues)] == Vocabulary(geometry).clues_end
    assert (traces.tokens[0, traces.lengths[0] :] == Vocabulary(geometry).pad).all()


@given(seeds)
@settings(max_examples=25)
def test_long_searches_keep_the_rules(seed: int) -> None:
    judged = replay(trace_of(board_of(INKALA), seed))
    assert judged.error is None
    assert judged.solved
    assert is_solution(judged.board, NINE)


def test_traces_by_hand() -> None:
    judged = replay(Vocabulary(FOUR).encode(TINY_TRACE), geometry=FOUR)
    assert judged.valid
    assert judged.error_at is None
    assert judged.solved
    assert judged.board.tolist() == board_of(TINY_SOLUTION).tolist()
    assert (judged.num_pushes, judged.num_pops, judged.max_depth) == (3, 1, 2)
    nested = replay(Vocabulary(SIX).encode(NESTED_TRACE), geometry=SIX)
    assert nested.valid
    assert not nested.solved
    assert (nested.num_pushes, nested.num_pops, nested.max_depth) == (4, 4, 2)
    # The recorder can write exactly this opening.
    opening = TINY_TRACE.partition("[R3C4=3]")[0]
    puzzles = np.repeat(board_of(TINY)[None], 2000, axis=0)
    tokens = record(puzzles, seed=0, length=60).tokens
    assert any(Vocabulary(FOUR).decode(row).startswith(opening) for row in tokens)


def test_the_last_candidate_is_pushed_too() -> None:
    words = Vocabulary(FOUR)
    puzzles = np.repeat(board_of(TINY)[None], 500, axis=0)
    failed = "[clues_end] [push] [R3C1=3] "
    texts = [words.decode(row) for row in record(puzzles, seed=1, length=60).tokens]
    after_failure = [text.partition("[pop] ")[2] for text in texts if failed in text]
    assert len(after_failure) > 20
    assert all(text.startswith("[push] [R3C1=1] ") for text in after_failure)


def test_a_full_board_and_an_empty_one() -> None:
    full = board_of(TINY_SOLUTION)
    assert Vocabulary(FOUR).decode(trace_of(full)).endswith("[R4C4=4] [clues_end] [success]")
    empty = trace_of(np.zeros(81, np.uint8))
    assert empty[0] == Vocabulary(NINE).clues_end
    assert replay(empty).solved
    assert record(np.zeros((0, 81), np.uint8), seed=0, length=10).tokens.shape == (0, 10)


def test_a_symmetry_of_the_board_maps_traces_to_traces() -> None:
    words = Vocabulary(NINE)
    puzzle, tokens = board_of(INKALA), trace_of(board_of(INKALA))
    relabel = np.array([0, 3, 1, 4, 5, 9, 2, 6, 8, 7])
    transpose = np.arange(81).reshape(9, 9).T.ravel()
    table = np.arange(words.num_tokens)
    placements = table[: words.num_placements]
    cells, digits = words.cell_of[placements], words.digit_of[placements]
    table[placements] = words.placement(transpose[cells], relabel[digits])
    moved = replay(table[tokens])
    assert moved.error is None
    assert moved.solved
    np.testing.assert_array_equal(moved.board, relabel[replay(tokens).board][transpose])
    moved_puzzle = relabel[puzzle][transpose]
    assert (moved.board == moved_puzzle)[moved_puzzle > 0].all()


# What chance decides


def assert_uniform(counts: np.ndarray) -> None:
    """Pearson's chi-square, four standard deviations above its mean at most."""
    freedom = len(counts) - 1
    expected = counts.sum() / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < freedom + 4 * (2 * freedom) ** 0.5


def test_the_first_forced_placement_is_any_of_them_alike() -> None:
    puzzle = blanked(NINE, seed=0, share=0.55)
    naked, hidden = singles(puzzle)
    # Singles of either kind, and of both kinds at once, which count once.
    assert naked - hidden
    assert hidden - naked
    assert naked & hidden
    puzzles = np.repeat(puzzle[None], 10_000, axis=0)
    num_clues = int(np.count_nonzero(puzzle))
    tokens = record(puzzles, seed=11, length=num_clues + 2).tokens
    placements, counts = np.unique(tokens[:, -1], return_counts=True)
    assert set(placements.tolist()) == naked | hidden
    assert_uniform(counts)


def test_cells_and_candidates_to_guess_are_any_of_them_alike() -> None:
    words = Vocabulary(FOUR)
    traces = record(np.repeat(board_of(RECTANGLE)[None], 4000, axis=0), seed=5, length=20)
    assert (traces.lengths == 12 + 1 + 5 + 1).all()
    assert (traces.tokens[:, 13] == words.push).all()
    guesses, counts = np.unique(traces.tokens[:, 14], return_counts=True)
    corners, digits = np.repeat([0, 2, 4, 6], 2), np.tile([1, 3], 4)
    assert guesses.tolist() == words.placement(corners, digits).tolist()
    assert_uniform(counts)
    # The other three corners follow in each of the six orders alike.
    rest = {tuple(row) for row in traces.tokens[traces.tokens[:, 14] == guesses[0], 15:18]}
    assert rest == set(permutations(min(rest)))


def test_shuffled_clues_come_in_every_order() -> None:
    puzzle = np.zeros(16, np.uint8)
    puzzle[[0, 5, 10]] = 1, 2, 3
    puzzles = np.repeat(puzzle[None], 3000, axis=0)
    tokens = record(puzzles, seed=2, length=4, shuffle_clues=True).tokens
    orders, counts = np.unique(tokens[:, :3], axis=0, return_counts=True)
    assert len(orders) == 6
    assert_uniform(counts)


def test_a_trace_depends_on_its_seed_and_index_alone() -> None:
    puzzles = np.stack([blanked(NINE, seed, 0.6) for seed in range(600)])
    whole = record(puzzles, seed=9, start=1000, length=200, threads=1)
    threaded = record(puzzles, seed=9, start=1000, length=200, threads=3)
    frozen = puzzles.copy()
    frozen.flags.writeable = False
    part = record(frozen[400:410], seed=9, start=1400, length=200)
    strided = record(puzzles[::2][200:205], seed=9, start=1400, length=200)
    for name in ("tokens", "lengths", "guesses", "pops", "status"):
        np.testing.assert_array_equal(getattr(threaded, name), getattr(whole, name))
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[400:410])
    np.testing.assert_array_equal(strided.tokens[0], whole.tokens[400])
    for threads in (1, 3):
        third = record(puzzles[1::3], seed=9, start=1001, step=3, length=200, threads=threads)
        np.testing.assert_array_equal(third.tokens, whole.tokens[1::3])
    other = record(puzzles, seed=10, start=1000, length=200)
    assert (other.tokens != whole.tokens).any(axis=1).mean() > 0.99


# What does not fit, and what has no end


def test_trimmed_traces_tell_their_true_length() -> None:
    puzzles = np.repeat(board_of(INKALA)[None], 20, axis=0)
    full = record(puzzles, seed=4, length=6000)
    trimmed = record(puzzles, seed=4, length=100)
    assert full.fits.all()
    assert not trimmed.fits.any()
    np.testing.assert_array_equal(trimmed.tokens, full.tokens[:, :100])
    for name in ("lengths", "guesses", "pops", "status"):
        np.testing.assert_array_equal(getattr(trimmed, name), getattr(full, name))
    judged = replay(trimmed.tokens[0])
    assert judged.valid
    assert not judged.solved


def test_a_search_is_given_up_at_the_limit_and_says_so() -> None:
    puzzle = board_of(INKALA)[None]
    full = record(puzzle, seed=4, length=6000)
    assert full.lengths[0] > 300
    short = record(puzzle, seed=4, length=300, limit=300)
    assert short.status.tolist() == [Status.UNFINISHED]
    assert not short.solved.any()
    assert short.lengths[0] >= 300
    np.testing.assert_array_equal(short.tokens, full.tokens[:, :300])


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_a_search_for_nothing_ends_with_its_last_pop(text: str) -> None:
    traces = record(np.repeat(board_of(text)[None], 50, axis=0), seed=0, length=600)
    assert (traces.status == Status.IMPOSSIBLE).all()
    assert not traces.solved.any()
    assert (traces.guesses == traces.pops).all()
    assert (traces.guesses > 0).all()
    words = Vocabulary(SIX)
    for tokens, length in zip(traces.tokens, traces.lengths, strict=True):
        judged = replay(tokens, geometry=SIX)
        assert judged.error is None
        assert not judged.solved
        assert tokens[length - 1] == words.pop
        # One pop less is not the end yet.
        cut = np.append(tokens[: length - 1], words.pad)
        assert "padding before the end" in str(replay(cut, geometry=SIX).error)
    # Branches inside branches: at some time two pops follow each other.
    pops = traces.tokens == words.pop
    assert (pops[:, 1:] & pops[:, :-1]).any()


@pytest.mark.parametrize(
    "text",
    [
        "..12.4..3.......",  # R1C1 has no candidate
        "..1..2..1...2...",  # box 1 and row 2 have no place for a 1; the last clue is innocent
        f"....1.....23.......45...............1{'.' * 44}",  # box 1 alone has no place for a 1
    ],
)
def test_clues_that_leave_no_place_end_the_search_before_it_begins(text: str) -> None:
    geometry = standard(len(text))
    traces = record(board_of(text)[None], seed=0, length=10)
    length = int(np.count_nonzero(board_of(text))) + 1
    assert traces.status.tolist() == [Status.IMPOSSIBLE]
    assert traces.lengths.tolist() == [length]
    judged = replay(traces.tokens[0], geometry=geometry)
    assert judged.error is None
    assert not judged.solved
    for more in ("[push]", "[R2C1=3]"):
        tokens = np.append(traces.tokens[0, :length], Vocabulary(geometry).encode(more))
        assert "the branch has failed" in str(replay(tokens, geometry=geometry).error)


def test_clues_that_clash_are_a_puzzle_without_a_solution() -> None:
    traces = record(board_of("1..1...........2")[None], seed=0, length=10)
    assert traces.status.tolist() == [Status.IMPOSSIBLE]
    assert traces.lengths.tolist() == [4]
    words = Vocabulary(FOUR)
    assert words.decode(traces.tokens[0]) == "[R1C1=1] [R1C4=1] [R4C4=2] [clues_end]"
    judged = replay(traces.tokens[0], geometry=FOUR)
    assert judged.error == "token 1, [R1C4=1]: its row, column or box holds 1 already"
    assert judged.error_at == 1


@given(geometries, st.data())
def test_clashing_clues_are_found_in_every_unit(geometry: Geometry, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(geometry.units.tolist()))
    first, second = data.draw(st.permutations(unit))[:2]
    puzzle = np.zeros((1, geometry.cells), np.uint8)
    puzzle[0, [first, second]] = data.draw(st.integers(1, geometry.size))
    traces = record(puzzle, seed=0, length=10, geometry=geometry)
    assert traces.status.tolist() == [Status.IMPOSSIBLE]
    assert traces.lengths.tolist() == [3]


def test_bad_arguments_are_explained() -> None:
    puzzle = np.zeros((1, 16), np.uint8)
    with pytest.raises(ValueError, match="digit 5 does not exist"):
        record(puzzle + np.uint8(5), seed=0, length=10)
    with pytest.raises(ValueError, match="36 cells, not 16"):
        record(puzzle, seed=0, length=10, geometry=SIX)
    with pytest.raises(ValueError, match="length must be between 1 and the limit of 5"):
        record(puzzle, seed=0, length=10, limit=5)
    with pytest.raises(ValueError, match="length must be between 1"):
        record(puzzle, seed=0, length=0)


def test_packed_traces_are_the_rows_without_padding() -> None:
    puzzles = np.stack([blanked(NINE, seed, 0.6) for seed in range(30)])
    traces = record(puzzles, seed=0, length=86)
    assert 0 < traces.fits.sum() < 30
    packed = pack(traces)
    assert packed.offsets.tolist()[0] == 0
    assert packed.offsets[-1] == len(packed.tokens)
    for i, row in enumerate(traces.tokens):
        alone = packed.tokens[packed.offsets[i] : packed.offsets[i + 1]]
        np.testing.assert_array_equal(alone, row[row != Vocabulary(NINE).pad])


# Real puzzles


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without checks of annotations, which take most of the time of so many replays."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("name", "count"), [("kaggle3m-test", 486), ("hard-test", 500)])
def test_traces_of_real_puzzles_end_at_their_answers(
    real_data: Path, name: str, count: int
) -> None:
    with gzip.open(real_data / f"{name}.csv.gz", "rt") as file:
        lines = [line for line, _ in zip(csv.DictReader(file), range(count), strict=False)]
    assert len(lines) == count
    puzzles = np.stack([board_of(line["question"]) for line in lines])
    traces = record(puzzles, seed=2, length=20_000)
    assert traces.solved.all()
    assert traces.fits.all()
    for tokens, length, line in zip(traces.tokens, traces.lengths, lines, strict=True):
        judged = replay(tokens[: length + 1])
        assert judged.error is None
        assert judged.solved
        assert judged.board.tolist() == board_of(line["answer"]).tolist()


@pytest.mark.parametrize("geometry", STANDARD, ids=str)
def test_the_image_of_a_trace_is_a_trace_of_the_image(geometry: Geometry) -> None:
    """Under every symmetry, guesses and backtracking included: training relies on it."""
    shown = np.random.default_rng(7).random((40, geometry.cells)) < 0.35
    puzzles = np.where(shown, shifted_grid(geometry), 0).astype(np.uint8)
    traces = record(puzzles, seed=1, length=2_000)
    assert traces.fits.all()
    assert traces.guesses.any()
    views = symmetry.sample(geometry, 40, seed=2)
    images = symmetry.apply(views, puzzles)
    for tokens, image in zip(symmetry.apply_to_tokens(views, traces.tokens), images, strict=True):
        checked = replay(tokens, geometry=geometry)
        assert checked.valid, checked.error
        assert checked.solved
        assert solves(checked.board[None], image[None]).all()
