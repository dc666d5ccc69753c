"""How long chains take: `python benchmarks/chains.py [NAME] [--write]`, on a GPU.

Eight chains of fifty steps for each of many puzzles, from clues in memory to boards in memory, as
`ronri eval` counts them: without `--compile`, and with it. NAME is a recipe, and then the weights
are as they were drawn (that takes as long), or a model.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import report
from ronri import loading, registry
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.trials import Puzzles, hold
from ronri.reasoner import Budget

PAGE = report.ROOT / "docs" / "enso.md"
CHAINS, STEPS, PUZZLES = 8, 50, 512
WAYS = {"as it is": False, "compiled": True}


def draw(name: str, folder: Path) -> None:
    """Save the network of a recipe as it is drawn."""
    recipe = registry.recipe(name)
    torch.manual_seed(recipe.seed)
    reasoner = registry.find(recipe.reasoner).build(recipe.model, recipe.geometry)
    loading.save(
        folder,
        kind=recipe.reasoner,
        config=recipe.model,
        geometry=recipe.geometry,
        weights=reasoner.state_dict(),
        which="raw",
    )


def measure(name: str, puzzles: int, device: str | None) -> dict[str, Any]:
    ways = {}
    with TemporaryDirectory() as folder:
        model = name
        if name not in loading.released() and name in registry.recipes():
            model = f"{folder}/{name}"
            draw(name, Path(model))
        for way, compiled in WAYS.items():
            begun = time.perf_counter()
            loaded = loading.load(model, device=device, compile=compiled)
            trial = hold(
                loaded,
                Puzzles.of("everyday", open_set("everyday"), puzzles),
                Budget(steps=STEPS, samples=CHAINS),
                max_rows=puzzles * CHAINS,
            )
            flops, spent = trial.flops_per_puzzle, trial.scores.ms_per_puzzle
            assert flops is not None
            ways[way] = {
                "ms_per_puzzle": spent,
                "tflops_per_second": flops / spent / 1e9,
                "seconds_in_all": time.perf_counter() - begun,
            }
            print(way, ways[way], flush=True)
    return {
        "name": name,
        "device": trial.device,
        "torch": torch.__version__,
        "commit": commit(),
        "puzzles": puzzles,
        "chains": CHAINS,
        "steps": STEPS,
        "flops_per_puzzle": flops,
        "ways": ways,
    }


def text(result: dict[str, Any]) -> str:
    rows = [
        (
            way,
            f"{found['ms_per_puzzle']:.2f}",
            f"{found['tflops_per_second']:.0f}",
            f"{found['seconds_in_all']:.0f}",
        )
        for way, found in result["ways"].items()
    ]
    head = (f"`{result['name']}`", "ms a puzzle", "TFLOP/s", "seconds in all")
    return (
        f"{report.table(head, rows)}\n{result['chains']} chains of {result['steps']} steps for "
        f"each of {result['puzzles']} puzzles together, "
        f"{result['flops_per_puzzle'] / 1e12:.2f} TFLOP a puzzle, on {result['device']} with "
        f"torch {result['torch']}. In all is with what comes before: loading, compiling, a first "
        f"step. By `python benchmarks/chains.py --write` at commit "
        f"{report.version(result['commit'])}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="enso-run5")
    parser.add_argument("--puzzles", type=int, default=PUZZLES)
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    result = measure(options.name, options.puzzles, options.device)
    print(text(result))
    if options.write:
        report.keep("chains", result)


if __name__ == "__main__":
    main()
