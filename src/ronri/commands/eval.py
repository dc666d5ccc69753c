"""`ronri eval`"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from ronri.commands.output import print_json, progress_bar, terminal, warn

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ronri.evaluation.trials import Puzzles, Trial

Halt = Annotated[
    Literal["fixed", "own", "verified"],
    arg(
        help="When to stop: after all steps, when the reasoner itself says so, or when a board "
        "passes the check."
    ),
]
Limit = Annotated[int | None, arg(metavar="N", help="Only the first so many puzzles.")]
Seed = Annotated[int, arg(help="Of all randomness in thinking: noise and views.")]
Device = Annotated[
    str | None, arg(metavar="NAME", help="cpu, cuda, cuda:1, mps; the best there is if not given.")
]
Compile = Annotated[
    bool,
    arg(help="Compile networks first: about a minute, which pays where thinking takes longer."),
]
JsonTo = Annotated[
    str | None,
    arg(name="json", metavar="FILE", help="Write the result as JSON; - prints it, and only it."),
]


def evaluate(
    name: Annotated[
        Positional[str],
        arg(metavar="NAME", help="Released weights, exact, or the folder of a model or a run."),
    ],
    /,
    *,
    data: Annotated[str, arg(metavar="NAME", help="A suite, a set, a list or a named data set.")],
    steps: Annotated[
        int | None, arg(metavar="N", help="Steps of thinking; as many as in training if not given.")
    ] = None,
    samples: Annotated[
        int, arg(metavar="K", help="Trains of thought a puzzle, the first without noise.")
    ] = 1,
    views: Annotated[
        int, arg(metavar="V", help="Symmetric positions of each puzzle, the first as it is.")
    ] = 1,
    halt: Halt = "fixed",
    limit: Limit = None,
    seed: Seed = 0,
    weights: Annotated[
        Literal["ema", "raw"] | None,
        arg(help="Of a run: the moving average (if not given), or the weights as they were left."),
    ] = None,
    device: Device = None,
    compile: Compile = False,
    json_to: JsonTo = None,
    records: Annotated[
        Path | None, arg(metavar="FILE", help="Write one line of JSON for each puzzle.")
    ] = None,
    show: Annotated[
        int, arg(metavar="N", help="Show so many boards, wrong ones first and their cells marked.")
    ] = 0,
) -> int:
    """Score a reasoner on a data set. One pass with all its steps, unless you ask for more."""
    import json
    from dataclasses import replace

    from ronri.data.files import whole_file
    from ronri.evaluation.tables import trial_table
    from ronri.evaluation.trials import budgets, check_fits, diagnosis, hold
    from ronri.loading import load

    if show and json_to == "-":
        raise ValueError("--show is for people and --json - for programs: choose one")
    puzzles = opened(data, limit)
    loaded = load(
        name,
        which=weights or "ema",
        device=device,
        geometry=puzzles.geometry,
        compile=compile,
    )
    if weights is not None and loaded.weights != weights:
        others = f", only {loaded.weights} weights" if loaded.weights else ""
        raise ValueError(f"{name} has no {weights} weights{others}")
    check_fits(loaded, puzzles)
    [budget] = budgets(
        loaded.reasoner,
        steps=() if steps is None else (steps,),
        samples=(samples,),
        views=(views,),
        halt=halt,
    )
    # Files are opened first: a path that cannot be written to should cost no hours.
    listing = nullcontext() if records is None else whole_file(records)
    with json_written(json_to) as write_json, listing as lines:
        with progress_bar(f"{name} on {data}", len(puzzles.clues)) as advance:
            trial = hold(loaded, puzzles, budget, seed=seed, progress=advance)
        with loaded.as_compiled():
            trial = replace(trial, extra=diagnosis(loaded.reasoner, puzzles, seed=seed))
        write_json(trial.to_json())
        if lines is not None:
            for record in trial.lines():
                lines.write(json.dumps(record).encode() + b"\n")
    if json_to != "-":
        console = terminal()
        console.print(trial_table(trial))
        for index in _telling(trial, show):
            console.print(_board(trial, index))
    return 0


def opened(name: str, limit: int | None) -> "Puzzles":
    """The puzzles of that name; rows of a list that were left out are not passed over."""
    from ronri.data.sources import open_set
    from ronri.evaluation.trials import Puzzles

    with progress_bar(f"opening {name}", None):
        source = open_set(name)
    refused = source.header.provenance.get("refused")
    if refused is not None and source.path != Path(name):
        warn(f"{name}: rows left out: {refused}; `ronri data import` tells which")
    return Puzzles.of(name, source, limit)


@contextmanager
def json_written(where: str | None) -> Iterator[Callable[[dict[str, Any]], object]]:
    """A function that writes a result where the user wants it: in a file, printed, or nowhere."""
    import json

    from ronri.data.files import whole_file

    if where is None:
        yield lambda _: None
    elif where == "-":
        yield print_json
    else:
        with whole_file(where) as file:
            yield lambda result: file.write(json.dumps(result, indent=2).encode() + b"\n")


def _telling(trial: "Trial", count: int) -> list[int]:
    """Which puzzles to show: those that went wrong first, in the order of the data."""
    order = trial.records.solved.argsort(kind="stable")
    return [int(index) for index in order[:count]]


def _board(trial: "Trial", index: int) -> "RenderableType":
    """One board, and beside it, where it is wrong, the digits that belong there."""
    import numpy as np
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from ronri.sudoku.board import to_text
    from ronri.terminal.boards import draw

    clues, solution = trial.puzzles.clues[index], trial.puzzles.solutions[index]
    board, rating = trial.records.board[index], trial.puzzles.ratings[index]
    wrong = board != solution
    drawn = draw(board, clues, wrong=set(np.flatnonzero(wrong).tolist()))
    title = f"puzzle {index}" + ("" if np.isnan(rating) else f", rating {rating:.3g}")
    if not wrong.any():
        return Group(Text(), Text(f"{title}: solved", style="green"), drawn)
    changed = int((wrong & (clues > 0)).sum())
    told = f"not solved, {int(wrong.sum())} cells wrong"
    told += f", {changed} of them clues" if changed else ""
    beside = Table.grid(padding=(0, 3))
    beside.add_row(Text("answered", style="dim"), Text("belongs there", style="dim"))
    beside.add_row(drawn, Text(to_text(np.where(wrong, solution, np.uint8(0))), style="dim"))
    return Group(Text(), Text(f"{title}: {told}", style="red"), beside)
