"""As many puzzles at a time as the device has room for."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

T = TypeVar("T")

# Bytes of a GPU's memory for each row, plenty for the usual networks in one pass. Where noise is
# drawn, too, a chunk may have to be halved.
_ROOM_EACH = 4 * 2**20


def usual_rows(device: torch.device) -> int:
    """Rows that keep a device busy and fit into its memory for networks of the usual size."""
    if device.type != "cuda":
        return 64
    # Many together: where thinking ends early, the last few rows of a chunk leave a GPU idle.
    return max(1024, torch.cuda.get_device_properties(device).total_memory // _ROOM_EACH)


def in_chunks(
    work: Callable[[slice], T], puzzles: int, *, rows_each: int, max_rows: int
) -> Iterator[T]:
    """What `work` makes of one slice of the puzzles after another, `rows_each` rows a puzzle.

    A slice that does not fit into memory is halved and tried again; those after it stay small.
    """
    size = max(1, max_rows // rows_each)
    start = 0
    while start < puzzles:
        part = slice(start, min(start + size, puzzles))
        result = _unless_full(work, part)
        if result is not None:
            yield result
            start = part.stop
            continue
        size = (part.stop - part.start) // 2
        if size == 0:
            raise ValueError(
                f"one puzzle ({rows_each} rows) needs more memory than the device has: "
                "allow fewer samples or views, or use another device"
            )


def _unless_full(work: Callable[[slice], T], part: slice) -> T | None:
    """The result of the work; None where memory ran out."""
    try:
        return work(part)
    except torch.OutOfMemoryError:
        pass
    # Not before the exception is gone: it holds on to everything that was being computed.
    torch.cuda.empty_cache()
    return None
