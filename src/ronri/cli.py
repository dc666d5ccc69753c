"""The command line: which commands there are, and what happens when one fails.

Exit status: 0 done (a puzzle: solved and verified), 1 not solved, 2 bad input, told in one line.
"""

import os
import signal
import sys
from typing import Annotated, Any, Union

import tyro
from tyro.conf import FlagCreatePairsOff, subcommand

from ronri.commands import data
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
    try:
        return tyro.cli(
            _union(COMMANDS),
            prog="ronri",
            description="A laboratory for neural reasoning on Sudoku.",
            args=arguments,
            config=(FlagCreatePairsOff,),
        )
    except BrokenPipeError:
        # Whoever read our output has seen enough, as `| head` does. Nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}")
    except ValueError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print("ronri: interrupted", file=sys.stderr)
        return 130


def _complain(message: str) -> int:
    print(f"ronri: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _union(commands: dict[str, Any]) -> Any:
    """Nested commands as the type that tyro reads."""
    kinds = []
    for name, command in commands.items():
        if isinstance(command, dict):
            kinds.append(Annotated[_union(command), subcommand(name, description=GROUPS[name])])
        else:
            kinds.append(Annotated[Any, subcommand(name, constructor=command)])
    return Union[tuple(kinds)]  # noqa: UP007 (the members are known only now)
