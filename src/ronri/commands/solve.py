"""`ronri solve`"""

import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ronri.commands.output import AsJson, print_json, terminal


def solve(
    puzzle: Annotated[
        Positional[str],
        arg(metavar="PUZZLE", help="The puzzle, a file with it, or - for the standard input."),
    ],
    /,
    *,
    watch: Annotated[bool, arg(help="Show how the solver gets there.")] = False,
    as_json: AsJson = False,
) -> int:
    """Solve one puzzle: 16, 36 or 81 characters, or a grid as people draw it."""
    import time

    from ronri.sudoku import exact
    from ronri.sudoku.board import parse, to_line
    from ronri.sudoku.rules import solves
    from ronri.terminal import draw
    from ronri.terminal import watch as show

    if watch and as_json:
        raise ValueError("--watch is for people and --json for programs: choose one")
    clues = parse(_text(puzzle))
    console = terminal()
    if watch:
        show(exact.steps(clues), clues, console)
    exact.solve(clues[None])  # compiled, or read from the cache, before the clock runs
    started = time.perf_counter()
    found = exact.solve(clues[None])
    seconds = time.perf_counter() - started
    board, count, guesses = found.solutions[0], int(found.counts[0]), int(found.guesses[0])
    verified = bool(solves(board[None], clues[None])[0])
    if as_json:
        print_json(
            {
                "reasoner": "exact",
                "puzzle": to_line(clues),
                "board": to_line(board) if verified else None,
                "verified": verified,
                "solutions": ("none", "one", "several")[count],
                "guesses": guesses,
                "ms": 1000 * seconds,
            }
        )
        return 0 if verified else 1
    if not verified:
        console.print("no solution exists")
        return 1
    console.print(draw(board, clues))
    unique = "the only solution" if count == 1 else "one of several solutions"
    many = "1 guess" if guesses == 1 else f"{guesses} guesses"
    console.print(f"[green]✓[/] verified, {unique}; {many}, {1000 * seconds:.2f} ms")
    return 0


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
