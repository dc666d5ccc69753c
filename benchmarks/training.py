"""How fast a training step is: `python benchmarks/training.py [--write]`, on a GPU.

The published models at batch 768, each as plain PyTorch, as the compiler leaves it, with our fused
layers, and with those and 8 bits in the cycles that have no gradient. One step is everything the
loop does: lessons, forward, backward, clipping, optimiser and moving average.

The losses of all paths are compared step by step, from several starts. Training is chaotic: where
the loss falls fast, a tiny change moves the fall. How far is seen from the compiled path beside
itself, with weights that were nudged by no more than bfloat16 rounds away.
"""

import argparse
import json
import statistics
import time
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import report
from ronri import registry
from ronri.data.packing import pack
from ronri.data.stream import Source
from ronri.nn import fused
from ronri.recipe import Recipe
from ronri.sudoku.generate import puzzles_with_clues
from ronri.training.distributed import World
from ronri.training.material import Material
from ronri.training.run import Run

BATCH = 768
# Milliseconds a step we hold ourselves to on one H200.
WANTED = {"trm-paper": 68.0, "trm-paper-mlp": 75.0}
PATHS = ("eager", "compiled", "nudged", "fused", "float8")
PLAIN, NUDGED, OURS = "compiled", "nudged", ("fused", "float8")
# Of any number bfloat16 may round away as much, or more: half of its last bit.
NUDGE = 2.0**-9
PAGE = report.ROOT / "docs" / "trm.md"


@dataclass(frozen=True)
class Measured:
    """One model on one path."""

    recipe: str
    path: str
    parameters: int
    ms_per_step: float
    slot_steps_per_second: float
    tflops: float
    peak_gib: float
    first_step_seconds: float
    # Of each start, of each step.
    losses: list[list[float]]


def material(geometry: Any, count: int = 4096) -> Material:
    """Fresh puzzles: the data does not change how long a step takes."""
    made = puzzles_with_clues(count, 24, 36, seed=1, geometry=geometry)
    nothing = np.zeros(count)
    records = pack(made.puzzles, made.solutions, nothing, nothing.astype(np.uint8), geometry)
    return Material((Source(records, 1.0),), made.puzzles[:8], made.solutions[:8], {})


def begin(recipe: Recipe[Any], device: torch.device, batch: int = BATCH) -> Run:
    recipe = replace(recipe, batch=batch, base_batch=batch)
    return Run(recipe, World(0, 1, device), batch, material(recipe.geometry))


@cache
def flop_per_slot(name: str) -> float:
    """Floating-point operations of one slot in one step, backward included, as torch counts."""
    slots = 2
    run = begin(registry.recipe(name), torch.device("cpu"), slots)
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH):
        run.update()
    return counter.get_total_flops() / slots


def measure(name: str, path: str, device: torch.device, steps: int, starts: int) -> Measured:
    """Train for some steps: the time of all but the first ones, and the losses from each start."""
    torch.compiler.reset()
    torch.cuda.reset_peak_memory_stats()
    recipe = registry.recipe(name)
    # Warm up soon, so that the weights really move.
    recipe = replace(
        recipe,
        optim=replace(recipe.optim, warmup=50),
        model=replace(recipe.model, float8=path == "float8"),
    )
    run = begin(recipe, device)
    losses: list[list[float]] = []
    times: list[float] = []
    with fused.switched(path in OURS):
        if path != "eager":
            run.compile()
        for start in range(starts):
            begun = time.perf_counter()
            found, each = train(run, steps, start, nudge=NUDGE if path == NUDGED else 0.0)
            losses.append(found)
            times.append(statistics.mean(each[steps // 4 :]))
            if start == 0:
                first = each[0] / 1000
            print(f"{name} {path} start {start}: {time.perf_counter() - begun:.1f} s", flush=True)
    ms = statistics.mean(times)
    return Measured(
        recipe=name,
        path=path,
        parameters=sum(p.numel() for p in run.reasoner.parameters()),
        ms_per_step=ms,
        slot_steps_per_second=BATCH / ms * 1000,
        tflops=flop_per_slot(name) * BATCH / ms / 1e9,
        peak_gib=torch.cuda.max_memory_allocated() / 2**30,
        first_step_seconds=first,
        losses=losses,
    )


def train(run: Run, steps: int, start: int, nudge: float) -> tuple[list[float], list[float]]:
    """Losses and milliseconds of some steps, after which the run is what it was.

    Start 0 has the run's own weights, others have those of each matrix in another order; all are
    changed by up to `nudge` of themselves.
    """
    before = run.snapshot()
    before = replace(before, tensors={name: x.clone() for name, x in before.tensors.items()})
    chance = torch.Generator(run.world.device).manual_seed(start)
    with torch.no_grad():
        for weight in run.reasoner.parameters() if start else ():
            order = torch.randperm(weight.numel(), generator=chance, device=weight.device)
            weight.copy_(weight.flatten()[order].view(weight.shape))
        for weight in run.reasoner.parameters() if nudge else ():
            by = 2 * torch.rand(weight.shape, generator=chance, device=weight.device) - 1
            weight.mul_(1 + nudge * by)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    events[0].record()
    found = []
    for event in events[1:]:
        found.append(run.update()["loss"])
        event.record()
    torch.cuda.synchronize()
    run.restore(before)
    times = [one.elapsed_time(other) for one, other in pairwise(events)]
    return torch.stack(found).tolist(), times


def apart(found: dict[str, Any], measured: list[dict[str, Any]]) -> tuple[str, ...]:
    """How far losses are from the plain path's, start by start and step by step.

    The mean distance, the largest one, the mean of those at the first step (before any update),
    and how much higher the losses are, with the standard error over starts.
    """
    losses = {one["path"]: one["losses"] for one in measured if one["recipe"] == found["recipe"]}
    if found["path"] == PLAIN or PLAIN not in losses:
        return "", "", "", ""
    higher = [
        [(ours - plain) / plain for plain, ours in zip(*pair, strict=False)]
        for pair in zip(losses[PLAIN], found["losses"], strict=False)
    ]
    far = [[abs(step) for step in start] for start in higher]
    means = [statistics.mean(start) for start in higher]
    by = f"{100 * statistics.mean(means):+.3f}"
    if len(means) > 1:
        by += f" ± {100 * statistics.stdev(means) / len(means) ** 0.5:.3f}"
    return (
        _percent(statistics.mean(map(statistics.mean, far))),
        _percent(max(map(max, far))),
        _percent(statistics.mean(start[0] for start in far)),
        f"{by} %",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def markdown(result: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = []
    for found in result["measured"]:
        wanted = WANTED[found["recipe"]] if found["path"] in OURS else None
        rows.append(
            (
                f"`{found['recipe']}`, {found['path']}",
                f"{found['parameters'] / 1e6:.1f} M",
                f"{found['ms_per_step']:.1f}",
                f"{wanted:.0f}" if wanted else "",
                f"{found['slot_steps_per_second']:,.0f}",
                f"{found['tflops']:.0f}",
                f"{found['peak_gib']:.1f}",
                f"{len(found['losses'])}",
                *apart(found, result["measured"]),
            )
        )
    head = (
        "model, path", "parameters", "ms a step", "wanted", "slot-steps/s", "TFLOP/s", "GiB",
        "starts", "losses apart", "at most", "at the first step", "higher by",
    )  # fmt: skip
    return report.table(head, rows)


def text(result: dict[str, Any]) -> str:
    return f"{markdown(result)}\n{sentences(result)}"


def sentences(result: dict[str, Any]) -> str:
    return (
        f"Batch {result['batch']}, all steps after the first quarter of them, on one "
        f"{result['device']} with torch {result['torch']}, by `python benchmarks/training.py`. "
        f"Losses: the relative distance from the {PLAIN} path, of as many starts, over "
        f"{result['steps']} steps (eager: a fifth): on average, at the worst step of all, and on "
        f"average before any update; and how much higher they are, with the standard error. "
        f"{NUDGED.capitalize()}: {PLAIN}, from weights that differ by at most 1/{1 / NUDGE:.0f}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--starts", type=int, default=4, help="how often to train on each path")
    parser.add_argument("--recipes", nargs="+", default=list(WANTED))
    parser.add_argument("--paths", nargs="+", default=list(PATHS))
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result and renew the page")
    parser.add_argument(
        "--from", dest="sources", type=Path, nargs="+", help="results measured elsewhere"
    )
    options = parser.parse_args()
    if options.sources:
        results = [json.loads(source.read_text()) for source in options.sources]
        measured_there = [one for each in results for one in each.pop("measured")]
        if any(each != results[0] for each in results):
            raise ValueError("the results were measured with different settings")
        if len({(one["recipe"], one["path"]) for one in measured_there}) < len(measured_there):
            raise ValueError("a path of a recipe was measured twice")
        measured_there.sort(key=lambda one: PATHS.index(one["path"]))
        measured_there.sort(key=lambda one: list(WANTED).index(one["recipe"]))
        result = results[0] | {"measured": measured_there}
    else:
        result = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "batch": BATCH,
            "steps": options.steps,
        }
        measured: list[Measured] = []
        for name in options.recipes:
            for path in options.paths:
                # Plain PyTorch takes three times as long; its time is known after fewer steps.
                few = (options.steps // 5, 1) if path == "eager" else None
                steps, starts = few or (options.steps, options.starts)
                found = measure(name, path, torch.device("cuda"), steps, starts)
                print(replace(found, losses=[each[-3:] for each in found.losses]), flush=True)
                measured.append(found)
                result["measured"] = [asdict(one) for one in measured]
                if options.out:
                    options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep("training", result)
        report.renew(PAGE, "training", text(result))


if __name__ == "__main__":
    main()
