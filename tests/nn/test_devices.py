"""Memory that is not there is not taken, and what computes has a name."""

import subprocess
import sys

import pytest
import torch

from ronri.nn import devices

# In a process of its own, with 64 MiB to spare: 16 fit, 128 do not; afterwards nothing is limited.
SPARE = """
import torch
from ronri.nn import devices

devices._free_bytes = lambda: 64 * 2**20
with devices.within_memory(torch.device("cpu")):
    torch.ones(4 * 2**20)
    try:
        torch.ones(32 * 2**20)
    except RuntimeError as error:
        print("allocate" in str(error))
print(torch.ones(32 * 2**20).sum() > 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux promises what it does not have")
def test_who_asks_for_more_memory_than_there_is_is_told() -> None:
    done = subprocess.run([sys.executable, "-c", SPARE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "tensor(True)"]


def test_a_gpu_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"card {device.index}")
    assert devices.name(torch.device("cuda", 1)) == "card 1"
    assert devices.name(torch.device("cpu")) == "cpu"
