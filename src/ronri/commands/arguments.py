"""From what was typed to what was meant: tyro reads arguments, and says what is wrong in one line.

tyro answers a mistake with a box of several lines. Here the box is caught before it is shown, and
what it says becomes the message of a `ValueError`, like every other mistake a person can make.
"""

import io
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from difflib import get_close_matches
from functools import partial, wraps
from itertools import takewhile
from typing import Any

import tyro
from tyro.conf import DisallowNone

# What tyro writes, and what we say instead. Anything else is said in tyro's own words.
_SAID_PLAINLY = (
    (r"^Error parsing (?:[a-z][\w.]*: )?", ""),
    (r"invalid choice (.*?) for argument '(.*?)'\. Expected .*?\((.*?),?\)\.", r"\2 is \3, not \1"),
    (r"(\S+): no type matching (\S+) could be instantiated from \[(.*?)\]\.", r"\1 is \2, not \3"),
    (r"(\S+): invalid literal for int\(\) with base 10: (.*)", r"\1 is INT, not \2"),
    (r"(\S+): could not convert string to float: (.*)", r"\1 is FLOAT, not \2"),
    (r"Missing value for argument '(.*?)'\. Expected 1 values\.", r"\1 needs a value"),
    (r"Missing value for argument '(.*?)'\. Expected (\d+) values\.", r"\1 needs \2 values"),
    # Wherever it stands: tyro puts choices in any order.
    (r", 'None'|'None', ", ""),
    (r"\bINT\b", "a whole number"),
    (r"\bFLOAT\b", "a number"),
    (r"\|\{(\w+)\}", r" or \1"),
)


def parse(
    form: Any,
    arguments: Sequence[str],
    *,
    command: str,
    default: Any = tyro.MISSING_NONPROP,
    description: str | None = None,
    markers: tuple[Any, ...] = (),
) -> Any:
    """What the arguments of `command` make of `form`, a function or a dataclass, as tyro reads it.

    Asked for help, it prints the page and leaves with `SystemExit`.
    """
    read = partial(
        tyro.cli,
        form,
        prog=f"ronri {command}".strip(),
        default=default,
        description=description,
        config=(DisallowNone, *markers),
    )
    if {"-h", "--help"} & set(arguments):
        return read(args=arguments)
    complaint = io.StringIO()
    try:
        # Off the screen tyro draws with plain characters and without colours.
        with redirect_stdout(complaint), redirect_stderr(complaint):
            found, rest = read(args=arguments, return_unknown_args=True)
    except SystemExit:
        found, rest = None, []
    said = complaint.getvalue()
    if not said and not rest:
        return found
    page = f"`ronri {command} --help` tells more"
    known = _options(read)
    for argument in arguments:
        option = argument.partition("=")[0].replace("_", "-")
        if re.match(r"--?[a-z]", option) and option not in known:
            guess = meant(option, known)
            raise ValueError(f"unknown option {option} for {command}{guess}; {page}")
    if rest:
        raise ValueError(f"{command} cannot make sense of {rest[0]!r}; {page}")
    raise ValueError(f"{_condensed(said, command)}; {page}")


def bound(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """A function with the signature of a command that does not run it yet."""

    @wraps(command)
    def later(*given: Any, **named: Any) -> Callable[[], int]:
        return partial(command, *given, **named)

    return later


def meant(word: str, known: Sequence[str]) -> str:
    """' (did you mean --steps?)', or nothing if nothing is like it."""
    inside = [option for option in known if option.endswith(f".{word.strip('-')}")]
    close = inside or get_close_matches(word, known, cutoff=0.75)
    return f" (did you mean {close[0]}?)" if close else ""


def _options(read: Callable[..., Any]) -> list[str]:
    """Every option, from the page that lists them."""
    page = io.StringIO()
    with redirect_stdout(page), suppress(SystemExit):
        read(args=["--help"])
    listed = re.findall(r"^ +(-[\w.-]+(?:, -[\w.-]+)*)", page.getvalue(), re.MULTILINE)
    return [option for names in listed for option in names.split(", ")]


def _condensed(box: str, command: str) -> str:
    """The first paragraph of a box, in one line and in plain words."""
    # A title and a ruled line stand above it, another ruled line or a blank one below.
    lines = box.splitlines()[2:]
    paragraph = list(takewhile(lambda line: line.strip(" -"), lines))
    # Arguments that are missing stand indented, and further in what they are for.
    missing = [line.split()[0] for line in paragraph if re.match(r" {6}\S", line)]
    if missing:
        return f"{command} needs {' and '.join(missing)}"
    text = " ".join(" ".join(paragraph).split())
    for pattern, plain in _SAID_PLAINLY:
        text = re.sub(pattern, plain, text)
    return text
