"""What result files say, written down: `python benchmarks/results.py`.

`docs/RESULTS.md` and its figure, the cards of released weights, the table of the README; in
`docs/enso.md` what the document's runs come to here, how long chains take and what thinking is
worth, with a figure.

Scores are those of the released card (`benchmarks/release.py`); `curve.py`, `speed.py`,
`ablations.py`, `document.py`, `chains.py`, `langevin.py` and `rules.py` measured the rest.
"""

import json
from collections.abc import Callable
from typing import Any

import ablations
import chains
import curve
import document
import langevin
import release
import report
import rules
import speed
from ronri import loading
from ronri.reasoner import Budget
from ronri.training.release import size, touched

PAGE = report.ROOT / "docs" / "RESULTS.md"
# What we hold ourselves to: in one pass of 64 steps, and, checked, for at most 1,024 row-steps.
WANTED = {
    "everyday": (0.999, 1.0),
    "minimal": (0.999, 1.0),
    "kaggle3m": (0.999, 1.0),
    "clue17": (0.997, 0.9996),
    "hard": (0.85, 0.97),
}
# What we hold Enso to, in so many chains.
ENSO, ENSO_WANTED = Budget(steps=64, samples=8), {"everyday": 0.97}


def page() -> str:
    card, enso, *controls = map(card_of, ("trm", "enso", *langevin.ENCODERS))
    encoders = "".join(
        f"{made(one)}{touched(one)}\n\n{scores(one, nothing_wanted)}\n" for one in controls
    )
    longer, spent = report.kept("curve"), report.kept("speed")
    for one in (longer, *spent.values()):
        if one["weights_sha256"] != card["sha256"]:
            raise ValueError("curve and speed were measured with other weights: measure them again")
    return f"""# Results

Written by `python benchmarks/results.py` from the files in `benchmarks/results` and the cards of \
released weights. Each part names the command that measured it. Suites are those of \
[data.md](data.md); none of these numbers belongs beside those that others report on other puzzles.

## TRM on the suites

{made(card)} Scored by `python benchmarks/release.py`. One pass is one row without \
noise, views or check. \
Where thinking is verified, it ends as soon as a board passes the check, which knows the clues and \
the rules but no answers; samples after the first and views begin where the plain row has failed. \
Row-steps are the steps of all rows of a puzzle together. Boards are the argmax of what the \
network believes. Intervals are Wilson's, at 95 %, and milliseconds those of one puzzle on \
{card["device"]}, compilation on the way included. *Wanted* is the least that we hold ourselves \
to, in one pass of 64 steps and, checked, for at most {curve.ROW_STEPS:,} row-steps; \
what is less is bold. Samples depend on a seed, here 0.{touched(card)}

{scores(card, wanted)}
## Enso on the suites

{made(enso)} Scored and told as above; [enso.md](enso.md) says what chains are. Clues are pasted \
in, so that keeping them is no merit. *Wanted* is meant for {ENSO.samples} chains of \
{ENSO.steps} steps, where of {ENSO.samples} boards one that passes the check is taken; what we \
hoped for is 99 % of `everyday` and 95 % of `minimal`.{touched(enso)}

{scores(enso, wanted_of_enso)}
## Encoders on the suites

The controls of Enso, which answer at once, trained for as many minutes on the same puzzles. Told \
as above; clues are not pasted in. Their training was not stable, as [the log](LOG.md) tells: what \
one pass can do may be more.

{encoders}## Thinking longer

Hard puzzles that `trm` solves, against the row-steps spent on a puzzle on average. Where the \
check decides a puzzle may take {longer["row_steps"]:,}, in one pass {curve.ONE_PASS}. By `python \
benchmarks/curve.py --write`, weights `{longer["weights_sha256"][:12]}`.

![accuracy on hard puzzles against compute]({curve.FIGURE.name})

{curve.text(longer)}
## How long an answer takes

`trm`, by `python benchmarks/speed.py --write`, from clues in memory to boards in memory; one \
row, weights `{card["sha256"][:12]}`.

{speed.text(spent)}
## What each choice is worth

{ablations.text(report.kept("ablations"))}"""


def card_of(name: str) -> dict[str, Any]:
    return json.loads((loading.RELEASED / name / "card.json").read_text())


def made(card: dict[str, Any]) -> str:
    return (
        f"`{card['name']}`: {size(card)}, {card['minutes']:.2f} minutes of "
        f"training, compilation and validation included, on {card['processes']} × "
        f"{card['device']}, weights `{card['sha256'][:12]}`."
    )


def scores(card: dict[str, Any], wanted: Callable[[str, Budget], float | None]) -> str:
    head = (
        "suite", "puzzles", "halt", "steps", "samples", "views", "solved", "wanted", "interval",
        "errors", "row-steps", "ms",
    )  # fmt: skip
    rows = []
    for score in card["scores"]:
        low, high = score["puzzle_accuracy_ci95"]
        budget = score["budget"]
        solved, least = score["puzzle_accuracy"], wanted(score["data"], Budget(**budget))
        told = f"{100 * solved:.2f} %"
        rows.append(
            (
                f"`{score['data']}`",
                f"{score['n']:,}",
                budget["halt"],
                f"{budget['steps']}",
                f"{budget['samples']}",
                f"{budget['views']}",
                told if least is None or solved >= least else f"**{told}**",
                "" if least is None else f"{100 * least:.4g} %",
                f"{100 * low:.2f}–{100 * high:.2f} %",
                f"{score['errors']:,}",
                f"{score['row_steps_per_puzzle']:.1f}",
                f"{score['ms_per_puzzle']:.2f}",
            )
        )
    return report.table(head, rows)


def wanted(suite: str, budget: Budget) -> float | None:
    """The least we hold ourselves to, where this is the budget that it is meant for."""
    one_pass, checked = WANTED[suite]
    if budget.one_pass:
        return one_pass if budget.steps == 64 else None
    most = budget.steps * budget.samples * budget.views
    return checked if most == curve.ROW_STEPS else None


def wanted_of_enso(suite: str, budget: Budget) -> float | None:
    return ENSO_WANTED.get(suite) if budget == ENSO else None


def nothing_wanted(_suite: str, _budget: Budget) -> None:
    return None


def main() -> None:
    release.render()
    report.renew(document.PAGE, "document", document.page_text())
    report.renew(chains.PAGE, "chains", chains.text(report.kept("chains")))
    thought = report.kept(langevin.KEPT)
    report.renew(langevin.PAGE, "langevin", langevin.page_text(thought))
    langevin.draw(thought, langevin.FIGURE)
    report.renew(rules.PAGE, "rules", rules.text(report.kept("rules")))
    PAGE.write_text(page())
    curve.draw(report.kept("curve"), curve.FIGURE)


if __name__ == "__main__":
    main()
