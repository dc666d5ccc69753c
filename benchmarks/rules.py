"""Whether the rules alone would do: `python benchmarks/rules.py [NAME] [--write]`.

Chains of an Enso that begin at 0 and walk down the broken rules and nothing else. In the energy
these weigh little, and the length of a step was learned for all of it: here they weigh more.
"""

import argparse
from typing import Any

import numpy as np

import report
from langevin import STEPS, SUITES, share
from ronri import loading
from ronri.data.sources import open_set
from ronri.evaluation.commit import commit
from ronri.evaluation.trials import Puzzles, check_fits
from ronri.loading import Loaded
from ronri.nn import devices
from walks import walk, weighing

PAGE = report.ROOT / "docs" / "enso.md"
PUZZLES = 200
# How many times what they weigh in the energy.
TIMES = (1, 10, 20, 30, 50, 100)
PLAIN = "the whole energy"


def measure(loaded: Loaded, puzzles: Puzzles, steps: int) -> dict[str, Any]:
    """What one chain solves: down the energy, and down rules of more and more weight."""
    ways = {PLAIN: (1.0, 1.0)} | {f"rules alone × {times}": (0.0, float(times)) for times in TIMES}
    solved, shares = {}, np.zeros(0)
    for way, (consistency, penalty) in ways.items():
        with weighing(loaded, consistency=consistency, penalty=penalty):
            found = walk(loaded, puzzles, 1, (1, steps))
        solved[way] = int((found.one(0, steps) == 0).sum())
        if way == PLAIN:
            # Of latents that have not moved.
            shares = found.penalty * found.broken[0] / found.energy[0]
        print(f"{puzzles.name}, {way}: {solved[way]} of {len(puzzles.clues)}", flush=True)
    return {
        "suite": puzzles.name,
        "n": len(puzzles.clues),
        "steps": steps,
        "solved": solved,
        "share_at_first": float(shares.mean()),
    }


def text(result: dict[str, Any]) -> str:
    suites = result["suites"]
    head = ("solved, in percent", *(f"`{one['suite']}` ({one['n']:,})" for one in suites))
    lines = [
        (way, *(share(one["solved"][way], one["n"]) for one in suites))
        for way in suites[0]["solved"]
    ]
    shares = [100 * one["share_at_first"] for one in suites]
    return (
        f"{report.table(head, lines)}\nOne chain of {suites[0]['steps']} steps, begun at 0; there "
        f"the rules are {min(shares):.1f} to {max(shares):.1f} % of the energy. The first puzzles "
        f"of each suite; weights `{result['weights_sha256'][:12]}` of `{result['reasoner']}`, on "
        f"{result['device']}. By `python benchmarks/rules.py --write` at commit "
        f"{report.version(result['commit'])}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="enso")
    parser.add_argument("--puzzles", type=int, default=PUZZLES)
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="keep the result")
    options = parser.parse_args()
    try:
        loaded = loading.load(options.name, device=options.device)
        played = [Puzzles.of(name, open_set(name), options.puzzles) for name in SUITES]
        for puzzles in played:
            check_fits(loaded, puzzles)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if loaded.kind != "enso":
        parser.error(f"{options.name} is no Enso but of kind {loaded.kind}")
    suites = [measure(loaded, puzzles, STEPS) for puzzles in played]
    result = {
        "reasoner": loaded.name,
        "weights_sha256": loaded.sha256,
        "device": devices.name(loaded.reasoner.device),
        "commit": commit(),
        "suites": suites,
    }
    print(text(result))
    if options.write:
        report.keep("rules", result)


if __name__ == "__main__":
    main()
