"""The contract every reasoner keeps.

A reasoner learns (`training_step`) and thinks (`begin`, `advance`, `keep`). Everything else, how
many rows a puzzle gets, when thinking ends, which board wins, is decided in `ronri.thinking`, once
for all of them.

A *slot* is a place in a training batch, a *row* one train of thought. A puzzle may have many rows:
samples x views.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, final, get_args, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor, nn

from ronri.data import chance
from ronri.data.stream import Batch, PuzzleStream, Source
from ronri.sudoku.geometry import Geometry

# When to stop thinking: after all steps, when the reasoner says so, or when a board is right.
Halt = Literal["fixed", "own", "verified"]


@final
@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much thinking is allowed."""

    steps: int
    # Trains of thought that differ by noise. The first has none.
    samples: int = 1
    # Symmetric positions of the puzzle. The first is the puzzle as it is.
    views: int = 1
    # Verified: rows with noise or in other views think after the plain one, where it has failed.
    halt: Halt = "fixed"

    def __post_init__(self) -> None:
        if min(self.steps, self.samples, self.views) < 1:
            raise ValueError("steps, samples and views are at least 1")
        if self.halt not in get_args(Halt):
            raise ValueError(f"halt is {', '.join(get_args(Halt))}, not {self.halt!r}")

    @property
    def depth(self) -> int:
        """Steps one after another, at most."""
        turns = 2 if self.halt == "verified" and self.samples * self.views > 1 else 1
        return turns * self.steps

    @property
    def one_pass(self) -> bool:
        """One row, no noise, no views, no check: everything else is test-time compute."""
        return self.samples == self.views == 1 and self.halt != "verified"


@final
@dataclass(frozen=True)
class Noise:
    """Randomness of rows: it depends on the seed, the puzzle, the view and the sample alone."""

    keys: Int64[Tensor, "rows"]
    # Quiet rows get zeros: the plain pass.
    loud: Bool[Tensor, "rows"]
    # Whether all rows are quiet, known without asking the device.
    silent: bool

    def normal(self, step: int | Int64[Tensor, "rows"], count: int) -> Float[Tensor, "rows count"]:
        """Standard normal numbers for step `step`: a tensor where a compiled graph counts."""
        return chance.normal(chance.fork(self.keys, step), count) * self.loud[:, None]

    def rows(self, which: Int64[Tensor, "some"]) -> "Noise":
        return Noise(self.keys[which], self.loud[which], self.silent)


@final
@dataclass(frozen=True)
class Thought:
    """What all rows think at one moment."""

    # Probability of each digit in each cell.
    beliefs: Float[Tensor, "rows cells digits"]
    # The board as the network says it. Clues are not pasted in, unless its registry entry says so.
    board: UInt8[Tensor, "rows cells"]
    # Whether the reasoner would stop here.
    halted: Bool[Tensor, "rows"]
    # How sure it is: decides between boards of one puzzle when the check cannot.
    confidence: Float[Tensor, "rows"]
    energy: Float[Tensor, "rows"] | None = None
    # What happened: kind, cell, digit. A kind without a cell has cell -1 and digit 0.
    events: Int64[Tensor, "rows 3"] | None = None


@runtime_checkable
class Carry(Protocol):
    """What slots remember from one training step to the next."""

    @property
    def free(self) -> Bool[Tensor, "slots"]:
        """Slots that are done with their puzzle and take a new one."""
        ...

    def tensors(self) -> dict[str, Tensor]: ...


@final
@dataclass(frozen=True)
class Lesson:
    """What one training step gives."""

    # Mean over the slots of all processes: gradients are averaged over processes.
    loss: Float[Tensor, ""]
    carry: Any
    # Means over slots, for the log.
    metrics: Mapping[str, Tensor] = field(default_factory=dict)


@runtime_checkable
class Lessons(Protocol):
    """A source of lessons; `ronri.data.stream.PuzzleStream` is one."""

    def move_to(self, progress: float) -> None: ...
    def take(self, free: Bool[Tensor, "slots"]) -> Batch: ...
    @property
    def admitted(self) -> Int64[Tensor, ""]: ...
    def tensors(self) -> dict[str, Tensor]: ...
    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None: ...


class Reasoner(nn.Module, ABC):
    """Something that learns to solve puzzles by thinking."""

    # What to compute in; weights stay in float32. Whoever knows the device sets it.
    compute_dtype: torch.dtype = torch.float32
    # The stage of training; whoever trains sets it.
    stage: int = 0
    # Steps to think when nobody says how many, and the most that make sense.
    usual_steps: int = 1
    most_steps: int | None = None

    def __init__(self, geometry: Geometry) -> None:
        super().__init__()
        self.geometry = geometry
        # Tells where a reasoner without weights lives.
        self.register_buffer("_place", torch.zeros(()), persistent=False)

    @property
    def device(self) -> torch.device:
        place = self._place
        assert isinstance(place, Tensor)
        return place.device

    # Learning.

    def lessons(
        self,
        sources: Sequence[Source],
        slots: Int64[Tensor, "slots"],
        *,
        seed: int,
        augment: bool,
        early_part: float = 0.0,
    ) -> Lessons:
        """Where lessons come from: puzzles, unless a reasoner needs something else."""
        return PuzzleStream(
            sources, self.geometry, slots, seed=seed, augment=augment, early_part=early_part
        )

    def initial_carry(self, slots: Int64[Tensor, "slots"]) -> Any:
        """What slots of these numbers remember before the first step; None for nothing.

        Its tensors keep their names and shapes for ever, and none shares memory with another: what
        a later step remembers may be written over them.
        """
        del slots
        return None

    @abstractmethod
    def training_step(self, batch: Batch, carry: Any, progress: Float[Tensor, ""]) -> Lesson:
        """One step on one batch. `progress` grows from 0 to 1 over the run.

        On a GPU it is recorded once and replayed, with `after_update` and what comes from
        `lessons`: it does the same to tensors every time, and reads none of them back.
        """

    def hot_parts(self) -> Sequence[nn.Module]:
        """What to compile: modules that are called again and again and take most of the time.

        Without any, the training step is compiled as a whole.
        """
        return ()

    def thinking_parts(self) -> Sequence[nn.Module]:
        """What to compile for thinking alone, where someone asks for that; without any, nothing."""
        return self.hot_parts()

    def stage_at(self, progress: float) -> int:
        """The stage of its curriculum that a run is in; 0 where there is none.

        Where it changes, the loop sets `stage`. Within a stage every training step does the same
        work on tensors of the same shapes: it may be recorded once and replayed.
        """
        del progress
        return 0

    def after_update(self, progress: Float[Tensor, ""]) -> None:
        """What follows the optimiser: moving averages of a reasoner's own, and the like."""
        del progress

    def diagnose(self, batch: Batch) -> dict[str, float]:
        """Readings that need the answer, at each validation; means over the batch.

        What a mean over parts would not be, is computed over all processes here.
        """
        del batch
        return {}

    def alarms(self, readings: Mapping[str, float]) -> Sequence[str]:
        """What is wrong with the network by its own readings, in a sentence each."""
        del readings
        return ()

    # Thinking.

    @abstractmethod
    def begin(self, clues: UInt8[Tensor, "rows cells"], noise: Noise) -> Any:
        """The state of mind before the first step."""

    @abstractmethod
    def advance(self, state: Any) -> tuple[Any, Thought]:
        """One step of thinking, for all rows together."""

    @abstractmethod
    def keep(self, state: Any, rows: Int64[Tensor, "some"]) -> Any:
        """The state of some of the rows."""
