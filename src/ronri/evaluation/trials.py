"""Trials: one reasoner, one data set, one budget, and everything that came of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from ronri.data import chance
from ronri.data.store import PuzzleSet
from ronri.data.stream import Batch
from ronri.evaluation.commit import commit
from ronri.evaluation.readings import TOGETHER, read
from ronri.evaluation.records import Records, score
from ronri.evaluation.scores import Scores, Stratum, by_rating, scores
from ronri.evaluation.work import measure
from ronri.loading import Loaded
from ronri.nn import devices
from ronri.reasoner import Budget, Halt, Reasoner
from ronri.sudoku.board import to_lines
from ronri.sudoku.geometry import Geometry

# Puzzles to begin with. At a second number of rows torch compiles for any above one: they become
# fewer as puzzles are solved.
WARM_UP = 2, 3


@final
@dataclass(frozen=True)
class Puzzles:
    """What a trial is held on."""

    # As the user called it.
    name: str
    geometry: Geometry
    clues: UInt8[np.ndarray, "puzzles cells"]
    solutions: UInt8[np.ndarray, "puzzles cells"]
    # NaN where unknown.
    ratings: Float32[np.ndarray, "puzzles"]

    @classmethod
    def of(cls, name: str, source: PuzzleSet, limit: int | None = None) -> "Puzzles":
        """The puzzles of a set, or the first `limit` of them."""
        if limit is not None and limit < 1:
            raise ValueError(f"a trial needs at least one puzzle, not {limit}")
        if len(source) == 0:
            raise ValueError(f"{name} has no puzzles")
        rows = slice(limit)
        return cls(
            name,
            source.geometry,
            source.puzzles(rows),
            source.solutions(rows),
            source.ratings(rows),
        )


@final
@dataclass(frozen=True, kw_only=True)
class Trial:
    """How one reasoner did on one data set with one budget."""

    reasoner: str
    puzzles: Puzzles
    budget: Budget
    records: Records
    scores: Scores
    strata: Sequence[Stratum]
    # None for a reasoner that does not compute in torch.
    flops_per_puzzle: float | None
    seed: int
    weights: str | None
    weights_sha256: str | None
    dtype: str
    device: str
    compiled: bool
    # What only this reasoner can tell.
    extra: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The result as `ronri eval --json` documents it."""
        return {
            "reasoner": self.reasoner,
            "data": self.puzzles.name,
            **asdict(self.scores),
            "flops_per_puzzle": self.flops_per_puzzle,
            "budget": asdict(self.budget),
            "one_pass": self.budget.one_pass,
            "by_rating": [
                {
                    "rating_min": stratum.rating_min,
                    # Nothing bounds the last class.
                    "rating_max": _known(stratum.rating_max),
                    "n": stratum.n,
                    "errors": stratum.errors,
                    "puzzle_accuracy": stratum.puzzle_accuracy,
                }
                for stratum in self.strata
            ],
            "seed": self.seed,
            "weights": self.weights,
            "weights_sha256": self.weights_sha256,
            "dtype": self.dtype,
            "device": self.device,
            "compiled": self.compiled,
            "commit": commit(),
            "extra": {name: _known(value) for name, value in self.extra.items()},
        }

    def lines(self) -> Iterator[dict[str, Any]]:
        """One record a puzzle, as `ronri eval --records` writes it."""
        found = self.records
        puzzles, boards = to_lines(self.puzzles.clues), to_lines(found.board)
        for index, (puzzle, board) in enumerate(zip(puzzles, boards, strict=True)):
            yield {
                "index": index,
                "puzzle": puzzle,
                "board": board,
                "solved": bool(found.solved[index]),
                "verified": bool(found.verified[index]),
                "steps": int(found.steps[index]),
                "row_steps": int(found.row_steps[index]),
                "confidence": _known(found.confidence[index]),
                "rating": _known(self.puzzles.ratings[index]),
            }


def check_fits(loaded: Loaded, puzzles: Puzzles) -> None:
    """Say so if a data set has other boards than a reasoner plays on."""
    own, other = loaded.reasoner.geometry, puzzles.geometry
    if own != other:
        raise ValueError(
            f"{loaded.name} plays on {own.name} boards and {puzzles.name} has {other.name} ones: "
            f"name other data, or a reasoner for {other.name}"
        )


def allowed(budget: Budget) -> int:
    """Row-steps a budget allows a puzzle."""
    return budget.steps * budget.samples * budget.views


def budgets(
    reasoner: Reasoner,
    *,
    steps: Sequence[int] = (),
    samples: Sequence[int] = (),
    views: Sequence[int] = (),
    halt: Halt = "fixed",
) -> list[Budget]:
    """Every combination of these, each once, from the smallest to the largest.

    Where nothing is named: one sample, one view, and the reasoner's usual number of steps. More
    steps than make sense to it are not taken, so they are not claimed either.
    """
    most = reasoner.most_steps
    found = [
        Budget(steps=s if most is None else min(s, most), samples=k, views=v, halt=halt)
        for s, k, v in product(steps or (reasoner.usual_steps,), samples or (1,), views or (1,))
    ]
    return sorted(dict.fromkeys(found), key=lambda b: (allowed(b), b.steps))


def hold(
    loaded: Loaded,
    puzzles: Puzzles,
    budget: Budget,
    *,
    seed: int = 0,
    max_rows: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Trial:
    """Let a reasoner think about puzzles, and score what it says."""
    check_fits(loaded, puzzles)
    reasoner, clues, solutions = loaded.reasoner, puzzles.clues, puzzles.solutions
    work = measure(reasoner, clues)
    # What is loaded or compiled once, at the first step of all, is nobody's thinking time.
    for few in WARM_UP if loaded.compiled else WARM_UP[:1]:
        score(reasoner, clues[:few], solutions[:few], replace(budget, steps=1), seed=seed)
    with loaded.as_compiled():
        records = score(
            reasoner, clues, solutions, budget, seed=seed, max_rows=max_rows, progress=progress
        )
    found = scores(records)
    flops = None
    if work is not None:
        flops = work.flops(float(records.rows.mean()), found.row_steps_per_puzzle)
    return Trial(
        reasoner=loaded.name,
        puzzles=puzzles,
        budget=budget,
        records=records,
        scores=found,
        strata=by_rating(records.solved, puzzles.ratings),
        flops_per_puzzle=flops,
        seed=seed,
        weights=loaded.weights,
        weights_sha256=loaded.sha256,
        dtype=str(reasoner.compute_dtype).removeprefix("torch."),
        device=_device_name(reasoner.device),
        compiled=loaded.compiled,
    )


def diagnosis(
    reasoner: Reasoner, puzzles: Puzzles, *, seed: int = 0, max_rows: int = TOGETHER
) -> dict[str, float]:
    """The reasoner's own readings (`Reasoner.diagnose`), averaged over puzzles."""
    device = reasoner.device
    numbers = torch.arange(len(puzzles.clues), device=device)
    keys = chance.fork(torch.full_like(numbers, chance.scramble_int(seed)), numbers)
    clues, solutions = (
        torch.tensor(one, device=device) for one in (puzzles.clues, puzzles.solutions)
    )
    return read(reasoner, Batch(clues, solutions, keys), max_rows=max_rows)


def _known(value: float | np.floating) -> float | None:
    """JSON knows neither infinity nor what is not a number."""
    return float(value) if np.isfinite(value) else None


def _device_name(device: torch.device) -> str:
    """What times depend on."""
    name = devices.name(device)
    return f"cuda ({name})" if device.type == "cuda" else name
