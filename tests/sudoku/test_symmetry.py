"""The symmetry group keeps its laws, and canonical forms are what brute force says they are."""

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from math import factorial
from pathlib import Path
from random import Random

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import shifted_grid
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry
from ronri.sudoku.rules import is_solved
from ronri.sudoku.symmetry import (
    Symmetries,
    apply,
    apply_to_placements,
    apply_to_tokens,
    canonical_hash,
    canonical_puzzles,
    canonical_solutions,
    compose,
    identity,
    invert,
    order,
    sample,
    to_canonical,
)

SEEDS = st.integers(0, 2**64 - 1)
# Standard boards, and boxes of every other kind: tall, long, and as thin as a line.
GEOMETRIES = (*STANDARD, Geometry(3, 2), Geometry(2, 4), Geometry(4, 2), Geometry(1, 4))


# Grids to work on.


def solutions_of(geometry: Geometry, random: Random) -> Iterator[list[int]]:
    """Every complete grid, in a random order, by plain backtracking."""
    grid = [0] * geometry.cells
    peers = geometry.peers.tolist()

    def extend() -> Iterator[list[int]]:
        fewest: list[int] | None = None
        cell = -1
        for empty in (c for c in range(geometry.cells) if grid[c] == 0):
            seen = {grid[p] for p in peers[empty]}
            options = [d for d in range(1, geometry.size + 1) if d not in seen]
            if fewest is None or len(options) < len(fewest):
                fewest, cell = options, empty
        if fewest is None:
            yield grid.copy()
            return
        for digit in random.sample(fewest, len(fewest)):
            grid[cell] = digit
            yield from extend()
        grid[cell] = 0

    return extend()


def random_solution(geometry: Geometry, seed: int) -> np.ndarray:
    return np.array(next(solutions_of(geometry, Random(seed))), np.uint8)


def pattern_solution(geometry: Geometry) -> np.ndarray:
    """123456789 456789123 789123456 231564897 ...: the most symmetric grid of a 9x9 board."""
    height, width = geometry.box_height, geometry.box_width
    band, row = np.divmod(geometry.row_of, height)
    stack, column = np.divmod(geometry.column_of, width)
    return (width * ((row + stack) % height) + (column + band) % width + 1).astype(np.uint8)


@cache
def some_solutions(geometry: Geometry) -> np.ndarray:
    """Two very symmetric grids, and ten random ones."""
    made = [random_solution(geometry, seed) for seed in range(10)]
    grids = np.stack([pattern_solution(geometry), shifted_grid(geometry), *made])
    grids.flags.writeable = False
    return grids


def some_puzzles(solutions: np.ndarray, seed: int) -> np.ndarray:
    """About half of the cells of each solution; uniqueness does not matter to symmetry."""
    hidden = np.random.default_rng(seed).random(solutions.shape) < 0.5
    return np.where(hidden, np.uint8(0), solutions)


def text(grid: np.ndarray) -> str:
    return "".join(map(str, grid.tolist()))


# The group.


def same(one: Symmetries, other: Symmetries) -> bool:
    return np.array_equal(one.cell_from, other.cell_from) and np.array_equal(
        one.digit_to, other.digit_to
    )


def is_symmetry(cell_from: np.ndarray, geometry: Geometry) -> bool:
    """Whether lines come from lines of one kind, and boxes from boxes."""

    def comes_whole(new: np.ndarray, old: np.ndarray) -> bool:
        return all(len(np.unique(old[cell_from[new == unit]])) == 1 for unit in np.unique(new))

    row, column = geometry.row_of, geometry.column_of
    straight = comes_whole(row, row) and comes_whole(column, column)
    crossed = comes_whole(row, column) and comes_whole(column, row)
    is_permutation = np.array_equal(np.sort(cell_from), np.arange(geometry.cells))
    return (
        is_permutation and (straight or crossed) and comes_whole(geometry.box_of, geometry.box_of)
    )


@pytest.mark.parametrize(
    ("geometry", "positions"), [(FOUR, 128), (SIX, 3456), (NINE, 3359232), (Geometry(3, 2), 3456)]
)
def test_order(geometry: Geometry, positions: int) -> None:
    assert order(geometry) == positions * factorial(geometry.size)


@given(st.sampled_from(GEOMETRIES), SEEDS)
def test_group_laws(geometry: Geometry, seed: int) -> None:
    a, b, c = (sample(geometry, 5, seed, start) for start in (0, 5, 10))
    one = identity(geometry)
    everywhere = compose(a, invert(a))
    assert same(compose(compose(a, b), c), compose(a, compose(b, c)))
    assert same(compose(a, one), a)
    assert same(compose(one, a), a)
    assert all(same(everywhere[i : i + 1], one) for i in range(5))
    assert same(compose(invert(a), a), everywhere)
    assert same(invert(compose(a, b)), compose(invert(b), invert(a)))
    assert same(invert(invert(a)), a)


@given(st.sampled_from(GEOMETRIES), SEEDS)
def test_action_on_grids(geometry: Geometry, seed: int) -> None:
    a, b = sample(geometry, 4, seed), sample(geometry, 4, seed, 4)
    solutions = np.tile(shifted_grid(geometry), (4, 1))
    puzzles = some_puzzles(solutions, seed)
    np.testing.assert_array_equal(apply(compose(a, b), puzzles), apply(b, apply(a, puzzles)))
    np.testing.assert_array_equal(apply(invert(a), apply(a, puzzles)), puzzles)
    np.testing.assert_array_equal(apply(identity(geometry), puzzles), puzzles)
    images = apply(a, solutions)
    assert is_solved(images, geometry).all()
    # Puzzle and solution move together, and empty cells stay empty.
    moved = apply(a, puzzles)
    np.testing.assert_array_equal(moved, np.where(moved == 0, 0, images))
    np.testing.assert_array_equal((moved == 0).sum(axis=1), (puzzles == 0).sum(axis=1))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_solution_stays_a_solution(geometry: Geometry) -> None:
    for solution in some_solutions(geometry):
        assert is_solved(apply(sample(geometry, 200, 1), solution[None]), geometry).all()


@given(st.sampled_from(GEOMETRIES), SEEDS)
def test_placements_follow_grids(geometry: Geometry, seed: int) -> None:
    symmetries = sample(geometry, 3, seed)
    grids = np.tile(shifted_grid(geometry), (3, 1))
    cells = np.tile(np.arange(geometry.cells)[::-1], (3, 1))
    digits = np.take_along_axis(grids, cells, axis=1)
    new_cells, new_digits = apply_to_placements(symmetries, cells, digits)
    rebuilt = np.zeros_like(grids)
    np.put_along_axis(rebuilt, new_cells, new_digits, axis=1)
    np.testing.assert_array_equal(rebuilt, apply(symmetries, grids))

    tokens = (cells * geometry.size + digits - 1).astype(np.int32)
    moved = apply_to_tokens(symmetries, tokens)
    assert moved.dtype == tokens.dtype
    np.testing.assert_array_equal(moved, new_cells * geometry.size + new_digits - 1)


def test_other_tokens_stay() -> None:
    special = np.array([[NINE.cells * 9, NINE.cells * 9 + 5, -100, 0]])
    moved = apply_to_tokens(sample(NINE, 50, 0), special)
    assert (moved[:, :3] == special[:, :3]).all()
    assert len(np.unique(moved[:, 3])) > 25


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_one_meets_many(geometry: Geometry) -> None:
    many = sample(geometry, 7, 3)
    one = many[2:3]
    solution = shifted_grid(geometry)[None]
    grids = apply(many, solution)
    repeated = many[np.full(7, 2)]
    tokens = np.arange(10)[None]
    for i in range(7):
        np.testing.assert_array_equal(apply(many[i : i + 1], solution)[0], grids[i])
        np.testing.assert_array_equal(
            apply_to_tokens(many, tokens)[i], apply_to_tokens(many[i : i + 1], tokens)[0]
        )
    np.testing.assert_array_equal(apply(one, grids), apply(repeated, grids))
    assert same(compose(one, many), compose(repeated, many))
    assert same(compose(many, one), compose(many, repeated))


@given(st.sampled_from(GEOMETRIES), SEEDS, st.integers(0, 2**62))
def test_samples_depend_on_seed_and_index_alone(geometry: Geometry, seed: int, start: int) -> None:
    whole = sample(geometry, 6, seed, start)
    assert same(sample(geometry, 3, seed, start + 2), whole[2:5])
    assert all(is_symmetry(cell_from, geometry) for cell_from in whole.cell_from)
    assert (whole.digit_to[:, 0] == 0).all()
    assert (np.sort(whole.digit_to, axis=1) == np.arange(geometry.size + 1)).all()


def test_samples_are_uniform() -> None:
    """All 3,072 symmetries of the 4x4 board occur, and about equally often."""
    drawn = 40 * order(FOUR)
    symmetries = sample(FOUR, drawn, 0)
    both = np.concatenate([symmetries.cell_from, symmetries.digit_to], axis=1)
    _, counts = np.unique(both, axis=0, return_counts=True)
    assert len(counts) == order(FOUR)
    chi_square = ((counts - 40) ** 2 / 40).sum()
    freedom = order(FOUR) - 1
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("geometry", [SIX, NINE])
def test_samples_send_every_cell_everywhere(geometry: Geometry) -> None:
    drawn = 100 * geometry.cells
    symmetries = sample(geometry, drawn, 0)
    for cell in (0, geometry.cells // 2, geometry.cells - 1):
        counts = np.bincount(symmetries.cell_from[:, cell], minlength=geometry.cells)
        chi_square = ((counts - 100) ** 2 / 100).sum()
        assert abs(chi_square - geometry.cells) < 5 * np.sqrt(2 * geometry.cells)


def test_sampling_and_applying_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="count must be at least 0"):
        sample(NINE, -1, 0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        sample(NINE, 1, -1)
    with pytest.raises(ValueError, match="start must be at least 0"):
        sample(NINE, 1, 0, -1)
    with pytest.raises(ValueError, match="batches of 2 and 3 rows"):
        apply(sample(NINE, 2, 0), np.zeros((3, 81), np.uint8))
    with pytest.raises(ValueError, match="boards of 16 and 81 cells"):
        apply(sample(FOUR, 1, 0), np.zeros((3, 81), np.uint8))


# Canonical forms.


@dataclass(frozen=True)
class BruteForce:
    """What trying everything finds: the smallest images, and in how many ways they are reached."""

    solution: list[int]
    puzzle: list[int]
    ways: int


def line_orders(num_groups: int, group: int) -> np.ndarray:
    """Every order of rows or columns in which groups of neighbours stay together."""
    inside = list(permutations(range(group)))
    return np.array(
        [
            [g * group + i for g, members in zip(groups, chosen, strict=True) for i in members]
            for groups in permutations(range(num_groups))
            for chosen in product(inside, repeat=num_groups)
        ]
    )


def next_rows(rows: tuple[int, ...], geometry: Geometry) -> list[int]:
    """The rows that may follow: the rest of a band that was begun, or else any other."""
    left = [row for row in range(geometry.size) if row not in rows]
    if len(rows) % geometry.box_height == 0:
        return left
    return [row for row in left if row // geometry.box_height == rows[-1] // geometry.box_height]


def relabelled(labels: np.ndarray, digits: np.ndarray) -> np.ndarray:
    return np.take_along_axis(labels, digits.astype(np.int64), axis=1)


@dataclass(frozen=True)
class Runner:
    """Images that share their rows so far, one for each order of the columns."""

    turned: bool
    rows: tuple[int, ...]
    columns: np.ndarray
    labels: np.ndarray


def brute_force(puzzle: np.ndarray, solution: np.ndarray, geometry: Geometry) -> BruteForce:
    """Build all images row by row; after each row, drop those that are no longer smallest."""
    size = geometry.size
    square = geometry.box_width == geometry.box_height
    upright = solution.reshape(size, size)
    boards = {False: upright, True: upright.T} if square else {False: upright}
    orders = line_orders(geometry.box_height, geometry.box_width)
    place_values = (size + 1) ** np.arange(size)[::-1]

    race = []
    for turned, row in product(boards, range(size)):
        labels = np.zeros((len(orders), size + 1), np.int64)
        first_row = boards[turned][row][orders].astype(np.int64)
        np.put_along_axis(labels, first_row, np.arange(1, size + 1)[None], axis=1)
        race.append(Runner(turned, (row,), orders, labels))
    for _ in range(size - 1):
        longer, scores = [], []
        for runner in race:
            for row in next_rows(runner.rows, geometry):
                digits = boards[runner.turned][row][runner.columns]
                score = relabelled(runner.labels, digits) @ place_values
                best = score == score.min()
                rows = (*runner.rows, row)
                longer.append(
                    Runner(runner.turned, rows, runner.columns[best], runner.labels[best])
                )
                scores.append(score.min())
        race = [r for r, score in zip(longer, scores, strict=True) if score == min(scores)]

    images = []
    for runner in race:
        for columns, labels in zip(runner.columns, runner.labels, strict=True):
            image = []
            for grid in (solution, puzzle):
                board = grid.reshape(size, size)
                board = board.T if runner.turned else board
                image.append(labels[board[np.ix_(runner.rows, columns)]].ravel().tolist())
            images.append(image)
    smallest_solution, smallest_puzzle = min(images)
    return BruteForce(smallest_solution, smallest_puzzle, ways=len(images))


def assert_as_brute_force(solutions: np.ndarray, geometry: Geometry) -> None:
    puzzles = some_puzzles(solutions, 0)
    expected = [brute_force(p, s, geometry) for p, s in zip(puzzles, solutions, strict=True)]
    np.testing.assert_array_equal(
        canonical_solutions(solutions, geometry), [found.solution for found in expected]
    )
    np.testing.assert_array_equal(
        canonical_puzzles(puzzles, solutions, geometry), [found.puzzle for found in expected]
    )


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_canonical_forms_are_those_of_brute_force(geometry: Geometry) -> None:
    assert_as_brute_force(some_solutions(geometry), geometry)


def test_half_empty_puzzles_of_a_symmetric_solution() -> None:
    """Where a solution has hundreds of automorphisms, the puzzle decides between them."""
    for geometry in STANDARD:
        assert_as_brute_force(np.tile(pattern_solution(geometry), (8, 1)), geometry)


def test_the_most_symmetric_grid() -> None:
    """It has 648 automorphisms, more than any other, and its form is widely published."""
    grid = pattern_solution(NINE)
    assert brute_force(grid, grid, NINE).ways == 648
    moved = apply(sample(NINE, 20, 0), grid[None])
    form = "123456789456789123789123456231564897564897231897231564312645978645978312978312645"
    assert {text(grid) for grid in canonical_solutions(moved)} == {form}


def test_all_grids_of_the_4x4_board() -> None:
    """There are 288 grids in two classes, whose sizes follow from their automorphisms."""
    grids = np.array(list(solutions_of(FOUR, Random(0))), np.uint8)
    assert len(grids) == 288
    forms, sizes = np.unique(canonical_solutions(grids), axis=0, return_counts=True)
    assert len(forms) == 2
    for form, size in zip(forms, sizes, strict=True):
        assert size == order(FOUR) // brute_force(form, form, FOUR).ways


@settings(max_examples=50)
@given(st.sampled_from(GEOMETRIES), st.integers(0, 11), SEEDS)
def test_canonical_forms_are_invariant(geometry: Geometry, which: int, seed: int) -> None:
    solution = some_solutions(geometry)[which]
    puzzle = some_puzzles(solution, seed)
    symmetries = sample(geometry, 10, seed)
    puzzles, solutions = apply(symmetries, puzzle[None]), apply(symmetries, solution[None])

    (form,) = canonical_solutions(solution[None], geometry)
    assert (canonical_solutions(solutions, geometry) == form).all()
    assert (canonical_solutions(form[None], geometry) == form).all()
    assert all(bytes(form) <= bytes(image) for image in solutions)

    (puzzle_form,) = canonical_puzzles(puzzle[None], solution[None], geometry)
    assert (canonical_puzzles(puzzles, solutions, geometry) == puzzle_form).all()
    assert (canonical_puzzles(puzzle_form[None], form[None], geometry) == puzzle_form).all()


@settings(max_examples=50)
@given(st.sampled_from(GEOMETRIES), SEEDS)
def test_to_canonical_is_the_symmetry_that_does_it(geometry: Geometry, seed: int) -> None:
    solutions = apply(sample(geometry, 12, seed), some_solutions(geometry))
    puzzles = some_puzzles(solutions, seed)
    found = to_canonical(puzzles, solutions, geometry)
    assert all(is_symmetry(cell_from, geometry) for cell_from in found.cell_from)
    np.testing.assert_array_equal(apply(found, solutions), canonical_solutions(solutions, geometry))
    np.testing.assert_array_equal(
        apply(found, puzzles), canonical_puzzles(puzzles, solutions, geometry)
    )


def test_symmetric_16x16_boards_do_not_explode() -> None:
    geometry = Geometry(4, 4)
    symmetries = sample(geometry, 3, 0)
    for grid in (pattern_solution(geometry), shifted_grid(geometry)):
        (form,) = canonical_solutions(grid[None], geometry)
        assert (canonical_solutions(apply(symmetries, grid[None]), geometry) == form).all()


def test_canonical_forms_do_not_depend_on_threads_or_memory() -> None:
    solutions = apply(sample(NINE, 1000, 0), shifted_grid(NINE)[None])
    puzzles = some_puzzles(solutions, 0)
    forms = canonical_puzzles(puzzles, solutions, threads=1)
    assert np.array_equal(canonical_puzzles(puzzles, solutions, threads=3), forms)
    assert same(
        to_canonical(puzzles, solutions, threads=1), to_canonical(puzzles, solutions, threads=3)
    )
    puzzles.flags.writeable = False
    assert np.array_equal(canonical_puzzles(puzzles[::-2], solutions[::-2]), forms[::-2])


def test_no_grids_at_all() -> None:
    nothing = np.zeros((0, 81), np.uint8)
    assert canonical_puzzles(nothing, nothing).shape == (0, 81)
    assert apply(sample(NINE, 0, 0), nothing).shape == (0, 81)
    assert canonical_hash(nothing).shape == (0,)


def test_canonical_forms_say_what_is_wrong() -> None:
    solutions = apply(sample(NINE, 400, 0), shifted_grid(NINE)[None])
    puzzles = some_puzzles(solutions, 0)

    swapped = solutions.copy()
    swapped[300, :2] = swapped[300, 1::-1]
    empty = solutions.copy()
    empty[17, 40] = 0
    strange = solutions.copy()
    strange[399, 80] = 200
    for grids, row in ((swapped, 300), (empty, 17), (strange, 399)):
        with pytest.raises(ValueError, match=f"row {row} is not a complete and valid 9x9 grid"):
            canonical_solutions(grids)
        with pytest.raises(ValueError, match=f"row {row} is not"):
            to_canonical(puzzles, grids)

    clue = np.flatnonzero(puzzles[5])[0]
    puzzles[5, clue] = puzzles[5, clue] % 9 + 1
    with pytest.raises(ValueError, match="the puzzle in row 5 has a clue"):
        canonical_puzzles(puzzles, solutions)
    with pytest.raises(ValueError, match="16 cells, not 81"):
        canonical_solutions(solutions, FOUR)


# The hash.


def slow_hash(grid: np.ndarray) -> int:
    """The definition, in Python's integers."""

    def mix(x: int) -> int:
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    mixed = mix(len(grid))
    for digit in grid.tolist():
        mixed = mix((mixed + digit + 1) % 2**64)
    return mixed


@pytest.mark.parametrize("geometry", STANDARD)
def test_hash_is_what_its_definition_says(geometry: Geometry) -> None:
    puzzles = some_puzzles(some_solutions(geometry), 0)
    assert canonical_hash(puzzles).tolist() == [slow_hash(puzzle) for puzzle in puzzles]


def test_hash_never_changes() -> None:
    """Published splits hang on these numbers."""
    hashes = {g.name: int(canonical_hash(pattern_solution(g)[None])[0]) for g in STANDARD}
    assert hashes == {
        "4x4": 4787683812406575711,
        "6x6": 3772601924633783519,
        "9x9": 15521766244364357896,
    }


def test_hash_spreads_well() -> None:
    """A fiftieth of puzzles that look alike, by the low bits and by the high ones."""
    puzzles = some_puzzles(np.tile(pattern_solution(NINE), (20_000, 1)), 0)
    hashes = canonical_hash(puzzles)
    assert len(np.unique(hashes)) == len(puzzles)
    for chosen in (hashes % np.uint64(50) == 0, hashes < np.uint64(2**64 // 50)):
        assert abs(chosen.mean() - 0.02) < 0.005


# Real lists.


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Puzzles and solutions of a list."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    questions = "".join(row["question"] for row in rows).replace(".", "0")
    answers = "".join(row["answer"] for row in rows)
    puzzles, solutions = (
        (np.frombuffer(joined.encode(), np.uint8) - ord("0")).reshape(-1, 81)
        for joined in (questions, answers)
    )
    return puzzles, solutions


@pytest.mark.parametrize("name", ["clue17", "hard"])
def test_real_lists_share_nothing_up_to_symmetry(real_data: Path, name: str) -> None:
    solutions, puzzles = {}, {}
    for part in ("train", "test"):
        clues, answers = read(real_data / f"{name}-{part}.csv.gz")
        symmetries = to_canonical(clues, answers)
        solutions[part] = {bytes(form) for form in apply(symmetries, answers)}
        puzzles[part] = {bytes(form) for form in apply(symmetries, clues)}
        assert len(puzzles[part]) == len(clues)
    assert solutions["train"].isdisjoint(solutions["test"])


def test_every_puzzle_needs_its_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users see it: without the check of shapes that tests run under."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    grids = np.tile(shifted_grid(NINE), (4, 1))
    with pytest.raises(ValueError, match="4 puzzles of 81 cells and 1 solutions"):
        to_canonical(grids, grids[:1])


def test_samples_may_skip() -> None:
    every = sample(NINE, 12, seed=1)
    third = sample(NINE, 4, seed=1, start=2, step=3)
    np.testing.assert_array_equal(third.cell_from, every.cell_from[2::3])
    np.testing.assert_array_equal(third.digit_to, every.digit_to[2::3])
