"""Losses against plain code in double precision, and their gradients against differences."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from ronri.nn.losses import log_stablemax, softmax_cross_entropy, stablemax_cross_entropy

LOGITS = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=8)


def stablemax(logits: list[float]) -> list[float]:
    """As in the paper: s(x) = x + 1 from 0 on, 1 / (1 - x) below; divided by the sum."""
    weights = [x + 1 if x >= 0 else 1 / (1 - x) for x in logits]
    return [weight / sum(weights) for weight in weights]


@given(LOGITS)
def test_stablemax_is_what_the_paper_says(logits: list[float]) -> None:
    found = log_stablemax(torch.tensor(logits, dtype=torch.float32))
    assert found.dtype == torch.float64
    expected = torch.tensor(stablemax(logits), dtype=torch.float64)
    torch.testing.assert_close(found.exp(), expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.exp().sum(), torch.tensor(1.0, dtype=torch.float64))


def test_stablemax_has_the_gradient_of_its_values() -> None:
    torch.manual_seed(0)
    logits = (3 * torch.randn(4, 6, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(log_stablemax, [logits])


@pytest.mark.parametrize("extreme", [0.0, 1e30, -1e30])
def test_stablemax_has_finite_gradients_everywhere(extreme: float) -> None:
    logits = torch.tensor([extreme, 1.0, -1.0], requires_grad=True)
    log_stablemax(logits)[1].backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_the_two_branches_meet_smoothly() -> None:
    slopes = []
    for x in (-1e-9, 0.0, 1e-9):
        logits = torch.tensor([x, 0.5], dtype=torch.float64, requires_grad=True)
        log_stablemax(logits)[0].backward()
        assert logits.grad is not None
        slopes.append(logits.grad[0].item())
    # log(s / (s + 1.5)) with s(0) = s'(0) = 1.
    assert slopes == pytest.approx([1 - 1 / 2.5] * 3, abs=1e-6)


def test_cross_entropies_are_minus_the_logarithm_of_the_right_class() -> None:
    torch.manual_seed(1)
    logits = 4 * torch.randn(5, 7, 11)
    labels = torch.randint(11, (5, 7))
    soft = softmax_cross_entropy(logits, labels)
    expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    torch.testing.assert_close(soft, expected.view(5, 7))
    # The same, as boards have it: bytes, counted from 1.
    assert torch.equal(softmax_cross_entropy(logits, (labels + 1).to(torch.uint8), lowest=1), soft)
    assert torch.equal(softmax_cross_entropy(logits, labels - 2, lowest=-2), soft)
    stable = stablemax_cross_entropy(logits, labels)
    for row in range(5):
        for column in range(7):
            right = stablemax(logits[row, column].tolist())[int(labels[row, column])]
            assert stable[row, column].exp().item() == pytest.approx(1 / right, rel=1e-9)
    assert torch.equal(stablemax_cross_entropy(logits, labels + 1, lowest=1), stable)


def test_low_precision_logits_are_summed_in_high_precision() -> None:
    logits = torch.randn(3, 1000).bfloat16()
    labels = torch.zeros(3, dtype=torch.int64)
    for loss in (softmax_cross_entropy, stablemax_cross_entropy):
        torch.testing.assert_close(
            loss(logits, labels), loss(logits.float(), labels), rtol=0, atol=0
        )
