"""The one training loop, for every reasoner.

What differs between reasoners lives in their `training_step`. What is here: lessons in, loss,
gradients, one update, the moving average; and around it validation, checkpoints, the log.

A run is a folder. Killed at any moment, it goes on from its last checkpoint as if nothing had
happened: with a limit in steps, on a processor, to the same weights bit by bit.
"""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, final

import torch
from rich.console import Console

from ronri.nn.devices import within_memory
from ronri.recipe import Recipe, to_plain
from ronri.training.checkpoints import Checkpoints, Score
from ronri.training.display import Display, Status, Validation
from ronri.training.distributed import World, join_world, round_to_multiple
from ronri.training.material import gather
from ronri.training.run import Run
from ronri.training.schedules import auto_batch
from ronri.training.trackers import Tracker, open_trackers
from ronri.training.window import Diverged, Window

# What `auto` takes where the device does not say how much memory it has.
BATCH_ELSEWHERE = 256


@final
@dataclass(frozen=True)
class Result:
    """How a run ended."""

    step: int
    folder: Path
    minutes: float
    # The best validation, on averaged weights.
    puzzle_accuracy: float | None
    cell_accuracy: float | None
    stopped: Literal["done", "interrupted"]


def train(
    recipe: Recipe[Any],
    folder: Path,
    *,
    resume: bool = False,
    init: str | None = None,
    device: str | None = None,
    track: tuple[str, ...] = (),
    compile: bool | None = None,
    console: Console | None = None,
) -> Result:
    """Train a reasoner as the recipe says, into a folder.

    `init` names weights to start from, with a fresh optimiser. Without `compile`, what is compiled
    is what runs on a GPU.
    """
    with join_world(device) as world:
        console = console or Console(stderr=True, quiet=not world.writes)
        checkpoints = Checkpoints(folder)
        snapshot = checkpoints.latest(lambda line: console.print(line, style="bold red"))
        if snapshot is not None and not resume:
            raise ValueError(
                f"{folder} already holds a run at step {snapshot.step}: "
                "give --resume to go on with it, or another --out"
            )
        batch = snapshot.facts["batch"] if snapshot else _batch(recipe, world)
        if snapshot is not None and init is not None:
            raise ValueError(f"{folder} holds a run that has begun: --init is for a new one")
        material = gather(recipe, lambda line: console.print(line, style="yellow"))
        log: Tracker | None = None
        try:
            run = Run(recipe, world, batch, material)
            if snapshot is not None:
                run.restore(snapshot)
            elif init is not None:
                run.start_from(init)
            if world.writes and snapshot is None:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "config.json").write_text(json.dumps(to_plain(recipe), indent=2) + "\n")
            if compile or (compile is None and world.device.type == "cuda"):
                run.compile()
            if world.writes:
                facts = {"recipe": to_plain(recipe), "batch": batch, "commit": run.commit}
                log = open_trackers(folder, track, facts, run.step if snapshot else None)
            title = f"{recipe.reasoner} {recipe.board}"
            with (
                within_memory(world.device),
                Display(console, title, str(world.device)) as display,
            ):
                return _loop(run, folder, checkpoints, log, display)
        except Diverged as error:
            raise ValueError(f"{error}; {_last_good(checkpoints, folder)}") from error
        except (RuntimeError, MemoryError) as error:
            no_room = isinstance(error, torch.OutOfMemoryError | MemoryError)
            if not no_room and "allocate" not in str(error):
                raise
            half = max(1, round_to_multiple(batch // 2, world.size))
            raise ValueError(
                f"a batch of {batch} does not fit into the memory of {world.device}: "
                f"try --batch {half}"
            ) from error
        finally:
            if log is not None:
                log.close()


def _loop(
    run: Run,
    folder: Path,
    checkpoints: Checkpoints,
    log: Tracker | None,
    display: Display,
) -> Result:
    recipe, world = run.recipe, run.world
    window, pace = Window(world, run.first_loss), _Pace(run)
    values: dict[str, float] = {}
    begun = time.perf_counter() - run.seconds
    interrupted = False
    with _stop_signals() as stop:
        while not run.over and not interrupted:
            window.add(run.update())
            run.tick(time.perf_counter() - begun)
            log_is_due = run.step % recipe.log_every == 0 or run.over
            # Several processes must decide alike, so they ask each other, now and then.
            if world.size == 1 or log_is_due:
                interrupted = world.any(stop.asked)
            news: dict[str, float] = {}
            if log_is_due:
                values = {**window.close(run.step), **run.rates(), **pace.measure(run)}
                run.first_loss = window.first_loss
                news.update(values)
            if run.step % recipe.validate_every == 0 or run.over:
                window.check(run.step)
                found = run.validate(display.validating)
                news.update({f"validation.{name}": one for name, one in found.scores.items()})
                alarms = run.reasoner.alarms(found.scores)
                news["validation.alarms"] = float(len(alarms))
                for alarm in alarms:
                    display.warn(alarm)
                snapshot = run.snapshot()
                if world.writes:
                    checkpoints.offer(snapshot, _score(found))
                run.tick(time.perf_counter() - begun)
            if news:
                # Before the checkpoint: what a checkpoint knows is in the log.
                if log is not None:
                    log.log(run.step, news)
                display.update(_status(run, values))
            if run.step % recipe.checkpoint_every == 0 or run.over or interrupted:
                window.check(run.step)
                snapshot = run.snapshot()
                if world.writes:
                    checkpoints.save(snapshot)
    best = run.best.scores if run.best is not None else {}
    return Result(
        step=run.step,
        folder=folder,
        minutes=run.seconds / 60,
        puzzle_accuracy=best.get("puzzle_accuracy"),
        cell_accuracy=best.get("cell_accuracy"),
        stopped="done" if run.over else "interrupted",
    )


@final
class _Pace:
    """How fast a run goes, measured between two lines of the log."""

    def __init__(self, run: Run) -> None:
        self._mark(run, run.admitted())

    def _mark(self, run: Run, admitted: int) -> None:
        self._seconds, self._step, self._admitted = run.seconds, run.step, admitted

    def measure(self, run: Run) -> dict[str, float]:
        admitted = run.admitted()
        seconds = max(run.seconds - self._seconds, 1e-9)
        pace = {
            "seconds": run.seconds,
            "admitted": float(admitted),
            "admitted_per_second": (admitted - self._admitted) / seconds,
            "ms_per_step": 1000 * seconds / max(run.step - self._step, 1),
        }
        self._mark(run, admitted)
        return pace


def _score(validation: Validation) -> Score:
    scores = validation.scores
    return Score(scores["puzzle_accuracy"], scores["cell_accuracy"])


def _status(run: Run, values: dict[str, float]) -> Status:
    apart = {"seconds", "admitted", "admitted_per_second", "ms_per_step"}
    rates = run.rates()
    return Status(
        step=run.step,
        steps=run.recipe.steps,
        elapsed=run.seconds,
        minutes=run.recipe.minutes,
        metrics={k: v for k, v in values.items() if k not in apart and k not in rates},
        learning_rates=rates,
        validation=run.validation,
        best=run.best,
        admitted=int(values.get("admitted", 0)),
        admitted_per_second=values.get("admitted_per_second", 0.0),
        ms_per_step=values.get("ms_per_step", 0.0),
    )


def _batch(recipe: Recipe[Any], world: World) -> int:
    """Slots over all processes; `auto` asks the device how much memory it has."""
    if recipe.batch != "auto":
        return recipe.batch
    if world.device.type == "cuda":
        memory = torch.cuda.get_device_properties(world.device).total_memory
        return auto_batch(memory) * world.size
    return BATCH_ELSEWHERE * world.size


def _last_good(checkpoints: Checkpoints, folder: Path) -> str:
    kept = checkpoints.latest(_say_nothing)
    if kept is None:
        return "no checkpoint was kept yet: try a smaller learning rate"
    where = folder / "checkpoints" / f"step-{kept.step:08d}"
    return (
        f"the last good state is step {kept.step}: "
        f"go on from it with --init {where} and a smaller learning rate"
    )


def _say_nothing(line: str) -> None:
    del line


@final
class _Stop:
    asked = False


@contextmanager
def _stop_signals() -> Iterator[_Stop]:
    """Ctrl-C and SIGTERM ask the loop to save and end, once; a second Ctrl-C ends at once."""
    stop = _Stop()
    before: dict[int, Any] = {}

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        stop.asked = True
        signal.signal(number, before[number])

    for asking in (signal.SIGINT, signal.SIGTERM):
        before[asking] = signal.signal(asking, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
