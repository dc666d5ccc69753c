"""Torch twins: the same answers as the game gives."""

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from boards import OTHERS, any_grids
from grids import is_symmetry, some_puzzles, some_solutions
from lists import random_boards
from ronri.data import packing, tensors
from ronri.data.tensors import Symmetries, random_symmetries
from ronri.sudoku import rules, symmetry
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry

KEYS = torch.arange(12)
EACH_BOARD = pytest.mark.parametrize("geometry", STANDARD, ids=str)


def as_original(symmetries: Symmetries) -> symmetry.Symmetries:
    return symmetry.Symmetries(
        symmetries.cell_from.numpy(), symmetries.digit_to.numpy().astype(np.uint8)
    )


@pytest.mark.parametrize("geometry", [*STANDARD, Geometry(3, 2), Geometry(2, 4)], ids=str)
def test_random_symmetries_belong_to_the_group(geometry: Geometry) -> None:
    found = random_symmetries(KEYS, geometry)
    assert all(is_symmetry(cell_from, geometry) for cell_from in found.cell_from.numpy())
    assert not found.digit_to[:, 0].any()
    digits = torch.arange(geometry.size + 1).expand_as(found.digit_to)
    assert torch.equal(found.digit_to.sort(dim=1).values, digits)
    solutions = torch.from_numpy(some_solutions(geometry).copy())
    assert rules.is_solved(found.apply(solutions).numpy(), geometry).all()
    # A key makes its symmetry alone.
    alone = random_symmetries(KEYS[5:6], geometry)
    assert torch.equal(alone.cell_from, found.cell_from[5:6])
    assert torch.equal(alone.digit_to, found.digit_to[5:6])


@EACH_BOARD
def test_symmetries_act_as_the_game_says(geometry: Geometry) -> None:
    found = random_symmetries(KEYS, geometry)
    puzzles = some_puzzles(some_solutions(geometry), seed=1)
    moved = found.apply(torch.from_numpy(puzzles))
    np.testing.assert_array_equal(moved.numpy(), symmetry.apply(as_original(found), puzzles))
    np.testing.assert_array_equal(found.undo(moved).numpy(), puzzles)
    some = torch.tensor([3, 0, 3])
    np.testing.assert_array_equal(found.rows(some).undo(moved[some]).numpy(), puzzles[some])


@EACH_BOARD
def test_placements_come_back(geometry: Geometry) -> None:
    """A digit in a cell goes where the game says, and comes back from there."""
    found = random_symmetries(KEYS, geometry)
    random = np.random.default_rng(0)
    cells = random.integers(geometry.cells, size=(len(KEYS), 1))
    digits = random.integers(geometry.size + 1, size=(len(KEYS), 1))
    new = symmetry.apply_to_placements(as_original(found), cells, digits)
    new_cells, new_digits = (torch.from_numpy(x[:, 0].astype(np.int64)) for x in new)
    np.testing.assert_array_equal(found.undo_cells(new_cells).numpy(), cells[:, 0])
    np.testing.assert_array_equal(found.undo_digits(new_digits).numpy(), digits[:, 0])


@EACH_BOARD
def test_beliefs_come_back_with_their_board(geometry: Geometry) -> None:
    found = random_symmetries(KEYS, geometry)
    beliefs = torch.rand(len(KEYS), geometry.cells, geometry.size)
    board = (beliefs.argmax(dim=2) + 1).to(torch.uint8)
    back = found.undo_beliefs(beliefs)
    assert torch.equal((back.argmax(dim=2) + 1).to(torch.uint8), found.undo(board))
    # Not the likeliest digit alone: what is believed of each digit moves as that digit would.
    for digit in range(1, geometry.size + 1):
        everywhere = torch.full_like(board, digit)
        old_digit = (found.undo(everywhere).long() - 1)[:, :, None]
        old_cell = found.cell_from[:, :, None].expand(-1, -1, geometry.size)
        assert torch.equal(
            back.gather(1, old_cell).gather(2, old_digit)[:, :, 0], beliefs[:, :, digit - 1]
        )


def test_some_rows_may_stay_as_they_are() -> None:
    plain = KEYS % 3 == 0
    found = random_symmetries(KEYS, NINE)
    chosen = found.unless(plain)
    grids = torch.from_numpy(random_boards(len(KEYS)))
    assert torch.equal(chosen.apply(grids)[plain], grids[plain])
    assert torch.equal(chosen.apply(grids)[~plain], found.apply(grids)[~plain])


def test_every_symmetry_is_equally_likely() -> None:
    """On 4x4 boards: 128 ways to move the cells, 24 to name the digits."""
    found = random_symmetries(torch.arange(40_000), FOUR)
    names = {order: i for i, order in enumerate(permutations(range(1, 5)))}
    digits = torch.tensor([names[tuple(row)] for row in found.digit_to[:, 1:].tolist()])
    places, cells = torch.unique(found.cell_from, dim=0, return_inverse=True)
    assert len(places) == 128
    counts = torch.bincount(cells * 24 + digits, minlength=128 * 24)
    assert symmetry.order(FOUR) == len(counts)
    # Chi-square, in standard deviations from its mean: above it uneven, below it too even.
    expected, freedom = 40_000 / len(counts), len(counts) - 1
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - freedom) / (2 * freedom) ** 0.5 < 4


@pytest.mark.parametrize("geometry", [*STANDARD, *OTHERS], ids=str)
def test_unpacks_what_was_packed(geometry: Geometry) -> None:
    solutions = random_boards(30, geometry)
    puzzles = solutions * (random_boards(30, geometry, seed=1) < 3)
    nothing = np.zeros(30, np.uint8)
    records = packing.pack(puzzles, solutions, nothing.astype(float), nothing, geometry)
    found = tensors.unpack(torch.from_numpy(records), geometry)
    for ours, theirs in zip(
        found,
        (packing.unpack_puzzles(records, geometry), packing.unpack_solutions(records, geometry)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(found[0].numpy(), puzzles)


@given(st.data())
def test_judges_as_the_rules_do(data: st.DataObject) -> None:
    geometry = data.draw(st.sampled_from([*STANDARD, *OTHERS]))
    grids = data.draw(any_grids(geometry))
    # Clues of which some are not kept, on boards that may hold digits that do not exist.
    clues = some_puzzles(np.roll(grids, data.draw(st.integers(0, 1)), axis=0), seed=2)
    if len(grids):
        grids[0, 0] = data.draw(st.integers(0, 30))
    units = tensors.units_satisfied(torch.from_numpy(grids), geometry)
    np.testing.assert_array_equal(units.numpy(), rules.units_satisfied(grids, geometry))
    solved = tensors.solves(torch.from_numpy(grids), torch.from_numpy(clues), geometry)
    np.testing.assert_array_equal(solved.numpy(), rules.solves(grids, clues, geometry))


@EACH_BOARD
def test_random_boards_are_judged_alike(geometry: Geometry) -> None:
    grids = random_boards(200, geometry)
    units = tensors.units_satisfied(torch.from_numpy(grids), geometry)
    np.testing.assert_array_equal(units.numpy(), rules.units_satisfied(grids, geometry))


def test_a_changed_clue_is_not_solved() -> None:
    solutions = some_solutions(SIX)
    clues = some_puzzles(solutions, seed=3)
    assert tensors.solves(torch.from_numpy(solutions.copy()), torch.from_numpy(clues), SIX).all()
    cell = (clues != 0).argmax(axis=1)[:, None]
    other = np.take_along_axis(clues, cell, axis=1) % 6 + 1
    np.put_along_axis(clues, cell, other, axis=1)
    assert not tensors.solves(
        torch.from_numpy(solutions.copy()), torch.from_numpy(clues), SIX
    ).any()
