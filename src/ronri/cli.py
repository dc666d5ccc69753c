"""The command line: which commands there are, and what happens when one fails.

Exit status: 0 done (a puzzle: solved and verified), 1 not solved, 2 bad input, told in one line.
"""

import io
import os
import signal
import sys
from typing import Annotated, Any, Union

import tyro
from tyro.conf import FlagCreatePairsOff, subcommand

from ronri import __version__
from ronri.commands import data
from ronri.commands.output import warn
from ronri.commands.solve import solve

# A group of commands is a dictionary of its own; its line of help stands below.
COMMANDS: dict[str, Any] = {
    "solve": solve,
    "data": {
        "generate": data.generate,
        "import": data.import_,
        "describe": data.describe,
        "split": data.split,
    },
}
GROUPS = {"data": "Generate, import, describe and split sets of puzzles."}


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the arguments name; returns the exit status."""
    # Ended from outside: clean up as after Ctrl-C, so that no half-written file stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Not every terminal can draw boxes; a question mark is better than no answer.
            stream.reconfigure(errors="replace")
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"ronri {__version__}")
        return 0
    try:
        status = tyro.cli(
            _union(COMMANDS),
            prog="ronri",
            description="A laboratory for neural reasoning on Sudoku.",
            args=arguments,
            config=(FlagCreatePairsOff,),
        )
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read our output has seen enough, as `| head` does. Nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        warn(f"{where}{error.strerror or error}")
        return 2
    except ValueError as error:
        warn(str(error))
        return 2
    except KeyboardInterrupt:
        warn("interrupted")
        return 130


def _union(commands: dict[str, Any]) -> Any:
    """Nested commands as the type that tyro reads."""
    kinds = []
    for name, command in commands.items():
        if isinstance(command, dict):
            kinds.append(Annotated[_union(command), subcommand(name, description=GROUPS[name])])
        else:
            kinds.append(Annotated[Any, subcommand(name, constructor=command)])
    return Union[tuple(kinds)]  # noqa: UP007 (the members are known only now)
