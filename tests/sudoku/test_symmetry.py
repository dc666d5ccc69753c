"""The group of symmetries: its laws, its action, its samples."""

from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards import shifted_grid
from grids import GEOMETRIES, SEEDS, is_symmetry, same, some_puzzles, some_solutions
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry
from ronri.sudoku.rules import is_solved
from ronri.sudoku.symmetry import (
    apply,
    apply_to_placements,
    apply_to_tokens,
    compose,
    identity,
    invert,
    order,
    sample,
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


def test_samples_may_skip() -> None:
    every = sample(NINE, 12, seed=1)
    third = sample(NINE, 4, seed=1, start=2, step=3)
    np.testing.assert_array_equal(third.cell_from, every.cell_from[2::3])
    np.testing.assert_array_equal(third.digit_to, every.digit_to[2::3])
