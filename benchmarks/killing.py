"""Kill a training run again and again: `python benchmarks/killing.py [--write]`.

A run in a process of its own gets SIGKILL at random moments and is resumed each time. In the end
its weights must be those of a run that nobody disturbed, bit by bit.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import report
from ronri import registry
from ronri.data.sources import open_set
from ronri.recipe import Recipe, changed, from_plain, to_plain
from ronri.training.checkpoints import Checkpoints
from ronri.training.loop import train

PAGE = report.ROOT / "docs" / "training.md"
# Settings that make trm-mini4 a run of some seconds, with work of every kind in it.
SHORT = {
    "steps": 240,
    "batch": 32,
    "base_batch": 32,
    "validate_every": 60,
    "checkpoint_every": 12,
    "data": {"validation_puzzles": 32},
}


def kill_and_resume(recipe: Recipe[Any], folder: Path, *, kills: int, seed: int) -> dict[str, Any]:
    """Compare a run that is killed so many times with one that is not."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "recipe.json"
    file.write_text(json.dumps(to_plain(recipe)))
    begun = time.perf_counter()
    if status := _start(file, folder / "whole").wait():
        raise ValueError(f"the undisturbed run failed, with status {status}")
    seconds = time.perf_counter() - begun
    whole = _tensors(folder / "whole")
    chance = random.Random(seed)
    steps: list[int] = []
    compared: list[bool] = []
    while len(steps) < kills or (folder / "cut").exists():
        process = _start(file, folder / "cut")
        try:
            # The start of a process is part of the run: a kill may come before the first step.
            wait = chance.uniform(0.3, 1.0) * seconds if len(steps) < kills else None
            if process.wait(timeout=wait):
                raise ValueError(f"a run failed by itself, with status {process.returncode}")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            steps.append(_step(folder / "cut"))
            continue
        # It has come to its end: compare, and begin again if there are kills left.
        cut = _tensors(folder / "cut")
        compared.append(
            whole.keys() == cut.keys() and all(torch.equal(whole[n], cut[n]) for n in whole)
        )
        shutil.rmtree(folder / "cut")
    return {
        "kills": kills,
        "checkpoints_at_kills": steps,
        "runs_compared": len(compared),
        "identical": all(compared),
    }


def text(found: dict[str, Any]) -> str:
    same = "exactly those" if found["identical"] else "NOT those"
    return (
        f"`python benchmarks/killing.py --write` killed training {found['kills']} times at random "
        f"moments with SIGKILL and resumed it each time. The last states of the "
        f"{found['runs_compared']} runs that this made, weights, average, optimiser, carry and "
        f"lessons, were {same} of a run that nobody disturbed.\n"
    )


def _start(recipe: Path, folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, __file__, "--worker", str(recipe), str(folder)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def _nothing(line: str) -> None:
    del line


def _step(folder: Path) -> int:
    """The step of the last checkpoint, 0 if there is none yet."""
    found = Checkpoints(folder).latest(_nothing)
    return 0 if found is None else found.step


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    found = Checkpoints(folder).latest(_nothing)
    assert found is not None
    return found.tensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="keep the result")
    parser.add_argument("--worker", nargs=2, metavar=("RECIPE", "RUN"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        plain = json.loads(Path(options.worker[0]).read_text())
        recipe: Recipe[Any] = from_plain(registry.find(plain["reasoner"]).config, plain)
        train(recipe, Path(options.worker[1]), resume=True, device="cpu")
        return
    open_set("mini4-train")
    recipe = changed(registry.recipe("trm-mini4"), SHORT)
    with tempfile.TemporaryDirectory() as folder:
        found = kill_and_resume(recipe, Path(folder), kills=options.kills, seed=options.seed)
    print(json.dumps(found))
    if options.write:
        report.keep("killing", found)
        report.renew(PAGE, "killing", text(found))


if __name__ == "__main__":
    main()
