"""Which device to use, and what to compute in there."""

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
