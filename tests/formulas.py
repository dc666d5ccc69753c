"""The fused kernels as formulas, and how a kernel is compared with one.

On a GPU kernels run as they are. Elsewhere Triton's interpreter (`conftest.py` asks for it) runs
them on the CPU, where it is installed.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ronri.nn.dropout import Dropout, dropped

CUDA = torch.cuda.is_available()
triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

DEVICE, DTYPE, ERROR = ("cuda", torch.bfloat16, 1e-2) if CUDA else ("cpu", torch.float32, 1e-5)


# Files of tests import these three, and then every test has them.


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def loops_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 3.6 interprets the bounds of loops in a way that NumPy 2.4 refuses."""
    if CUDA or find_spec("triton") is None:
        return
    from triton.runtime import interpreter

    plain = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        plain(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


@pytest.fixture(autouse=True)
def rounding_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 3.6's interpreter rounds 0.4989 to 0.25: the carry into the exponent is lost."""
    if CUDA or find_spec("triton") is None:
        return
    from triton.runtime import interpreter

    plain = interpreter._convert_float

    def convert(values: Any, source: Any, target: Any, mode: Any) -> Any:
        if source.name == "fp32" and target.name == "fp8e4nv":
            wide = torch.from_numpy(values.astype("float32")).clamp(-448, 448)
            return wide.to(torch.float8_e4m3fn).view(torch.uint8).numpy()
        return plain(values, source, target, mode)

    monkeypatch.setattr(interpreter, "_convert_float", convert)


def normal(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, device=DEVICE) * scale).to(DTYPE)


def angles(tokens: int, dim: int) -> tuple[Tensor, Tensor]:
    turns = torch.rand(tokens, dim // 2, device=DEVICE).repeat(1, 2) * 6
    return turns.cos(), turns.sin()


def norm(x: Tensor, dim: int = -1) -> Tensor:
    return x * torch.rsqrt(x.square().mean(dim, keepdim=True) + 1e-5)


def rotate_half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def attention(
    qkv: Tensor,
    cos: Tensor | None,
    sin: Tensor | None,
    heads: int,
    groups: Tensor | None = None,
    forget: Dropout | None = None,
) -> Tensor:
    """Attention as the formula has it."""
    shape = (*qkv.shape[:2], heads, -1)
    q, k, v = (part.reshape(shape).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    if cos is not None and sin is not None:
        q, k = (x * cos + rotate_half(x) * sin for x in (q, k))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if groups is not None:
        own, other = groups[:, :, None], groups[:, None, :]
        scores = scores.masked_fill((own != other) & (own != 0) & (other != 0), float("-inf"))
    weights = dropped(torch.softmax(scores, dim=-1), forget)
    return (weights @ v).transpose(1, 2).flatten(-2)


def some_groups(heads: int, tokens: int) -> Tensor:
    groups = torch.randint(0, 9, (heads, tokens), device=DEVICE, dtype=torch.int32)
    groups[:, -1] = 9
    return groups


def hidden(x: Tensor, w_gate_up: Tensor) -> Tensor:
    gate, up = F.linear(x, w_gate_up).chunk(2, dim=-1)
    return F.silu(gate) * up


def swiglu(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> Tensor:
    return F.linear(hidden(x, w_gate_up), w_down)


def mix_tokens(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> Tensor:
    return norm(x + swiglu(x.mT, w_gate_up, w_down).mT, dim=1)


def assert_near(found: Tensor, truth: Tensor) -> None:
    assert found.shape == truth.shape
    assert found.dtype == DTYPE
    error = (found.double() - truth).norm() / truth.norm()
    assert error < ERROR, f"relative error {error:.1e}"


def assert_equal_compiled(found: Tensor, truth: Tensor) -> None:
    """What a compiler may change; on a GPU it also rounds to bfloat16 at other places."""
    if CUDA:
        assert_near(found, truth.double())
    else:
        torch.testing.assert_close(found, truth)


def assert_same(
    kernel: Callable[..., Tensor], formula: Callable[..., Tensor], *inputs: Tensor, grad: bool
) -> None:
    """Values and gradients of a kernel against the formula in double precision."""
    ours = [x.detach().clone().requires_grad_(grad) for x in inputs]
    exact = [x.detach().double().requires_grad_(grad) for x in inputs]
    with torch.set_grad_enabled(grad):
        found, truth = kernel(*ours), formula(*exact)
    assert_near(found, truth)
    if grad:
        seed = torch.randn_like(found)
        gradients = torch.autograd.grad(found, ours, seed)
        truths = torch.autograd.grad(truth, exact, seed.double())
        for gradient, expected in zip(gradients, truths, strict=True):
            assert_near(gradient, expected)


def assert_one_graph(block: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Compiled without a break, it has the values and the gradients of the eager block."""
    for x in inputs:
        x.requires_grad_()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    found, truth = compiled(*inputs), block(*inputs)
    assert_equal_compiled(found, truth)
    for gradient, expected in zip(
        torch.autograd.grad(found.sum(), inputs),
        torch.autograd.grad(truth.sum(), inputs),
        strict=True,
    ):
        assert_equal_compiled(gradient, expected)
    with torch.no_grad():
        assert_equal_compiled(compiled(*inputs), truth)
