"""Units, peers and names of boards."""

import numpy as np
import pytest

from boards import OTHERS
from ronri.sudoku.geometry import FOUR, NINE, SIX, STANDARD, Geometry, geometry_of, standard


@pytest.mark.parametrize("geometry", [*STANDARD, *OTHERS], ids=str)
def test_every_cell_is_in_one_row_one_column_and_one_box(geometry: Geometry) -> None:
    for kind in np.split(geometry.units, 3):
        assert sorted(kind.ravel().tolist()) == list(range(geometry.cells))
    for cell in range(geometry.cells):
        units = [unit for unit in range(geometry.num_units) if cell in geometry.units[unit]]
        assert units == geometry.units_of[cell].tolist()
        together = {other for unit in units for other in geometry.units[unit].tolist()}
        assert geometry.peers[cell].tolist() == sorted(together - {cell})


def test_boxes_have_their_shape() -> None:
    assert SIX.units[2 * 6 + 1].tolist() == [3, 4, 5, 9, 10, 11]
    assert NINE.units[2 * 9 + 8].tolist() == [60, 61, 62, 69, 70, 71, 78, 79, 80]
    assert FOUR.units[2 * 4 + 2].tolist() == [8, 9, 12, 13]


def test_names_count_from_one() -> None:
    assert [NINE.unit_name(unit) for unit in (2, 9, 26)] == ["row 3", "column 1", "box 9"]
    assert NINE.cell_name(80) == "r9c9"
    assert SIX.name == "6x6"


def test_the_number_of_cells_names_the_board() -> None:
    assert [standard(cells) for cells in (16, 36, 81)] == [FOUR, SIX, NINE]
    with pytest.raises(ValueError, match=r"no standard board has 64 cells.*16 \(4x4\)"):
        standard(64)
    assert geometry_of(np.zeros((2, 36)), Geometry(3, 2)) == Geometry(3, 2)
    with pytest.raises(ValueError, match="a 4x4 board has 16 cells, not 81"):
        geometry_of(np.zeros(81), FOUR)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (4, 5)])
def test_boards_that_cannot_be_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="make no board"):
        Geometry(*shape)
