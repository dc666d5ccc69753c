"""Dropout of the document's networks: where it acts, in training only, by a lesson's key alone."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from formulas import attention
from ronri.nn import fused
from ronri.nn.dropout import Dropout
from ronri.reasoners.enso.board import Layer
from ronri.reasoners.enso.model import Enso
from small_enso import BOARD, lessons, model_of, quiet

FORGETFUL = replace(BOARD, dropout=0.5)


def layer_and_input() -> tuple[Layer, Tensor, Dropout]:
    torch.manual_seed(0)
    forget = Dropout.of(torch.tensor([5, -7, 2**50 + 1]), 0.3)
    assert forget is not None
    return Layer(32, 2, 64, number=3), torch.randn(3, 16, 32), forget


def test_a_layer_forgets_at_four_places() -> None:
    layer, x, forget = layer_and_input()
    weights, found, hidden, said = (forget.at(place) for place in layer.forgets_at)
    looked = attention(layer.qkv(F.layer_norm(x, (32,))), None, None, 2, forget=weights)
    y = x + found.left(layer.out(looked))
    inner = hidden.left(F.gelu(layer.up(F.layer_norm(y, (32,)))))
    torch.testing.assert_close(layer(x, forget), y + said.left(layer.down(inner)))


def test_fused_attention_is_told_what_to_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x, forget = layer_and_input()
    plain = layer(x, forget)

    def instead(qkv: Tensor, cos: None, sin: None, heads: int, **options: Any) -> Tensor:
        return attention(qkv, cos, sin, heads, **options)

    monkeypatch.setattr(fused, "available", lambda _: True)
    monkeypatch.setattr(fused, "fits_attention", lambda *_: True)
    monkeypatch.setattr(fused, "rotary_attention", instead)
    torch.testing.assert_close(layer(x, forget), plain)


def test_no_two_places_forget_the_same() -> None:
    landscape = model_of(FORGETFUL).landscape
    parts = landscape.context, landscape.reader
    layers = [one for part in parts for one in part.modules() if isinstance(one, Layer)]
    places = [place for layer in layers for place in layer.forgets_at]
    assert len(layers) == BOARD.layers + BOARD.decoder_layers
    assert len(set(places)) == len(places) == 4 * len(layers)


def forgotten(model: Enso, keys: Tensor, rows: slice = slice(None)) -> list[Tensor]:
    """Which hidden numbers layers forget in a training step: of target, context and decoder."""
    batch, seen = lessons(), []
    hooks = [
        layer.down.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0] == 0))
        for layer in model.modules()
        if isinstance(layer, Layer)
    ]
    part = replace(batch, clues=batch.clues[rows], solutions=batch.solutions[rows], keys=keys[rows])
    model.training_step(part, None, torch.tensor(0.0))
    for hook in hooks:
        hook.remove()
    return seen


def test_rows_forget_by_their_keys_in_any_batch() -> None:
    """So a batch that is spread over processes forgets what the whole one does."""
    model, keys = model_of(FORGETFUL), lessons().keys
    whole = forgotten(model, keys)
    halves = zip(forgotten(model, keys, slice(4)), forgotten(model, keys, slice(4, 6)), strict=True)
    assert len(whole) == 2 * BOARD.layers + BOARD.decoder_layers
    for together, parts in zip(whole, halves, strict=True):
        assert torch.equal(together, torch.cat(parts))
    target, others = whole[: BOARD.layers], whole[BOARD.layers :]
    assert not any(one.any() for one in target)
    for one, other in zip(others, forgotten(model, keys + 100)[BOARD.layers :], strict=True):
        assert 0.45 < one.float().mean() < 0.55
        assert 0.4 < (one == other).float().mean() < 0.6
        assert 0.4 < (one[1:] == one[:-1]).float().mean() < 0.6


def test_who_thinks_forgets_nothing() -> None:
    model, sound, batch = model_of(FORGETFUL), model_of(BOARD), lessons()
    thoughts = [one.advance(one.begin(batch.clues, quiet(6)))[1] for one in (model, sound)]
    assert torch.equal(thoughts[0].beliefs, thoughts[1].beliefs)
    assert model.diagnose(batch) == sound.diagnose(batch)


# Checks of shapes cannot be compiled, so this happens in a process that has none. What is written
# for a GPU is compared in `tests/nn/test_dropout.py`, on one.
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


def test_a_step_that_forgets_compiles_to_one_graph() -> None:
    tests = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", SCRIPT, tests], check=True)
