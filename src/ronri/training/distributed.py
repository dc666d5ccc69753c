"""Several processes that train one model: who am I, and what do we say to each other.

Under `torchrun` every process has a part of the slots. Gradients are averaged in one flat
all-reduce, the first process writes. Alone, everything here does nothing.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ronri.nn import devices


@final
@dataclass(frozen=True)
class World:
    """This process among all."""

    rank: int
    size: int
    device: torch.device

    @property
    def writes(self) -> bool:
        """Whether this is the process that writes logs and checkpoints."""
        return self.rank == 0

    def slots(self, batch: int) -> Tensor:
        """The numbers of this process's slots in a batch that all share."""
        if batch % self.size:
            raise ValueError(
                f"a batch of {batch} cannot be shared by {self.size} processes: "
                f"try --batch {round_to_multiple(batch, self.size)}"
            )
        share = batch // self.size
        return torch.arange(self.rank * share, (self.rank + 1) * share, device=self.device)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.size
        parts = flat.split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def mean(self, values: Tensor) -> Tensor:
        """The mean over processes."""
        if self.size > 1:
            values = values.clone()
            dist.all_reduce(values)
            values /= self.size
        return values

    def agree(self, value: float) -> float:
        """What the first process says: clocks and signals differ, decisions must not."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float32, device=self.device)
        dist.broadcast(shared, 0)
        return float(shared)

    def any(self, value: bool) -> bool:
        """Whether it is true for any process."""
        if self.size == 1:
            return value
        count = torch.tensor(float(value), device=self.device)
        dist.all_reduce(count)
        return bool(count > 0)

    def joined(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of all slots, from tensors of each process's own; what has no slots is equal."""
        if self.size == 1:
            return dict(tensors)
        whole = {}
        for name, tensor in tensors.items():
            if tensor.dim() == 0:
                whole[name] = tensor
                continue
            # Not every backend knows every type: bytes are bytes.
            plain = tensor.contiguous().view(torch.uint8) if tensor.dtype != torch.bool else None
            sent = tensor.to(torch.uint8) if plain is None else plain
            parts = [torch.empty_like(sent) for _ in range(self.size)]
            dist.all_gather(parts, sent)
            together = torch.cat(parts)
            whole[name] = together.bool() if plain is None else together.view(tensor.dtype)
        return whole

    def own(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """This process's part of what `joined` gave, on its device; works for any world size."""
        parts = {}
        for name, tensor in tensors.items():
            if tensor.dim():
                share = len(tensor) // self.size
                tensor = tensor[self.rank * share : (self.rank + 1) * share]
            parts[name] = tensor.to(self.device)
        return parts

    def gathered(self, thing: Any) -> list[Any]:
        """Something of every process."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        dist.all_gather_object(things, thing)
        return things


def round_to_multiple(number: int, multiple: int) -> int:
    return max(1, round(number / multiple)) * multiple


@contextmanager
def join_world(device: str | None) -> Iterator[World]:
    """This process's place, as torchrun says it; alone if nobody says anything."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        place = devices.pick(device)
        if place.type == "cuda" and place.index is not None:
            # Streams and random states are those of the current GPU.
            torch.cuda.set_device(place)
        yield World(0, 1, place)
        return
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    place = devices.pick(device)
    if place.type == "cuda":
        place = torch.device("cuda", local_rank)
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield World(rank, size, place)
        # Nobody hangs up while another one is still at work.
        dist.barrier()
    finally:
        dist.destroy_process_group()
