import numpy as np
import pytest

from lists import random_boards
from ronri.data.packing import Layout, pack
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry

# Even and odd numbers of cells, the smallest and the largest board.
GEOMETRIES = [Geometry(1, 2), FOUR, Geometry(1, 5), SIX, Geometry(2, 4), NINE]
GEOMETRIES += [Geometry(5, 3), Geometry(4, 4)]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_bits_lie_where_the_documentation_says(geometry: Geometry) -> None:
    """Decode records one bit at a time, by the words at the top of the module alone."""
    count, cells = 20, geometry.cells
    random = np.random.default_rng(0)
    solutions = random_boards(count, geometry)
    puzzles = solutions * (random.random(solutions.shape) < 0.4)
    ratings = random.choice([np.nan, 0, 0.5, 34.6, 65504], count)
    sources = np.arange(count, dtype=np.uint8)
    records = pack(puzzles, solutions, ratings, sources, geometry)
    solution_bytes, clue_bytes = -(-cells // 2), -(-cells // 8)
    assert records.shape == (count, solution_bytes + clue_bytes + 3)
    for i, record in enumerate(records.tolist()):
        halves = [half for byte in record[:solution_bytes] for half in (byte & 15, byte >> 4)]
        assert [half + 1 for half in halves[:cells]] == solutions[i].tolist()
        assert not any(halves[cells:])
        clues = record[solution_bytes : solution_bytes + clue_bytes]
        bits = [byte >> b & 1 for byte in clues for b in range(8)]
        assert bits[:cells] == (puzzles[i] != 0).tolist()
        assert not any(bits[cells:])
        rating = np.frombuffer(bytes(record[-3:-1]), "<f2")[0]
        np.testing.assert_array_equal(rating, np.float16(ratings[i]))
        assert record[-1] == i


def test_a_nine_by_nine_puzzle_takes_55_bytes() -> None:
    assert Layout.of(NINE) == Layout(solution=0, clues=41, rating=52, source=54, record=55)
