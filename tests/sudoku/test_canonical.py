"""Canonical forms against brute force, and the hash that splits data."""

import csv
import gzip
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from random import Random

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import shifted_grid
from grids import (
    GEOMETRIES,
    SEEDS,
    is_symmetry,
    pattern_solution,
    same,
    solutions_of,
    some_puzzles,
    some_solutions,
    text,
)
from ronri.sudoku.geometry import FOUR, NINE, STANDARD, Geometry
from ronri.sudoku.symmetry import (
    apply,
    canonical_hash,
    canonical_puzzles,
    canonical_solutions,
    order,
    sample,
    to_canonical,
)


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
