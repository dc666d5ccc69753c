"""The encoder over units knows no digit and no place from another; that over cells does."""

import pytest
import torch

from ronri.data.stream import Batch
from ronri.data.tensors import random_symmetries
from ronri.reasoners.encoder.config import Config
from ronri.reasoners.encoder.model import Encoder
from ronri.sudoku.generate import puzzles_with_clues
from ronri.sudoku.geometry import FOUR

SMALL = Config(width=16, heads=2, message=8, layers=2, inner=24)


@pytest.mark.parametrize("mixer", ["attention", "units"])
def test_what_a_symmetry_does_to_a_puzzle_it_does_to_beliefs(mixer: str) -> None:
    torch.manual_seed(0)
    config = Config(**{**vars(SMALL), "mixer": mixer})
    model = Encoder(config, FOUR).eval()
    clues = torch.from_numpy(puzzles_with_clues(8, 5, 8, seed=1, geometry=FOUR).puzzles)
    moved = random_symmetries(torch.arange(8), FOUR)
    # Rows and columns have weights of their own: boards that were turned on their side are apart.
    upright = torch.tensor([(row // 4 == row[0] // 4)[:4].all().item() for row in moved.cell_from])
    assert upright.any()
    with torch.no_grad():
        beliefs = model(clues).softmax(dim=-1)
        others = moved.undo_beliefs(model(moved.apply(clues)).softmax(dim=-1))
    near = (beliefs - others).abs().amax(dim=(1, 2)) < 1e-5
    assert near[upright].all() == (mixer == "units")


@pytest.mark.parametrize("mixer", ["attention", "units"])
def test_the_loss_of_held_out_puzzles_is_that_of_lessons(mixer: str) -> None:
    torch.manual_seed(0)
    model = Encoder(Config(**{**vars(SMALL), "mixer": mixer}), FOUR)
    made = puzzles_with_clues(8, 5, 8, seed=1, geometry=FOUR)
    batch = Batch(torch.from_numpy(made.puzzles), torch.from_numpy(made.solutions), torch.arange(8))
    lesson = model.training_step(batch, None, torch.tensor(0.0))
    logits, labels = model(batch.clues).flatten(0, 1), batch.solutions.flatten().long() - 1
    expected = float(torch.nn.functional.cross_entropy(logits, labels).detach())
    assert float(lesson.loss.detach()) == pytest.approx(expected)
    assert model.diagnose(batch) == {"loss": pytest.approx(expected)}
