"""`ronri solve`"""

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

from tyro.conf import Positional, arg

from ronri.commands.eval import Device, Seed
from ronri.commands.output import AsJson, print_json, terminal

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from ronri.loading import Loaded
    from ronri.reasoner import Budget

# Who solves a puzzle when nobody is named: the network if its weights are here, else the solver.
NETWORK, SOLVER = "trm", "exact"


def solve(
    puzzle: Annotated[
        Positional[str],
        arg(metavar="PUZZLE", help="The puzzle, a file with it, or - for the standard input."),
    ],
    /,
    *,
    reasoner: Annotated[
        str | None,
        arg(
            metavar="NAME",
            help="Released weights, exact, or the folder of a model or a run.",
            help_behavior_hint="(default: trm for 9x9 boards, exact for others)",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        arg(
            metavar="N",
            help="Steps of thinking.",
            help_behavior_hint="(default: four times as many as in training)",
        ),
    ] = None,
    samples: Annotated[
        int, arg(metavar="K", help="Trains of thought, the first without noise.")
    ] = 1,
    views: Annotated[
        int, arg(metavar="V", help="Symmetric positions of the puzzle, the first as it is.")
    ] = 1,
    halt: Annotated[
        Literal["fixed", "own", "verified"] | None,
        arg(
            help="When to stop: after all steps, when the network itself says so, or when a board "
            "passes the check; then other samples and views begin after the first has failed.",
            help_behavior_hint="(default: verified)",
        ),
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    watch: Annotated[bool, arg(help="Show how it gets there.")] = False,
    as_json: AsJson = False,
) -> int:
    """Solve one puzzle: 16, 36 or 81 characters, or a grid as people draw it."""
    from ronri.sudoku.board import parse
    from ronri.sudoku.geometry import NINE, geometry_of

    if watch and as_json:
        raise ValueError("--watch is for people and --json for programs: choose one")
    clues = parse(_text(puzzle))
    name = reasoner or (NETWORK if len(clues) == NINE.cells else SOLVER)
    # Before torch is imported, for it has time to spare while that is done.
    counting = Counting(clues) if name != SOLVER else None
    if name == NETWORK:
        _import_torch()
    if reasoner is None and not _is_here(name):
        name = SOLVER
    console = terminal()
    if counting is None or name == SOLVER:
        if steps or halt or (samples, views) != (1, 1):
            raise ValueError(
                "exact searches until it is done: --steps, --samples, --views and --halt are for "
                "networks, see --reasoner"
            )
        found = _search(clues, console if watch else None)
    else:
        from ronri.loading import load

        loaded = load(name, device=device, geometry=geometry_of(clues))
        loaded.check_fits(geometry_of(clues))
        budget = loaded.budget(steps=steps, samples=samples, views=views, halt=halt)
        found = _think(loaded, clues, budget, seed, counting, console if watch else None)
    if as_json:
        print_json(found.to_json())
    else:
        _show(found, console)
    return 0 if found.verified else 1


@final
@dataclass(frozen=True, kw_only=True)
class Found:
    """What came of a puzzle."""

    reasoner: str
    clues: "np.ndarray"
    # The solution if it is verified, else the best there was; None if nothing can be said.
    board: "np.ndarray | None"
    verified: bool
    # How many the exact solver counts, up to two.
    num_solutions: int
    steps: int = 1
    row_steps: int = 1
    confidence: float
    seconds: float
    sha256: str | None = None
    # How much thinking was allowed, and the seed of its noise: what only networks have.
    budget: "Budget | None" = None
    seed: int = 0
    energy: float | None = None
    # What only the exact solver has.
    guesses: int | None = None
    # What it took, in words.
    effort: str

    def to_json(self) -> dict[str, Any]:
        from ronri.sudoku.board import to_line

        best = None if self.board is None else to_line(self.board)
        return {
            "reasoner": self.reasoner,
            "puzzle": to_line(self.clues),
            "board": best if self.verified else None,
            "best_board": best,
            "verified": self.verified,
            "solutions": ("none", "one", "several")[self.num_solutions],
            "steps": self.steps,
            "row_steps": self.row_steps,
            "confidence": self.confidence,
            "ms": 1000 * self.seconds,
            "weights_sha256": self.sha256,
            **({} if self.energy is None else {"energy": self.energy}),
            **({} if self.budget is None else {"budget": asdict(self.budget), "seed": self.seed}),
            **({} if self.guesses is None else {"guesses": self.guesses}),
        }


def _import_torch() -> None:
    """Import torch, on a processor without what only its compiler needs: a quarter less to import.

    Our network thinks there without being compiled. Kernels for other devices belong to the
    compiler's world, so where there is one torch is completed.
    """
    if "torch" in sys.modules:
        return
    name = "torch._meta_registrations"
    sys.modules[name] = ModuleType(name)
    try:
        import torch
    finally:
        del sys.modules[name]
    if torch.accelerator.is_available():
        import_module(name)


def _is_here(name: str) -> bool:
    if name == SOLVER:
        return True
    from ronri.loading import released

    return name in released()


def _search(clues: "np.ndarray", console: "Console | None") -> Found:
    """Let the exact solver search; on a console, everyone can watch."""
    from ronri.sudoku import exact
    from ronri.sudoku.rules import solves

    if console is not None:
        from ronri.terminal.search import watch

        watch(exact.steps(clues), clues, console)
    exact.solve(clues[None])  # compiled, or read from the cache, before the clock runs
    started = time.perf_counter()
    found = exact.solve(clues[None])
    seconds = time.perf_counter() - started
    verified = bool(solves(found.solutions, clues[None])[0])
    guesses = int(found.guesses[0])
    many = "1 guess" if guesses == 1 else f"{guesses} guesses"
    return Found(
        reasoner=SOLVER,
        clues=clues,
        board=found.solutions[0] if verified else None,
        verified=verified,
        num_solutions=int(found.counts[0]),
        confidence=float(verified),
        seconds=seconds,
        guesses=guesses,
        effort=f"{many}, {1000 * seconds:.2f} ms",
    )


@final
class Counting:
    """How many solutions a puzzle has, up to two, by the exact solver in a process of its own.

    The solver takes half a second to get ready and torch a whole one: on two cores, both at once.
    Where torch is there already, the solver is called when its answer is wanted.
    """

    def __init__(self, clues: "np.ndarray") -> None:
        self._clues = clues
        self._process: subprocess.Popen[str] | None = None
        if "torch" not in sys.modules:
            with suppress(OSError):
                self._process = self._started()

    def _started(self) -> "subprocess.Popen[str]":
        from ronri.sudoku.board import to_line

        code = (
            "import sys; from ronri.sudoku import board, exact; "
            "print(exact.solve(board.parse(sys.argv[1])[None]).counts[0])"
        )
        # -P: nothing is imported from whatever folder the user happens to be in.
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, to_line(self._clues)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def result(self) -> int:
        if self._process is not None:
            said, _ = self._process.communicate()
            if self._process.returncode == 0:
                return int(said)
        from ronri.sudoku import exact

        return int(exact.solve(self._clues[None]).counts[0])


def _think(
    loaded: "Loaded",
    clues: "np.ndarray",
    budget: "Budget",
    seed: int,
    counting: Counting,
    console: "Console | None",
) -> Found:
    """Let a network think; on a console, everyone can watch."""
    from contextlib import nullcontext

    import torch

    from ronri.thinking import answer

    watching: Any = nullcontext()
    if console is not None:
        from ronri.terminal.watching import Watch

        watching = Watch(console, clues, budget, loaded.name)
    started = time.perf_counter()
    with watching as watch:
        found = answer(
            loaded.reasoner, torch.from_numpy(clues[None]), budget, seed=seed, watch=watch
        )
    board, verified = found.board[0].cpu().numpy(), bool(found.verified[0])
    seconds = time.perf_counter() - started
    steps, row_steps = int(found.steps[0]), int(found.row_steps[0])
    effort = f"{loaded.name} thought for {steps} step{'s' * (steps != 1)}"
    if row_steps != steps:
        effort += f", {row_steps} row-steps in all"
    energy = found.energy_of(0)
    if energy is not None:
        effort += f", energy {energy:.3g}"
    if console is None:
        effort += f", {1000 * seconds:.0f} ms"
    return Found(
        reasoner=loaded.name,
        clues=clues,
        board=board,
        verified=verified,
        # Asked only now, and only how many there are: what is shown is the network's own.
        num_solutions=counting.result(),
        steps=steps,
        row_steps=row_steps,
        confidence=float(found.confidence[0]),
        energy=energy,
        budget=budget,
        seed=seed,
        seconds=seconds,
        sha256=loaded.sha256,
        effort=effort,
    )


def _show(found: Found, console: "Console") -> None:
    from ronri.terminal.boards import draw, wrong_cells

    if found.board is not None:
        wrong = () if found.verified else wrong_cells(found.board, found.clues)
        console.print(draw(found.board, found.clues, wrong=wrong))
    if found.verified:
        unique = "the only solution" if found.num_solutions == 1 else "one of several solutions"
        console.print(f"[green]✓[/] verified, {unique}; {found.effort}")
    elif found.board is None:
        console.print("no solution exists")
    else:
        console.print(f"[red]✗[/] not solved: {_faults(found.board, found.clues)}; {found.effort}")
        told = (
            "no solution exists",
            "one solution exists: try more --steps, --samples, --views, or --reasoner exact",
            "several solutions exist, and networks learn from puzzles that have one: "
            "try --reasoner exact, or more --samples, --views",
        )
        console.print(told[found.num_solutions])


def _faults(board: "np.ndarray", clues: "np.ndarray") -> str:
    """'the best board breaks 5 rules and changes 1 clue'."""
    from ronri.sudoku.rules import units_satisfied

    broken = int((~units_satisfied(board[None])).sum())
    changed = int(((clues > 0) & (board != clues)).sum())
    faults = [
        f"{verb} {count} {what}{'s' * (count != 1)}"
        for verb, count, what in (("breaks", broken, "rule"), ("changes", changed, "clue"))
        if count
    ]
    return f"the best board {' and '.join(faults)}"


def _text(puzzle: str) -> str:
    """The puzzle itself, or what stands in the file (or on the standard input) it names."""
    if puzzle == "-":
        return sys.stdin.read()
    # Text with line breaks, or as long as a board, is no name of a file; letters make it one.
    path = Path(puzzle)
    if not puzzle or "\n" in puzzle or len(puzzle) > 200:
        return puzzle
    if path.is_dir():
        raise ValueError(f"{puzzle} is a folder; name a file with a puzzle")
    if path.exists():
        if path.stat().st_size > 10_000:
            raise ValueError(f"{puzzle} is too large to be one puzzle; see `ronri data describe`")
        return path.read_text(encoding="utf-8", errors="replace")
    if len(puzzle) < 81 and any(character.isalpha() for character in puzzle):
        raise ValueError(f"{puzzle!r} is no puzzle, and there is no file of that name")
    return puzzle
