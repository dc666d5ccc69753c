"""What TRM's network knows about where a cell is."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ronri.data.tensors import Symmetries, random_symmetries
from ronri.reasoner import Budget, Noise
from ronri.reasoners.trm.config import Config
from ronri.reasoners.trm.network import CandidateEmbedder
from ronri.sudoku.generate import puzzles_with_clues
from ronri.sudoku.geometry import NINE, SIX, Geometry
from ronri.thinking import think
from small_trm import SLOTS, SMALL, lessons, model_of

UNIT_HEADS = replace(SMALL, width=24, heads=3, unit_heads=3, positions="none")
UNITS = replace(SMALL, mixer="units", positions="none", width=24, message=8)


@pytest.mark.parametrize("geometry", [SIX, NINE], ids=str)
@pytest.mark.parametrize("config", [UNIT_HEADS, UNITS], ids=["unit heads", "units"])
def test_what_moves_a_puzzle_moves_the_beliefs_and_changes_nothing(
    config: Config, geometry: Geometry
) -> None:
    """To either network all rows, columns and boxes are alike, and to one all digits, too."""
    model = model_of(config, geometry)
    clues = torch.from_numpy(
        puzzles_with_clues(4, 30 if geometry == NINE else 14, seed=1, geometry=geometry).puzzles
    )
    moved = random_symmetries(torch.arange(4), geometry)
    if config is UNIT_HEADS:
        moved = Symmetries(moved.cell_from, torch.arange(geometry.size + 1).expand(4, -1))
    row_from = (moved.cell_from // geometry.size).view(4, geometry.size, -1)
    upright = (row_from == row_from[:, :, :1]).all(dim=2).all(dim=1)
    # Boards with square boxes may be turned on their side, and here some are and some are not.
    assert upright.any()
    assert upright.all() == (geometry == SIX)
    budget = Budget(steps=2)
    for plain, other in zip(
        think(model, clues, budget), think(model, moved.apply(clues), budget), strict=True
    ):
        back = moved.undo_beliefs(other.thought.beliefs)
        torch.testing.assert_close(
            back[upright], plain.thought.beliefs[upright], rtol=1e-3, atol=1e-5
        )
        torch.testing.assert_close(
            other.thought.confidence[upright], plain.thought.confidence[upright]
        )
        # Rows and columns are told apart.
        for one, on_its_side in zip(plain.thought.beliefs[~upright], back[~upright], strict=True):
            assert not torch.allclose(one, on_its_side, rtol=1e-3, atol=1e-5)


def test_the_units_mixer_fits_boards_of_all_sizes() -> None:
    model = model_of(UNITS, SIX)
    model.load_state_dict(model_of(UNITS, NINE).state_dict())
    (frame,) = think(model, torch.zeros(1, 36, dtype=torch.uint8), Budget(steps=1))
    # Nothing is known of an empty board, and all its candidates are alike.
    torch.testing.assert_close(frame.thought.beliefs, torch.full((1, 36, 6), 1 / 6))


def test_a_candidate_is_open_given_or_excluded() -> None:
    model = model_of(UNITS, SIX)
    clues = torch.zeros(1, 36, dtype=torch.uint8)
    clues[0, 7] = 3
    x = model.embed(clues, torch.float32).view(36, 6, -1)
    assert isinstance(model.embed, CandidateEmbedder)
    open_, given, excluded = model.embed.states.weight * model.embed.scale
    for cell in range(36):
        for digit in range(1, 7):
            state = open_ if cell != 7 else given if digit == 3 else excluded
            torch.testing.assert_close(x[cell, digit - 1], state)


def test_unit_heads_see_one_unit_and_the_context() -> None:
    config = replace(SMALL, width=32, heads=4, unit_heads=3, context_tokens=2)
    attention = model_of(config, NINE).recursion.get_submodule("blocks.0.attention")
    assert isinstance(attention.mask, Tensor)
    everywhere = attention.mask[0] == 0
    seen = everywhere[:, 2:, 2:]
    units = torch.from_numpy(NINE.units_of)
    for head in range(3):
        expected = units[:, None, head] == units[None, :, head]
        assert torch.equal(seen[head], expected)
    assert seen[3].all()
    assert everywhere[:, :2].all()
    assert everywhere[:, :, :2].all()


def test_cells_without_positions_are_a_set() -> None:
    model = model_of(replace(SMALL, positions="none"))
    order = torch.randperm(16)
    noise = Noise(torch.zeros(SLOTS, dtype=torch.int64), torch.zeros(SLOTS).bool(), True)
    clues = lessons().clues
    _, plain = model.advance(model.begin(clues, noise))
    _, moved = model.advance(model.begin(clues[:, order], noise))
    torch.testing.assert_close(moved.beliefs, plain.beliefs[:, order])
    torch.testing.assert_close(moved.confidence, plain.confidence)


def test_grid_positions_add_a_row_a_column_and_a_box() -> None:
    empty = torch.zeros(1, 16, dtype=torch.uint8)
    x = model_of(replace(SMALL, positions="grid")).embed(empty, torch.float32)[0, 1:]
    apart = torch.cdist(x, x) + 10 * torch.eye(16)
    assert apart.min() > 0.5
    corners = x.view(4, 4, -1)

    def crosswise(rows: tuple[int, int], columns: tuple[int, int]) -> float:
        (a, b), (c, d) = rows, columns
        cells = corners[a, c] - corners[a, d] - corners[b, c] + corners[b, d]
        return cells.norm().item()

    # Rows and columns cancel out; boxes do if all four cells lie in one.
    assert crosswise((0, 1), (2, 3)) < 1e-5
    assert crosswise((0, 2), (1, 2)) > 0.5
    blind = model_of(replace(SMALL, positions="none")).embed(empty, torch.float32)[0, 1:]
    assert torch.equal(blind, blind[:1].expand_as(blind))
