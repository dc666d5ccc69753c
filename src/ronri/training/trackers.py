"""Where the numbers of a run go: always a file of JSON lines, and what else the person likes.

    RUN/log.jsonl      one object a line: {"step": 100, "loss": 0.31, ...}
    RUN/tensorboard/   with the tracker `tensorboard`
    RUN/wandb/         with the tracker `wandb`; WANDB_MODE=offline keeps it here

A run that was killed goes on from its last checkpoint, and repeats the steps after it. Each tracker
sees to it that a step is there once: log a step before the checkpoint of that step is saved.
"""

import importlib
import json
import math
import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable


@runtime_checkable
class Tracker(Protocol):
    """Something that remembers numbers."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Remember the values of a step; steps only grow."""

    def close(self) -> None:
        """Bring everything to where it belongs. Nothing is logged after this."""


@final
class JsonLines:
    """One JSON object a line, each there as soon as it is logged.

    A run that resumes at a step keeps the lines up to it; any other run begins the file anew.
    """

    def __init__(self, path: Path, resume_at: int | None = None) -> None:
        if resume_at is not None and path.exists():
            _drop_after(path, resume_at)
        self._file = path.open("w" if resume_at is None else "a")

    def log(self, step: int, values: dict[str, float]) -> None:
        assert "step" not in values
        # JSON has no word for infinity or for no number.
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._file.write(json.dumps({"step": step, **finite}) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _drop_after(path: Path, step: int) -> None:
    """Cut a log off after a step, and before the line that a killed run had half written."""
    kept = 0
    with path.open("rb+") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                beyond = json.loads(line)["step"] > step
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"line {number} of {path} is no line of a log") from error
            if beyond:
                break
            kept += len(line)
        file.truncate(kept)


@final
class TensorBoard:
    """Event files for TensorBoard, which hides what a resumed run repeats."""

    def __init__(self, folder: Path, facts: dict[str, Any], resume_at: int | None = None) -> None:
        # The module is part of torch; what it needs is not.
        module = _extra("torch.utils.tensorboard", "tensorboard")
        purge = None if resume_at is None else resume_at + 1
        self._writer = module.SummaryWriter(str(folder / "tensorboard"), purge_step=purge)
        if resume_at is None:
            self._writer.add_text("facts", f"```json\n{json.dumps(facts, indent=2)}\n```")

    def log(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


@final
class WeightsAndBiases:
    """A run on Weights & Biases, which ignores what a resumed run repeats.

    The name it has there is in `wandb.id`, for the run to be found again.
    """

    def __init__(self, folder: Path, facts: dict[str, Any], resume_at: int | None = None) -> None:
        wandb = _extra("wandb", "wandb")
        name = folder / "wandb.id"
        if resume_at is None or not name.exists():
            name.write_text(secrets.token_hex(4) + "\n")
        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "ronri"),
                name=folder.resolve().name,
                id=name.read_text().strip(),
                resume="allow",
                dir=str(folder),
                config=facts,
            )
        except wandb.Error as error:
            raise ValueError(
                f"Weights & Biases: {error} Or keep the run here: WANDB_MODE=offline."
            ) from error

    def log(self, step: int, values: dict[str, float]) -> None:
        self._run.log(values, step=step)

    def close(self) -> None:
        self._run.finish()


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"the tracker {extra!r} needs {extra}: pip install 'ronri[{extra}]'"
        ) from error


@final
class Many:
    """Several trackers as one."""

    def __init__(self, trackers: tuple[Tracker, ...]) -> None:
        self._trackers = trackers

    def log(self, step: int, values: dict[str, float]) -> None:
        for tracker in self._trackers:
            tracker.log(step, values)

    def close(self) -> None:
        """Close all of them, even if one cannot be closed."""
        with ExitStack() as stack:
            for tracker in reversed(self._trackers):
                stack.callback(tracker.close)


EXTRAS: dict[str, Callable[[Path, dict[str, Any], int | None], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


def open_trackers(
    folder: Path, names: tuple[str, ...], facts: dict[str, Any], resume_at: int | None
) -> Tracker:
    """The JSON lines of a run, and the extras with these names.

    `facts` describe the run to those who show it: its config, the commit. `resume_at` is the step
    of the checkpoint the run goes on from, none for a new run.
    """
    for name in names:
        if name not in EXTRAS:
            raise ValueError(f"no tracker is called {name!r}, only {' and '.join(EXTRAS)}")
    folder.mkdir(parents=True, exist_ok=True)
    # The file last: an extra that cannot be opened must not cost a run its log.
    extras = (EXTRAS[name](folder, facts, resume_at) for name in names)
    return Many((*extras, JsonLines(folder / "log.jsonl", resume_at)))
