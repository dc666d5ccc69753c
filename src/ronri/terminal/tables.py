"""What is known, in tables: sets of puzzles, reasoners, recipes and weights."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ronri.data.describe import Description


def description(name: str, found: Description, against: str | None, width: int) -> RenderableType:
    """What `ronri data describe` shows on a screen that is `width` characters wide."""
    known = Table.grid(padding=(0, 2))
    known.add_row("puzzles", f"{found.n:,} ({found.board})")
    for what, words in found.provenance.items():
        known.add_row(what, words)
    if len(found.sources) > 1 or "" not in found.sources:
        for source, n in found.sources.items():
            known.add_row("source", f"{source}: {n:,}")
    known.add_row("different up to symmetry", f"{found.distinct_puzzles:,}")
    known.add_row("solution grids up to symmetry", f"{found.distinct_solutions:,}")
    if found.mean_rating is not None:
        here = f" ({found.rated_here:,} rated here)" if found.rated_here else ""
        known.add_row("mean rating", f"{found.mean_rating:.2f}{here}")
    if found.overlap is not None:
        known.add_row(f"also in {against}", f"{found.overlap.puzzles:,} puzzles")
        known.add_row("with the same solution as one of it", f"{found.overlap.solutions:,} puzzles")
    clues = _histogram("clues", [(str(clues), n) for clues, n in found.clues.items()], width)
    ratings = _histogram("rating", [(c.label, c.n) for c in found.ratings], width)
    return Group(Text(name, style="bold"), known, Text(), clues, Text(), ratings)


def _histogram(what: str, bars: list[tuple[str, int]], width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(what, justify="right")
    table.add_column("puzzles", justify="right")
    table.add_column()
    longest = max((n for _, n in bars), default=0)
    room = max(5, min(40, width - 28))
    for label, n in bars:
        table.add_row(label, f"{n:,}", Text("█" * round(room * n / max(longest, 1)), style="cyan"))
    return table


def overview(found: dict[str, Any]) -> RenderableType:
    """What `ronri info` shows: reasoners, recipes and weights."""
    reasoners = _list("reasoners", "")
    for name, entry in found["reasoners"].items():
        reasoners.add_row(name, entry["summary"])
    recipes = _list("recipes", "board", "length", "")
    for name, recipe in found["recipes"].items():
        recipes.add_row(name, recipe["board"], _length(recipe), recipe["summary"])
    weights = _list("weights", "board", "size", "SHA-256", "solved in one pass")
    for name, facts in found["weights"].items():
        scores = _scores(facts["card"])
        size = f"{facts['bytes'] / 1e6:.1f} MB"
        weights.add_row(name, facts["board"], size, facts["sha256"][:12], scores)
    if not found["weights"]:
        weights.add_row("none yet", "", "", "", "")
    return Group(reasoners, Text(), recipes, Text(), weights)


def details(found: dict[str, Any]) -> RenderableType:
    """What `ronri info NAME` shows: a table for each thing that has the name."""
    tables: list[RenderableType] = []
    for what in ("reasoner", "recipe", "weights"):
        if what in found:
            table = _list(f"{found['name']}, {what}", "")
            _add(table, found[what], "")
            tables += [table, Text()]
    scores = found.get("weights", {}).get("card", {}).get("scores")
    if scores:
        table = _list("suite", "puzzles", "solved", "steps", "samples", "views", "halt")
        for score in scores:
            budget = score["budget"]
            spent = (str(budget[name]) for name in ("steps", "samples", "views", "halt"))
            solved = f"{score['puzzle_accuracy']:.2%}"
            table.add_row(score["data"], f"{score['n']:,}", solved, *spent)
        tables += [table, Text()]
    return Group(*tables[:-1])


def _add(table: Table, facts: dict[str, Any], place: str) -> None:
    """Facts in facts as `optim.lr`, one line each."""
    for name, value in facts.items():
        if isinstance(value, dict):
            _add(table, value, f"{place}{name}.")
        elif name == "scores":
            continue  # a table of their own
        elif isinstance(value, list | tuple):
            table.add_row(f"{place}{name}", ", ".join(map(str, value)))
        elif value is not None:
            table.add_row(f"{place}{name}", _said(value))


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _length(recipe: dict[str, Any]) -> str:
    steps, minutes = recipe["steps"], recipe["minutes"]
    return f"{minutes:g} minutes" if steps is None else f"{steps:,} steps"


def _scores(card: dict[str, Any]) -> str:
    """The scores of the first budget: one pass, as many steps as in training."""
    scores = card.get("scores", [])
    if not scores:
        return ""
    first = scores[0]["budget"]
    solved = (
        f"{score['data']} {score['puzzle_accuracy']:.2%}"
        for score in scores
        if score["budget"] == first
    )
    steps = "1 step" if first["steps"] == 1 else f"{first['steps']} steps"
    return f"{steps}: {', '.join(solved)}"


def _list(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
