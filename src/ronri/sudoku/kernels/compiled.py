"""How every kernel is compiled, and how batches are spread over threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numba import njit

# One spelling of the compiler's options: no GIL, cached on disk, indices trusted.
kernel = njit(nogil=True, cache=True, boundscheck=False)
inlined = njit(nogil=True, cache=True, boundscheck=False, inline="always")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(
    work: Callable[[int, int], Any], count: int, threads: int | None = None, chunk: int = 256
) -> None:
    """Call `work(start, stop)` over all of `range(count)`, in chunks, on `threads` threads.

    `work` must release the GIL for most of its time and write to places of its own. Which thread
    takes which chunk is left to chance, so results must not depend on it. `threads=None` uses
    every core.
    """
    threads = cores() if threads is None else threads
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    starts = range(0, count, chunk)
    if threads == 1 or len(starts) <= 1:
        for start in starts:
            work(start, min(start + chunk, count))
        return
    with ThreadPoolExecutor(threads) as pool:
        # list() lets an exception in any chunk surface here.
        list(pool.map(lambda start: work(start, min(start + chunk, count)), starts))
