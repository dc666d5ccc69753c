"""The command line: which commands there are, and what happens when one fails.

Exit status: 0 done (a puzzle: solved and verified), 1 not solved, 2 bad input, told in one line.
"""

import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Union

from tyro.conf import FlagCreatePairsOff, subcommand

from ronri import __version__
from ronri.commands import data
from ronri.commands.arguments import bound, meant, parse
from ronri.commands.compare import compare
from ronri.commands.eval import evaluate
from ronri.commands.info import info
from ronri.commands.output import Teller, warn
from ronri.commands.solve import solve
from ronri.commands.train import train

# A group of commands is a dictionary of its own; its line of help stands below.
COMMANDS: dict[str, Any] = {
    "solve": solve,
    "train": train,
    "eval": evaluate,
    "compare": compare,
    "data": {
        "generate": data.generate,
        "import": data.import_,
        "describe": data.describe,
        "split": data.split,
    },
    "info": info,
}
GROUPS = {
    "": "A laboratory for neural reasoning on Sudoku. `ronri --version` tells the version.",
    "data": "Generate, import, describe and split sets of puzzles.",
}
# They read what follows themselves: which options there are, their first argument says.
READ_THEMSELVES = (train,)


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the arguments name; returns the exit status."""
    # Ended from outside: clean up as after Ctrl-C, so that no half-written file stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # Threads of torch that wait should soon sleep. Spinning, as is their habit, they slow small
    # networks down a hundredfold on a machine that has other work too; a moment of it saves time.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Not every terminal can draw boxes; a question mark is better than no answer.
            stream.reconfigure(errors="replace")
    logging.getLogger("ronri").handlers = [Teller()]
    logging.getLogger("ronri").setLevel(logging.INFO)
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"ronri {__version__}")
        return 0
    try:
        status = _command(arguments)()
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


def run() -> None:
    """The process that is called `ronri`.

    It looks for garbage rarely: while torch and numba are imported there is none, and looking takes
    a sixth of the time that a puzzle takes. And it leaves without taking the interpreter apart:
    that takes half a second more, and there is nothing left to be done.
    """
    gc.set_threshold(500_000)
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _command(arguments: list[str]) -> Callable[[], int]:
    """The command that the arguments name, with what they say, ready to run."""
    command: Any = COMMANDS
    path, rest = "", list(arguments)
    while isinstance(command, dict):
        if rest and rest[0] in ("-h", "--help"):
            parse(_union(command), rest, command=path, description=GROUPS[path])
        word = rest.pop(0) if rest else None
        if word not in command:
            wrong = "name a command" if word is None else f"there is no command {word!r}"
            guess = meant(word or "", list(command))
            page = f"`{' '.join(['ronri', *path.split(), '--help'])}` tells more"
            raise ValueError(f"{wrong}{guess}; there are {', '.join(command)}; {page}")
        command, path = command[word], f"{path} {word}".strip()
    if command in READ_THEMSELVES:
        return partial(command, rest)
    return parse(bound(command), rest, command=path, markers=(FlagCreatePairsOff,))


def _union(commands: dict[str, Any]) -> Any:
    """Nested commands as the type that tyro reads."""
    kinds = []
    for name, command in commands.items():
        if isinstance(command, dict):
            kinds.append(Annotated[_union(command), subcommand(name, description=GROUPS[name])])
        else:
            kinds.append(Annotated[Any, subcommand(name, constructor=command)])
    return Union[tuple(kinds)]  # noqa: UP007 (the members are known only now)
