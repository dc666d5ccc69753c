"""Matrices and tables of learned weights.

Weights are kept in float32, and used in the precision of what they are multiplied with: a network
runs in bfloat16 when it is given bfloat16.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.flop_counter import register_flop_formula

# The standard deviation of a standard normal variable that is cut off at -2 and 2.
_CUT_STD = 0.87962566103423978


_drawing = True
_ONEDNN = torch.backends.mkldnn.is_available()


@contextmanager
def undrawn() -> Iterator[None]:
    """Leave new weights as they come: for those who are about to load others."""
    global _drawing
    _drawing = False
    try:
        yield
    finally:
        _drawing = True


@torch.no_grad()
def truncated_normal_(
    tensor: Tensor, std: float, generator: torch.Generator | None = None
) -> Tensor:
    """Fill a tensor with normal numbers, none far out, whose standard deviation is `std`.

    The tails are cut off at two standard deviations. That makes the rest narrower, so what is left
    is widened again, as JAX does it and `torch.nn.init.trunc_normal_` does not.
    """
    if not _drawing:
        return tensor
    nn.init.trunc_normal_(tensor, 0.0, 1.0, -2.0, 2.0, generator=generator)
    return tensor.mul_(std / _CUT_STD)


@final
class Linear(nn.Module):
    """`x @ weight.T + bias`, with what an optimiser wants to know about the matrix.

    `parts` matrices of equal size lie stacked along the output: 3 for queries, keys and values that
    are computed together. `hidden` matrices lie inside a block; the others are a network's head or
    its first layer.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = False,
        parts: int = 1,
        hidden: bool = True,
    ) -> None:
        super().__init__()
        assert out_features % parts == 0, f"{out_features} outputs are not {parts} equal parts"
        self.parts = parts
        self.hidden = hidden
        weight = torch.empty(out_features, in_features)
        self.weight = nn.Parameter(truncated_normal_(weight, in_features**-0.5))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        weight = self.weight.to(x.dtype)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        if _by_onednn(x):
            return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return F.linear(x, weight, bias)

    def gated(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch half"]:
        """`silu(gate) * value`, where the parts are matrices for gates and for values."""
        assert self.parts == 2, "a gated layer has gates and values"
        assert self.bias is None, "a gated layer has no bias"
        if _by_onednn(x):
            gates, values = self.weight.to(x.dtype).chunk(2)
            gate = torch.ops.mkldnn._linear_pointwise(x, gates, None, "swish", [], "")
            return torch.ops.mkldnn._linear_pointwise.binary(x, gate, values, None, "mul")
        gate, value = self(x).chunk(2, dim=-1)
        return F.silu(gate) * value


def _by_onednn(x: Tensor) -> bool:
    """Whether to multiply as torch's own compiler does on a processor, when there is no gradient.

    For as few rows as one puzzle has, that takes four fifths of the time of `F.linear`, and what is
    done to each number of a product is done while it is at hand. While torch compiles it gets the
    plain product: its compiler refuses its own where weights may change.
    """
    if torch.compiler.is_compiling():
        return False
    return _ONEDNN and x.is_cpu and x.dtype == torch.float32 and not torch.is_grad_enabled()


if _ONEDNN:

    @register_flop_formula(torch.ops.mkldnn._linear_pointwise)
    def _flops(x: torch.Size, second: torch.Size, third: object, *_: object, **__: object) -> int:
        """As many as torch counts for `F.linear`.

        The weights come second; third where the product is combined with something.
        """
        weight = third if isinstance(third, torch.Size) and len(third) == 2 else second
        return 2 * math.prod(x) * weight[0]


@final
class Embedding(nn.Module):
    """A table of vectors, looked up by index."""

    def __init__(self, num: int, width: int, *, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(truncated_normal_(torch.empty(num, width), std))

    def forward(
        self, index: Int[Tensor, "*batch"], dtype: torch.dtype
    ) -> Float[Tensor, "*batch width"]:
        # As a product of matrices: its gradient is one too, and far faster on a GPU than adding
        # up what many places say about one vector.
        rows = torch.arange(len(self.weight), device=index.device)
        return (index[..., None] == rows).to(dtype) @ self.weight.to(dtype)
