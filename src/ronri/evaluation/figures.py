"""Figures: puzzle accuracy against what it cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, NullLocator, PercentFormatter

from ronri.evaluation.trials import Trial

# Okabe and Ito's colours, which colour-blind people can tell apart, without the pale yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Markers tell reasoners apart where there are no colours.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Lines tell apart how one reasoner spends its budget.
LINES = ("-", "--", ":", "-.")


@final
@dataclass(frozen=True)
class Cost:
    """What a horizontal axis shows."""

    label: str
    of: Callable[[Trial], float | None]
    # Of the logarithm. Row-steps come in doublings, and are written out.
    base: int


COSTS = (
    Cost("row-steps per puzzle", lambda trial: trial.scores.row_steps_per_puzzle, base=2),
    Cost("FLOP per puzzle", lambda trial: trial.flops_per_puzzle, base=10),
)


@final
@dataclass(frozen=True)
class Curve:
    """Trials of one reasoner that differ in one dimension of the budget (and in the data)."""

    label: str
    colour: str
    marker: str
    line: str
    trials: list[Trial]


def draw(trials: Sequence[Trial], folder: Path) -> list[Path]:
    """Write accuracy against compute as PNG and SVG; a row of panels for each data set."""
    costs = [cost for cost in COSTS if any(cost.of(trial) is not None for trial in trials)]
    data = {trial.puzzles.name: trial.scores.n for trial in trials}
    curves = curves_of(trials)
    with mpl.rc_context(
        {
            # Large enough to be read where a page shows the figure at half its size.
            "font.size": 12,
            "axes.spines.right": False,
            "axes.spines.top": False,
            # The same trials make the same file.
            "svg.hashsalt": "ronri",
        }
    ):
        columns = 2 * len(costs)
        lines = -(-len(curves) // columns)
        size = (4.2 * len(costs) + 0.6, 3.0 * len(data) + 0.3 * lines + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(data), len(costs), sharex="col", sharey="row", squeeze=False)
        for row, (name, n) in zip(panels, data.items(), strict=True):
            for axes, cost in zip(row, costs, strict=True):
                for curve in curves:
                    here = [trial for trial in curve.trials if trial.puzzles.name == name]
                    _draw_curve(axes, curve, here, cost)
                axes.grid(axis="y", color="0.9")
            _dress_accuracy(row[0])
            row[0].set_title(f"{name}, {n:,} puzzles", loc="left")
        for column, cost in zip(panels.T, costs, strict=True):
            _dress_cost(column[-1], cost)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside upper left",
            ncols=columns,
            frameon=False,
            handlelength=3,
            columnspacing=1.5,
        )
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "accuracy.png", folder / "accuracy.svg"]
        figure.savefig(files[0], dpi=200)
        figure.savefig(files[1], metadata={"Date": None})
    return files


def curves_of(trials: Sequence[Trial]) -> list[Curve]:
    """One curve a reasoner, or several where more than one dimension of its budget varies.

    A curve runs along the first dimension that varies; the others tell its label and its line.
    """
    found = []
    names = list(dict.fromkeys(trial.reasoner for trial in trials))
    for number, name in enumerate(names):
        own = [trial for trial in trials if trial.reasoner == name]
        varying = [
            dimension
            for dimension in ("steps", "samples", "views")
            if len({getattr(trial.budget, dimension) for trial in own}) > 1
        ]
        ways: dict[tuple[int, ...], list[Trial]] = {}
        for trial in own:
            way = tuple(getattr(trial.budget, dimension) for dimension in varying[1:])
            ways.setdefault(way, []).append(trial)
        for line, (way, members) in enumerate(ways.items()):
            words = [
                f"{n} {dimension[:-1] if n == 1 else dimension}"
                for dimension, n in zip(varying[1:], way, strict=True)
            ]
            found.append(
                Curve(
                    label=", ".join([_short(name, names), *words]),
                    colour=COLOURS[number % len(COLOURS)],
                    marker=MARKERS[number % len(MARKERS)],
                    line=LINES[line % len(LINES)],
                    trials=members,
                )
            )
    return found


def _short(name: str, names: Sequence[str]) -> str:
    """The last part of a path, if that is enough to know it by."""
    last = [Path(other).name for other in names]
    return Path(name).name if last.count(Path(name).name) == 1 else name


def _draw_curve(axes: Axes, curve: Curve, trials: Sequence[Trial], cost: Cost) -> None:
    x, y, below, above = [], [], [], []
    for trial in trials:
        spent = cost.of(trial)
        if spent is None:
            continue
        accuracy, (low, high) = trial.scores.puzzle_accuracy, trial.scores.puzzle_accuracy_ci95
        x.append(spent)
        y.append(accuracy)
        below.append(accuracy - low)
        above.append(high - accuracy)
    axes.errorbar(
        x,
        y,
        yerr=(below, above),
        label=curve.label,
        color=curve.colour,
        marker=curve.marker,
        linestyle=curve.line,
        linewidth=1.8,
        markersize=6,
        elinewidth=1,
        capsize=2.5,
    )


def _dress_accuracy(axes: Axes) -> None:
    """The vertical axis of a row of panels: in percent, with room for markers at the ends."""
    axes.set_ylabel("puzzle accuracy")
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    low, high = axes.get_ylim()
    room = 0.05 * (high - low)
    axes.set_ylim(max(low, -room), min(high, 1 + room))


def _dress_cost(axes: Axes, cost: Cost) -> None:
    """The horizontal axis of a column of panels."""
    axes.set_xlabel(cost.label)
    axes.set_xscale("log", base=cost.base)
    axes.xaxis.set_minor_formatter(NullFormatter())
    if cost.base == 2:
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        low, high = axes.get_xlim()
        if high < 30 * low:
            # Powers of ten alone would leave the axis almost without numbers.
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
