"""The moving average of weights: its closed form, and that it can be put in and taken out."""

import pytest
import torch
from torch import Tensor, nn

from ronri.nn.ema import Ema
from ronri.nn.linear import Linear


class Small(nn.Module):
    """Parameters, one of them under two names, a buffer, and one that is not saved."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = Linear(3, 4)
        self.second = Linear(3, 4)
        self.second.weight = self.first.weight
        self.bias = nn.Parameter(torch.randn(4))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("cache", torch.ones(2), persistent=False)


def bits(module: nn.Module) -> dict[str, list[int]]:
    return {
        name: value.reshape(-1).view(torch.uint8).tolist()
        for name, value in module.state_dict().items()
    }


def moved(module: Small) -> None:
    for parameter in module.parameters():
        parameter.data.normal_()
    module.count.add_(1)


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9, 1.0])
def test_average_has_its_closed_form(momentum: float) -> None:
    torch.manual_seed(0)
    module = Small()
    ema = Ema(module)
    history: list[dict[str, Tensor]] = []
    for _ in range(8):
        history.append({name: value.clone() for name, value in module.state_dict().items()})
        moved(module)
        ema.update(momentum)
    history.append(module.state_dict())
    weights = [momentum**8] + [(1 - momentum) * momentum ** (8 - n) for n in range(1, 9)]
    found = ema.tensors()
    assert found.keys() == {"first.weight", "bias", "second.weight", "count"}
    for name in found.keys() - {"count"}:
        values = torch.stack([past[name].double() for past in history])
        expected = torch.einsum("n,n...->...", torch.tensor(weights).double(), values)
        torch.testing.assert_close(found[name].double(), expected, rtol=1e-5, atol=1e-6)
    assert found["count"].dtype == torch.int64
    assert found["count"] == 8


def test_average_that_never_follows_stays_and_one_that_forgets_is_the_module() -> None:
    module = Small()
    ema = Ema(module)
    before = bits(module)
    moved(module)
    ema.update(1.0)
    module.count.zero_()
    with ema.copied_into(module):
        assert {**bits(module), "count": before["count"]} == before
    ema.update(0.0)
    after = bits(module)
    with ema.copied_into(module):
        assert bits(module) == after


def test_average_of_rounded_weights_is_not_rounded() -> None:
    module = nn.Linear(1, 1, bias=False).to(torch.bfloat16)
    module.weight.data.fill_(1.0)
    ema = Ema(module)
    module.weight.data.fill_(2.0)
    ema.update(0.999)
    assert ema.tensors()["weight"].item() == pytest.approx(1.001)


def test_update_reads_nothing_back() -> None:
    # Tensors that have no values cannot be read without an error.
    Ema(Small().to("meta")).update(0.9)


def test_average_is_put_in_and_taken_out_again_bit_by_bit() -> None:
    module = Small()
    module.bias.data[:2] = torch.tensor([float("nan"), -0.0])
    ema = Ema(module)
    moved(module)
    module.bias.data[:2] = torch.tensor([-0.0, float("nan")])
    ema.update(0.5)
    before = bits(module)
    with ema.copied_into(module):
        assert torch.equal(module.first.weight, ema.tensors()["first.weight"])
        assert module.second.weight is module.first.weight
        assert bits(module) != before
    assert bits(module) == before
    # Averages are no part of the module: another one of the same kind takes them as well.
    other = Small()
    with ema.copied_into(other):
        assert torch.equal(other.first.weight, ema.tensors()["first.weight"])


def test_own_weights_come_back_after_an_interruption() -> None:
    module = Small()
    ema = Ema(module)
    moved(module)
    before = bits(module)

    def interrupted() -> None:
        with ema.copied_into(module):
            assert bits(module) != before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert bits(module) == before


def test_loaded_average_goes_on_as_the_saved_one() -> None:
    module = Small()
    ema = Ema(module)
    moved(module)
    ema.update(0.9)
    saved = {name: value.clone() for name, value in ema.tensors().items()}
    other = Ema(module)
    other.load_tensors(saved)
    moved(module)
    for one in (ema, other):
        one.update(0.9)
    for name, value in ema.tensors().items():
        assert torch.equal(value, other.tensors()[name])
        assert value.data_ptr() != other.tensors()[name].data_ptr()


def test_averages_are_loaded_whole_or_not_at_all() -> None:
    ema = Ema(Small())
    before = {name: value.clone() for name, value in ema.tensors().items()}
    changed = {name: value + 1 for name, value in before.items()}
    lost = {name: value for name, value in changed.items() if name != "bias"}
    for saved, complaint in (
        (lost, "1 saved tensors are missing, bias"),
        ({**changed, "third": torch.zeros(1)}, "1 saved tensors belong nowhere, third"),
        ({**changed, "bias": torch.zeros(1)}, r"bias was saved with shape \[1\]"),
    ):
        with pytest.raises(ValueError, match=complaint):
            ema.load_tensors(saved)
    for name, value in ema.tensors().items():
        assert torch.equal(value, before[name])
