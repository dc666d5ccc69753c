"""`ronri compare`"""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ronri.commands.eval import Compile, Device, Halt, JsonTo, Limit, Seed, json_written, opened
from ronri.commands.output import progress_bar, terminal


def compare(
    names: Annotated[
        Positional[tuple[str, ...]],
        arg(metavar="NAME", help="Reasoners: released weights, exact, folders of models or runs."),
    ],
    /,
    *,
    data: Annotated[
        tuple[str, ...], arg(metavar="NAME", help="Suites, sets, lists or named data sets.")
    ],
    steps: Annotated[
        tuple[int, ...],
        arg(metavar="N", help="Steps of thinking, one number or several; as in training if none."),
    ] = (),
    samples: Annotated[
        tuple[int, ...], arg(metavar="K", help="Trains of thought a puzzle, likewise.")
    ] = (1,),
    views: Annotated[
        tuple[int, ...], arg(metavar="V", help="Symmetric positions of each puzzle, likewise.")
    ] = (1,),
    halt: Halt = "fixed",
    limit: Limit = None,
    seed: Seed = 0,
    device: Device = None,
    compile: Compile = False,
    out: Annotated[Path, arg(metavar="FOLDER", help="Where the figures go.")] = Path("compare"),
    json_to: JsonTo = None,
) -> int:
    """Score reasoners on the same puzzles: a table, paired tests, accuracy against compute.

    Every number of steps is tried with every number of samples and views. Two reasoners are tested
    against each other with the largest budget of each.
    """
    from ronri.evaluation.figures import draw
    from ronri.evaluation.paired import pairs
    from ronri.evaluation.tables import comparison, thinking
    from ronri.evaluation.trials import budgets, check_fits, hold
    from ronri.loading import load

    if not names or not data:
        raise ValueError("name at least one reasoner, and after --data at least one data set")
    # Everything is opened before anything is scored: a name that is wrong should cost no hours.
    entrants = []
    for puzzles in [opened(name, limit) for name in dict.fromkeys(data)]:
        for name in dict.fromkeys(names):
            loaded = load(name, device=device, geometry=puzzles.geometry, compile=compile)
            check_fits(loaded, puzzles)
            for budget in budgets(
                loaded.reasoner, steps=steps, samples=samples, views=views, halt=halt
            ):
                entrants.append((loaded, puzzles, budget))
    out.mkdir(parents=True, exist_ok=True)
    with json_written(json_to) as write_json:
        trials = []
        for loaded, puzzles, budget in entrants:
            what = f"{loaded.name} on {puzzles.name}, {thinking(budget)}"
            with progress_bar(what, len(puzzles.clues)) as advance:
                trials.append(hold(loaded, puzzles, budget, seed=seed, progress=advance))
        figures = draw(trials, out)
        write_json(
            {
                "trials": [trial.to_json() for trial in trials],
                "pairs": [pair.to_json() for pair in pairs(trials)],
                "figures": [str(figure) for figure in figures],
            }
        )
    if json_to != "-":
        console, table = terminal(), comparison(trials)
        # Lines that are too long for the screen wrap there; no number is cut off.
        endless = console.options.update(max_width=10_000)
        console.width = max(console.width, console.measure(table, options=endless).maximum)
        console.print(table)
        console.print(f"figures: {', '.join(map(str, figures))}", markup=False)
    return 0
