"""A network at work: a moving picture in a terminal, a line for each step elsewhere."""

import time
from types import TracebackType
from typing import final

import numpy as np
from jaxtyping import UInt8
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ronri.evaluation.bars import bars
from ronri.reasoner import Budget
from ronri.sudoku.geometry import SYMBOLS, geometry_of
from ronri.terminal import pencil
from ronri.terminal.thoughts import Moment, Observer
from ronri.thinking import Frame

# A film of so many seconds, should all steps be taken, if it is neither too fast to see nor too
# slow to bear.
FILM, FASTEST, SLOWEST = 8.0, 0.04, 0.6
# The first steps are shown the longest, as most puzzles take few: the k-th for a time like
# 1 / (k + HASTE).
HASTE = 4
# Columns of what stands beside a board, and lines of it below one.
BESIDE, BELOW = 34, 7
_BAR = 12


@final
class Watch:
    """Shows every frame of the thinking about one puzzle; a `watch` for `ronri.thinking.answer`."""

    def __init__(
        self,
        console: Console,
        clues: UInt8[np.ndarray, "cells"],
        budget: Budget,
        name: str,
        *,
        delay: float | None = None,
    ) -> None:
        self._console, self._budget, self._name = console, budget, name
        self._observe = Observer(clues)
        self._delay = delay
        self._live = Live(console=console, transient=True, auto_refresh=False)

    def __enter__(self) -> "Watch":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def __call__(self, frame: Frame) -> None:
        moment = self._observe(frame)
        if self._console.is_terminal:
            shown = picture(moment, self._budget, self._name, *self._console.size)
            self._live.update(shown, refresh=True)
            pause = pace(frame.step, self._budget.depth) if self._delay is None else self._delay
            time.sleep(pause)
        else:
            self._console.print(line(moment, self._budget))


def pace(step: int, depth: int) -> float:
    """Seconds for which a step is shown, of at most `depth`."""
    all_of_them = sum(1 / (k + HASTE) for k in range(1, depth + 1))
    return min(max(FILM / (step + HASTE) / all_of_them, FASTEST), SLOWEST)


def picture(moment: Moment, budget: Budget, name: str, width: int, height: int) -> RenderableType:
    """The largest picture that fits on a screen of so many columns and lines."""
    facts = _facts(moment, budget)
    title = Text(name, "bold")
    columns, lines = pencil.extent(geometry_of(moment.board))
    if width >= columns + BESIDE and height > lines:
        return _side_by_side(pencil.large(moment), Group(Text(), title, Text(), _table(facts, 1)))
    if width >= columns and height > lines + BELOW:
        return Group(pencil.large(moment), title, _table(facts, 2))
    board = pencil.small(moment)
    if width >= 2 * geometry_of(moment.board).size + 8 + BESIDE:
        return _side_by_side(board, Group(title, _table(facts, 1)))
    return board


def line(moment: Moment, budget: Budget) -> Text:
    """A step in one line."""
    facts = [f"{what} {value.plain}" for what, value in _facts(moment, budget).items()]
    return Text(", ".join(facts))


def _facts(moment: Moment, budget: Budget) -> dict[str, Text]:
    """What there is to say besides the board."""
    geometry = geometry_of(moment.board)
    facts = {
        "step": Text(f"{moment.step} of {budget.depth}"),
        "belief": _bar(moment.belief),
        "confidence": _bar(moment.confidence),
        "changed": Text(_cells(int(moment.changed.sum()))),
        "units": Text(f"{moment.satisfied} of {geometry.num_units} hold"),
        "halts": Text("sure", "bold green") if moment.halted else Text("not yet"),
    }
    rows = budget.samples * budget.views
    if rows > 1:
        facts["rows"] = Text(f"{moment.rows} of {rows} think")
        facts["shown"] = Text(f"view {moment.view + 1}, sample {moment.sample + 1}")
    if moment.energies:
        course = bars(moment.energies, _BAR)
        facts["energy"] = Text.assemble((course, "cyan"), f" {moment.energies[-1]:.4g}")
    if moment.event is not None:
        kind, cell, digit = moment.event
        where = "" if cell < 0 else f" {geometry.cell_name(cell)} = {SYMBOLS[digit]}"
        facts["event"] = Text(f"{kind}{where}")
    if moment.verified:
        facts["check"] = Text("✓ passed", "bold green")
    return facts


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _bar(value: float) -> Text:
    """A share as a bar. What is no share, as a log probability, is only a number."""
    if not 0 <= value <= 1:
        return Text(f"{value:.4g}")
    full = round(_BAR * value)
    return Text.assemble(
        ("█" * full, "cyan"), ("░" * (_BAR - full), "dim"), f" {100 * value:.1f} %"
    )


def _table(facts: dict[str, Text], across: int) -> Table:
    table = Table.grid(padding=(0, 3, 0, 0))
    cells = [Text.assemble((f"{what:<11}", "dim"), value) for what, value in facts.items()]
    for first in range(0, len(cells), across):
        table.add_row(*cells[first : first + across])
    return table


def _side_by_side(board: Text, beside: RenderableType) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(board, beside)
    return table
