"""A recipe: everything a training run is made of, as data.

Recipes are made by functions in a reasoner's own folder, changed by a file and by flags
(`changed`), written beside every checkpoint (`to_plain`) and read back strictly (`from_plain`):
an unknown key is an error, not a silent default. Nothing here imports torch, so that the command
line can show every field without waiting for it.
"""

import json
import math
import tomllib
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ronri.sudoku.geometry import STANDARD, Geometry

FORMAT = 1

Model = TypeVar("Model")


@dataclass(frozen=True, kw_only=True)
class Data:
    """What a run learns from, and what it is checked on while it learns."""

    # Sets to learn from: NAME, or NAME=WEIGHT to draw from some more often than from others.
    train: tuple[str, ...]
    # How often to draw from them at the very beginning, written likewise; those not named, not at
    # all. From there the mixture moves to that of `train`.
    early: tuple[str, ...] = ()
    # The part of the run that this takes.
    early_part: float = 0.0
    # The part of them that is held out, chosen by canonical form.
    validation: float = 0.02
    # At most so many held-out puzzles are scored at a time.
    validation_puzzles: int = 1024
    # Show every puzzle in a new symmetric position each time.
    augment: bool = True


@dataclass(frozen=True, kw_only=True)
class Optim:
    """How weights follow gradients."""

    # Muon moves matrices inside blocks, and AdamW everything else; or one of the others alone.
    name: Literal["adamw", "muon", "adam-atan2"] = "adamw"
    # Learning rate, for batches of `base_batch`.
    lr: float
    # Muon's learning rate.
    matrix_lr: float = 0.004
    # How long AdamW and AdamATan2 remember gradients and their squares.
    betas: tuple[float, float] = (0.9, 0.95)
    # How fast weights shrink by themselves.
    weight_decay: float = 0.0
    # What weight decay acts on.
    decay: Literal["matrices", "all"] = "matrices"
    # Muon's momentum.
    momentum: float = 0.95
    # Longest gradient; 0 for any length.
    clip: float = 1.0
    # Updates until the learning rate is full.
    warmup: int = 200
    # The part of a run that this takes at most. Beyond 1 it may be longer than the run.
    warmup_part: float = 0.2
    # What the learning rate does after warm-up.
    schedule: Literal["cosine", "constant"] = "cosine"
    # Where the cosine ends, as a fraction of the learning rate.
    final: float = 0.0
    # Momentum of the moving average of weights that is scored and released.
    ema: float = 0.999


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[Model]):
    """A complete training run. Exactly one of `steps` and `minutes` is set."""

    # Name of the reasoner: a folder of ronri/reasoners, or an entry point.
    reasoner: str
    # The boards it plays on.
    board: Literal["4x4", "6x6", "9x9"] = "9x9"
    # The network.
    model: Model
    # What it learns from.
    data: Data
    # How weights follow gradients.
    optim: Optim
    # Slots in a batch, over all processes; or `auto`, by the memory of the device.
    batch: int | Literal["auto"] = 768
    # The batch that the learning rates are meant for; they grow with the root of larger ones.
    base_batch: int = 768
    # Updates in the whole run.
    steps: int | None = None
    # Minutes of the whole run, if not updates.
    minutes: float | None = None
    # Two runs of one recipe with the same seed do the same.
    seed: int = 0
    # Updates between two validations.
    validate_every: int = 1000
    # Steps of thinking at a validation.
    validation_steps: int = 16
    # Updates between two checkpoints.
    checkpoint_every: int = 1000
    # Updates between two lines of the log.
    log_every: int = 20

    def __post_init__(self) -> None:
        if self.optim.warmup_part <= 0:
            raise ValueError(f"optim.warmup_part is above 0, not {self.optim.warmup_part}")
        if (self.steps is None) == (self.minutes is None):
            raise ValueError("a run ends after --steps or after --minutes: set one of them")
        limit = self.steps if self.minutes is None else self.minutes
        if limit is not None and limit <= 0:
            raise ValueError(f"a run of {limit} steps or minutes does nothing: ask for more")
        if self.batch != "auto" and self.batch < 1:
            raise ValueError(f"a batch has at least one slot, not {self.batch}")
        if (
            bool(self.data.early) != (self.data.early_part > 0)
            or not 0 <= self.data.early_part <= 1
        ):
            raise ValueError(
                "data.early is a mixture, and data.early_part the part of the run, up to 1, in "
                "which it ends: set both or neither"
            )
        if not 0 < self.data.validation < 1:
            raise ValueError("data.validation is a fraction between 0 and 1")
        for name in (
            "base_batch",
            "validate_every",
            "validation_steps",
            "checkpoint_every",
            "log_every",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, not {getattr(self, name)}")

    @property
    def geometry(self) -> Geometry:
        return next(geometry for geometry in STANDARD if geometry.name == self.board)


@dataclass(frozen=True)
class Mixture:
    """The names of sets and how often to draw from each; the weights sum to 1."""

    names: tuple[str, ...]
    weights: tuple[float, ...] = field(default=())

    @classmethod
    def parse(cls, parts: tuple[str, ...]) -> "Mixture":
        """Read NAME or NAME=WEIGHT; without a weight it is 1."""
        names, weights = [], []
        for part in parts:
            name, equals, weight = part.rpartition("=")
            try:
                weights.append(float(weight) if equals else 1.0)
            except ValueError:
                raise ValueError(f"write NAME or NAME=WEIGHT, not {part!r}") from None
            names.append(name if equals else part)
        if not names or not all(0 < weight < math.inf for weight in weights):
            raise ValueError("name at least one set to learn from, with weights above 0")
        return cls(tuple(names), tuple(weight / sum(weights) for weight in weights))


def to_plain(recipe: Recipe[Any]) -> dict[str, Any]:
    """A recipe as JSON knows it, with the version of the format."""
    return {"format": FORMAT, **asdict(recipe)}


def from_plain(kind: type[Model], plain: Mapping[str, Any]) -> Recipe[Model]:
    """The recipe that `to_plain` wrote; `kind` is the reasoner's own config."""
    if plain.get("format") != FORMAT:
        raise ValueError(
            f"the recipe has format {plain.get('format')}, this Ronri reads format {FORMAT}"
        )
    rest = {key: value for key, value in plain.items() if key != "format"}
    return _read(Recipe[kind], rest, "")  # type: ignore[valid-type]


def config_from_plain(kind: type[Model], plain: Mapping[str, Any]) -> Model:
    """A reasoner's config, as strictly."""
    return _read(kind, plain, "model.")


def changed(recipe: Recipe[Model], plain: Mapping[str, Any]) -> Recipe[Model]:
    """The recipe with some fields changed, as a settings file says.

    A file that sets `minutes` takes back the recipe's `steps`, and the other way round.
    """
    plain = dict(plain)
    if plain.pop("format", FORMAT) != FORMAT:
        raise ValueError(f"the settings are of another format; this Ronri reads format {FORMAT}")
    merged = _merged(asdict(recipe), plain, "")
    for one, other in (("steps", "minutes"), ("minutes", "steps")):
        if plain.get(one) is not None and other not in plain:
            merged[other] = None
    return _read(Recipe[type(recipe.model)], merged, "")  # type: ignore[misc]


def read_settings(path: Path) -> dict[str, Any]:
    """A settings file, TOML or JSON."""
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no settings: write FIELD = VALUE")
    return found


def _merged(below: dict[str, Any], above: Mapping[str, Any], place: str) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        if key not in below:
            raise ValueError(f"there is no setting {place}{key}; there are {', '.join(below)}")
        if isinstance(below[key], dict) and isinstance(value, Mapping):
            value = _merged(below[key], value, f"{place}{key}.")
        merged[key] = value
    return merged


def _read(kind: Any, value: Any, place: str) -> Any:
    """`value`, checked to be of that kind; dataclasses are built, lists become tuples."""
    kind_of, arguments = get_origin(kind) or kind, get_args(kind)
    if is_dataclass(kind_of):
        return _read_fields(kind_of, arguments, value, place)
    if kind_of is Literal:
        fits = value in arguments
    elif kind_of in (Union, types.UnionType):
        return _read_any(arguments, value, place)
    elif kind_of is tuple:
        if isinstance(value, list | tuple):
            inner = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
            if len(inner) == len(value):
                return tuple(_read(k, v, place) for k, v in zip(inner, value, strict=True))
        fits = False
    elif kind_of is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        value = float(value) if fits else value
    elif kind_of is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        fits = isinstance(value, kind_of)
    if not fits:
        choice = f"one of {', '.join(map(str, arguments))}" if kind_of is Literal else None
        raise ValueError(f"{place.rstrip('.')} is {choice or _name(kind)}, not {value!r}")
    return value


def _read_fields(kind: Any, arguments: tuple[Any, ...], value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place.rstrip('.') or 'the recipe'} is a table of settings")
    # The reasoner's config is the one thing whose kind a recipe leaves open.
    open_kinds = dict(zip(getattr(kind, "__parameters__", ()), arguments, strict=True))
    hints = get_type_hints(kind)
    known = {f.name: open_kinds.get(hints[f.name], hints[f.name]) for f in fields(kind)}
    for key in value:
        if key not in known:
            raise ValueError(f"there is no setting {place}{key}; there are {', '.join(known)}")
    given = {key: _read(known[key], item, f"{place}{key}.") for key, item in value.items()}
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"settings are missing: {error}") from error


def _read_any(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    for kind in kinds:
        if kind is type(None) and value is None:
            return None
        try:
            return _read(kind, value, place)
        except (ValueError, TypeError):
            continue
    names = " or ".join(_name(kind) for kind in kinds if kind is not type(None))
    raise ValueError(f"{place.rstrip('.')} is {names}, not {value!r}")


def _name(kind: Any) -> str:
    plain = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list"
    return plain.get(kind, str(kind))
