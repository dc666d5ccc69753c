"""Grids as people and programs write them, and signs that they slip in."""

from collections.abc import Callable

from ronri.sudoku.geometry import Geometry


def rows_of(line: str, geometry: Geometry) -> list[str]:
    return [line[start : start + geometry.size] for start in range(0, len(line), geometry.size)]


def boxed(line: str, geometry: Geometry, bar: str, gap: str = "") -> list[str]:
    width = geometry.box_width
    return [
        bar.join(gap.join(row[start : start + width]) for start in range(0, len(row), width))
        for row in rows_of(line, geometry)
    ]


def ruled(rows: list[str], geometry: Geometry, top: str, middle: str, bottom: str) -> str:
    lines = [top]
    for index, row in enumerate(rows):
        if index and index % geometry.box_height == 0:
            lines.append(middle)
        lines.append(row)
    return "\n".join([*lines, bottom])


def simple_sudoku(line: str, geometry: Geometry) -> str:
    """*-----------* with |---+---| inside."""
    rows = [f"|{row}|" for row in boxed(line, geometry, "|")]
    inner = len(rows[0]) - 2
    stroke = "+".join(["-" * geometry.box_width] * (geometry.size // geometry.box_width))
    return ruled(rows, geometry, f"*{'-' * inner}*", f"|{stroke}|", f"*{'-' * inner}*")


def hodoku(line: str, geometry: Geometry) -> str:
    """Corners drawn with dots, colons and apostrophes."""
    rows = [f"| {row} |" for row in boxed(line, geometry, " | ", " ")]
    stroke = ["-" * (2 * geometry.box_width + 1)] * (geometry.size // geometry.box_width)
    return ruled(
        rows,
        geometry,
        "." + ".".join(stroke) + ".",
        ":" + "+".join(stroke) + ":",
        "'" + "'".join(stroke) + "'",
    )


def plain_rules(line: str, geometry: Geometry) -> str:
    """Ruled lines of nothing but strokes, as wide as a row with its bars."""
    rows = boxed(line, geometry, " | ", " ")
    stroke = "-" * len(rows[0])
    return ruled(rows, geometry, "", stroke, "")


def lists(line: str, geometry: Geometry) -> str:
    return "[" + ", ".join(f"[{', '.join(row)}]" for row in rows_of(line, geometry)) + "]"


FORMATS: dict[str, Callable[[str, Geometry], str]] = {
    "line": lambda line, _: line,
    "quoted": lambda line, _: f' "{line}" \n',
    "apostrophes": lambda line, _: f"'{line}'",
    "byte order mark": lambda line, _: f"\ufeff{line}\r\n",
    "spaced": lambda line, _: " ".join(line),
    "commas": lambda line, _: ",".join(line),
    "commas and blanks": lambda line, _: ", ".join(line) + ",",
    "tabs": lambda line, g: "\n".join("\t".join(row) for row in rows_of(line, g)),
    "rows": lambda line, g: "\n".join(rows_of(line, g)),
    "rows from Windows": lambda line, g: "\r\n".join(rows_of(line, g)) + "\r\n",
    "rows from an old Macintosh": lambda line, g: "\r".join(rows_of(line, g)),
    "rows far apart": lambda line, g: "\n\n  \n".join(f"  {row}\u00a0" for row in rows_of(line, g)),
    "bars": lambda line, g: "\n".join(boxed(line, g, "|")),
    "a bar at every cell": lambda line, g: "\n".join(f"|{'|'.join(r)}|" for r in rows_of(line, g)),
    "quoted rows": lambda line, g: '"' + "\n".join(rows_of(line, g)) + '"',
    "list": lambda line, _: f"[{', '.join(line)}]",
    "lists": lists,
    "lists on lines": lambda line, g: lists(line, g).replace("], [", "],\n ["),
    "bare array": lambda line, g: lists(line, g).replace("], [", "]\n [").replace(",", ""),
    "double lines": lambda line, g: ruled(boxed(line, g, "║"), g, "╔══╦══╗", "╠══╬══╣", "╚══╩══╝"),
    "equals": lambda line, g: ruled(boxed(line, g, "|", " "), g, "=====", "=========", "====="),
    "simple sudoku": simple_sudoku,
    "hodoku": hodoku,
    "plain rules": plain_rules,
}

ODD = [*"0123456789.*_-+=|,:;'\"#[]()/ \t\r\n\0\x0b\x1b\x7f", *"aAgGxXzZ", "\u00a0", "\ufeff"]
ODD += [
    "é",
    "│",
    "─",
    "┼",
    "５",
    "٣",
    "\u2028",
    "\u202e",
    "\u0301",
    "\ud800",
    "\udcff",
    "😀",
    "\r\n",
]
