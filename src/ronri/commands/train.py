"""`ronri train`

Which options there are depends on the recipe, so the command reads its arguments itself: first the
name, then every setting of that recipe. Settings: recipe < file < flags.
"""

import json
import os
import signal
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from tyro.conf import FlagCreatePairsOff, UseAppendAction, arg

from ronri.commands.arguments import parse
from ronri.commands.eval import Device
from ronri.commands.output import terminal

if TYPE_CHECKING:
    from ronri.recipe import Recipe
    from ronri.training.loop import Result

Settings = TypeVar("Settings")

# What to evaluate networks for small boards on.
SUITES = {"4x4": "mini4", "6x6": "mini6"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run needs besides its recipe."""

    # A TOML or JSON file with settings that differ from the recipe's.
    config: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    # The folder of the run.
    out: Annotated[
        Path | None, arg(metavar="DIR", help_behavior_hint="(default: runs/RECIPE-TIME)")
    ] = None
    # Go on with the run in --out, with the settings it was begun with.
    resume: FlagCreatePairsOff[bool] = False
    # Weights to start from, with a fresh optimiser: the name of released ones, or a folder.
    init: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    device: Device = None
    # Where else the log goes; may be given several times.
    track: UseAppendAction[tuple[Literal["wandb", "tensorboard"], ...]] = ()
    # Compile what is called again and again, and on a GPU of NVIDIA's record updates and replay
    # them; `auto` does so on a GPU.
    compile: Literal["auto", "on", "off"] = "auto"


@dataclass(frozen=True, kw_only=True)
class Order(Generic[Settings]):
    """All that the command line says."""

    run: Annotated[Run, arg(name="")]
    recipe: Annotated[Settings, arg(name="")]


def train(arguments: list[str], /) -> int:
    """Train a reasoner by a recipe: `ronri train RECIPE --help` shows every setting."""
    order, name = _ordered(arguments)
    run = order.run
    folder = run.out or _new_folder(name)

    from ronri.training import loop

    result = loop.train(
        order.recipe,
        folder,
        resume=run.resume,
        init=run.init,
        device=run.device,
        track=run.track,
        compile={"auto": None, "on": True, "off": False}[run.compile],
    )
    # Under torchrun, the first of several processes speaks for all.
    if os.environ.get("RANK", "0") == "0":
        _summarise(result, SUITES.get(order.recipe.board, "everyday"))
    return 0 if result.stopped == "done" else 128 + signal.SIGINT


def _ordered(arguments: list[str]) -> tuple[Order["Recipe[Any]"], str]:
    """The order, and the name of its recipe."""
    from ronri import registry

    if not arguments or arguments[0].startswith("-"):
        return _continued(arguments), ""
    name, *flags = arguments
    recipe = registry.recipe(name)
    order = _changed_by_flags(_changed_by_file(recipe, _value(flags, "--config")), flags, name)
    if order.recipe.reasoner != recipe.reasoner:
        raise ValueError(
            f"a recipe is for one reasoner, {name} for {recipe.reasoner}: "
            f"name another recipe instead; there are {', '.join(registry.recipes())}"
        )
    if order.run.resume and order.run.out is None:
        raise ValueError("say which run to resume: --out DIR")
    if order.run.resume and order.recipe == recipe and _settings_of(order.run.out).exists():
        # Named alone, a recipe changes nothing about a run that has begun.
        begun = _begun(order.run.out)
        if begun.reasoner != recipe.reasoner:
            raise ValueError(f"the run in {order.run.out} trains {begun.reasoner}, not {name}")
        order = Order(run=order.run, recipe=begun)
    return order, name


def _continued(arguments: list[str]) -> Order["Recipe[Any]"]:
    """Without a recipe, there is a page about them, and a run to go on with."""
    from ronri import registry

    if not {"-h", "--help", "--resume"} & set(arguments):
        names = ", ".join(registry.recipes())
        raise ValueError(f"name the recipe first: `ronri train RECIPE`; there are {names}")
    run = parse(Run, arguments, command="train", description=_page())
    return Order(run=run, recipe=_begun(run.out))


def _page() -> str:
    from ronri import registry

    recipes = registry.recipes()
    width = max(map(len, recipes))
    lines = [f"  {name:{width}}  {make.__doc__ or ''}" for name, make in recipes.items()]
    return "\n".join(
        [
            "Train a reasoner: ronri train RECIPE [--optim.lr 3e-4, or any other setting]",
            "`ronri train RECIPE --help` shows every setting. There are these recipes:",
            *lines,
        ]
    )


def _value(arguments: list[str], option: str) -> str | None:
    """What follows an option, before it is known which others there are."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == option:
            return value if equals else next(iter(arguments[index + 1 :]), None)
    return None


def _changed_by_file(recipe: "Recipe[Any]", file: str | None) -> "Recipe[Any]":
    from ronri.recipe import changed, read_settings

    if file is None:
        return recipe
    settings = read_settings(Path(file))
    try:
        return changed(recipe, settings)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _changed_by_flags(recipe: "Recipe[Any]", flags: list[str], name: str) -> Order["Recipe[Any]"]:
    from ronri.recipe import Recipe, changed

    for limit in ("steps", "minutes"):
        if _value(flags, f"--{limit}") is not None:
            # Takes back the other limit; the number itself is read below.
            recipe = changed(recipe, {limit: 1})
    return parse(
        Order[Recipe[type(recipe.model)]],  # type: ignore[misc]
        flags,
        command=f"train {name}",
        default=Order(run=Run(), recipe=recipe),
        description=f"Train a {recipe.reasoner} reasoner by the recipe {name}.",
    )


def _new_folder(name: str) -> Path:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("several processes need one folder: say which with --out DIR")
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"


def _settings_of(folder: Path | None) -> Path:
    if folder is None:
        raise ValueError("say which run to resume: --out DIR")
    return folder / "config.json"


def _begun(folder: Path | None) -> "Recipe[Any]":
    """The recipe that the run in a folder was begun with."""
    from ronri import registry
    from ronri.recipe import from_plain

    path = _settings_of(folder)
    if not path.exists():
        raise ValueError(f"there is no run in {folder}: {path.name} is missing")
    try:
        plain = json.loads(path.read_text())
        return from_plain(registry.find(plain["reasoner"]).config, plain)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the recipe of a run: {error!r}") from error


def _summarise(result: "Result", suite: str) -> None:
    console = terminal()
    how = "done" if result.stopped == "done" else "interrupted"
    console.print(f"{how} after {result.step:,} steps and {result.minutes:.1f} minutes")
    if result.puzzle_accuracy is not None and result.cell_accuracy is not None:
        console.print(
            f"best validation: {result.puzzle_accuracy:.2%} of puzzles, "
            f"{result.cell_accuracy:.2%} of cells"
        )
    console.print(f"run: {result.folder}")
    if result.stopped == "interrupted":
        console.print(f"go on with: ronri train --resume --out {result.folder}")
    else:
        console.print(f"evaluate with: ronri eval {result.folder} --data {suite}")
