"""Release weights with their card: `python benchmarks/release.py RUN --name trm --recipe trm`.

`--rescore NAME` scores released weights again, on all suites or some, and renews their card;
`--render` writes all cards and the table of the README anew from what was scored.
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
from ronri.training.release import release, size, touched, write_card

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


def merged(before: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Scores with those of some suites measured again, suites in their usual order."""
    again = {score["data"] for score in found}
    every = [score for score in before if score["data"] not in again] + found
    order = dict(zip(SUITES, range(len(SUITES)), strict=True))
    return sorted(every, key=lambda score: order.get(score["data"], len(order)))


def shared(card: dict[str, Any], suites: list[str]) -> dict[str, int]:
    """How many puzzles of each suite share a split key with what was learned from."""
    learned = np.concatenate([set_keys(open_set(name)).split for name in card["data"]])
    return {suite: int(np.isin(set_keys(open_set(suite)).split, learned).sum()) for suite in suites}


def cards() -> list[dict[str, Any]]:
    """Those of all released weights: TRM's, whose scores are the highest; controls at the end."""
    found = [json.loads(path.read_text()) for path in loading.RELEASED.glob("*/card.json")]
    order = {"trm": 0, "encoder": 2}
    return sorted(found, key=lambda card: (order.get(card["reasoner"], 1), card["name"]))


def summary(cards: list[dict[str, Any]]) -> str:
    """The first screen's table: what each solves at once, and with more thinking."""
    sizes = {(score["data"], score["n"]) for card in cards for score in card["scores"]}
    if len(sizes) > len(dict(sizes)):
        raise ValueError(f"cards were scored on different numbers of puzzles: {sorted(sizes)}")
    suites = {score["data"]: score["n"] for card in cards for score in card["scores"]}
    rows, notes = [], []
    for card in cards:
        found = {(score["data"], Budget(**score["budget"])): score for score in card["scores"]}
        for budget in dict.fromkeys(budget for _, budget in found):
            if budget.halt != "own":
                told = (_share(found.get((suite, budget))) for suite in suites)
                rows.append((f"`{card['name']}`, {_way(budget)}", *told))
        notes.append(
            f"- `{card['name']}`: {size(card)}, trained for "
            f"{card['minutes']:.2f} minutes, compilation and validation included, on "
            f"{card['processes']} × {card['device']} at commit {report.version(card['commit'])}: "
            f"[the card](src/ronri/weights/{card['name']}/card.md).{touched(card)}\n"
        )
    head = ("solved, in percent", *(f"`{suite}` ({n:,})" for suite, n in suites.items()))
    return (
        f"{report.table(head, rows)}\nIn brackets the 95 % interval. One pass has no noise, no "
        f"views and no check; of several boards one that passes the check is taken, else the "
        f"surest. Checked is what `ronri eval` does with {_flags(BUDGETS[-1])}, or at once with "
        f"{_flags(AT_ONCE[-1])}. – means that it was not scored.\n"
        f"\n{''.join(notes)}"
    )


def _share(score: dict[str, Any] | None) -> str:
    if score is None:
        return "–"
    low, high = (100 * bound for bound in score["puzzle_accuracy_ci95"])
    return f"{100 * score['puzzle_accuracy']:.2f} ({low:.2f}–{high:.2f})"


def _flags(budget: Budget) -> str:
    return (
        f"`--steps {budget.steps} --samples {budget.samples} --views {budget.views} "
        f"--halt {budget.halt}`"
    )


def _way(budget: Budget) -> str:
    steps = "at once" if budget.steps == 1 else f"{budget.steps} steps"
    if budget.one_pass:
        return steps if budget.steps == 1 else f"one pass, {steps}"
    many = budget.samples * budget.views
    if budget.halt == "verified":
        return f"checked, up to {many:,} tries" + ("" if budget.steps == 1 else f" of {steps}")
    return f"{many:,} {'samples' if budget.views == 1 else 'views'}, {steps}"


def render() -> None:
    """Write cards and the table of the README from what was scored."""
    for card in cards():
        write_card(card, loading.RELEASED / card["name"])
    report.renew(PAGE, "scores", summary(cards()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="the folder of a training run")
    parser.add_argument("--name", help="what the weights are called")
    parser.add_argument("--recipe", help="the recipe and flags that made the run")
    parser.add_argument("--out", type=Path, help="where to write, if not among released weights")
    parser.add_argument("--rescore", metavar="NAME", help="released weights to score again")
    parser.add_argument("--render", action="store_true", help="write cards anew, without scoring")
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--limit", type=int, help="only the first puzzles of each suite")
    options = parser.parse_args()
    if options.render:
        render()
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
    card["shared"] |= shared(card, options.suites)
    card["scores"] = merged(card["scores"], scores(out, options.suites, options.limit))
    write_card(card, out)


if __name__ == "__main__":
    main()
