"""A process and the device it works on."""

import pytest
import torch

from ronri.nn import devices
from ronri.training.distributed import join_world


@pytest.mark.parametrize(("asked", "made_current"), [("cuda", []), ("cuda:1", [1]), ("cpu", [])])
def test_a_gpu_with_a_number_becomes_the_current_one(
    asked: str, made_current: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without a number is the current one, and torch refuses to be told so."""
    numbers: list[int | None] = []

    def set_device(device: torch.device) -> None:
        numbers.append(device.index)

    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr(devices, "pick", torch.device)
    monkeypatch.setattr(torch.cuda, "set_device", set_device)
    with join_world(asked) as world:
        assert world.device == torch.device(asked)
    assert numbers == made_current
