"""What `ablations.py` compares: a plain network, and each change to it."""

from dataclasses import dataclass, field
from typing import Any

from ronri import registry
from ronri.recipe import Recipe, changed

# The recipe `trm` as it was before this was measured.
PLAIN = {
    "model": {"message": 32, "sure": 0.5, "max_steps": 16, "exploration": 0.1},
    "data": {
        "train": ["minimal-train=0.3", "clue17-train=0.2", "hard-train=0.5"],
        "validation_puzzles": 2048,
    },
    "validation_steps": 16,
    # In short runs an average over a thousand updates would still remember the beginning.
    "optim": {"ema": 0.99},
}

# What the recipe has become: the choices of the arms below, and puzzles laborious for a pencil.
RELEASED: dict[str, dict[str, Any]] = {
    "model": {"message": 64, "max_steps": 32, "exploration": 0.05},
    "data": {
        "train": [
            "minimal-train=0.15", "tricky-made=0.2", "clue17-train=0.1", "hard-train=0.25",
            "hard-bred=0.3",
        ]
    },
}  # fmt: skip


@dataclass(frozen=True)
class Arm:
    """One change to the plain network."""

    question: str
    changes: dict[str, Any] = field(default_factory=dict)
    # Learn from so many puzzles of each set only.
    puzzles: int | None = None
    # So many times the slots; learning rates grow with the root of that, as they always do.
    batch: float = 1.0
    # How many seeds it is measured with: 0, 1, ...
    seeds: int = 1


def _model(**changes: Any) -> dict[str, Any]:
    return {"model": changes}


def _cells(**changes: Any) -> dict[str, Any]:
    """A network whose positions are cells, not candidates, of the size that was best in the log."""
    return _model(**{"mixer": "attention", "width": 192, "heads": 6, "inner": 512, **changes})


def _data(*train: str) -> dict[str, Any]:
    return {"data": {"train": list(train)}}


ARMS: dict[str, Arm] = {
    "plain": Arm("what others are compared with", seeds=4),
    "cells, heads for units": Arm("how do cells find each other?", _cells(unit_heads=6)),
    "cells, heads for units, positions": Arm(
        "how do cells find each other?", _cells(unit_heads=6, positions="both")
    ),
    "cells, heads for all, positions": Arm(
        "how do cells find each other?", _cells(positions="both")
    ),
    "cells, mlp": Arm("how do cells find each other?", _cells(mixer="mlp")),
    "loss on halted slots": Arm("loss on all slots or halted ones?", _model(supervise="halted")),
    "stablemax": Arm("which cross-entropy?", _model(cross_entropy="stablemax")),
    "H 1, L 5": Arm("how deep?", _model(h_cycles=1, l_cycles=5), seeds=2),
    "H 2, L 3": Arm("how deep?", _model(h_cycles=2, l_cycles=3), seeds=2),
    "H 3, L 3": Arm("how deep?", _model(h_cycles=3, l_cycles=3)),
    "H 3, L 5": Arm("how deep?", _model(h_cycles=3, l_cycles=5)),
    "one layer": Arm("how deep?", _model(layers=1)),
    "width 32": Arm("how large?", _model(width=32, message=16, inner=64)),
    "message 64": Arm("how large?", _model(message=64), seeds=3),
    "inner 256": Arm("how large?", _model(inner=256), seeds=3),
    "half the batch": Arm("how many slots?", batch=0.5, seeds=2),
    "twice the batch": Arm("how many slots?", batch=2.0, seeds=2),
    "slower learning": Arm("how fast?", {"optim": {"matrix_lr": 0.0028}}),
    "faster learning": Arm("how fast?", {"optim": {"matrix_lr": 0.0056}}),
    "32 steps": Arm("how long may a puzzle stay?", _model(max_steps=32), seeds=3),
    "first third shallow": Arm("deeper by and by?", _model(shallow=0.33), seeds=3),
    "easy first": Arm(
        "harder by and by?",
        {"data": {"early": ["minimal-train=0.6", "clue17-train=0.4"], "early_part": 0.33}},
        seeds=2,
    ),
    "three quarters hard": Arm(
        "which puzzles?",
        _data("minimal-train=0.15", "clue17-train=0.1", "hard-train=0.75"),
        seeds=3,
    ),
    "bred puzzles, too": Arm(
        "which puzzles?",
        _data("minimal-train=0.3", "clue17-train=0.2", "hard-train=0.25", "hard-bred=0.25"),
        seeds=3,
    ),
    "1,000 puzzles": Arm("few puzzles or all?", puzzles=1000, seeds=2),
    "the recipe of the release": Arm("all that was taken together?", RELEASED, seeds=3),
}


def settings(arm: Arm, seed: int, minutes: float, batch: int) -> Recipe[Any]:
    recipe = changed(changed(registry.recipe("trm"), PLAIN), arm.changes)
    rest = {"seed": seed, "minutes": minutes, "batch": round(batch * arm.batch)}
    return changed(recipe, rest)
