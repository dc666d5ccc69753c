"""Draw `docs/demo.svg`, the moving picture of the README: the exact solver at work.

python docs/demo.py
"""

from html import escape
from pathlib import Path

import numpy as np
from rich.text import Text

from ronri.sudoku.board import parse
from ronri.sudoku.exact import steps
from ronri.terminal import LINES_OF_SEARCH, Frame, frames

# Arto Inkala, 2012.
PUZZLE = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
SECONDS, PAUSE = 0.4, 4.0
WIDTH, LINE, LEFT, TOP = 9.03, 18, 20, 32
COLOURS = {
    "dim": "#5b6472",
    "bold": "#ffffff",
    "cyan": "#56c2d6",
    "bold green": "#7ee787",
    "yellow": "#e3b341",
    "bold yellow": "#ffd33d",
    "red": "#f47067",
    "bold red": "#ff4d4d",
}


def spans(line: Text) -> str:
    """A line of styled text, one piece for each run of one colour."""
    pieces: list[tuple[str, str]] = []
    for index, character in enumerate(line.plain):
        styles = [str(span.style) for span in line.spans if span.start <= index < span.end]
        style = styles[-1] if styles else str(line.style)
        if pieces and pieces[-1][0] == style:
            pieces[-1] = (style, pieces[-1][1] + character)
        else:
            pieces.append((style, character))
    return "".join(
        f'<tspan fill="{COLOURS[style]}">{escape(text)}</tspan>' for style, text in pieces
    )


def picture(frame: Frame) -> str:
    rows = [(float(LEFT), row, line) for row, line in enumerate(frame.board.split("\n"))]
    search = frame.search[-LINES_OF_SEARCH:]
    rows += [(LEFT + 29 * WIDTH, row, line) for row, line in enumerate(search)]
    return "".join(
        f'<text x="{x:.0f}" y="{TOP + row * LINE}">{spans(line)}</text>' for x, row, line in rows
    )


def svg(puzzle: np.ndarray) -> str:
    pictures = [picture(frame) for frame in frames(steps(puzzle), puzzle)]
    total = SECONDS * len(pictures) + PAUSE
    body = []
    for number, text in enumerate(pictures):
        start, end = number * SECONDS / total, (number + 1) * SECONDS / total
        if number == len(pictures) - 1:
            show, hidden = f'values="none;inline" keyTimes="0;{start:.4f}"', ""
        elif number == 0:
            show, hidden = f'values="inline;none" keyTimes="0;{end:.4f}"', ' display="none"'
        else:
            show = f'values="none;inline;none" keyTimes="0;{start:.4f};{end:.4f}"'
            hidden = ' display="none"'
        # Where nothing moves, the last picture is the one that is seen.
        body.append(
            f'<g{hidden}>{text}<animate attributeName="display" {show} dur="{total:.1f}s" '
            'calcMode="discrete" repeatCount="indefinite"/></g>\n'
        )
    width, height = LEFT * 2 + 62 * WIDTH, TOP * 2 + 12 * LINE - 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-size="15" xml:space="preserve" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">\n'
        "<title>The exact solver on a hard Sudoku, guess by guess</title>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#14181f"/>\n{"".join(body)}</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("demo.svg").write_text(svg(parse(PUZZLE)))
