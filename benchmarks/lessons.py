"""What went wrong in the document's first runs, once more: `python benchmarks/lessons.py`.

The small network of the document, `enso-mini4`, with one thing changed, on 4x4 boards and a
processor. Every arm has the same seeds and puzzles; averaged weights are scored on held-out ones.
`--write` keeps the result in `benchmarks/results/lessons.json` and renews the table in
`docs/enso.md`.
"""

import argparse
from dataclasses import dataclass, field
from typing import Any

import torch

import report
from ronri import registry
from ronri.evaluation.commit import commit
from ronri.evaluation.scores import wilson
from ronri.recipe import Recipe, changed, to_plain
from ronri.training.distributed import World
from ronri.training.material import gather
from ronri.training.run import Run

PAGE = report.ROOT / "docs" / "enso.md"
SEEDS = 3


@dataclass(frozen=True)
class Lesson:
    """One thing that the document got wrong first, or might have done otherwise."""

    what: str
    changes: dict[str, Any] = field(default_factory=dict)


def _model(**changes: Any) -> dict[str, Any]:
    return {"model": changes}


LESSONS = {
    "plain": Lesson("as it should be"),
    "no z encoder": Lesson("z is noise and knows nothing", _model(z_encoder=False)),
    "z not normalised, noise 1": Lesson(
        "z is so long that noise does not matter", _model(normalise=False, latent_noise=1.0)
    ),
    "energy is the length": Lesson("thinking makes the prediction small", _model(energy="norm")),
    "no constraint loss": Lesson("rules are only in thinking", _model(constraint_weight=0.0)),
    "VICReg on the prediction": Lesson(
        "nothing keeps encoders from collapsing", _model(vicreg_on="prediction")
    ),
    "warm-up longer than the run": Lesson(
        "the learning rate is never full", {"optim": {"warmup": 10_000, "warmup_part": 100.0}}
    ),
    # No mistake that the document found: it kept the weight of 1.
    "energy a hundredth of its weight": Lesson(
        "the board has more say in what is learned", _model(energy_weight=0.01)
    ),
}


def measure(name: str, seed: int, steps: int | None) -> dict[str, Any]:
    """Train one arm and score it, at every validation and at the end."""
    recipe: Recipe[Any] = changed(registry.recipe("enso-mini4"), LESSONS[name].changes)
    recipe = changed(recipe, {"seed": seed} | ({} if steps is None else {"steps": steps}))
    assert recipe.batch != "auto"
    material = gather(recipe, print)
    run = Run(recipe, World(0, 1, torch.device("cpu")), recipe.batch, material)
    validations = []
    while not run.over:
        run.update()
        run.tick(0.0)
        if run.step % recipe.validate_every == 0 or run.over:
            found = run.validate()
            alarms = list(run.reasoner.alarms(found.scores))
            validations.append({"step": run.step, **found.scores, "alarms": alarms})
    return {
        "lesson": name,
        "recipe": to_plain(recipe),
        "n": len(material.clues),
        "validations": validations,
    }


def rows(measured: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each arm: what its seeds solved together."""
    lines = []
    for name, lesson in LESSONS.items():
        seeds = [one for one in measured if one["lesson"] == name]
        last = [one["validations"][-1] for one in seeds]
        # What the document did first: the checkpoint of the lowest energy is called the best.
        by_energy = [min(one["validations"], key=lambda v: v["energy"]) for one in seeds]
        by_accuracy = [max(one["validations"], key=lambda v: v["puzzle_accuracy"]) for one in seeds]
        alarms = sum(bool(one["alarms"]) for one in last)
        lines.append(
            (
                name,
                lesson.what,
                *(_mean(last, key) for key in ("oracle", "zero", "prior", "puzzle_accuracy")),
                _mean(by_accuracy, "puzzle_accuracy"),
                _mean(by_energy, "puzzle_accuracy"),
                *(f"{_average(last, key):.3g}" for key in ("context_std", "target_std")),
                *(f"{_average(last, key):.3g}" for key in ("context_rank", "target_rank")),
                f"{alarms} of {len(seeds)}",
            )
        )
    return lines


HEAD = (
    "changed", "so that", "oracle z", "z = 0", "prior z", "thinking", "best by accuracy",
    "best by energy", "context std", "target std", "context RankMe", "target RankMe", "alarms",
)  # fmt: skip


def text(found: dict[str, Any]) -> str:
    measured = found["measured"]
    n, seeds = measured[0]["n"], len({one["recipe"]["seed"] for one in measured})
    low, high = wilson(n // 2, n)
    recipe = measured[0]["recipe"]
    return (
        f"{report.table(HEAD, rows(measured))}\n"
        f"Puzzles solved in percent, of {n} held-out 4x4 puzzles: the mean of {seeds} seeds, the "
        f"lowest and the highest (for one seed, near 50 %, the 95 % interval is "
        f"{100 * low:.0f}–{100 * high:.0f} %), after "
        f"{recipe['steps']:,} updates of {recipe['batch']}. *Thinking* is "
        f"{recipe['validation_steps']} steps of one chain without noise. *Best by* is the "
        f"checkpoint with the highest accuracy, or with the lowest energy of the truth. *Alarms*: "
        f"runs that were warned of a collapse at their end. By `python benchmarks/lessons.py "
        f"--write` at commit {report.version(found['commit'])}.\n"
    )


def _average(some: list[dict[str, Any]], key: str) -> float:
    return sum(one[key] for one in some) / len(some)


def _mean(some: list[dict[str, Any]], key: str) -> str:
    least, most = (100 * bound(one[key] for one in some) for bound in (min, max))
    return f"{100 * _average(some, key):.0f} ({least:.0f}–{most:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lessons", nargs="*", help="only some", metavar="LESSON")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, help="updates, if not the recipe's")
    parser.add_argument("--write", action="store_true", help="keep the result, renew the page")
    options = parser.parse_args()
    if options.write and (options.lessons or options.steps is not None):
        parser.error("what is kept is all of it, as the recipe says")
    measured, here = [], commit()
    for name in options.lessons or LESSONS:
        for seed in range(options.seeds):
            measured.append(measure(name, seed, options.steps))
            last = measured[-1]["validations"][-1]
            told = {key: value for key, value in last.items() if isinstance(value, float)}
            print(name, seed, {key: round(value, 3) for key, value in told.items()}, flush=True)
    if options.write:
        report.keep("lessons", {"commit": here, "measured": measured})
        report.renew(PAGE, "lessons", text(report.kept("lessons")))


if __name__ == "__main__":
    main()
