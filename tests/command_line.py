"""The command line as a user calls it, and a reasoner that needs no weights to be called."""

import json
from dataclasses import dataclass
from typing import Any, final

import pytest
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from ronri import registry
from ronri.cli import main
from ronri.data.stream import Batch
from ronri.reasoner import Lesson, Noise, Reasoner, Thought
from ronri.registry import Entry
from ronri.sudoku import exact
from ronri.sudoku.geometry import Geometry


class Ronri:
    """The command line, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: object, status: int = 0) -> str:
        """What a command prints; checks its exit status, and that errors are one line."""
        try:
            found = main([str(argument) for argument in arguments])
        except SystemExit as end:
            found = int(end.code or 0)
        captured = self.capsys.readouterr()
        assert found == status, captured.err
        if status == 2:
            assert captured.err.startswith("ronri: ")
            assert captured.err.count("\n") == 1
            return captured.err
        assert captured.err == ""
        return captured.out

    def json(self, *arguments: object, status: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", status=status))


@final
@dataclass(frozen=True, kw_only=True)
class Config:
    """How an oracle speaks."""

    # Steps until it is sure.
    needs: int = 3
    # Whether its last cell is wrong for ever.
    errs: bool = False


@final
class Oracle(Reasoner):
    """Knows the solution and comes to believe it, step by step; a puzzle without one is all ones.

    Loud rows are a step behind.
    """

    usual_steps = 8

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.config = config

    def training_step(self, batch: Batch, carry: Any, progress: Tensor) -> Lesson:
        raise NotImplementedError

    def begin(self, clues: UInt8[Tensor, "rows cells"], noise: Noise) -> Any:
        solutions = torch.from_numpy(exact.solve(clues.numpy()).solutions).long().clamp(min=1)
        if self.config.errs:
            solutions[:, -1] = solutions[:, -1] % self.geometry.size + 1
        return solutions, noise.loud.long(), 0

    def advance(self, state: Any) -> tuple[Any, Thought]:
        solutions, late, step = state
        sure = ((step + 1 - late) / self.config.needs).clamp(max=1.0)
        digits = self.geometry.size
        right = torch.nn.functional.one_hot(solutions - 1, digits).float()
        first = torch.nn.functional.one_hot(torch.zeros_like(solutions), digits).float()
        beliefs = sure[:, None, None] * right + (1 - sure[:, None, None]) * first
        thought = Thought(
            beliefs=beliefs,
            board=(beliefs.argmax(dim=-1) + 1).to(torch.uint8),
            halted=sure >= 1,
            confidence=sure,
        )
        return (solutions, late, step + 1), thought

    def keep(self, state: Any, rows: Int64[Tensor, "some"]) -> Any:
        solutions, late, step = state
        return solutions[rows], late[rows], step


def add_oracle(monkeypatch: pytest.MonkeyPatch, name: str = "oracle", **config: Any) -> str:
    """Make an oracle known by a name; it needs no weights, so it can be loaded by that."""
    entry = Entry(
        summary="Knows.",
        config=Config,
        build=lambda _, geometry: Oracle(Config(**config), geometry),
    )
    monkeypatch.setitem(registry.reasoners(), name, entry)
    return name
