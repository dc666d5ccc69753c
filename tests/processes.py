"""One process of a training run: `torchrun ... processes.py RECIPE.json RUN plain|compiled STEP`.

At STEP, if it is not 0, someone asks the run to stop.
"""

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ronri import registry
from ronri.recipe import Recipe, from_plain
from ronri.training.loop import train
from ronri.training.run import Run

if __name__ == "__main__":
    plain = json.loads(Path(sys.argv[1]).read_text())
    recipe: Recipe[Any] = from_plain(registry.find(plain["reasoner"]).config, plain)
    # The compiler's front end alone: what its back end generates needs a C compiler.
    torch.compile = partial(torch.compile, backend="aot_eager")
    update, stop = Run.update, int(sys.argv[4])

    def watched(self: Run) -> dict[str, Tensor]:
        measured = update(self)
        if self.step == stop:
            os.kill(os.getpid(), signal.SIGTERM)
        return measured

    Run.update = watched  # type: ignore[method-assign]
    train(recipe, Path(sys.argv[2]), resume=True, device="cpu", compile=sys.argv[3] == "compiled")
    # As `ronri` does: threads of torch may still be there, and do not like to be taken apart.
    sys.stderr.flush()
    os._exit(0)
