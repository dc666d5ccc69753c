"""Which device to use, what to compute in there, and how much memory it may take."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch


def pick(name: str | None = None) -> torch.device:
    """The device of that name, or the best there is: a GPU, Apple's, or the processor."""
    if name is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if name.partition(":")[0] not in ("cpu", "cuda", "mps"):
        raise ValueError(f"a device is cpu, cuda or mps, not {name!r}")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"the device {name!r} cannot be used: {reason}") from error
    return device


def compute_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where it is fast; processors and Apple's GPUs compute in float32."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def name(device: torch.device) -> str:
    """What it is that computes there: which GPU, not only that it is one."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


@contextmanager
def within_memory(device: torch.device) -> Iterator[None]:
    """On a processor: who asks for more memory than there is is told so, and not killed.

    Linux promises memory that it does not have, and kills whoever takes it at its word. It keeps
    to a limit for the process, though, so there is one while this lasts.
    """
    free = _free_bytes() if device.type == "cpu" else None
    if free is None:
        yield
        return
    import resource  # Where there is /proc there is this.

    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _kilobytes(Path("/proc/self/status"))["VmData"] * 1024 + free
    if all(bound == resource.RLIM_INFINITY or limit < bound for bound in before):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _free_bytes() -> int | None:
    """Memory that can still be had, disk that serves as memory included; None if nobody says."""
    there = Path("/proc/meminfo")
    if not there.is_file():
        return None
    found = _kilobytes(there)
    return (found["MemAvailable"] + found["SwapFree"]) * 1024


def _kilobytes(file: Path) -> dict[str, int]:
    """Lines like `VmData:  1234 kB`."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {line[0].rstrip(":"): int(line[1]) for line in lines if line[-1:] == ["kB"]}
