"""Which reasoners there are: folders of `ronri/reasoners`, and packages outside that offer one.

A reasoner's package says what it is in one object, `REASONER`, without importing torch. A package
of someone else's offers such an object under the entry point group `ronri.reasoners`:

    [project.entry-points."ronri.reasoners"]
    mine = "my_package:REASONER"
"""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import ronri.reasoners
from ronri.recipe import Recipe
from ronri.sudoku.geometry import Geometry

if TYPE_CHECKING:
    from ronri.reasoner import Reasoner

GROUP = "ronri.reasoners"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What the house knows of a reasoner before it is built."""

    # One line for people.
    summary: str
    # Its config: a frozen dataclass.
    config: type[Any]
    build: Callable[[Any, Geometry], "Reasoner"]
    # Complete training runs by name. The one that has the reasoner's name is the default.
    recipes: Mapping[str, Callable[[], Recipe[Any]]] = field(default_factory=dict)
    # Whether clues are written into its boards: that it keeps them is then no merit of its own.
    clues_given: bool = False

    @property
    def learns(self) -> bool:
        """Whether there is anything to train; what does not learn needs no weights."""
        return bool(self.recipes)


@cache
def reasoners() -> dict[str, Entry]:
    """Every reasoner by name."""
    found: dict[str, Entry] = {}
    for module in pkgutil.iter_modules(ronri.reasoners.__path__):
        found[module.name] = import_module(f"ronri.reasoners.{module.name}").REASONER
    for point in entry_points(group=GROUP):
        if point.name in found:
            raise ValueError(
                f"two reasoners are called {point.name}: that of {point.value} needs another name"
            )
        found[point.name] = point.load()
    return found


def find(name: str) -> Entry:
    """The reasoner of that name."""
    if name not in reasoners():
        raise ValueError(f"there is no reasoner {name!r}; there are {', '.join(reasoners())}")
    return reasoners()[name]


def recipes() -> dict[str, Callable[[], Recipe[Any]]]:
    """Every recipe by name."""
    found: dict[str, Callable[[], Recipe[Any]]] = {}
    for reasoner, entry in reasoners().items():
        for name, make in entry.recipes.items():
            if name in found:
                raise ValueError(f"two recipes are called {name}: that of {reasoner} needs another")
            found[name] = make
    return found


def recipe(name: str) -> Recipe[Any]:
    """The recipe of that name."""
    if name not in recipes():
        raise ValueError(f"there is no recipe {name!r}; there are {', '.join(recipes())}")
    return recipes()[name]()
