"""Release weights with their card: `python benchmarks/release.py RUN --name trm --recipe trm`.

`--rescore NAME` scores released weights again and renews their card.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.trials import Puzzles, hold
from ronri.reasoner import Budget
from ronri.training.release import release, write_card

SUITES = ("everyday", "minimal", "kaggle3m", "clue17", "hard")
# One pass: as many steps as a training slot has, and four times as many.
BUDGETS = (Budget(steps=16), Budget(steps=64))


def scores(folder: Path, suites: list[str], limit: int | None) -> list[dict[str, Any]]:
    loaded = loading.load(str(folder))
    found = []
    for suite in suites:
        puzzles = Puzzles.of(suite, open_set(suite), limit)
        for budget in BUDGETS:
            trial = hold(loaded, puzzles, budget, seed=0).to_json() | {"reasoner": folder.name}
            print(suite, budget, trial["puzzle_accuracy"], trial["errors"], flush=True)
            found.append(trial)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="the folder of a training run")
    parser.add_argument("--name", help="what the weights are called")
    parser.add_argument("--recipe", help="the recipe and flags that made the run")
    parser.add_argument("--out", type=Path, help="where to write, if not among released weights")
    parser.add_argument("--rescore", metavar="NAME", help="released weights to score again")
    parser.add_argument("--commit", default=commit(), help="the commit that the run was made at")
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--limit", type=int, help="only the first puzzles of each suite")
    options = parser.parse_args()
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
            commit=options.commit,
        )
    card["scores"] = scores(out, options.suites, options.limit)
    write_card(card, out)


if __name__ == "__main__":
    main()
