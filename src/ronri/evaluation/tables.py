"""Trials on the screen: one in detail, several side by side, and two against each other."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ronri.evaluation.paired import Pair, pairs
from ronri.evaluation.trials import Trial
from ronri.reasoner import Budget

# Numbers of operations have names for every third power of ten.
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def percent(fraction: float) -> str:
    """A fraction in percent; only what is whole is called 100."""
    shown = f"{fraction:.2%}"
    return ">99.99%" if shown == "100.00%" and fraction < 1 else shown


def operations(flops: float | None) -> str:
    """'1.52 GFLOP'; a dash where nothing was counted."""
    if flops is None:
        return "–"
    power = 0
    while flops >= 1000 and power < len(_PREFIXES) - 1:
        flops, power = flops / 1000, power + 1
    return f"{flops:.3g} {_PREFIXES[power]}FLOP"


def _milliseconds(time: float) -> str:
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def thinking(budget: Budget) -> str:
    """A budget in words: '16 steps, 4 samples'."""
    counts = {"step": budget.steps, "sample": budget.samples, "view": budget.views}
    return ", ".join(
        f"{n:,} {what}{'s' if n > 1 else ''}"
        for what, n in counts.items()
        if n > 1 or what == "step"
    )


def _accuracy(trial: Trial) -> str:
    """With the interval that holds the truth 95 times in 100."""
    low, high = trial.scores.puzzle_accuracy_ci95
    return f"{percent(trial.scores.puzzle_accuracy)} ({100 * low:.2f}–{100 * high:.2f})"


def _errors(n: int) -> str:
    return "1 error" if n == 1 else f"{n:,} errors"


def trial_table(trial: Trial) -> RenderableType:
    """What `ronri eval` shows."""
    found = trial.scores
    weights = f", {trial.weights} weights" if trial.weights else ""
    title = (
        f"{trial.reasoner} on {trial.puzzles.name}: {found.n:,} puzzles, "
        f"{thinking(trial.budget)}, halt {trial.budget.halt}{weights}, "
        f"{trial.dtype} on {trial.device}, seed {trial.seed}"
    )
    known = Table.grid(padding=(0, 2))
    known.add_row("puzzle accuracy", f"{_accuracy(trial)}, {_errors(found.errors)}", style="bold")
    known.add_row("cell accuracy", f"{percent(found.cell_accuracy)} of empty cells")
    known.add_row("constraint satisfaction", f"{percent(found.constraint_satisfaction)} of units")
    known.add_row("clues kept", f"{percent(found.clues_kept)} of puzzles")
    known.add_row("verified", f"{percent(found.verified)} of puzzles")
    known.add_row(
        "thinking",
        f"{found.mean_steps:.1f} steps to the board, "
        f"{found.row_steps_per_puzzle:.1f} row-steps a puzzle",
    )
    known.add_row("time", f"{_milliseconds(found.ms_per_puzzle)} ms a puzzle, from clues to board")
    known.add_row("work", f"{operations(trial.flops_per_puzzle)} a puzzle")
    for name, value in trial.extra.items():
        known.add_row(name, f"{value:.4g}")
    return Group(Text(title, style="bold"), known, Text(), _strata(trial))


def _strata(trial: Trial) -> Table:
    table = _table("rating", "puzzles", "puzzle accuracy", "errors", left=1)
    for stratum in trial.strata:
        shown = percent(stratum.puzzle_accuracy)
        table.add_row(stratum.label, f"{stratum.n:,}", shown, f"{stratum.errors:,}")
    return table


def comparison(trials: Sequence[Trial]) -> RenderableType:
    """What `ronri compare` shows: for each data set all trials, then reasoners two by two."""
    parts: list[RenderableType] = []
    for name in dict.fromkeys(trial.puzzles.name for trial in trials):
        here = [trial for trial in trials if trial.puzzles.name == name]
        parts += [Text(f"{name}: {here[0].scores.n:,} puzzles", style="bold"), _trials(here)]
        if tested := pairs(here):
            parts += [Text(), _pairs(tested)]
        parts.append(Text())
    return Group(*parts)


def _trials(trials: Sequence[Trial]) -> Table:
    table = _table(
        "reasoner",
        "thinking",
        "halt",
        "puzzle accuracy (95%)",
        "errors",
        "cells",
        "row-steps",
        "ms",
        "work",
        left=3,
    )
    for trial in trials:
        found = trial.scores
        table.add_row(
            Text(trial.reasoner),
            thinking(trial.budget),
            trial.budget.halt,
            _accuracy(trial),
            f"{found.errors:,}",
            percent(found.cell_accuracy),
            f"{found.row_steps_per_puzzle:,.1f}",
            _milliseconds(found.ms_per_puzzle),
            operations(trial.flops_per_puzzle),
        )
    return table


def _pairs(tested: Sequence[Pair]) -> Table:
    table = _table("first", "second", "only first", "only second", "p", left=2)
    for pair in tested:
        table.add_row(
            Text(f"{pair.first.reasoner} ({thinking(pair.first.budget)})"),
            Text(f"{pair.second.reasoner} ({thinking(pair.second.budget)})"),
            f"{pair.test.only_first:,}",
            f"{pair.test.only_second:,}",
            f"{pair.test.p:.2g}",
        )
    return table


def _table(*columns: str, left: int) -> Table:
    """A table without lines; the first `left` columns are words, the others numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", no_wrap=True)
    return table
