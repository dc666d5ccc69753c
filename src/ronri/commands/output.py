"""How commands speak: text for people, JSON for programs, progress on the error stream."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

from tyro.conf import arg

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[bool, arg(name="json", help="Print the result as JSON.")]
Threads = Annotated[int | None, arg(metavar="N", help="Threads to use; every core if not given.")]


def terminal() -> "Console":
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise  # not rich's exit status 1, which says "not solved" here

    return Terminal(highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """One line on the error stream."""
    print(f"ronri: {' '.join(message.split())}", file=sys.stderr)


@final
class Teller(logging.Handler):
    """What the library has to say while it works, where someone is looking."""

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr.isatty() or record.levelno >= logging.WARNING:
            warn(record.getMessage())


def print_json(result: dict[str, Any]) -> None:
    print(json.dumps(_plain(result), indent=2))


def _plain(value: Any) -> Any:
    """JSON knows no infinity, no paths and no numbers as keys."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return str(value) if isinstance(value, Path) else value


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream, so that the result can be piped; silent where nobody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
