"""Latents while they are being learned: `python benchmarks/latents.py [--write]`, on a processor.

Trains `enso-mini6` and looks, again and again, at the latents of held-out puzzles after thinking:
where those of right digits lie and those of wrong ones, what latents are worth that have not moved,
and how representations spread. `--write` keeps the result and draws `docs/enso-latents.svg`.
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import report
from ronri import registry
from ronri.data import chance
from ronri.evaluation.commit import commit
from ronri.evaluation.figures import COLOURS
from ronri.reasoner import Noise
from ronri.recipe import Recipe, changed
from ronri.training.distributed import World
from ronri.training.material import Material, gather
from ronri.training.run import Run

FIGURE = report.ROOT / "docs" / "enso-latents.svg"
# Updates after which latents are drawn, and those between two readings.
SHOWN = (0, 50, 150, 700)
EVERY = 50
PUZZLES, POINTS = 24, 400
ROWS = {"oracle": "oracle z", "puzzle_accuracy": "thinking", "zero": "z = 0", "prior": "prior z"}
MONITORS = ("context_std", "target_std", "context_rank", "target_rank")


@torch.no_grad()
def latents(run: Run, material: Material) -> dict[str, Any]:
    """Where latents of empty cells lie after thinking, on their two main axes."""
    reasoner = run.reasoner.eval()
    clues = torch.tensor(material.clues[:PUZZLES])
    solutions = torch.tensor(material.solutions[:PUZZLES])
    quiet = torch.zeros(len(clues), dtype=torch.bool)
    with run.ema.copied_into(reasoner):
        state = reasoner.begin(clues, Noise(torch.arange(len(clues)), quiet, silent=True))
        for _ in range(run.recipe.validation_steps):
            state, _ = reasoner.advance(state)
    reasoner.train()
    size = run.recipe.geometry.size
    z = state.z.view(len(clues), -1, size, state.z.shape[-1])
    right = solutions[:, :, None] == torch.arange(1, size + 1)
    empty = (clues == 0)[:, :, None].expand_as(right)
    z, right = z[empty], right[empty]
    centred = z - z.mean(dim=0)
    axes = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
    # Right digits to the right.
    axes = axes * torch.sign(centred[right].mean(dim=0) @ axes.T)[:, None]
    some = chance.permutations(torch.tensor([0]), len(z))[0, :POINTS]
    points = (centred @ axes.T)[some]
    return {
        "step": run.step,
        "points": [[round(float(x), 3) for x in point] for point in points],
        "right": right[some].int().tolist(),
    }


def measure(changes: dict[str, Any]) -> dict[str, Any]:
    recipe: Recipe[Any] = changed(registry.recipe("enso-mini6"), changes)
    assert recipe.batch != "auto"
    assert recipe.steps is not None
    material, here = gather(recipe, print), commit()
    run = Run(recipe, World(0, 1, torch.device("cpu")), recipe.batch, material)
    shown, readings = [latents(run, material)], []
    while not run.over:
        run.update()
        run.tick(0.0)
        if run.step % EVERY == 0 or run.over:
            readings.append({"step": run.step, **run.validate().scores})
            print(readings[-1], flush=True)
        if run.step in SHOWN or run.over:
            shown.append(latents(run, material))
    return {"commit": here, "n": len(material.clues), "latents": shown, "readings": readings}


def draw(result: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(11.4, 6.2), layout="constrained")
    (above,), (below,) = figure.subfigures(2, 1, squeeze=False)
    for axes, found in zip(
        above.subplots(1, len(result["latents"])), result["latents"], strict=True
    ):
        points, right = np.array(found["points"]), np.array(found["right"], dtype=bool)
        for which, colour, label in ((~right, "0.7", "wrong"), (right, COLOURS[0], "right")):
            axes.plot(*points[which].T, ".", color=colour, markersize=4, label=f"{label} digits")
        axes.set_title(f"after {found['step']:,} updates", loc="left")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_color("0.8")
    shown = above.axes[0].get_legend_handles_labels()
    above.legend(*shown, frameon=False, loc="outside right center")
    steps = [reading["step"] for reading in result["readings"]]
    rows, monitors = below.subplots(1, 2)
    for colour, (name, label) in zip(COLOURS, ROWS.items(), strict=False):
        share = [reading[name] for reading in result["readings"]]
        rows.plot(steps, share, color=colour, label=label)
    rows.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    rows.set_ylabel("puzzles solved")
    for colour, name in zip(COLOURS, MONITORS, strict=False):
        label = name.replace("_", " ").replace("rank", "RankMe")
        found = [reading[name] for reading in result["readings"]]
        monitors.plot(steps, found, color=colour, label=label)
    monitors.set_yscale("log")
    monitors.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    for axes in (rows, monitors):
        axes.set_xlabel("updates")
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    # The same result makes the same file.
    with mpl.rc_context({"svg.hashsalt": "ronri"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, help="updates, if not the recipe's")
    parser.add_argument("--write", action="store_true", help="keep the result, draw the figure")
    options = parser.parse_args()
    result = measure({} if options.steps is None else {"steps": options.steps})
    if options.write:
        report.keep("latents", result)
        draw(report.kept("latents"), FIGURE)


if __name__ == "__main__":
    main()
