"""The moving average of a network's weights: what is scored and released."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor, nn


@final
class Ema:
    """A float32 copy of a module's weights that follows them slowly.

    Names are those of the module's `state_dict`. Parameters are averaged, buffers are copied.
    The module stays where it is: move it to its device before.
    """

    def __init__(self, module: nn.Module) -> None:
        # A state_dict shares its memory with the module, so it always holds the latest weights.
        self._live = module.state_dict()
        self._averaged = {name for name, _ in module.named_parameters(remove_duplicate=False)}
        self._shadow = {
            name: value.to(torch.float32 if name in self._averaged else value.dtype, copy=True)
            for name, value in self._live.items()
        }

    @torch.no_grad()
    def update(self, momentum: float) -> None:
        """Keep `momentum` of the average and take the rest from the module."""
        names = [name for name in self._shadow if name in self._averaged]
        torch._foreach_lerp_(
            [self._shadow[name] for name in names],
            [self._live[name].float() for name in names],
            1 - momentum,
        )
        for name in self._shadow.keys() - self._averaged:
            self._shadow[name].copy_(self._live[name])

    def tensors(self) -> dict[str, Tensor]:
        """The averages by name: not copies, they go on moving."""
        return dict(self._shadow)

    def load_tensors(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from what `tensors` gave."""
        restore_tensors(self._shadow, saved)

    @contextmanager
    def copied_into(self, module: nn.Module) -> Iterator[None]:
        """Within this context the module has the averaged weights; then it has its own again."""
        weights = module.state_dict()
        own = {name: value.clone() for name, value in weights.items()}
        try:
            restore_tensors(weights, self._shadow)
            yield
        finally:
            restore_tensors(weights, own)


@torch.no_grad()
def restore_tensors(into: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> None:
    """Copy tensors into tensors of the same names and shapes, all of them and no others."""
    if missing := sorted(into.keys() - saved.keys()):
        raise ValueError(f"{len(missing)} saved tensors are missing, {missing[0]} the first")
    if unknown := sorted(saved.keys() - into.keys()):
        raise ValueError(f"{len(unknown)} saved tensors belong nowhere, {unknown[0]} the first")
    for name, value in into.items():
        if saved[name].shape != value.shape:
            raise ValueError(
                f"{name} was saved with shape {list(saved[name].shape)}, not {list(value.shape)}"
            )
    for name, value in into.items():
        value.copy_(saved[name])
