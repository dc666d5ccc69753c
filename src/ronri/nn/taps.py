"""Taps: named places inside a network where one can listen and reach in.

A reasoner owns a `Taps` and passes activations through it:

    z_L = self.taps("z_L", z_L, h, l)

Idle, this returns what it was given: it costs nothing and breaks no compiled graph. Within
`listening` a function sees every activation of a site and may return another one instead.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from torch import Tensor


@final
@dataclass(frozen=True)
class Site:
    """Where an activation comes from: the name of the place, and how often it was passed.

    For TRM's `z_L` the cycles are H cycle and L cycle.
    """

    name: str
    cycles: tuple[int, ...]


# Gets an activation; returns None to leave it, or what to go on with.
Listener = Callable[[Site, Tensor], Tensor | None]


@final
class Taps:
    """The sites of one network."""

    def __init__(self, **sites: str) -> None:
        # Names, and what passes there.
        self.sites: dict[str, str] = sites
        self._listeners: Mapping[str, Listener] | None = None

    def __call__(self, name: str, activation: Tensor, *cycles: int) -> Tensor:
        if self._listeners is None:
            return activation
        return self._heard(self._listeners, name, activation, cycles)

    def _heard(
        self,
        listeners: Mapping[str, Listener],
        name: str,
        activation: Tensor,
        cycles: tuple[int, ...],
    ) -> Tensor:
        assert name in self.sites, f"{name} is not among the sites of this network"
        listener = listeners.get(name)
        changed = None if listener is None else listener(Site(name, cycles), activation)
        return activation if changed is None else changed

    @contextmanager
    def listening(self, listeners: Mapping[str, Listener]) -> Iterator[None]:
        """Listen at some sites while the block runs."""
        for name in listeners:
            if name not in self.sites:
                raise ValueError(f"there is no site {name!r}; there are {', '.join(self.sites)}")
        before = self._listeners
        self._listeners = dict(listeners)
        try:
            yield
        finally:
            self._listeners = before
