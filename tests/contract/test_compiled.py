"""Compiled from outside: one graph for all training steps, one for all steps of thinking.

And, after two numbers of rows, one for each part by itself, for any number above one.
"""

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
from ronri.loading import Loaded
from ronri.reasoner import Noise
from ronri.sudoku.generate import puzzles_with_clues

graphs = calls = 0

def backend(graph, inputs):
    global graphs
    graphs += 1
    def run(*given):
        global calls
        calls += 1
        return graph.forward(*given)
    return run

def same(one, other):
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)

STEPS = 2

def walked(reasoner, clues):
    rows = slots[:len(clues)]
    state = reasoner.begin(clues, Noise(rows, rows % 2 == 1, False))
    for _ in range(STEPS):
        state, thought = reasoner.advance(state)
    return thought.beliefs

slots = torch.arange(8)
sizes = {"4x4": (5, 8), "6x6": (10, 16)}

for name, recipe in (
    (name, make())
    for entry in registry.reasoners().values()
    for name, make in entry.recipes.items()
    if "mini" in name
):
    geometry = recipe.geometry
    made = puzzles_with_clues(8, *sizes[geometry.name], seed=1, geometry=geometry)
    clues, solutions = torch.from_numpy(made.puzzles), torch.from_numpy(made.solutions)
    reasoner = registry.find(recipe.reasoner).build(recipe.model, geometry)

    graphs = 0
    step = torch.compile(reasoner.training_step, fullgraph=True, backend=backend)
    carry = compiled_carry = reasoner.initial_carry(slots)
    for n in range(3):
        batch, progress = Batch(clues, solutions, slots + 100 * n), torch.tensor(n / 3)
        plain = reasoner.training_step(batch, carry, progress)
        compiled = step(batch, compiled_carry, progress)
        same(compiled.loss, plain.loss)
        weights = [weight for weight in reasoner.parameters() if weight.requires_grad]
        gradients = [torch.autograd.grad(one.loss, weights) for one in (plain, compiled)]
        for pair in zip(*gradients):
            same(*pair)
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

    # Which numbers have changed is remembered for all networks of a kind.
    torch.compiler.reset()
    graphs = 0
    parts = reasoner.eval().requires_grad_(False).thinking_parts()
    assert parts or name == "theirs-mini4", f"nothing to compile in {name}"
    plain = walked(reasoner, clues)
    for part in parts:
        part.compile(fullgraph=True, backend=backend)
    # As many as a board has channels, by the way: that is not taken for a reason.
    for rows in (5, 7):
        calls = 0
        same(walked(reasoner, clues[:rows]), plain[:rows])
    usual = calls
    assert usual >= STEPS * len(parts)
    assert graphs == 2 * len(parts), f"{len(parts)} parts of {name} were compiled {graphs} times"
    with Loaded(reasoner, name, name, None, None, compiled=True).as_compiled():
        for rows, wanted in ((3, usual), (8, usual), (1, 0)):
            calls = 0
            same(walked(reasoner, clues[:rows]), plain[:rows])
            assert calls == wanted, f"{name}: {calls} calls for {rows} rows"
    assert graphs == 2 * len(parts), f"{name} was compiled once more"
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
    assert {"theirs-mini4", "trm-mini6", "enso-mini6"} <= set(done.stdout.split())
