"""Release weights with their card: `python benchmarks/release.py RUN --name trm --recipe trm`.

`--rescore NAME` scores released weights again and renews their card; `--render NAME` writes the
card and the table of the README anew from what was scored.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import report
from ronri import loading
from ronri.data.sources import open_set
from ronri.data.splits import set_keys
from ronri.evaluation.trials import Puzzles, hold
from ronri.reasoner import Budget
from ronri.training.release import release, touched, write_card

PAGE = report.ROOT / "README.md"
SUITES = ("everyday", "minimal", "kaggle3m", "clue17", "hard")
# One pass: few steps, many, and as many of these as it wants. Then several samples; and what at
# most 1,024 row-steps a puzzle buy, where the check picks.
BUDGETS = (
    Budget(steps=16),
    Budget(steps=64),
    Budget(steps=64, halt="own"),
    Budget(steps=64, samples=8),
    Budget(steps=64, samples=4, views=4, halt="verified"),
)
# For those that take one step.
AT_ONCE = (
    Budget(steps=1),
    Budget(steps=1, views=16),
    Budget(steps=1, views=1024, halt="verified"),
)


def scores(folder: Path, suites: list[str], limit: int | None) -> list[dict[str, Any]]:
    loaded = loading.load(str(folder))
    found = []
    for suite in suites:
        puzzles = Puzzles.of(suite, open_set(suite), limit)
        for budget in AT_ONCE if loaded.reasoner.most_steps == 1 else BUDGETS:
            trial = hold(loaded, puzzles, budget, seed=0).to_json() | {"reasoner": folder.name}
            print(suite, budget, trial["puzzle_accuracy"], trial["errors"], flush=True)
            found.append(trial)
    return found


def shared(card: dict[str, Any], suites: list[str]) -> dict[str, int]:
    """How many puzzles of each suite share a split key with what was learned from."""
    learned = np.concatenate([set_keys(open_set(name)).split for name in card["data"]])
    return {suite: int(np.isin(set_keys(open_set(suite)).split, learned).sum()) for suite in suites}


def summary(card: dict[str, Any]) -> str:
    """The first screen's table: in one pass, and with the check."""
    scores = [score for score in card["scores"] if score["budget"]["halt"] != "own"]
    suites = list(dict.fromkeys(score["data"] for score in scores))
    ways = list(dict.fromkeys(Budget(**score["budget"]) for score in scores))
    found = {(score["data"], Budget(**score["budget"])): score for score in scores}
    rows = []
    for suite in suites:
        cells = [f"`{suite}`", f"{found[suite, ways[0]]['n']:,}"]
        for way in ways:
            low, high = (100 * bound for bound in found[suite, way]["puzzle_accuracy_ci95"])
            mean = 100 * found[suite, way]["puzzle_accuracy"]
            cells.append(f"{mean:.2f} % ({low:.2f}–{high:.2f})")
        rows.append(tuple(cells))
    head = (f"solved by `{card['name']}`", "puzzles", *map(_way, ways))
    commit = (card["commit"] or "unknown")[:7]
    cost = (
        f"{card['parameters']:,} parameters, trained for {card['minutes']:.2f} minutes, "
        "compilation and validation included, "
        f"on {card['processes']} × {card['device']} at commit `{commit}`"
    )
    where = f"src/ronri/weights/{card['name']}/card.md"
    return (
        f"{report.table(head, rows)}\n{cost}: [the card]({where}). In brackets the 95 % interval. "
        f"Checked is what `ronri eval` does with {_flags(ways[-1])}.{touched(card)}\n"
    )


def _flags(budget: Budget) -> str:
    return (
        f"`--steps {budget.steps} --samples {budget.samples} --views {budget.views} "
        f"--halt {budget.halt}`"
    )


def _way(budget: Budget) -> str:
    if budget.one_pass:
        return f"one pass, {budget.steps} steps"
    return f"checked, up to {budget.samples * budget.views} tries of {budget.steps} steps"


def render(name: str) -> None:
    """Write the card and the table of the README from what was scored."""
    out = loading.RELEASED / name
    card = json.loads((out / "card.json").read_text())
    write_card(card, out)
    report.renew(PAGE, "scores", summary(card))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="the folder of a training run")
    parser.add_argument("--name", help="what the weights are called")
    parser.add_argument("--recipe", help="the recipe and flags that made the run")
    parser.add_argument("--out", type=Path, help="where to write, if not among released weights")
    parser.add_argument("--rescore", metavar="NAME", help="released weights to score again")
    parser.add_argument("--render", metavar="NAME", help="a card to write anew, without scoring")
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--limit", type=int, help="only the first puzzles of each suite")
    options = parser.parse_args()
    if options.render:
        render(options.render)
        return
    if options.rescore:
        out = loading.RELEASED / options.rescore
        card = json.loads((out / "card.json").read_text())
    else:
        out = options.out or loading.RELEASED / options.name
        card = release(
            options.run,
            out,
            name=options.name,
            recipe=options.recipe,
        )
        # Before it is scored, too: if that is cut short, `--rescore` can go on.
        write_card(card, out)
    card["shared"] = shared(card, options.suites)
    card["scores"] = scores(out, options.suites, options.limit)
    write_card(card, out)


if __name__ == "__main__":
    main()
