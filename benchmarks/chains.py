"""How long chains take: `python benchmarks/chains.py [NAME] [--write]`, on a GPU.

Eight chains of fifty steps for each of many puzzles, from clues in memory to boards in memory: as
`ronri eval` does it, with `--compile`, and compiled for this one number of rows. NAME is a recipe,
and then the weights are as they were drawn (that takes as long), or a model.
"""

import argparse
import time
from typing import Any

import torch

import report
from ronri import loading, registry
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.work import measure as measure_work
from ronri.nn import devices, fused
from ronri.reasoner import Budget, Reasoner
from ronri.thinking import answer

CHAINS, STEPS, PUZZLES = 8, 50, 512


def built(name: str, device: torch.device) -> Reasoner:
    """A model, or the network of a recipe as it is drawn."""
    if name in loading.released() or name not in registry.recipes():
        return loading.load(name, device=device).reasoner
    recipe = registry.recipe(name)
    torch.manual_seed(recipe.seed)
    reasoner = registry.find(recipe.reasoner).build(recipe.model, recipe.geometry)
    reasoner.to(device).eval().requires_grad_(requires_grad=False)
    reasoner.compute_dtype = devices.compute_dtype(device)
    fused.look(device)
    return reasoner


# For any number of rows, for one, or not compiled at all.
WAYS = {"as it is": None, "compiled": True, "compiled for one number of rows": False}


def measure(name: str, device: torch.device, puzzles: int, ways: list[str]) -> dict[str, Any]:
    clues = torch.from_numpy(open_set("everyday").puzzles(slice(puzzles)))
    budget = Budget(steps=STEPS, samples=CHAINS)
    work = measure_work(built(name, device), clues.numpy())
    assert work is not None
    flops = work.flops(float(CHAINS), float(CHAINS * STEPS))
    found = {}
    for way in ways:
        # Anew: what was compiled stays so.
        reasoner = built(name, device)
        dynamic = WAYS[way]
        if dynamic is not None:
            for part in reasoner.thinking_parts():
                part.compile(dynamic=dynamic)
        # What is compiled on the way is compiled once.
        begun = time.perf_counter()
        answer(reasoner, clues, Budget(steps=3, samples=CHAINS))
        compiled = time.perf_counter()
        answer(reasoner, clues, budget).board.cpu()
        spent = time.perf_counter() - compiled
        found[way] = {
            "ms_per_puzzle": 1000 * spent / len(clues),
            "tflops_per_second": flops * len(clues) / spent / 1e12,
            "warm_up_seconds": compiled - begun,
        }
        print(way, found[way], flush=True)
    return {
        "name": name,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else device.type,
        "torch": torch.__version__,
        "commit": commit(),
        "puzzles": len(clues),
        "chains": CHAINS,
        "steps": STEPS,
        "flops_per_puzzle": flops,
        "ways": found,
    }


def text(result: dict[str, Any]) -> str:
    rows = [
        (
            way,
            f"{found['ms_per_puzzle']:.2f}",
            f"{found['tflops_per_second']:.0f}",
            f"{found['warm_up_seconds']:.0f}",
        )
        for way, found in result["ways"].items()
    ]
    head = (f"`{result['name']}`", "ms a puzzle", "TFLOP/s", "seconds for the first steps")
    return (
        f"{report.table(head, rows)}\n{result['chains']} chains of {result['steps']} steps for "
        f"each of {result['puzzles']} puzzles together, "
        f"{result['flops_per_puzzle'] / 1e12:.2f} TFLOP a puzzle, on {result['device']} with "
        f"torch {result['torch']}. By `python benchmarks/chains.py --write` at commit "
        f"`{(result['commit'] or '?')[:7]}`.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="enso-run5")
    parser.add_argument("--puzzles", type=int, default=PUZZLES)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    device = devices.pick(options.device)
    result = measure(options.name, device, options.puzzles, options.ways)
    print(text(result))
    if options.write:
        report.keep("chains", result)


if __name__ == "__main__":
    main()
