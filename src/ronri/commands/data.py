"""`ronri data generate | import | describe | split`"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from ronri.commands.output import AsJson, Threads, print_json, progress_bar, terminal, warn

if TYPE_CHECKING:
    from ronri.data.store import PuzzleSet


def generate(
    out: Annotated[
        Positional[Path],
        arg(metavar="FILE", help="The file to write: .ronri, .csv or .txt, and .gz after these."),
    ],
    /,
    *,
    count: Annotated[int, arg(help="How many puzzles.")],
    kind: Annotated[
        Literal["clues", "minimal", "tricky", "hard"],
        arg(
            help="By number of clues; without a clue to spare; of these, the ones that take many "
            "guesses where singles alone are followed; or hard for a solver."
        ),
    ] = "clues",
    size: Annotated[Literal[4, 6, 9], arg(help="Digits on the board.")] = 9,
    clues: Annotated[
        str | None,
        arg(
            metavar="N-M",
            help="Number of clues, or a range to draw it from evenly "
            "(default: 24-36 on 9x9, 10-18 on 6x6, 4-8 on 4x4).",
        ),
    ] = None,
    guesses: Annotated[
        float | None,
        arg(
            metavar="X",
            help="Least mean number of guesses of a tricky or hard puzzle (default: 10).",
        ),
    ] = None,
    copies: Annotated[
        int, arg(help="Symmetric copies, or traces, over which guesses are averaged.")
    ] = 3,
    ancestors: Annotated[
        str | None, arg(metavar="NAME", help="A set or list of puzzles to breed hard ones from.")
    ] = None,
    exclude: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(
            metavar="NAME",
            help="A set, list or suite that the result shares nothing with, up to symmetry; "
            "may be given several times.",
        ),
    ] = (),
    seed: Annotated[int, arg(help="The same seed gives the same puzzles.")] = 0,
    shard: Annotated[str, arg(metavar="K/N", help="Part k of n, for many machines.")] = "1/1",
    threads: Threads = None,
    as_json: AsJson = False,
) -> int:
    """Make puzzles: by number of clues, minimal, tricky, hard. No two are alike up to symmetry."""
    import numpy as np

    from ronri.data.generating import Order, fulfil
    from ronri.data.splits import set_keys
    from ronri.data.writers import open_writer
    from ronri.sudoku.generate import Shard
    from ronri.sudoku.geometry import STANDARD

    for option, given, its_kinds in (
        ("--clues", clues, ("clues",)),
        ("--guesses", guesses, ("hard", "tricky")),
        ("--ancestors", ancestors, ("hard",)),
    ):
        if given is not None and kind not in its_kinds:
            kinds = " or ".join(its_kinds)
            raise ValueError(f"{option} goes with --kind {kinds}, not with --kind {kind}")
    geometry = next(g for g in STANDARD if g.size == size)
    fewest, most = _range(clues or {4: "4-8", 6: "10-18", 9: "24-36"}[size])
    order = Order(
        kind=kind,
        count=count,
        geometry=geometry,
        fewest_clues=fewest,
        most_clues=most,
        least_guesses=10.0 if guesses is None else guesses,
        copies=copies,
        seed=seed,
        shard=Shard.parse(shard),
        ancestors=None if ancestors is None else _opened(ancestors, threads).puzzles(),
    )
    excluded = np.zeros(0, np.uint64)
    for name in exclude:
        other = _opened(name, threads)
        if other.geometry != geometry:
            raise ValueError(f"{name} has {other.geometry.name} boards, not {geometry.name}")
        excluded = np.concatenate([excluded, set_keys(other, threads=threads).split])
    with (
        progress_bar("generating", count) as advance,
        open_writer(out, geometry, provenance=order.provenance) as writer,
    ):
        report = fulfil(order, writer, exclude=excluded, threads=threads, progress=advance)
    if as_json:
        print_json({"out": str(out), **asdict(report)})
    else:
        terminal().print(
            f"{out}: {report.kept:,} puzzles in {report.seconds:.1f} s; "
            f"{report.twins:,} twins and {report.excluded:,} excluded puzzles left out"
        )
    return 0


def import_(
    source: Annotated[
        Positional[str],
        arg(metavar="NAME", help="A CSV or plain list, plain or gzip, or a named data set."),
    ],
    out: Annotated[Positional[Path], arg(metavar="FILE", help="The set to write (.ronri).")],
    /,
    *,
    puzzle: Annotated[
        str | None, arg(metavar="COLUMN", help="Name of the column with the puzzles.")
    ] = None,
    solution: Annotated[
        str | None, arg(metavar="COLUMN", help="Name of the column with the solutions.")
    ] = None,
    rating: Annotated[
        str | None, arg(metavar="COLUMN", help="Name of the column with the ratings.")
    ] = None,
    source_column: Annotated[
        str | None, arg(metavar="COLUMN", help="Name of the column with the sources.")
    ] = None,
    limit: Annotated[int | None, arg(metavar="N", help="Only the first so many rows.")] = None,
    fraction: Annotated[
        float | None, arg(metavar="X", help="Only a random fraction of the rows.")
    ] = None,
    seed: Annotated[int, arg(help="Which random fraction.")] = 0,
    strict: Annotated[bool, arg(help="Stop at the first bad row.")] = False,
    threads: Threads = None,
    as_json: AsJson = False,
) -> int:
    """Read a list of puzzles, check and solve every one, and write a set."""
    from ronri.data.formats import Columns
    from ronri.data.importing import import_file
    from ronri.data.sources import is_set, locate

    columns = None
    if puzzle is not None:
        columns = Columns(puzzle=puzzle, solution=solution, rating=rating, source=source_column)
    elif solution or rating or source_column:
        raise ValueError("name the column with the puzzles too: --puzzle NAME")
    path = locate(source)
    if is_set(path):
        raise ValueError(f"{path} is a set already")
    with progress_bar(f"importing {path.name}", path.stat().st_size) as advance:
        report = import_file(
            path,
            out,
            columns=columns,
            limit=limit,
            fraction=fraction,
            seed=seed,
            strict=strict,
            threads=threads,
            progress=lambda step: advance(step.bytes_read),
        )
    if as_json:
        print_json({"out": str(out), **asdict(report)})
    else:
        console = terminal()
        for problem in report.examples:
            console.print(str(problem), style="yellow", markup=False)
        if report.rows - report.kept > len(report.examples):
            console.print("…", style="yellow")
        bad = ", ".join(f"{n:,} {reason}" for reason, n in report.bad.items())
        console.print(
            f"{report.rows:,} rows read, {report.kept:,} kept, "
            f"{report.rows - report.kept:,} refused{f' ({bad})' if bad else ''}; "
            f"{report.seconds:.1f} s"
        )
    if not report.kept:
        raise ValueError(f"{path} has no puzzle that can be used: nothing was written")
    return 0


def describe(
    name: Annotated[
        Positional[str], arg(metavar="NAME", help="A set, a list, a suite or a named data set.")
    ],
    /,
    *,
    against: Annotated[
        str | None, arg(metavar="NAME", help="Another one, to count what both have.")
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> int:
    """Count clues, ratings, duplicates up to symmetry, and what two sets share."""
    from ronri.data.describe import describe as look

    source = _opened(name, threads)
    other = None if against is None else _opened(against, threads)
    with progress_bar(f"describing {name}", None):
        found = look(source, other, threads=threads)
    if as_json:
        print_json(
            {"data": name, "against": against, "duplicates": found.duplicates, **asdict(found)}
        )
    else:
        from ronri.terminal.tables import description

        console = terminal()
        console.print(description(name, found, against, console.width))
    return 0


def split(
    name: Annotated[
        Positional[str], arg(metavar="NAME", help="A set, a list, a suite or a named data set.")
    ],
    folder: Annotated[
        Positional[Path], arg(metavar="FOLDER", help="Where to write the parts and the rule.")
    ],
    /,
    *,
    test: Annotated[
        str | None,
        arg(metavar="SIZE", help="Size of the test part: 5000, 0.05 or 5% (default: none)."),
    ] = None,
    validation: Annotated[
        str | None,
        arg(metavar="SIZE", help="Size of the validation part, likewise (default: 2%)."),
    ] = None,
    rule: Annotated[
        Path | None,
        arg(
            metavar="FILE", help="The split.json of an earlier split, to cut this set the same way."
        ),
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> int:
    """Cut a set into train, validation and test that share nothing, not even up to symmetry."""
    from ronri.data import splits

    if rule is not None and (test is not None or validation is not None):
        raise ValueError("--rule fixes the sizes: leave --test and --validation out")
    source = _opened(name, threads)
    with progress_bar(f"splitting {name}", None):
        report = splits.split(
            source,
            folder,
            test=splits.parse_size(test or "0"),
            validation=splits.parse_size(validation or "2%"),
            rule=None if rule is None else splits.SplitRule.read(rule),
            threads=threads,
        )
    if as_json:
        print_json({"counts": report.counts, "files": report.files, "rule": report.rule.to_json()})
    else:
        for part, path in report.files.items():
            terminal().print(f"{path}: {report.counts[part]:,} puzzles", highlight=False)
    return 0


def _opened(name: str, threads: int | None) -> "PuzzleSet":
    """The set of that name; rows of a list that were left out are not passed over in silence.

    A stored set has been reported on when it was imported; `describe` shows what it refused.
    """
    from ronri.data.sources import open_set

    with progress_bar(f"opening {name}", None):
        found = open_set(name, threads=threads)
    refused = found.header.provenance.get("refused")
    if refused is not None and found.path != Path(name):
        warn(f"{name}: rows left out: {refused}; `ronri data import` tells which")
    return found


def _range(text: str) -> tuple[int, int]:
    """Read '24-36', or '30' for exactly 30."""
    low, dash, high = text.partition("-")
    if not low.isdecimal() or (dash and not high.isdecimal()):
        raise ValueError(f"a number of clues is written like 30 or 24-36, not {text!r}")
    return int(low), int(high) if dash else int(low)
