"""From a run to released weights: the best averaged ones, rounded to bfloat16, and their card.

A card says what a stranger needs to know before using weights: what they learned from, by which
recipe, at what cost, and how they score. `card.json` holds the facts, `card.md` is written from it.
"""

import json
from pathlib import Path
from typing import Any

import torch

from ronri import loading, registry
from ronri.data.sources import TRAINING
from ronri.recipe import Recipe, from_plain
from ronri.training.checkpoints import Checkpoints, read_snapshot


def release(run: Path, out: Path, *, name: str, recipe: str) -> dict[str, Any]:
    """Write a model from the best checkpoint of a run; returns its card, without scores yet."""
    checkpoints = Checkpoints(run)
    best, last = checkpoints.best(), checkpoints.latest(_complain)
    if best is None or last is None:
        raise ValueError(f"{run} has no validated checkpoint: train it until it has one")
    snapshot = read_snapshot(best)
    facts = snapshot.facts
    entry = registry.find(facts["recipe"]["reasoner"])
    settings: Recipe[Any] = from_plain(entry.config, facts["recipe"])
    reasoner = entry.build(settings.model, settings.geometry)
    weights = {
        key.removeprefix("ema."): value
        for key, value in snapshot.tensors.items()
        if key.startswith("ema.")
    }
    # The whole run is the cost, also if its best moment came before the end.
    minutes = facts["processes"] * last.facts["seconds"] / 60 + facts["ancestors_minutes"]
    sha256 = loading.save(
        out,
        kind=settings.reasoner,
        config=settings.model,
        geometry=settings.geometry,
        weights=weights,
        which="ema",
        minutes=minutes,
        dtype=torch.bfloat16,
    )
    return {
        "name": name,
        "reasoner": settings.reasoner,
        "board": settings.board,
        "parameters": sum(weight.numel() for weight in reasoner.parameters()),
        "trained": sum(w.numel() for w in reasoner.parameters() if w.requires_grad),
        "sha256": sha256,
        "bytes": (out / "weights.safetensors").stat().st_size,
        "recipe": recipe,
        "settings": facts["recipe"],
        "commit": facts["commit"],
        "data": facts["data"],
        "steps": snapshot.step,
        "steps_in_run": last.step,
        "batch": facts["batch"],
        "admitted_puzzles": facts["admitted"],
        "minutes": minutes,
        "device": facts["device"],
        "processes": facts["processes"],
        "validation": facts["validation"],
        "shared": {},
        "scores": [],
    }


def size(card: dict[str, Any]) -> str:
    """How many numbers it has, and how many of them gradients move, if not all."""
    every, trained = card["parameters"], card["trained"]
    return f"{every:,} parameters" + ("" if every == trained else f" ({trained:,} trained)")


def _complain(line: str) -> None:
    raise ValueError(line)


def write_card(card: dict[str, Any], out: Path) -> None:
    """Write both forms of a card."""
    (out / "card.json").write_text(json.dumps(card, indent=2) + "\n")
    (out / "card.md").write_text(card_text(card))


def card_text(card: dict[str, Any]) -> str:
    """A card for people."""
    data = "\n".join(
        f"| `{name}` | {learned:,} | {held_out:,} |"
        for name, (learned, held_out) in card["data"].items()
    )
    mixed = card["settings"]["data"]
    rows = "\n".join(_score_row(score) for score in card["scores"])
    machine = card["device"] if card["processes"] == 1 else f"{card['processes']} {card['device']}"
    return f"""# {card["name"]}

A reasoner of kind `{card["reasoner"]}` for {card["board"]} boards: {size(card)}, \
the moving average of its weights rounded to bfloat16 \
({card["bytes"] / 1e6:,.2f} MB), and scored as rounded.

Made by `ronri train {card["recipe"]}` at commit `{card["commit"]}`: the weights after \
{card["steps"]:,} of {card["steps_in_run"]:,} updates of {card["batch"]} slots, the best by \
validation; {card["admitted_puzzles"]:,} puzzles begun by then. The run took \
{card["minutes"]:.2f} minutes on {machine}, compilation and validation included.

## Learned from

| set | puzzles to learn from | held out |
| --- | ---: | ---: |
{data}

Mixed as {_parts(mixed["train"])}, every puzzle in a new symmetric position each time.\
{_early(mixed)}

## Scores

One pass means one row, no noise, no symmetric views, no check. Every board is the argmax of what \
the network believes: {_clues(card)} nothing is searched or repaired. The interval is \
Wilson's, at 95 %. {_shared(card["shared"])}{touched(card)}

Thinking halts after a fixed number of steps, when the network says so itself, or when a board \
passes the check of clues and rules (verified); there, samples after the first and views begin \
where the plain row has failed. Row-steps are the steps of all rows of a puzzle together. What has \
more than one sample or view, or is verified, is test-time compute; the rest is one pass. Of \
several boards one that passes the check is taken, else the one of which the network is surest.

| suite | puzzles | halt | steps | samples | views | solved | interval | errors | row-steps | ms \
| GFLOP |
| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |
{rows}

Milliseconds and floating-point operations are those of one puzzle, on {_devices(card["scores"])}; \
what had to be compiled on the way is in the milliseconds, too.

Weights: SHA-256 `{card["sha256"]}`. All settings are in `card.json`; \
`python benchmarks/release.py --rescore {card["name"]}` scores these weights again.
"""


def _clues(card: dict[str, Any]) -> str:
    """Whose merit it is that clues are kept."""
    if registry.find(card["reasoner"]).clues_given:
        return "clues are pasted in, so that keeping them is no merit; apart from that"
    return "clues are not pasted in,"


def _parts(mixture: list[str]) -> str:
    return ", ".join(f"`{part}`" for part in mixture)


def _early(data: dict[str, Any]) -> str:
    """How the mixture began, if otherwise. Settings of older runs do not know of that."""
    if not data.get("early"):
        return ""
    return (
        f" At the very beginning: {_parts(data['early'])}; over the first "
        f"{100 * data['early_part']:g} % of the run it moved from there to the mixture above."
    )


def _shared(shared: dict[str, int]) -> str:
    """What was learned from and is in the suites, too, up to symmetry."""
    if not any(shared.values()):
        return "No puzzle of these suites could be seen in training, not even in another position."
    leaks = ", ".join(f"{n:,} of `{suite}`" for suite, n in shared.items() if n)
    return f"BEWARE: puzzles that could be seen in training, up to symmetry: {leaks}."


def touched(card: dict[str, Any]) -> str:
    """Which suites are no untouched tests, as errors there suggested what to learn from."""
    return "".join(
        f" `{card['name']}` learned from `{name}`, which was made because earlier weights erred on "
        f"{' and '.join(f'`{suite}`' for suite in TRAINING[name].suggested_by)}: what it solves "
        f"there is no untouched test."
        for name in card["data"]
        if name in TRAINING and TRAINING[name].suggested_by
    )


def _devices(scores: list[dict[str, Any]]) -> str:
    return " and ".join(sorted({score["device"] for score in scores})) or "no device yet"


def _score_row(score: dict[str, Any]) -> str:
    low, high = score["puzzle_accuracy_ci95"]
    budget = score["budget"]
    return (
        f"| `{score['data']}` | {score['n']:,} | {budget['halt']} | {budget['steps']} | "
        f"{budget['samples']} | {budget['views']} | "
        f"{100 * score['puzzle_accuracy']:.2f} % | {100 * low:.2f}–{100 * high:.2f} % | "
        f"{score['errors']:,} | {score['row_steps_per_puzzle']:.1f} | "
        f"{score['ms_per_puzzle']:.2f} | {_few_digits(score['flops_per_puzzle'] / 1e9)} |"
    )


def _few_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"
