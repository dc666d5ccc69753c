"""`ronri info`"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from ronri.commands.arguments import meant
from ronri.commands.output import AsJson, print_json, terminal

if TYPE_CHECKING:
    from ronri.reasoner import Reasoner
    from ronri.recipe import Recipe

Facts = dict[str, Any]


def info(
    name: Annotated[
        Positional[str | None],
        arg(
            metavar="NAME",
            help="A reasoner, a recipe, released weights, or the folder of a model or a run.",
            help_behavior_hint="(default: an overview)",
        ),
    ] = None,
    /,
    *,
    as_json: AsJson = False,
) -> int:
    """Show reasoners, recipes and released weights; or all there is to know about one of them."""
    from ronri.terminal.tables import details, overview

    found = _overview() if name is None else _details(name)
    if as_json:
        print_json(found)
    else:
        terminal().print(overview(found) if name is None else details(found))
    return 0


def _overview() -> Facts:
    from ronri import loading, registry

    return {
        "reasoners": {
            name: {"summary": entry.summary, "recipes": list(entry.recipes)}
            for name, entry in registry.reasoners().items()
        },
        "recipes": {name: _recipe(make) for name, make in registry.recipes().items()},
        "weights": {name: _model(loading.RELEASED / name) for name in loading.released()},
    }


def _details(name: str) -> Facts:
    """Whatever has that name: `trm` is a reasoner, a recipe and the name of weights."""
    from ronri import loading, registry

    entries, recipes = registry.reasoners(), registry.recipes()
    found: Facts = {"name": name}
    if name in entries:
        entry = entries[name]
        found["reasoner"] = {"summary": entry.summary, "recipes": list(entry.recipes)}
    if name in recipes:
        recipe = recipes[name]()
        network = registry.find(recipe.reasoner).build(recipe.model, recipe.geometry)
        found["recipe"] = {
            "summary": _summary(recipes[name]),
            **_network(network),
            **asdict(recipe),
        }
    released = name in loading.released()
    if released or Path(name).is_dir():
        loaded = loading.load(name, device="cpu")
        found["weights"] = {
            "reasoner": loaded.kind,
            "board": loaded.reasoner.geometry.name,
            "weights": loaded.weights,
            "sha256": loaded.sha256,
            "minutes": loaded.minutes,
            **_network(loaded.reasoner),
            **_model(loading.RELEASED / name if released else Path(name)),
        }
    if len(found) == 1:
        known = [*dict.fromkeys([*entries, *recipes, *loading.released()])]
        raise ValueError(
            f"nothing is called {name!r}{meant(name, known)}; there are {', '.join(known)}, "
            "or name a folder"
        )
    return found


def _recipe(make: "Callable[[], Recipe[Any]]") -> Facts:
    recipe = make()
    return {
        "summary": _summary(make),
        "reasoner": recipe.reasoner,
        "board": recipe.board,
        "steps": recipe.steps,
        "minutes": recipe.minutes,
    }


def _summary(make: "Callable[[], Recipe[Any]]") -> str:
    return (make.__doc__ or "").strip()


def _network(reasoner: "Reasoner") -> Facts:
    """What is known of a network once it is built."""
    taps = getattr(reasoner, "taps", None)
    return {
        "parameters": sum(one.numel() for one in reasoner.parameters()),
        "trained": sum(one.numel() for one in reasoner.parameters() if one.requires_grad),
        "usual_steps": reasoner.usual_steps,
        "taps": {} if taps is None else taps.sites,
    }


def _model(folder: Path) -> Facts:
    """What the folder of a model says of itself; a run says it in its recipe."""
    model = _json(folder / "model.json")
    if not model:
        return {"config": _json(folder / "config.json").get("model", {})}
    return {
        "reasoner": model["reasoner"],
        "board": model["board"],
        "bytes": (folder / "weights.safetensors").stat().st_size,
        "sha256": model["sha256"],
        "config": model["config"],
        "card": _json(folder / "card.json"),
    }


def _json(path: Path) -> Facts:
    return json.loads(path.read_text()) if path.is_file() else {}
