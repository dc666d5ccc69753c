"""How fast the game is: one table, on one core and on all, beside a SAT solver.

    python benchmarks/game.py [--write]

Every rate is measured in this run, on this machine; the SAT solver gets the same puzzles. Takes
less than two minutes. Real lists are used where they are found (see `ronri.data.sources`),
generated stand-ins elsewhere. `--write` keeps the result in `benchmarks/results/game.json` and
renews the table in the README.
"""

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from pysat.solvers import Solver
from rich.console import Console
from rich.table import Table

import report
from ronri.data.sources import LISTS, lists_folder, open_set
from ronri.sudoku import breeding, exact, generate, symmetry, trace
from ronri.sudoku.candidates import hidden_singles
from ronri.sudoku.geometry import NINE
from ronri.sudoku.kernels.compiled import cores

PAGE = report.ROOT / "README.md"

# python-sat's fastest CaDiCaL on these puzzles.
SAT = "cadical153"
SAT_TURN = 500


@dataclass(frozen=True)
class Rate:
    """Something done so many times a second."""

    what: str
    wanted: float
    """The least rate on one core that we promise; for the solver, times that of the SAT solver."""
    one_core: float
    all_cores: float
    sat: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.sat is None else self.one_core / self.sat

    @property
    def kept(self) -> bool:
        return (self.one_core if self.ratio is None else self.ratio) >= self.wanted


def best_rate(work: Callable[[], object], count: int, repeats: int = 3) -> float:
    """Items a second, in the fastest of several runs; the first one compiles and does not count."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return count / min(seconds)


def measure(
    what: str, wanted: float, work: Callable[[int | None], object], count: int, repeats: int = 3
) -> Rate:
    """The same work with one thread and with one for each core."""
    return Rate(
        what,
        wanted,
        best_rate(lambda: work(1), count, repeats),
        best_rate(lambda: work(None), count, repeats),
    )


def sat_rate(puzzles: np.ndarray, solutions: np.ndarray) -> float:
    """Puzzles a second for CaDiCaL, the clues of each puzzle given as assumptions."""

    def variable(cell: np.integer | int, digit: int) -> int:
        return 9 * int(cell) + int(digit)

    clauses = []
    for cell in range(81):
        clauses.append([variable(cell, digit) for digit in range(1, 10)])
        for a, b in combinations(range(1, 10), 2):
            clauses.append([-variable(cell, a), -variable(cell, b)])
    for unit in NINE.units:
        for digit in range(1, 10):
            clauses.append([variable(cell, digit) for cell in unit])
            for a, b in combinations(unit, 2):
                clauses.append([-variable(a, digit), -variable(b, digit)])
    assumptions = [
        [variable(cell, puzzle[cell]) for cell in np.flatnonzero(puzzle)] for puzzle in puzzles
    ]
    models = []
    started = time.perf_counter()
    # What it learns from one puzzle helps with the next, up to a point: fastest with a fresh start
    # now and then.
    for first in range(0, len(assumptions), SAT_TURN):
        with Solver(name=SAT, bootstrap_with=clauses) as solver:
            for clues in assumptions[first : first + SAT_TURN]:
                solver.solve(assumptions=clues)
                models.append(solver.get_model())
    seconds = time.perf_counter() - started
    for model, solution in zip(models, solutions, strict=True):
        assert all(model[variable(cell, solution[cell]) - 1] > 0 for cell in range(81))
    return len(puzzles) / seconds


def solver(suite: str, wanted: float) -> Rate:
    """The exact solver and the SAT solver on the same list."""
    listed = load(suite)
    rate = measure(
        f"solve {listed.name}",
        wanted,
        lambda threads: exact.solve(listed.puzzles, 1, threads=threads),
        len(listed.puzzles),
    )
    return replace(rate, sat=sat_rate(listed.puzzles, listed.solutions))


@dataclass(frozen=True)
class Listed:
    name: str
    puzzles: np.ndarray
    solutions: np.ndarray


def load(suite: str) -> Listed:
    """A suite, or something like it where its real list is not to be had."""
    folder = lists_folder()
    if suite not in LISTS or (folder is not None and (folder / LISTS[suite]).is_file()):
        source = open_set(suite)
        return Listed(f"`{suite}`", source.puzzles(), source.solutions())
    if suite == "hard":
        hard = breeding.hard_puzzles(2_000, seed=1)
        return Listed("bred hard puzzles", hard.puzzles, hard.solutions)
    few = generate.puzzles_with_clues(2_000, 22, 23, seed=1)
    return Listed("puzzles of 22 and 23 clues", few.puzzles, few.solutions)


def hard_rate(wanted: float, warm_up: float = 20.0, seconds: float = 8.0) -> Rate:
    """Hard puzzles bred a second, once the population has found hard parents by itself."""
    bred: list[generate.RatedPuzzles] = []

    def run(generations: Iterator[generate.RatedPuzzles], seconds: float) -> float:
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            bred.append(next(generations))
            count += len(bred[-1])
        return count / (time.perf_counter() - started)

    population = breeding.breed(seed=1)
    run(population, warm_up)
    all_cores = run(population, seconds)
    # On one core, from parents of the same kind; the first generations only find the best of them.
    ancestors = np.concatenate([batch.puzzles for batch in bred])[-2_000:]
    alone = breeding.breed(seed=2, threads=1, ancestors=ancestors)
    run(alone, seconds)
    return Rate("breed hard puzzles, ≥ 10 guesses", wanted, run(alone, seconds), all_cores)


def rates() -> Iterator[Rate]:
    yield solver("clue17", 16)
    yield solver("hard", 8)
    yield measure(
        "fill random grids",
        0,
        lambda threads: generate.random_grids(4_000, seed=1, threads=threads),
        4_000,
    )
    yield measure(
        "dig puzzles of 24 to 36 clues",
        0,
        lambda threads: generate.puzzles_with_clues(2_000, 24, 36, seed=1, threads=threads),
        2_000,
    )
    yield measure(
        "dig minimal puzzles",
        1_000,
        lambda threads: generate.minimal_puzzles(2_000, seed=1, threads=threads),
        2_000,
    )
    yield hard_rate(100)
    everyday = load("everyday")
    puzzles, solutions = everyday.puzzles, everyday.solutions
    yield measure(
        "record traces of `everyday`",
        10_000,
        lambda threads: trace.record(puzzles, seed=1, length=250, threads=threads),
        len(puzzles),
    )
    yield measure(
        "canonical solutions",
        15_000,
        lambda threads: symmetry.canonical_solutions(solutions, threads=threads),
        len(puzzles),
    )
    yield measure(
        "find hidden singles of `everyday`",
        0,
        lambda threads: hidden_singles(puzzles, threads=threads),
        len(puzzles),
    )
    yield measure(
        "canonical puzzles",
        15_000,
        lambda threads: symmetry.canonical_puzzles(puzzles, solutions, threads=threads),
        len(puzzles),
    )


def rows(found: list[Rate]) -> Iterator[tuple[str, ...]]:
    """The table, as text."""
    for rate in found:
        wanted = "" if not rate.wanted else f"{rate.wanted:,.0f}"
        if rate.ratio is None:
            yield (rate.what, f"{rate.one_core:,.0f}", f"{rate.all_cores:,.0f}", "", "", wanted)
            continue
        sat = f"{rate.sat:,.0f}"
        ratio = f"{rate.ratio:.0f} ×"
        wanted += " ×"
        yield (rate.what, f"{rate.one_core:,.0f}", f"{rate.all_cores:,.0f}", sat, ratio, wanted)


HEAD = ("work done per second", "one core", "all cores", "CaDiCaL", "ratio", "wanted")


def markdown(result: dict[str, object], found: list[Rate]) -> str:
    """The block of the README between its two marks."""
    where = f"{result['machine']}, {result['cores']} cores, Python {result['python']}"
    measured = f"Measured by `python benchmarks/game.py --write` on {where}.\n"
    return f"{report.table(HEAD, list(rows(found)))}\n{measured}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="keep the result, renew the README")
    write = parser.parse_args().write
    started = time.perf_counter()
    table = Table(*HEAD)
    found = []
    console = Console()
    for rate in rates():
        found.append(rate)
        console.print(f"{rate.what}: {rate.one_core:,.0f} a second on one core", highlight=False)
    for rate, row in zip(found, rows(found), strict=True):
        table.add_row(*row, style=None if rate.kept else "red")
    console.print(table)
    seconds = time.perf_counter() - started
    console.print(f"{seconds:.0f} s in all; promises kept: {all(rate.kept for rate in found)}")
    if write:
        result = {
            "machine": processor(),
            "cores": cores(),
            "python": platform.python_version(),
            "sat": SAT,
            "seconds": round(seconds, 1),
            "rates": [asdict(rate) for rate in found],
        }
        report.keep("game", result)
        report.renew(PAGE, "game", markdown(result, found))


def processor() -> str:
    """The name of the processor, where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
