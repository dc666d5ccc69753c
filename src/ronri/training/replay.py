"""Updates that are recorded on a GPU once and replayed: Python says "go", and nothing else.

A small network keeps a large GPU waiting for Python, which starts a thousand kernels an update. A
CUDA graph holds all of them. What it reads and writes lies where it lay when it was recorded, so
the work must do the same to the same tensors every time, and ask the device nothing.
"""

from collections import deque
from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

# Replays that may wait for the device at a time: the clock of a run is read on the host.
AHEAD = 8
# Calls before the recording: kernels are compiled and chosen, and memory is laid out.
WARM_UP = 3


@final
class Replay:
    """Does what `work` does. Every call counts: those of the warm-up, too."""

    def __init__(self, work: Callable[[], dict[str, Tensor]]) -> None:
        self._work = work
        self._calls = 0
        self._stream = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._names: tuple[str, ...] = ()
        self._measured: Tensor | None = None
        self._waiting: deque[torch.cuda.Event] = deque()

    def __call__(self) -> dict[str, Tensor]:
        self._calls += 1
        if self._calls <= WARM_UP:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                measured = self._work()
            torch.cuda.current_stream().wait_stream(self._stream)
            return measured
        if self._graph is None:
            self._record()
        assert self._graph is not None
        assert self._measured is not None
        self._graph.replay()
        done = torch.cuda.Event()
        done.record()
        self._waiting.append(done)
        if len(self._waiting) > AHEAD:
            self._waiting.popleft().synchronize()
        # The next replay overwrites it.
        return dict(zip(self._names, self._measured.clone().unbind(), strict=True))

    def _record(self) -> None:
        """Record the work; it is not done by that."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            measured = self._work()
            self._names = tuple(measured)
            self._measured = torch.stack([value.float() for value in measured.values()])
        self._graph = graph
