"""How fast a training step is: `python benchmarks/training.py [--write]`, on a GPU.

The published models at batch 768, each as plain PyTorch, as the compiler leaves it, with our fused
layers, and with those and 8 bits in the cycles that have no gradient. One step is everything the
loop does: lessons, forward, backward, clipping, optimiser and moving average. The losses of all
paths are compared step by step.
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
PATHS = ("eager", "compiled", "fused", "float8")
PLAIN, OURS = PATHS[1], PATHS[2:]
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
    losses: list[float]


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


def measure(name: str, path: str, device: torch.device, steps: int) -> Measured:
    """Train for some steps: the time of all but the first ones, and the loss of each."""
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
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    found = []
    with fused.switched(path in OURS):
        if path != "eager":
            run.compile()
        begun = time.perf_counter()
        for step in range(steps):
            found.append(run.update()["loss"])
            if step == 0:
                torch.cuda.synchronize()
                first = time.perf_counter() - begun
            events[step].record()
        torch.cuda.synchronize()
    times = [one.elapsed_time(other) for one, other in pairwise(events[steps // 4 : steps])]
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
        losses=torch.stack(found).tolist(),
    )


def apart(found: dict[str, Any], measured: list[dict[str, Any]]) -> tuple[str, str, str]:
    """How far losses are from those of the compiled path: on average, at most, at the first step.

    At the first step no update has been made: that difference is the path's own, not chance.
    """
    losses = {one["path"]: one["losses"] for one in measured if one["recipe"] == found["recipe"]}
    if found["path"] == PLAIN or PLAIN not in losses:
        return "", "", ""
    far = [abs(a - b) / a for a, b in zip(losses[PLAIN], found["losses"], strict=False)]
    mean, most, first = (f"{100 * x:.2f} %" for x in (statistics.mean(far), max(far), far[0]))
    return mean, most, first


def markdown(result: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = []
    for found in result["measured"]:
        # To be reached with the same losses: in the same precision.
        wanted = WANTED[found["recipe"]] if found["path"] == "fused" else None
        rows.append(
            (
                f"`{found['recipe']}`, {found['path']}",
                f"{found['parameters'] / 1e6:.1f} M",
                f"{found['ms_per_step']:.1f}",
                f"{wanted:.0f}" if wanted else "",
                f"{found['slot_steps_per_second']:,.0f}",
                f"{found['tflops']:.0f}",
                f"{found['peak_gib']:.1f}",
                *apart(found, result["measured"]),
            )
        )
    head = (
        "model, path", "parameters", "ms a step", "wanted", "slot-steps/s", "TFLOP/s", "GiB",
        "losses apart", "at most", "at the first step",
    )  # fmt: skip
    return report.table(head, rows)


def text(result: dict[str, Any]) -> str:
    return f"{markdown(result)}\n{sentences(result)}"


def sentences(result: dict[str, Any]) -> str:
    return (
        f"Batch {result['batch']}, mean of {result['timed']} steps after warming up, on one "
        f"{result['device']} with torch {result['torch']}, by `python benchmarks/training.py`. "
        f"Losses: the mean relative difference from the {PLAIN} path, over {result['steps']} "
        f"steps from the same start (eager: over its {_eager(result['steps'])}), the largest one, "
        f"and the one before any update.\n"
    )


def _eager(steps: int) -> int:
    """Plain PyTorch takes three times as long, and its time is known after fewer steps."""
    return steps // 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--recipes", nargs="+", default=list(WANTED))
    parser.add_argument("--paths", nargs="+", default=list(PATHS))
    parser.add_argument("--out", type=Path, help="write the result here as JSON")
    parser.add_argument("--write", action="store_true", help="keep the result and renew the page")
    parser.add_argument("--from", dest="source", type=Path, help="a result measured elsewhere")
    options = parser.parse_args()
    if options.source:
        result = json.loads(options.source.read_text())
    else:
        result = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "batch": BATCH,
            "steps": options.steps,
            "timed": options.steps - options.steps // 4 - 1,
        }
        measured: list[Measured] = []
        for name in options.recipes:
            for path in options.paths:
                steps = _eager(options.steps) if path == "eager" else options.steps
                found = measure(name, path, torch.device("cuda"), steps)
                print(replace(found, losses=found.losses[-3:]), flush=True)
                measured.append(found)
                result["measured"] = [asdict(one) for one in measured]
                if options.out:
                    options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.write:
        report.keep("training", result)
        report.renew(PAGE, "training", text(result))


if __name__ == "__main__":
    main()
