"""Dropout of the document's networks: compiled, it forgets the same."""

import subprocess
import sys
from pathlib import Path

# Checks of shapes cannot be compiled, so this happens in a process that has none.
SCRIPT = """
import sys
from dataclasses import replace
import torch
sys.path.insert(0, sys.argv[1])
from small_enso import BOARD, lessons, model_of

model, batch, progress = model_of(replace(BOARD, dropout=0.3)), lessons(), torch.tensor(0.0)
weights = [weight for weight in model.parameters() if weight.requires_grad]
compiled = torch.compile(model.training_step, fullgraph=True, backend="aot_eager")
found = []
for step in (model.training_step, compiled):
    loss = step(batch, None, progress).loss
    found.append([loss.detach(), *torch.autograd.grad(loss, weights)])
torch.testing.assert_close(*found)
"""


def test_what_is_forgotten_compiles_to_one_graph() -> None:
    tests = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", SCRIPT, tests], check=True)
