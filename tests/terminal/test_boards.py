"""Boards on the screen."""

from boards import PUZZLE, SOLUTION
from ronri.sudoku.board import parse, to_text
from ronri.terminal.boards import CLUE, FOUND, FRESH, GUESS, WRONG, draw, wrong_cells

CLUES, BOARD = parse(PUZZLE), parse(SOLUTION)


def styles(text: str, **options: object) -> list[str]:
    """The style of each cell."""
    drawn = draw(parse(text), CLUES, **options)  # type: ignore[arg-type]
    assert drawn.plain == to_text(parse(text))
    return [str(span.style) for span in drawn.spans if drawn.plain[span.start] in "123456789."]


def test_clues_stand_out_from_what_was_found() -> None:
    expected = [CLUE if clue else FOUND for clue in CLUES]
    assert styles(SOLUTION) == expected
    assert styles(PUZZLE) == [CLUE if clue else "dim" for clue in CLUES]


def test_cells_are_marked() -> None:
    found = styles(SOLUTION, before=CLUES, guess=2, wrong={3, 0})
    assert [found[cell] for cell in (0, 1, 2, 3, 5)] == [WRONG, CLUE, GUESS, WRONG, FRESH]


def test_wrong_is_what_breaks_a_rule() -> None:
    assert wrong_cells(BOARD, CLUES) == frozenset()
    board = BOARD.copy()
    board[80] = 1
    # r9c9 was a clue, 9; r9c7 is a 1 too, and so is r5c9. That is a clue: it is not what is wrong.
    assert (CLUES[80], board[78], board[44], CLUES[44]) == (9, 1, 1, 1)
    assert wrong_cells(board, CLUES) == {78, 80}


def test_an_empty_cell_is_not_wrong() -> None:
    assert wrong_cells(CLUES, CLUES) == frozenset()
