"""A hundred thousand broken texts: each gives a grid or one short line."""

import random

import jaxtyping
import numpy as np
import pytest

from boards import shifted_grid
from ronri.sudoku.board import PuzzleError, parse, to_line, to_text
from ronri.sudoku.geometry import STANDARD, Geometry
from ronri.sudoku.rules import is_consistent
from written import FORMATS, ODD


def mangled(texts: list[str], chance: random.Random) -> str:
    text = chance.choice(texts)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 10))):
        i, j = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        odd = chance.choice(ODD)
        kind = chance.randrange(9)
        if kind == 0:
            text = text[:i] + text[i + 1 :]
        elif kind == 1:
            text = text[:i] + odd + text[i:]
        elif kind == 2:
            text = text[:i] + odd + text[i + 1 :]
        elif kind == 3:
            text = text[:i] + text[j : j + 1] + text[i + 1 : j] + text[i : i + 1] + text[j + 1 :]
        elif kind == 4:
            text = text[:i] + text[j:]
        elif kind == 5:
            text = text[:j] + text[i:j] + text[j:]
        elif kind == 6:
            text = text.replace(chance.choice("123456789.|-\n"), odd)
        elif kind == 7:
            text = "".join(chance.choices(ODD, k=chance.choice((0, 1, 16, 36, 81))))
        else:
            text = "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randrange(20)))
    return text


@pytest.mark.parametrize("geometry", [None, *STANDARD, Geometry(4, 4)], ids=str)
def test_mangled_texts_give_a_grid_or_one_short_line(
    geometry: Geometry | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Shapes are checked by the other tests; here their checks would take most of the time.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    chance = random.Random(f"mangled {geometry}")
    boards = STANDARD if geometry is None else (geometry,)
    texts = []
    for board in boards:
        grid = shifted_grid(board)
        grid[chance.sample(range(board.cells), board.cells // 2)] = 0
        texts += [write(to_line(grid), board) for write in FORMATS.values()]
        texts += [to_text(grid, board), to_text(grid, board, ascii_only=True)]
    sizes = {board.cells: board.size for board in boards}
    read = refused = 0
    for _ in range(21_000):
        text = mangled(texts, chance)
        try:
            grid = parse(text, geometry)
        except PuzzleError as error:
            refused += 1
            message = str(error)
            assert message.isprintable(), repr(message)
            assert 0 < len(message) < 300
        else:
            read += 1
            assert grid.dtype == np.uint8
            assert grid.max() <= sizes[len(grid)]
            assert is_consistent(grid[None], geometry).all()
    # Both outcomes must really have been tried.
    assert min(read, refused) > 1_000


@pytest.mark.parametrize("text", ["1" * 10**7, "\n" * 10**6, "😀" * 10**6, "-+" * 10**6])
def test_huge_texts_are_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(PuzzleError, match="too long to be one puzzle"):
        parse(text)
