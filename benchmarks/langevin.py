"""Whether thinking is thinking: `python benchmarks/langevin.py [NAME] [--write]`, on a GPU.

An Enso's chains, without the check, beside everything that could explain what they solve: latents
that have not moved, the same chains without a slope, a chain that is picked blindly; and encoders
that answer at once, given as many floating-point operations through symmetric views.
"""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import report
from ronri import loading
from ronri.data import chance
from ronri.data.sources import open_set
from ronri.evaluation.chunks import in_chunks
from ronri.evaluation.commit import commit
from ronri.evaluation.figures import COLOURS
from ronri.evaluation.scores import wilson
from ronri.evaluation.trials import Puzzles, diagnosis
from ronri.evaluation.work import measure as measure_work
from ronri.loading import Loaded
from ronri.reasoner import Budget
from ronri.thinking import think

FIGURE = report.ROOT / "docs" / "enso.svg"
SUITES = ("everyday", "minimal", "kaggle3m", "clue17")
CHAINS, STEPS = 8, 64
# Rows that a GPU thinks about at a time: chains, and views of an encoder.
ROWS, VIEW_ROWS = 8192, 32768
# Puzzles whose every step is kept, for the figure, and those that are searched for without moving.
FOLLOWED, SEARCHED = 6, 1000


@dataclass(frozen=True)
class Walk:
    """Chains of puzzles, wherever they were looked at."""

    # Steps taken. The first one shows latents that have not moved yet.
    marks: tuple[int, ...]
    right: np.ndarray  # [marks, puzzles, chains]
    energy: np.ndarray

    def one(self, chain: int, mark: int) -> np.ndarray:
        return self.right[self.marks.index(mark)][:, chain]

    def lowest(self, mark: int) -> np.ndarray:
        """Of each puzzle the chain of the lowest energy."""
        at = self.marks.index(mark)
        return np.take_along_axis(
            self.right[at], self.energy[at].argmin(axis=1, keepdims=True), axis=1
        )[:, 0]

    def blindly(self, mark: int) -> np.ndarray:
        """Of each puzzle some chain."""
        right = self.right[self.marks.index(mark)]
        some = chance.below(torch.arange(len(right)), torch.full((len(right),), right.shape[1]))
        return np.take_along_axis(right, some.numpy()[:, None], axis=1)[:, 0]

    def any(self, mark: int) -> np.ndarray:
        return self.right[self.marks.index(mark)].any(axis=1)


def walk(
    loaded: Loaded, puzzles: Puzzles, chains: int, marks: Sequence[int], rows: int = ROWS
) -> Walk:
    """Let chains think, and look at them at some steps."""
    reasoner = loaded.reasoner
    budget = Budget(steps=max(marks), samples=chains)

    def look(part: slice) -> tuple[np.ndarray, np.ndarray]:
        clues = torch.tensor(puzzles.clues[part], device=reasoner.device)
        solutions = torch.tensor(puzzles.solutions[part], device=reasoner.device)
        right, energy = [], []
        for frame in think(reasoner, clues, budget):
            if frame.step in marks:
                thought = frame.thought
                assert thought.energy is not None
                right.append((thought.board == solutions[frame.puzzle]).all(dim=1))
                energy.append(thought.energy)
        shape = len(right), len(clues), chains
        return (
            torch.stack(right).view(shape).cpu().numpy(),
            torch.stack(energy).view(shape).float().cpu().numpy(),
        )

    parts = list(in_chunks(look, len(puzzles.clues), rows_each=chains, max_rows=rows))
    right, energy = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return Walk(tuple(marks), right, energy)


def without_slope(loaded: Loaded, puzzles: Puzzles, chains: int, steps: int) -> Walk:
    """The same chains and the same noise, and nothing that pulls."""
    log_step_size = loaded.reasoner.get_submodule("landscape").log_step_size
    assert isinstance(log_step_size, torch.Tensor)
    before = log_step_size.clone()
    with torch.no_grad():
        log_step_size.fill_(-math.inf)
        try:
            return walk(loaded, puzzles, chains, (steps,))
        finally:
            log_step_size.copy_(before)


def through_views(loaded: Loaded, puzzles: Puzzles, views: int) -> dict[str, np.ndarray]:
    """What an encoder makes of symmetric views: its surest one, and the mean of its beliefs."""
    reasoner = loaded.reasoner

    def look(part: slice) -> tuple[np.ndarray, np.ndarray]:
        clues = torch.tensor(puzzles.clues[part], device=reasoner.device)
        solutions = torch.tensor(puzzles.solutions[part], device=reasoner.device)
        (frame,) = think(reasoner, clues, Budget(steps=1, views=views))
        shape = len(clues), views
        boards = frame.thought.board.view(*shape, -1)
        surest = frame.thought.confidence.view(shape).argmax(dim=1)
        picked = boards[torch.arange(len(clues), device=surest.device), surest]
        mean = frame.thought.beliefs.view(*shape, *frame.thought.beliefs.shape[1:]).mean(dim=1)
        together = (mean.argmax(dim=-1) + 1).to(torch.uint8)
        found = [(board == solutions).all(dim=1).cpu().numpy() for board in (picked, together)]
        return found[0], found[1]

    parts = list(in_chunks(look, len(puzzles.clues), rows_each=views, max_rows=VIEW_ROWS))
    picked, together = (np.concatenate(part) for part in zip(*parts, strict=True))
    return {"surest view": picked, "mean of all views": together}


def compare(
    loaded: Loaded, encoders: list[Loaded], puzzles: Puzzles, chains: int, steps: int
) -> dict[str, Any]:
    """Everything on one suite."""
    marks = tuple(2**n for n in range(steps.bit_length()))
    work = measure_work(loaded.reasoner, puzzles.clues)
    assert work is not None
    moved = walk(loaded, puzzles, chains, marks)
    still = without_slope(loaded, puzzles, chains, steps)
    ways = {
        "z = 0": moved.one(0, 1),
        "z from the prior": moved.one(1, 1),
        "chains without a slope": still.lowest(steps),
        "one chain, begun at 0": moved.one(0, steps),
        "a chain picked blindly": moved.blindly(steps),
        "the chain of lowest energy": moved.lowest(steps),
        "any chain": moved.any(steps),
    }
    solved = {name: int(right.sum()) for name, right in ways.items()}
    # As many looks as all chains take together, at as many latents, none of which moves.
    some = replace(puzzles, clues=puzzles.clues[:SEARCHED], solutions=puzzles.solutions[:SEARCHED])
    searched = walk(loaded, some, chains * steps, (1,)).lowest(1)
    readings = diagnosis(loaded.reasoner, puzzles)
    flops = work.flops(float(chains), float(chains * steps))
    others = []
    for encoder in encoders:
        own = measure_work(encoder.reasoner, puzzles.clues)
        assert own is not None
        views = math.ceil(flops / own.flops(1.0, 1.0))
        found = {"one view": through_views(encoder, puzzles, 1)["surest view"]}
        found |= through_views(encoder, puzzles, views)
        others.append(
            {
                "reasoner": encoder.name,
                "weights_sha256": encoder.sha256,
                "parameters": sum(p.numel() for p in encoder.reasoner.parameters()),
                "views": views,
                "flops_per_puzzle": own.flops(float(views), float(views)),
                "solved": {name: int(right.sum()) for name, right in found.items()},
            }
        )
    return {
        "suite": puzzles.name,
        "n": len(puzzles.clues),
        "chains": chains,
        "steps": steps,
        "flops_per_puzzle": flops,
        "oracle": round(readings["oracle"] * len(puzzles.clues)),
        "solved": solved,
        "searched": {"n": len(searched), "solved": int(searched.sum())},
        "curve": {
            str(mark): {
                "begun at 0": int(moved.one(0, mark).sum()),
                "blindly": int(moved.blindly(mark).sum()),
                "lowest energy": int(moved.lowest(mark).sum()),
            }
            for mark in marks
        },
        "encoders": others,
    }


def followed(loaded: Loaded, puzzles: Puzzles, steps: int) -> list[dict[str, Any]]:
    """The first few puzzles, step by step: energy, and empty cells that are right."""
    clues = torch.tensor(puzzles.clues[:FOLLOWED], device=loaded.reasoner.device)
    solutions = torch.tensor(puzzles.solutions[:FOLLOWED], device=loaded.reasoner.device)
    energy, right = [], []
    for frame in think(loaded.reasoner, clues, Budget(steps=steps)):
        assert frame.thought.energy is not None
        energy.append(frame.thought.energy.tolist())
        hit = (frame.thought.board == solutions) & (clues == 0)
        right.append((hit.sum(dim=1) / (clues == 0).sum(dim=1)).tolist())
    return [
        {"energy": list(one), "cells": list(cells)}
        for one, cells in zip(zip(*energy, strict=True), zip(*right, strict=True), strict=True)
    ]


def text(result: dict[str, Any]) -> str:
    """All ways on all suites, in percent with their intervals."""
    suites = result["suites"]

    def row(name: str, solved: Sequence[int]) -> tuple[str, ...]:
        cells = []
        for suite, right in zip(suites, solved, strict=True):
            low, high = wilson(right, suite["n"])
            share = right / suite["n"]
            cells.append(f"{100 * share:.2f} ({100 * low:.2f}–{100 * high:.2f})")
        return (name, *cells)

    ways = list(suites[0]["solved"])
    lines = [row("oracle z, from the solution", [suite["oracle"] for suite in suites])]
    lines += [row(way, [suite["solved"][way] for suite in suites]) for way in ways]
    found = [suite["searched"] for suite in suites]
    looks = suites[0]["chains"] * suites[0]["steps"]
    name = f"the lowest of {looks:,} latents that do not move"
    cells = [f"{100 * one['solved'] / one['n']:.2f} (of {one['n']:,})" for one in found]
    lines.append((name, *cells))
    for number, encoder in enumerate(suites[0]["encoders"]):
        for way in encoder["solved"]:
            many = "" if way == "one view" else f" of {encoder['views']:,}"
            name = f"`{encoder['reasoner']}`, {way}{many}"
            solved = [suite["encoders"][number]["solved"][way] for suite in suites]
            lines.append(row(name, solved))
    head = ("solved, in percent", *(f"`{s['suite']}` ({s['n']:,})" for s in suites))
    return report.table(head, lines)


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


def draw(result: dict[str, Any], path: Path) -> None:
    """Energy and right cells of a few puzzles, and what all chains solve, step by step."""
    figure = Figure(figsize=(11.4, 3.8), layout="constrained")
    energy, cells, solved = figure.subplots(1, 3)
    for number, puzzle in enumerate(result["followed"]):
        steps = range(1, len(puzzle["energy"]) + 1)
        energy.plot(steps, puzzle["energy"], color=COLOURS[number], linewidth=1.2)
        cells.plot(steps, puzzle["cells"], color=COLOURS[number], linewidth=1.2)
    for number, suite in enumerate(result["suites"]):
        marks = [int(mark) for mark in suite["curve"]]
        for way, style in (("lowest energy", "-"), ("blindly", ":")):
            share = [at[way] / suite["n"] for at in suite["curve"].values()]
            label = suite["suite"] if way == "lowest energy" else None
            solved.plot(marks, share, style, color=COLOURS[number], label=label)
    last = result["suites"][-1]
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
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    energy.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    energy.set_title(f"{len(result['followed'])} puzzles of {last['suite']}, one chain", loc="left")
    solved.set_title(f"lowest of {last['chains']} chains (dotted: any one)", loc="left", size=11)
    solved.legend(frameon=False)
    # The same result makes the same file.
    with mpl.rc_context({"svg.hashsalt": "ronri"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="enso")
    parser.add_argument("--encoders", nargs="*", default=["encoder"], help="controls")
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--steps", type=int, default=STEPS, help="a power of two")
    parser.add_argument("--limit", type=int, help="only the first puzzles of each suite")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    if options.steps.bit_count() != 1:
        parser.error("steps are a power of two")
    loaded = loading.load(options.name, device=options.device)
    encoders = [loading.load(name, device=options.device) for name in options.encoders]
    place = loaded.reasoner.device
    suites = []
    for name in options.suites:
        puzzles = Puzzles.of(name, open_set(name), options.limit)
        suites.append(compare(loaded, encoders, puzzles, options.chains, options.steps))
        print(json.dumps(suites[-1]), flush=True)
    result = {
        "reasoner": Path(options.name).name,
        "weights_sha256": loaded.sha256,
        "device": torch.cuda.get_device_name() if place.type == "cuda" else place.type,
        "commit": commit(),
        "suites": suites,
        "followed": followed(loaded, puzzles, options.steps),
    }
    print(text(result))
    print(curve_text(result))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep("langevin", result)
        draw(report.kept("langevin"), FIGURE)


if __name__ == "__main__":
    main()
