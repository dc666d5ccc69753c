"""A training run to look at: a moving picture in a terminal, now and then a line elsewhere."""

import math
import time
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ronri.evaluation.bars import bars

# In seconds: how often the picture is drawn at most, and a line printed at least.
_PICTURE_EVERY, _LINE_EVERY = 0.2, 60.0

# A terminal at least this wide shows two things side by side.
_ROOM_FOR_TWO = 76


@dataclass(frozen=True)
class Validation:
    """Scores by name (`puzzle_accuracy`, `cell_accuracy`, ...) at the step they were measured."""

    step: int
    scores: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Status:
    """A run at one moment. It ends after `steps` or after `minutes`, whichever comes first."""

    step: int
    steps: int | None
    elapsed: float
    """Seconds since the run began, those before an interruption included."""
    minutes: float | None
    metrics: dict[str, float]
    """What the last lesson said: its loss, and what else it measured."""
    learning_rates: dict[str, float]
    validation: Validation | None
    """The latest one."""
    best: Validation | None
    """The best one so far."""
    admitted: int
    """Puzzles the run has started."""
    admitted_per_second: float
    ms_per_step: float

    def __post_init__(self) -> None:
        assert self.steps or self.minutes, "a run ends sometime"

    @property
    def done(self) -> float:
        """How much of the run is behind us, between 0 and 1."""
        by_steps = self.step / self.steps if self.steps else 0.0
        by_time = self.elapsed / (60 * self.minutes) if self.minutes else 0.0
        return min(1.0, max(by_steps, by_time))

    @property
    def seconds_left(self) -> float:
        by_steps = (self.steps - self.step) * self.ms_per_step / 1000 if self.steps else math.inf
        by_time = 60 * self.minutes - self.elapsed if self.minutes else math.inf
        return max(0.0, min(by_steps, by_time))


@final
class Display:
    """Shows the status of a run while it is open, and leaves its last line behind.

    Call `update` as often as you like: drawing takes a few milliseconds, and is left out where the
    picture is younger than a fifth of a second.
    """

    def __init__(self, console: Console, title: str, device: str) -> None:
        self._console = console
        self._title = title
        self._device = device
        # A dumb terminal cannot go back to draw over what it shows.
        self._moves = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._histories: dict[str, History] = {}
        self._status: Status | None = None
        self._drawn_at = -math.inf
        self._drawn: RenderableType = Text()
        # What the last line of a log is about, and when there last was a line of any kind.
        self._printed: Status | None = None
        self._printed_at = time.monotonic()

    def __enter__(self) -> "Display":
        title = Text(f"{self._title} on {self._device}")
        if self._moves:
            self._live.start()
            # Until there is a picture; what is compiled first can take a minute.
            self._live.update(title, refresh=True)
        else:
            self._print(title)
        return self

    def update(self, status: Status) -> None:
        """Show how the run stands now."""
        for name, value in status.metrics.items():
            self._histories.setdefault(name, History()).add(value)
        news = status.validation if self._is_new(status.validation) else None
        self._status = status
        every = _PICTURE_EVERY if self._moves else _LINE_EVERY
        if news is None and status.elapsed - self._drawn_at < every:
            return
        self._drawn_at = status.elapsed
        if self._moves:
            width = self._console.width
            self._drawn = picture(status, self._histories, self._title, self._device, width)
            self._live.update(self._drawn, refresh=True)
        else:
            self._printed = status
            self._print(line(status))
            if news is not None:
                self._print(validation_line("validation", news))

    def validating(self, done: int, of: int) -> None:
        """Show how far a validation is; on a processor it can take minutes."""
        told = Text(f"validating: {done:,} of {of:,} puzzles")
        if self._moves:
            self._live.update(Group(self._drawn, told), refresh=True)
        elif time.monotonic() - self._printed_at >= _LINE_EVERY:
            self._print(told)

    def _is_new(self, validation: Validation | None) -> bool:
        shown = self._status.validation if self._status is not None else None
        return validation is not None and (shown is None or shown.step != validation.step)

    def warn(self, message: str) -> None:
        """A line that stays, above the picture."""
        self._print(Text(f"warning: {message}", style="bold yellow"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()
        if self._status is not None:
            if self._status is not self._printed:
                self._print(line(self._status))
            if self._status.best is not None:
                self._print(validation_line("best validation", self._status.best))

    def _print(self, text: Text) -> None:
        # One line of a log is one line, however narrow the terminal is thought to be.
        self._console.print(text, soft_wrap=True)
        self._printed_at = time.monotonic()


@final
class History:
    """All that a metric has been, in few points: when there are too many, pairs become one."""

    most = 128

    def __init__(self) -> None:
        self.points: list[float] = []
        self._stride = 1
        self._waiting: list[float] = []

    def add(self, value: float) -> None:
        if not math.isfinite(value):
            return
        self._waiting.append(value)
        if len(self._waiting) < self._stride:
            return
        self.points.append(_mean(self._waiting))
        self._waiting = []
        if len(self.points) == self.most:
            self.points = [_mean(self.points[i : i + 2]) for i in range(0, self.most, 2)]
            self._stride *= 2

    def curve(self, width: int) -> str:
        """The history as a line of little bars."""
        return bars(self.points, width)


def picture(
    status: Status, histories: dict[str, History], title: str, device: str, width: int
) -> RenderableType:
    """The run on a screen that is `width` characters wide."""
    bar = Table.grid(expand=True, padding=(0, 1))
    bar.add_column(ratio=1)
    bar.add_column(justify="right", style="bold")
    bar.add_row(
        ProgressBar(1, status.done, complete_style="cyan", finished_style="green"),
        f"{100 * status.done:.0f} %",
    )
    pace = Table.grid(expand=True, padding=(0, 1))
    pace.add_column(no_wrap=True)
    pace.add_column(no_wrap=True, justify="right")
    pace.add_row(f"step {_progress(status)}", _times(status))
    pace.add_row(f"{status.admitted:,} puzzles admitted", _speed(status))

    side_by_side = width >= _ROOM_FOR_TWO
    room = max(4, width - (70 if side_by_side else 40))  # what names and numbers leave for curves
    learning = _table("learning", "", "")
    for name, value in status.metrics.items():
        style = "" if math.isfinite(value) else "bold red"
        curve = Text(histories[name].curve(room), "cyan")
        learning.add_row(_words(name), Text(_number(name, value), style), curve)
    rates = _table("learning rate", "")
    for name, rate in status.learning_rates.items():
        rates.add_row(_words(name), f"{rate:.2e}")
    others: list[RenderableType] = [rates]
    if status.validation is not None:
        others = [_validation(status.validation, status.best), Text(), rates]

    body: RenderableType = Group(learning, Text(), *others)
    if side_by_side:
        sides = Table.grid(expand=True, padding=(0, 2))
        sides.add_column(ratio=1)
        sides.add_column()
        sides.add_row(learning, Group(*others))
        body = sides
    return Panel(
        Group(bar, pace, Text(), body),
        title=Text(title, "bold not dim"),
        title_align="left",
        subtitle=Text(device),
        subtitle_align="right",
        border_style="dim",
    )


def _validation(latest: Validation, best: Validation | None) -> Table:
    is_best = best is not None and best.step == latest.step
    table = _table("validation", "now ★" if is_best else "now", "best")
    for name, value in latest.scores.items():
        record = best.scores.get(name) if best is not None else None
        table.add_row(
            _words(name),
            Text(_number(name, value), "bold green" if is_best else ""),
            "" if record is None else _number(name, record),
        )
    table.add_row("step", f"{latest.step:,}", "" if best is None else f"{best.step:,}", style="dim")
    return table


def _table(*headings: str) -> Table:
    """A table of names and numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        table.add_column(heading, no_wrap=True, justify="left" if i == 0 else "right")
    return table


def line(status: Status) -> Text:
    """The run in one line, for a log."""
    metrics = [f"{_words(name)} {_number(name, x)}" for name, x in status.metrics.items()]
    start = f"step {_progress(status)} ({100 * status.done:.0f} %)"
    return Text(" · ".join([start, _times(status), *metrics, _speed(status)]))


def validation_line(what: str, validation: Validation) -> Text:
    """Scores in one line, for a log."""
    scores = [f"{_words(name)} {_number(name, x)}" for name, x in validation.scores.items()]
    return Text(f"{what} at step {validation.step:,}: " + ", ".join(scores), "bold")


def _progress(status: Status) -> str:
    return f"{status.step:,}" + (f" of {status.steps:,}" if status.steps else "")


def _times(status: Status) -> str:
    left = f", {_clock(status.seconds_left)} left" if status.done < 1 else ""
    return f"{_clock(status.elapsed)} gone{left}"


def _speed(status: Status) -> str:
    return f"{status.admitted_per_second:,.0f} puzzles/s · {status.ms_per_step:,.0f} ms a step"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _number(name: str, value: float) -> str:
    return f"{100 * value:.2f} %" if name.endswith("accuracy") else f"{value:#.4g}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
