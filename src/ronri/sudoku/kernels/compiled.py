"""How every kernel is compiled, and how batches are spread over threads."""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numba import njit


def _forget_stale_kernels() -> None:
    """Throw compiled kernels away if any source they are made of has changed.

    Numba keeps machine code in `__pycache__` and looks only at the file a kernel stands in, not at
    those of the functions it calls: without this, old code would run after an edit or an update.
    """
    folder = Path(__file__).parent
    sources = [folder.parent / "geometry.py", *sorted(folder.glob("*.py"))]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = folder / "__pycache__" / "kernels.sha256"
    try:
        if not stamp.is_file() or stamp.read_text() != digest:
            for compiled in stamp.parent.glob("*.nb[ic]"):
                compiled.unlink(missing_ok=True)
            stamp.parent.mkdir(exist_ok=True)
            stamp.write_text(digest)
    except OSError:
        # An installation that nobody may write to: what is compiled lies elsewhere, if anywhere.
        return


_forget_stale_kernels()


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function: no GIL, indices trusted, cached on disk where there is a place for it."""
    options = {"nogil": True, "boundscheck": False, **options}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the source folder nor the user's cache can be written to.
        return njit(**options)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """The same for small functions in hot loops."""
    return kernel(function, inline="always")


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
