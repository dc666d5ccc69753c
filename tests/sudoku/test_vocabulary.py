"""The words that traces are written in."""

import numpy as np
import pytest

from ronri.sudoku.geometry import NINE, STANDARD, Geometry
from ronri.sudoku.trace import Vocabulary


def test_the_words_of_nine_by_nine() -> None:
    words = Vocabulary(NINE)
    assert words.num_tokens == 734
    assert [words.clues_end, words.push, words.pop, words.success, words.pad] == [*range(729, 734)]
    assert words.text(words.placement(22, 9)) == "[R3C5=9]"
    assert words.token("[R3C5=9]") == 22 * 9 + 8
    assert words.text(words.push) == "[push]"


@pytest.mark.parametrize("geometry", STANDARD, ids=lambda g: g.name)
def test_words_and_their_names_agree(geometry: Geometry) -> None:
    words = Vocabulary(geometry)
    tokens = np.arange(words.num_tokens)
    assert [words.token(words.text(token)) for token in tokens] == tokens.tolist()
    placements = tokens[words.is_placement(tokens)]
    assert len(placements) == geometry.cells * geometry.size == words.num_placements
    again = words.placement(words.cell_of[placements], words.digit_of[placements])
    np.testing.assert_array_equal(again, placements)
    assert (words.cell_of[words.num_placements :] == -1).all()
    assert (words.digit_of[words.num_placements :] == 0).all()
    # Minus one is what training code writes for "no token here".
    assert not words.is_placement(-1)


def test_placements_of_small_integers_do_not_overflow() -> None:
    cells, digits = np.array([80], np.uint8), np.array([9], np.uint8)
    assert Vocabulary(NINE).placement(cells, digits).tolist() == [728]


@pytest.mark.parametrize("text", ["[R0C1=1]", "[R1C10=1]", "[R1C1=0]", "push", "[jump]", ""])
def test_unknown_words_are_errors(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no token|outside"):
        Vocabulary(NINE).token(text)


def test_numbers_that_are_no_tokens_are_errors() -> None:
    for number in (-1, 734):
        with pytest.raises(ValueError, match="no token"):
            Vocabulary(NINE).text(number)
