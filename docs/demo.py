"""Draw `docs/demo.svg`, the moving picture of the README: a network thinks about a hard Sudoku.

python docs/demo.py [NAME]      released weights (trm), or the folder of a model or a run
"""

import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

import torch

from ronri.loading import load
from ronri.sudoku.board import parse
from ronri.sudoku.geometry import geometry_of
from ronri.terminal import pencil
from ronri.terminal.thoughts import Moment, Observer
from ronri.thinking import think

# Of the suite `hard`, from a list of the hardest that players know: tdoku guesses about 87 times.
PUZZLE = ".7.....8......7..1..35..4..1...9...4..43..2..8......9......26...4.6....5..6.53.4."
# Seconds that a step, and the last one, is shown.
SECONDS, PAUSE = 0.8, 4.0
# Sizes of a tile, of the gap between boxes, and of what is written beside the board.
TILE, GAP, BESIDE = 42, 8, 230


def svg(moments: Iterable[Moment], name: str) -> str:
    """The moving picture of all these moments."""
    pictures = [_board(moment) + _beside(moment, name) for moment in moments]
    total = SECONDS * (len(pictures) - 1) + PAUSE
    frames = [_frame(text, number, len(pictures), total) for number, text in enumerate(pictures)]
    empty = [_paper(cell, pencil.TILES[(cell // 9 + cell % 9) % 2]) for cell in range(81)]
    height = 9 * TILE + 4 * GAP
    width = height + BESIDE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="ui-monospace, SFMono-Regular, Menlo, '
        'Consolas, monospace">\n'
        f"<title>{escape(name)} thinks about a hard Sudoku, step by step</title>\n"
        "<style>.l{font-size:26px;text-anchor:middle}.s{font-size:12px;text-anchor:middle}"
        f".f{{font-size:13px;fill:{pencil.INK}}}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{pencil.GROUND}"/>\n'
        f"{''.join(empty)}\n{''.join(frames)}</svg>\n"
    )


def _frame(text: str, number: int, count: int, total: float) -> str:
    """One picture, shown in its turn. Where nothing moves, the last one is seen."""
    start, end = number * SECONDS / total, (number + 1) * SECONDS / total
    if number == count - 1:
        turn, hidden = f'values="none;inline" keyTimes="0;{start:.4f}"', ""
    elif number == 0:
        turn, hidden = f'values="inline;none" keyTimes="0;{end:.4f}"', ' display="none"'
    else:
        turn = f'values="none;inline;none" keyTimes="0;{start:.4f};{end:.4f}"'
        hidden = ' display="none"'
    return (
        f'<g{hidden}>{text}<animate attributeName="display" {turn} dur="{total:.1f}s" '
        'calcMode="discrete" repeatCount="indefinite"/></g>\n'
    )


def _board(moment: Moment) -> str:
    drawn = []
    for cell in range(81):
        left, top = _corner(cell)
        tile = pencil.tile(moment, cell)
        if tile.paper not in pencil.TILES:
            drawn.append(_paper(cell, tile.paper))
        for digit, colour in tile.digits.items():
            if tile.decided:
                x, y, kind = left + TILE // 2, top + TILE // 2 + 9, "l"
            else:
                down, across = divmod(digit - 1, 3)
                x, y, kind = left + 8 + 13 * across, top + 12 + 13 * down, "s"
            drawn.append(f'<text class="{kind}" x="{x}" y="{y}" fill="{colour}">{digit}</text>')
    return "".join(drawn)


def _corner(cell: int) -> tuple[int, int]:
    row, column = divmod(cell, 9)
    return GAP + column * TILE + column // 3 * GAP, GAP + row * TILE + row // 3 * GAP


def _paper(cell: int, colour: str) -> str:
    left, top = _corner(cell)
    return f'<rect x="{left}" y="{top}" width="{TILE}" height="{TILE}" fill="{colour}"/>'


def _beside(moment: Moment, name: str) -> str:
    geometry = geometry_of(moment.board)
    facts = [
        (name, ""),
        ("step", f"{moment.step}"),
        ("belief", f"{100 * moment.belief:.1f} %"),
        ("confidence", f"{100 * moment.confidence:.1f} %"),
        ("changed", f"{int(moment.changed.sum())}"),
        ("units", f"{moment.satisfied} of {geometry.num_units} hold"),
    ]
    if moment.halted:
        facts.append(("halts", "sure"))
    if moment.verified:
        facts.append(("check", "✓ passed"))
    left = 9 * TILE + 4 * GAP + 12
    return "".join(
        f'<text class="f" x="{left}" y="{40 + 24 * line}">{escape(what)}</text>'
        f'<text class="f" x="{left + 95}" y="{40 + 24 * line}">{escape(value)}</text>'
        for line, (what, value) in enumerate(facts)
    )


def main(name: str) -> None:
    clues = parse(PUZZLE)
    loaded = load(name, device="cpu")
    loaded.check_fits(geometry_of(clues))
    frames = think(loaded.reasoner, torch.from_numpy(clues[None]), loaded.budget())
    picture = svg(map(Observer(clues), frames), loaded.kind)
    Path(__file__).with_name("demo.svg").write_text(picture)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "trm")
