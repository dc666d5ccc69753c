"""One process of a training run: `torchrun ... processes.py RECIPE.json RUN plain|compiled`."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ronri import registry
from ronri.recipe import Recipe, from_plain
from ronri.training.loop import train

if __name__ == "__main__":
    plain = json.loads(Path(sys.argv[1]).read_text())
    recipe: Recipe[Any] = from_plain(registry.find(plain["reasoner"]).config, plain)
    # The compiler's front end alone: what its back end generates needs a C compiler.
    torch.compile = partial(torch.compile, backend="aot_eager")
    train(recipe, Path(sys.argv[2]), device="cpu", compile=sys.argv[3] == "compiled")
