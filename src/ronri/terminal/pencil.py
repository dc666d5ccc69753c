"""A board of beliefs, as people write candidates with a pencil.

A cell that is not decided shows every candidate, the brighter the more it is believed; where one
is believed enough, one large digit takes its place. Where there is less room, every cell shows the
digit it would say now.
"""

from dataclasses import dataclass
from functools import cache
from typing import final

from rich.color import Color, blend_rgb
from rich.style import Style
from rich.text import Text

from ronri.sudoku.geometry import SYMBOLS, Geometry, geometry_of
from ronri.terminal.boards import paint
from ronri.terminal.thoughts import Moment

# A cell is decided when one digit is believed more than this.
DECIDED = 0.9
# Candidates that are believed less are not shown.
FAINTEST = 0.02

# The picture brings its own ground: colours that fade need to know what they fade into.
GROUND, INK = "#12161d", "#c9d1d9"
CLUE, SAID, WRONG, CHANGED = "#ffffff", "#5ccfe6", "#ff6b6b", "#ffd866"
# Neighbouring tiles differ a little, so that the candidates of one cell stay together.
TILES = ("#1a2029", "#212833")
TILE_WRONG, TILE_CHANGED = "#47202a", "#4a3f18"

# A tile has room for three by three candidates; between boxes are gaps.
_HEIGHT, _WIDTH, _GAP = 3, 7, 2
_LARGE = {
    1: ("╺┓ ", " ┃ ", "╺┻╸"),
    2: ("╺━┓", "┏━┛", "┗━╸"),
    3: ("╺━┓", "╺━┫", "╺━┛"),
    4: ("╻ ╻", "┗━┫", "  ╹"),
    5: ("┏━╸", "┗━┓", "╺━┛"),
    6: ("┏━╸", "┣━┓", "┗━┛"),
    7: ("╺━┓", "  ┃", "  ╹"),
    8: ("┏━┓", "┣━┫", "┗━┛"),
    9: ("┏━┓", "┗━┫", "╺━┛"),
}
# Shades between invisible and bright: few enough to be remembered, enough to fade.
_SHADES = 12


@final
@dataclass(frozen=True)
class Tile:
    """How one cell looks."""

    paper: str
    # Whether there is one digit, large; else there are candidates.
    decided: bool
    # The colour of every digit that is there.
    digits: dict[int, str]


def tile(moment: Moment, cell: int) -> Tile:
    """How a cell looks at a moment."""
    size = geometry_of(moment.board).size
    tint = TILES[(cell // size + cell % size) % 2]
    said, ink, paper = int(moment.board[cell]), _ink(moment, cell), _paper(moment, cell, tint)
    belief = _belief(moment, cell)
    if belief > DECIDED:
        return Tile(paper, True, {said: _faded(ink, belief, paper)})
    candidates = {
        digit: _faded(ink if digit == said else SAID, float(belief), paper)
        for digit, belief in enumerate(moment.beliefs[cell], start=1)
        if belief > FAINTEST
    }
    return Tile(paper, False, candidates)


def extent(geometry: Geometry) -> tuple[int, int]:
    """How many columns and lines the large board takes."""
    across, down = geometry.size // geometry.box_width, geometry.size // geometry.box_height
    return geometry.size * _WIDTH + (across + 1) * _GAP, geometry.size * _HEIGHT + down + 1


def large(moment: Moment) -> Text:
    """The board with its candidates."""
    geometry = geometry_of(moment.board)
    ground = Style(bgcolor=GROUND)
    width, _ = extent(geometry)
    drawn = Text(no_wrap=True)
    for row in range(geometry.size):
        if row % geometry.box_height == 0:
            drawn.append(" " * width + "\n", ground)
        cells = range(row * geometry.size, (row + 1) * geometry.size)
        tiles = [_lines(tile(moment, cell), geometry) for cell in cells]
        for line in range(_HEIGHT):
            for column, lines in enumerate(tiles):
                if column % geometry.box_width == 0:
                    drawn.append(" " * _GAP, ground)
                drawn.append_text(lines[line])
            drawn.append(" " * _GAP + "\n", ground)
    drawn.append(" " * width, ground)
    return drawn


def small(moment: Moment) -> Text:
    """The board with the digit that each cell says now."""

    def style_of(cell: int) -> Style:
        paper = _paper(moment, cell, GROUND)
        return Style(
            color=_faded(_ink(moment, cell), _belief(moment, cell), paper),
            bgcolor=paper,
            bold=bool(moment.clues[cell]),
        )

    frame = Style(color=_faded(INK, 0.3, GROUND), bgcolor=GROUND)
    return paint(moment.board, style_of, frame)


def _lines(tile: Tile, geometry: Geometry) -> list[Text]:
    """The three lines of a tile."""
    paper = Style(bgcolor=tile.paper)
    if tile.decided:
        [(digit, colour)] = tile.digits.items()
        ink = Style(color=colour, bold=True)
        return [Text(line.center(_WIDTH), paper + ink) for line in _LARGE[digit]]
    lines = []
    for first in range(1, 1 + _HEIGHT * geometry.box_width, geometry.box_width):
        line = Text(style=paper)
        for digit in range(first, first + geometry.box_width):
            line.append(" ")
            line.append(SYMBOLS[digit] if digit in tile.digits else " ", tile.digits.get(digit))
        line.align("center", _WIDTH)
        lines.append(line)
    return lines


def _belief(moment: Moment, cell: int) -> float:
    """How much the digit that a cell says is believed; a clue that is kept is beyond doubt."""
    said, clue = int(moment.board[cell]), int(moment.clues[cell])
    if said == 0:
        return 0.0
    return 1.0 if said == clue else float(moment.beliefs[cell, said - 1])


def _ink(moment: Moment, cell: int) -> str:
    if cell in moment.wrong:
        return WRONG
    if moment.changed[cell]:
        return CHANGED
    return CLUE if moment.clues[cell] else SAID


def _paper(moment: Moment, cell: int, otherwise: str) -> str:
    if moment.changed[cell]:
        return TILE_CHANGED
    # A contradiction between mere candidates is nothing yet: only the ink shows it.
    decided = _belief(moment, cell) > DECIDED
    return TILE_WRONG if decided and cell in moment.wrong else otherwise


def _faded(ink: str, belief: float, paper: str) -> str:
    """Ink that fades into the paper where little is believed."""
    # Eyes tell dark shades apart less well than bright ones.
    return _mixed(ink, round(belief**0.6 * _SHADES), paper)


@cache
def _mixed(ink: str, shade: int, paper: str) -> str:
    ground, full = Color.parse(paper).get_truecolor(), Color.parse(ink).get_truecolor()
    return blend_rgb(ground, full, 0.15 + 0.85 * shade / _SHADES).hex
