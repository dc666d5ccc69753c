"""Everything that changes while a run goes on, and how it is written down and restored."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from ronri import loading, registry
from ronri.data.stream import Batch
from ronri.evaluation.commit import commit
from ronri.evaluation.readings import read
from ronri.evaluation.records import Records, score
from ronri.nn import devices, fused
from ronri.nn.ema import Ema, restore_tensors
from ronri.reasoner import Budget, Lesson, Reasoner
from ronri.recipe import Optim, Recipe, from_plain, to_plain
from ronri.training.checkpoints import Snapshot
from ronri.training.display import Validation
from ronri.training.distributed import World
from ronri.training.material import Material
from ronri.training.optimisers import build_optimisers, clip_gradients
from ronri.training.replay import Replay
from ronri.training.schedules import Schedule, scaled_lr


@final
class Run:
    """A reasoner in training: weights, averages, optimiser, carry, lessons, clock."""

    def __init__(self, recipe: Recipe[Any], world: World, batch: int, material: Material) -> None:
        self.recipe, self.world, self.batch, self.material = recipe, world, batch, material
        torch.manual_seed(recipe.seed)
        entry = registry.find(recipe.reasoner)
        self.reasoner: Reasoner = entry.build(recipe.model, recipe.geometry).to(world.device)
        self.reasoner.compute_dtype = devices.compute_dtype(world.device)
        fused.look(world.device)
        self.ema = Ema(self.reasoner)
        self.optimisers = build_optimisers(
            self.reasoner, _for_batch(recipe.optim, batch, recipe.base_batch)
        )
        self.schedule = Schedule(recipe.optim)
        slots = world.slots(batch)
        self.lessons = self.reasoner.lessons(
            material.sources,
            slots,
            seed=recipe.seed,
            augment=recipe.data.augment,
            early_part=recipe.data.early_part,
        )
        self._learn: Callable[[Batch, Any, Tensor], Lesson] = self.reasoner.training_step
        self._work: Callable[[], dict[str, Tensor]] = self._work_once
        self.carry = self.reasoner.initial_carry(slots)
        self._all_free = torch.ones_like(slots, dtype=torch.bool)
        self._progress_there = torch.zeros((), device=world.device)
        self.step = 0
        self.progress = 0.0
        # Seconds of this run, and minutes of training in the weights it began with.
        self.seconds, self.ancestors_minutes = 0.0, 0.0
        # Seconds that the slowest validation took: the last one, too, is to end in time. Of the
        # latest one it could shrink, and the run would go backwards.
        self.closing = 0.0
        # What a loss is compared with to tell that it has exploded.
        self.first_loss: float | None = None
        self.commit = commit()
        self.validation: Validation | None = None
        self.best: Validation | None = None

    def compile(self) -> None:
        """Compile what takes the time, and record updates where the device can replay them."""
        parts = self.reasoner.hot_parts()
        for part in parts:
            part.compile()
        if not parts:
            self._learn = torch.compile(self._learn)
        if self.world.size == 1 and self.world.device.type == "cuda":
            self._work = Replay(self._work_in_place)

    def update(self) -> dict[str, Tensor]:
        """One step on every slot and one update; returns what it measured, still on the device."""
        stage = self.reasoner.stage_at(self.progress)
        if stage != self.reasoner.stage:
            self.reasoner.stage = stage
            if isinstance(self._work, Replay):
                # Other work: what was recorded is of no use any more.
                self._work = Replay(self._work_in_place)
        self.lessons.move_to(self.progress)
        self._progress_there.fill_(self.progress)
        self.optimisers.set_rates(self.schedule.scale(self.step, self.progress))
        measured = self._work()
        self.step += 1
        return measured

    def _work_in_place(self) -> dict[str, Tensor]:
        """The work of an update, its carry in the memory of the one before."""
        before = self.carry
        measured = self._work_once()
        if before is not None:
            restore_tensors(before.tensors(), self.carry.tensors())
            self.carry = before
        return measured

    def _work_once(self) -> dict[str, Tensor]:
        """The work of an update: all that the device does."""
        free = self._all_free if self.carry is None else self.carry.free
        lesson = self._learn(self.lessons.take(free), self.carry, self._progress_there)
        self.carry = lesson.carry
        self.optimisers.zero_grad()
        lesson.loss.backward()
        parameters = list(self.reasoner.parameters())
        self.world.average_gradients(parameters)
        norm = clip_gradients(parameters, self.recipe.optim.clip)
        self.optimisers.step()
        self.reasoner.after_update(self._progress_there)
        self.ema.update(self.recipe.optim.ema)
        return {"loss": lesson.loss.detach(), **lesson.metrics, "gradient_norm": norm.detach()}

    def tick(self, seconds: float) -> None:
        """How much of the run is done, by whichever limit is set."""
        self.seconds = seconds
        if self.recipe.steps is not None:
            self.progress = self.step / self.recipe.steps
        else:
            assert self.recipe.minutes is not None
            self.progress = self.world.agree((seconds + self.closing) / 60 / self.recipe.minutes)

    @property
    def over(self) -> bool:
        return self.progress >= 1.0

    def rates(self) -> dict[str, float]:
        """Learning rates and momentum of the average, for the log."""
        rates = {f"lr.{name}": rate for name, rate in self.optimisers.learning_rates().items()}
        return {**rates, "ema": self.recipe.optim.ema}

    def admitted(self) -> int:
        """Puzzles begun, by all processes."""
        return sum(self.world.gathered(int(self.lessons.admitted)))

    def validate(self, progress: Callable[[int, int], None] | None = None) -> Validation:
        """Score the averaged weights on held-out puzzles, spread over processes.

        `progress` is told how many puzzles are done, if all processes are equally fast, and of
        how many.
        """
        mine = slice(self.world.rank, None, self.world.size)
        budget = Budget(steps=self.recipe.validation_steps)
        clues, solutions = self.material.clues, self.material.solutions
        count, share = len(clues), self.world.size
        tell = None if progress is None else lambda done: progress(min(done * share, count), count)
        begun = time.perf_counter()
        self.reasoner.eval()
        # What is compiled is compiled for the shapes of training.
        with self.ema.copied_into(self.reasoner), torch.compiler.set_stance("force_eager"):
            records = score(self.reasoner, clues[mine], solutions[mine], budget, progress=tell)
            readings = self._readings(clues, solutions)
        self.reasoner.train()
        scored = Records.joined(self.world.gathered(records))
        self.closing = max(self.closing, time.perf_counter() - begun)
        scores = {
            "puzzle_accuracy": float(scored.solved.mean()),
            "cell_accuracy": float(scored.cells_right.sum() / scored.cells_empty.sum()),
        }
        self.validation = Validation(self.step, scores | readings)
        if self.best is None or _merit(self.validation) >= _merit(self.best):
            self.best = self.validation
        return self.validation

    def _readings(self, clues: np.ndarray, solutions: np.ndarray) -> dict[str, float]:
        """The reasoner's own readings of all held-out puzzles, each process reading its part."""
        mine = slice(self.world.rank, None, self.world.size)
        device = self.world.device
        batch = Batch(
            torch.tensor(clues[mine], device=device),
            torch.tensor(solutions[mine], device=device),
            torch.arange(len(clues), device=device)[mine],
        )
        found = self.world.gathered((len(batch.keys), read(self.reasoner, batch)))
        # Where there are fewer puzzles than processes, some have read nothing.
        some = [(n, readings) for n, readings in found if n]
        return {
            name: sum(n * readings[name] for n, readings in some) / len(clues)
            for name in some[0][1]
        }

    # Written down and restored.

    def snapshot(self) -> Snapshot:
        carry = {} if self.carry is None else self.carry.tensors()
        tensors = {
            **_named("weights", self.reasoner.state_dict()),
            **_named("ema", self.ema.tensors()),
            **_named("optimiser", self.optimisers.tensors()),
            **_named("carry", self.world.joined(carry)),
            **_named("lessons", self.world.joined(self.lessons.tensors())),
            "rng.cpu": torch.get_rng_state(),
        }
        if self.world.device.type == "cuda":
            tensors["rng.cuda"] = torch.cuda.get_rng_state()
        facts = {
            "recipe": _as_written(self.recipe),
            "batch": self.batch,
            "seconds": self.seconds,
            "closing": self.closing,
            "ancestors_minutes": self.ancestors_minutes,
            "first_loss": self.first_loss,
            "commit": self.commit,
            "admitted": self.admitted(),
            "data": self.material.counts,
            "device": devices.name(self.world.device),
            "processes": self.world.size,
            "validation": None if self.validation is None else asdict(self.validation),
            "best": None if self.best is None else asdict(self.best),
        }
        return Snapshot(self.step, tensors, facts)

    def restore(self, snapshot: Snapshot) -> None:
        """Be what was written down."""
        facts, tensors = snapshot.facts, snapshot.tensors
        # Read, not compared as it is written: a setting that was not there yet is as it was then.
        if from_plain(type(self.recipe.model), facts["recipe"]) != self.recipe:
            raise ValueError(
                "the run was begun with other settings: resume it without changing them, "
                "or start another run with --init"
            )
        restore_tensors(self.reasoner.state_dict(), _under("weights", tensors))
        self.ema.load_tensors(_under("ema", tensors))
        self.optimisers.load_tensors(_under("optimiser", tensors))
        carry = {} if self.carry is None else self.carry.tensors()
        restore_tensors(carry, self.world.own(_under("carry", tensors)))
        self.lessons.load_tensors(self.world.own(_under("lessons", tensors)))
        torch.set_rng_state(tensors["rng.cpu"])
        if self.world.device.type == "cuda" and "rng.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["rng.cuda"])
        self.step, self.ancestors_minutes = snapshot.step, facts["ancestors_minutes"]
        self.first_loss, self.commit = facts["first_loss"], facts["commit"]
        # Older runs did not write it down.
        self.closing = facts.get("closing", 0.0)
        self.tick(facts["seconds"])
        self.validation, self.best = (
            None if facts[name] is None else Validation(**facts[name])
            for name in ("validation", "best")
        )

    def start_from(self, name: str) -> None:
        """Take the weights of another model; optimiser and average begin anew."""
        ancestor = loading.load(name, device=self.world.device)
        try:
            restore_tensors(self.reasoner.state_dict(), ancestor.reasoner.state_dict())
        except ValueError as error:
            raise ValueError(f"{name} does not fit this recipe: {error}") from error
        self.ema = Ema(self.reasoner)
        self.ancestors_minutes = ancestor.minutes


def _for_batch(optim: Optim, batch: int, base_batch: int) -> Optim:
    return replace(
        optim,
        lr=scaled_lr(optim.lr, batch, base_batch),
        matrix_lr=scaled_lr(optim.matrix_lr, batch, base_batch),
    )


def _as_written(recipe: Recipe[Any]) -> Any:
    """A recipe as it comes back from a file."""
    return json.loads(json.dumps(to_plain(recipe)))


def _merit(validation: Validation) -> tuple[float, float]:
    return validation.scores["puzzle_accuracy"], validation.scores["cell_accuracy"]


def _named(section: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{section}.{name}": tensor for name, tensor in tensors.items()}


def _under(section: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    prefix = f"{section}."
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
