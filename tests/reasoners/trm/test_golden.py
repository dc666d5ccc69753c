"""The forward pass and the loss are those of the published model, number by number.

`tests/golden` holds a small random instance of it: weights, inputs, and what it computes.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ronri.data.stream import Batch
from ronri.reasoners.trm.config import Config
from ronri.reasoners.trm.model import TRM, Carry
from ronri.sudoku.geometry import NINE

GOLDEN = Path(__file__).parents[2] / "golden"

COMMON: dict[str, Any] = {
    "width": 64,
    "heads": 4,
    "inner": 256,
    "h_cycles": 2,
    "l_cycles": 3,
    "exploration": 0.0,
}
CONFIGS = {
    "attention": Config(**COMMON),
    "mlp": Config(mixer="mlp", positions="none", mixer_inner=256, **COMMON),
}
# How far float32 may be off after each step. The small random mixer is chaotic: whatever rounding
# leaves, even that of the published numbers themselves, grows tenfold with every step.
TOLERANCE = {"attention": (1e-5, 1e-5, 1e-5), "mlp": (5e-5, 5e-4, 5e-3)}
# Published names of weights, and ours.
NAMES = {
    "embed_tokens.embedding_weight": "embed.tokens.weight",
    "puzzle_emb.weights": "embed.context",
    "lm_head.weight": "lm_head.weight",
    "q_head.weight": "q_head.weight",
    "q_head.bias": "q_head.bias",
    "L_level.layers": "recursion.blocks",
    "self_attn.qkv_proj": "attention.qkv",
    "self_attn.o_proj": "attention.out",
    "mlp_t.gate_up_proj": "mixer.swiglu.gate_up",
    "mlp_t.down_proj": "mixer.swiglu.down",
    "mlp.gate_up_proj": "feed_forward.gate_up",
    "mlp.down_proj": "feed_forward.down",
}


def our_name(name: str) -> str:
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def published(mixer: str) -> tuple[TRM, dict[str, np.ndarray]]:
    golden = dict(np.load(GOLDEN / f"trm-{mixer}.npz"))
    model = TRM(CONFIGS[mixer], NINE)
    weights = {
        our_name(name[2:]): torch.from_numpy(value)
        for name, value in golden.items()
        if name.startswith("w.")
    }
    # Its halting head has a second output that nothing reads.
    weights["q_head.weight"] = weights["q_head.weight"][:1]
    weights["q_head.bias"] = weights["q_head.bias"][:1]
    model.load_state_dict(weights)
    return model, golden


@pytest.mark.parametrize("mixer", CONFIGS)
def test_three_carry_steps_equal_the_published_ones(mixer: str) -> None:
    model, golden = published(mixer)
    clues, solutions = (torch.from_numpy(golden[name]) for name in ("clues", "solution"))
    carry = model.initial_carry(torch.zeros(4, dtype=torch.int64))
    heard: dict[str, torch.Tensor] = {}
    for step in (1, 2, 3):
        batch = Batch(clues, solutions, torch.arange(4))
        with model.taps.listening({"logits": lambda _, value: heard.update(logits=value)}):
            lesson = model.training_step(batch, carry, torch.tensor(0.0))
        carry = lesson.carry
        assert isinstance(carry, Carry)
        # The published losses are sums over puzzles, ours are means.
        ours = {
            "logits": heard["logits"],
            "z_H": carry.z_H,
            "z_L": carry.z_L,
            "lm_loss": 4 * lesson.metrics["lm_loss"],
            "q_halt_loss": 4 * lesson.metrics["halt_loss"],
            "loss": 4 * lesson.loss,
        }
        for name, value in ours.items():
            close(value, golden[f"step{step}.{name}"], TOLERANCE[mixer][step - 1], name)
        assert np.array_equal(carry.halted.numpy(), golden[f"step{step}.halted"])


@pytest.mark.parametrize("mixer", CONFIGS)
def test_gradients_equal_the_published_ones(mixer: str) -> None:
    model, golden = published(mixer)
    clues, solutions = (torch.from_numpy(golden[name]) for name in ("clues", "solution"))
    carry = model.initial_carry(torch.zeros(4, dtype=torch.int64))
    lesson = model.training_step(Batch(clues, solutions, torch.arange(4)), carry, torch.tensor(0.0))
    (4 * lesson.loss).backward()
    parameters = dict(model.named_parameters())
    checked = 0
    for name, norm in golden.items():
        if name.startswith("step1.grad_norm."):
            gradient = parameters[our_name(name.removeprefix("step1.grad_norm."))].grad
            assert gradient is not None
            close(gradient.norm(), norm, 1e-4, name)
            checked += 1
    assert checked == 12


def close(ours: torch.Tensor, theirs: np.ndarray, tolerance: float, what: str) -> None:
    np.testing.assert_allclose(
        ours.detach().double().numpy(), theirs, rtol=tolerance, atol=tolerance, err_msg=what
    )
