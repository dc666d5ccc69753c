"""Whether thinking is thinking: `python benchmarks/langevin.py [NAME] [--write]`, on a GPU.

An Enso's chains, without the check, beside everything that could explain what they solve: latents
that have not moved, the same chains without a slope, a chain that is picked blindly; and encoders
that answer at once, given as many floating-point operations through symmetric views.
"""

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import report
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.figures import COLOURS
from ronri.evaluation.scores import wilson
from ronri.evaluation.trials import Puzzles, check_fits
from ronri.evaluation.work import measure as measure_work
from ronri.loading import Loaded
from ronri.nn import devices
from ronri.reasoner import Budget
from ronri.thinking import think
from walks import ONE, controls, from_the_truth, through_views, walk

PAGE = report.ROOT / "docs" / "enso.md"
FIGURE = report.ROOT / "docs" / "enso.svg"
SUITES = ("everyday", "minimal", "kaggle3m", "clue17")
CHAINS, STEPS = 8, 64
# Puzzles whose every step is kept, for the figure, and those that are tried without a slope.
FOLLOWED, FEW = 6, 1000
KEPT = "langevin"
ENCODERS = ("encoder", "encoder-units")


def compare(
    loaded: Loaded,
    encoders: list[Loaded],
    puzzles: Puzzles,
    chains: int,
    steps: int,
    few: int = FEW,
) -> dict[str, Any]:
    """Everything on one suite; without a slope and the like, only its first few puzzles."""
    marks = tuple(2**n for n in range(steps.bit_length()))
    marks = marks if steps in marks else (*marks, steps)
    work = measure_work(loaded.reasoner, puzzles.clues)
    assert work is not None
    moved = walk(loaded, puzzles, chains, marks)
    ways = {
        "oracle z, from the solution": from_the_truth(loaded, puzzles),
        "z = 0": moved.one(0, 1),
        "z from the prior": moved.one(1, 1),
        ONE: moved.one(0, steps),
        "a chain picked blindly": moved.blindly(steps),
        "the chain of lowest energy": moved.lowest(steps),
        "the most consistent chain": moved.most_consistent(steps),
        "the chain that breaks the rules least": moved.least_broken(steps),
        "the best chain, by the solution": moved.best(steps),
    }
    disturbed: dict[str, np.ndarray] = {}
    if few:
        first = {name: getattr(puzzles, name)[:few] for name in ("clues", "solutions", "ratings")}
        some = replace(puzzles, **first)
        disturbed = controls(loaded, some, chains, steps)
    flops = work.flops(float(chains), float(chains * steps))
    return {
        "suite": puzzles.name,
        "n": len(puzzles.clues),
        "chains": chains,
        "steps": steps,
        "flops_per_puzzle": flops,
        "solved": _solved(ways),
        # Of empty cells, clues being certain.
        "cells": {
            name: 1 - float(wrong.sum() / (puzzles.clues == 0).sum())
            for name, wrong in ways.items()
        },
        "few": {"n": min(few, len(puzzles.clues)), "solved": _solved(disturbed)},
        "curve": {
            str(mark): _solved(
                {
                    "begun at 0": moved.one(0, mark),
                    "blindly": moved.blindly(mark),
                    "lowest energy": moved.lowest(mark),
                }
            )
            for mark in marks
        },
        "encoders": [_beside(encoder, puzzles, flops) for encoder in encoders],
    }


def _solved(wrong: dict[str, np.ndarray]) -> dict[str, int]:
    return {name: int((cells == 0).sum()) for name, cells in wrong.items()}


def _beside(encoder: Loaded, puzzles: Puzzles, flops: float) -> dict[str, Any]:
    """An encoder, given as many operations."""
    own = measure_work(encoder.reasoner, puzzles.clues)
    assert own is not None
    views = math.ceil(flops / own.flops(1.0, 1.0))
    found = {"one view": through_views(encoder, puzzles, 1)["surest view"]}
    found |= through_views(encoder, puzzles, views)
    return {
        "reasoner": encoder.name,
        "weights_sha256": encoder.sha256,
        "parameters": sum(p.numel() for p in encoder.reasoner.parameters()),
        "views": views,
        "flops_per_puzzle": own.flops(float(views), float(views)),
        "solved": {name: int(right.sum()) for name, right in found.items()},
    }


def hardest(suites: list[dict[str, Any]]) -> int:
    """The suite of which one chain solves least."""
    return min(
        range(len(suites)),
        key=lambda number: suites[number]["solved"][ONE] / suites[number]["n"],
    )


def followed(loaded: Loaded, puzzles: Puzzles, steps: int) -> dict[str, Any]:
    """The first few puzzles, step by step: energy, and empty cells that are right."""
    clues = torch.tensor(puzzles.clues[:FOLLOWED], device=loaded.reasoner.device)
    solutions = torch.tensor(puzzles.solutions[:FOLLOWED], device=loaded.reasoner.device)
    energy, right = [], []
    for frame in think(loaded.reasoner, clues, Budget(steps=steps)):
        assert frame.thought.energy is not None
        energy.append(frame.thought.energy.tolist())
        hit = (frame.thought.board == solutions) & (clues == 0)
        right.append((hit.sum(dim=1) / (clues == 0).sum(dim=1)).tolist())
    walks = zip(zip(*energy, strict=True), zip(*right, strict=True), strict=True)
    return {
        "suite": puzzles.name,
        "walks": [{"energy": list(one), "cells": list(cells)} for one, cells in walks],
    }


def text(result: dict[str, Any]) -> str:
    """All ways on all suites, in percent with their intervals."""
    suites = result["suites"]
    lines = []
    for way in suites[0]["solved"]:
        cells = (share(suite["solved"][way], suite["n"]) for suite in suites)
        lines.append((way, *cells))
    for way in suites[0]["few"]["solved"]:
        few = (suite["few"] for suite in suites)
        cells = (f"{share(one['solved'][way], one['n'])}, of {one['n']:,}" for one in few)
        lines.append((way, *cells))
    for number, encoder in enumerate(suites[0]["encoders"]):
        for way in encoder["solved"]:
            many = "" if way == "one view" else f" of {encoder['views']:,}"
            cells = (
                share(suite["encoders"][number]["solved"][way], suite["n"]) for suite in suites
            )
            lines.append((f"`{encoder['reasoner']}`, {way}{many}", *cells))
    head = ("solved, in percent", *(f"`{s['suite']}` ({s['n']:,})" for s in suites))
    return report.table(head, lines)


def share(right: int, n: int) -> str:
    low, high = wilson(right, n)
    return f"{100 * right / n:.2f} ({100 * low:.2f}–{100 * high:.2f})"


def curve_text(result: dict[str, Any]) -> str:
    """More steps, more solved: of every suite the chain of lowest energy."""
    suites = result["suites"]
    head = ("steps", *(f"`{s['suite']}`, {way}" for s in suites for way in ("one", "lowest")))
    lines = []
    for mark in suites[0]["curve"]:
        cells = []
        for suite in suites:
            at = suite["curve"][mark]
            cells += [
                f"{100 * at[way] / suite['n']:.2f}" for way in ("begun at 0", "lowest energy")
            ]
        lines.append((mark, *cells))
    return report.table(head, lines)


def page_text(result: dict[str, Any]) -> str:
    """What is on the page: all ways, then more and more steps."""
    suites = result["suites"]
    first, encoders = suites[0], suites[0]["encoders"]
    spent = " and ".join(f"`{one['reasoner']}` {one['views']:,} views" for one in encoders)
    return (
        f"{text(result)}\n{first['chains']} chains of {first['steps']} steps, "
        f"{first['flops_per_puzzle'] / 1e9:.0f} GFLOP a puzzle, and no check; for that much "
        f"{spent}. In brackets the 95 % interval. Weights "
        f"`{result['weights_sha256'][:12]}` of `{result['reasoner']}`, on {result['device']} at "
        f"commit {report.version(result['commit'])}, by `python benchmarks/langevin.py --write`.\n"
        f"\nMore steps, in percent: one chain, begun at 0; and of {first['chains']} chains the "
        f"one of lowest energy.\n\n{curve_text(result)}"
    )


def draw(result: dict[str, Any], path: Path) -> None:
    """Energy and right cells of a few puzzles, and what all chains solve, step by step."""
    figure = Figure(figsize=(11.4, 3.8), layout="constrained")
    energy, cells, solved = figure.subplots(1, 3)
    for number, puzzle in enumerate(result["followed"]["walks"]):
        steps = range(1, len(puzzle["energy"]) + 1)
        energy.plot(steps, puzzle["energy"], color=COLOURS[number], linewidth=1.2)
        cells.plot(steps, puzzle["cells"], color=COLOURS[number], linewidth=1.2)
    for number, suite in enumerate(result["suites"]):
        marks = [int(mark) for mark in suite["curve"]]
        for way, style in (("lowest energy", "-"), ("blindly", ":")):
            shares = [at[way] / suite["n"] for at in suite["curve"].values()]
            label = suite["suite"] if way == "lowest energy" else None
            solved.plot(marks, shares, style, color=COLOURS[number], label=label)
    first, shown = result["suites"][0], result["followed"]
    energy.set_yscale("log")
    energy.set_ylabel("energy")
    cells.set_ylabel("empty cells that are right")
    solved.set_ylabel("puzzles solved")
    for axes in (energy, cells, solved):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.set_xlabel("steps")
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (cells, solved):
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    energy.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    told = f"{len(shown['walks'])} puzzles of {shown['suite']}, one chain each"
    energy.set_title(told, loc="left", size=10)
    told = f"lowest of {first['chains']} chains; dotted: a random one"
    solved.set_title(told, loc="left", size=10)
    solved.legend(frameon=False)
    # The same result makes the same file.
    with mpl.rc_context({"svg.hashsalt": "ronri"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="enso")
    controls = [name for name in ENCODERS if name in loading.released()]
    parser.add_argument("--encoders", nargs="*", default=controls, help="beside it")
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--limit", type=int, help="only the first puzzles of each suite")
    parser.add_argument("--device")
    parser.add_argument("--compile", action="store_true", help="as `ronri eval` does")
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result, draw the figure")
    options = parser.parse_args()
    if options.chains < 2:
        parser.error("there are at least two chains: one begins at 0, the others do not")
    try:
        loaded, *encoders = (
            loading.load(name, device=options.device, compile=options.compile)
            for name in (options.name, *options.encoders)
        )
        played = [Puzzles.of(name, open_set(name), options.limit) for name in options.suites]
        for puzzles in played:
            for one in (loaded, *encoders):
                check_fits(one, puzzles)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if loaded.kind != "enso":
        parser.error(f"{options.name} is no Enso but of kind {loaded.kind}")
    suites = []
    for puzzles in played:
        suites.append(compare(loaded, encoders, puzzles, options.chains, options.steps))
        print(text({"suites": suites[-1:]}), file=sys.stderr, flush=True)
    result = {
        "reasoner": Path(options.name).name,
        "weights_sha256": loaded.sha256,
        "minutes": loaded.minutes,
        "device": devices.name(loaded.reasoner.device),
        "commit": commit(),
        "suites": suites,
        "followed": followed(loaded, played[hardest(suites)], options.steps),
    }
    print(text(result))
    print(curve_text(result))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep(KEPT, result)
        draw(result, FIGURE)


if __name__ == "__main__":
    main()
