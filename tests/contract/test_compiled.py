"""Compiled from outside: one graph for all training steps, one for all steps of thinking."""

import os
import subprocess
import sys
from pathlib import Path

OUTSIDE = Path(__file__).parent / "outside"

# Checks of shapes cannot be compiled, so this happens in a process that has none.
SCRIPT = """
import torch
from ronri import registry
from ronri.data.stream import Batch
from ronri.reasoner import Noise
from ronri.sudoku.geometry import FOUR

graphs = 0

def backend(graph, inputs):
    global graphs
    graphs += 1
    return graph.forward

def same(one, other):
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)

slots = torch.arange(8)
grid = torch.tensor([[0, 1, 2, 3], [2, 3, 0, 1], [1, 0, 3, 2], [3, 2, 1, 0]]).flatten()
solutions = ((grid + slots[:, None]) % 4 + 1).to(torch.uint8)
clues = torch.where(torch.rand(8, 16) < 0.5, 0, solutions)

for name, entry in registry.reasoners().items():
    if not entry.learns:
        continue
    reasoner = entry.build(registry.recipe(f"{name}-mini4").model, FOUR)

    graphs = 0
    step = torch.compile(reasoner.training_step, fullgraph=True, backend=backend)
    carry = compiled_carry = reasoner.initial_carry(slots)
    for n in range(3):
        batch, progress = Batch(clues, solutions, slots + 100 * n), torch.tensor(n / 3)
        plain = reasoner.training_step(batch, carry, progress)
        compiled = step(batch, compiled_carry, progress)
        same(compiled.loss, plain.loss)
        compiled.loss.backward()
        carry, compiled_carry = plain.carry, compiled.carry
    assert graphs == 1, f"training_step of {name} was compiled {graphs} times"

    graphs = 0
    advance = torch.compile(reasoner.advance, fullgraph=True, backend=backend)
    state = compiled_state = reasoner.begin(clues, Noise(slots, slots % 2 == 1, False))
    for n in range(4):
        state, plain = reasoner.advance(state)
        compiled_state, compiled = advance(compiled_state)
        same(compiled.beliefs, plain.beliefs)
    assert graphs == 1, f"advance of {name} was compiled {graphs} times"
    print(name)
"""


def test_reasoners_compile_to_one_graph() -> None:
    """No graph breaks, and nothing that would have to be compiled again."""
    path = os.pathsep.join([str(OUTSIDE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "theirs" in done.stdout.split()
