"""The fused kernels are the plain layers: same values, same gradients, one graph.

On a GPU they run as they are. Elsewhere Triton's interpreter runs them on the CPU, where it is
installed.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ronri.nn import fused
from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry

CUDA = torch.cuda.is_available()
if not CUDA:
    # Read when kernels are defined, which is before any test runs.
    os.environ["TRITON_INTERPRET"] = "1"
triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

DEVICE, DTYPE, ERROR = ("cuda", torch.bfloat16, 1e-2) if CUDA else ("cpu", torch.float32, 1e-5)
LENGTHS = (17, 37, 82)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _loops_in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
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
def _8_bits_in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
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
    weights = torch.softmax(scores, dim=-1)
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


def unit_block(
    x: Tensor,
    w_say: Tensor,
    w_hear: Tensor,
    w_gate_up: Tensor,
    w_down: Tensor,
    *,
    geometry: Geometry,
) -> Tensor:
    """A block over units as the formula has it: a matrix says who is in a unit with whom."""
    cells, digits = torch.arange(geometry.cells), torch.arange(geometry.size)
    row, column, box = torch.from_numpy(geometry.units_of).T
    units = [torch.cartesian_prod(place, digits) for place in (row, column, box)]
    units.append(torch.cartesian_prod(cells, digits)[:, :1])
    said = hidden(x, w_say)
    for unit, ear in zip(units, w_hear.chunk(4, dim=1), strict=True):
        together = (unit[:, None] == unit[None]).all(dim=-1).to(x)
        x = x + together @ said @ ear.T
    x = norm(x)
    return norm(x + swiglu(x, w_gate_up, w_down))


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


@triton
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize(
    ("tokens", "heads", "dim"), [(17, 2, 32), (37, 3, 64), (64, 1, 128), (82, 4, 64)]
)
def test_attention(tokens: int, heads: int, dim: int, rotary: bool) -> None:
    cos, sin = angles(tokens, dim) if rotary else (None, None)
    qkv = normal(2, tokens, 3 * heads * dim)
    for grad in (True, False):
        assert_same(
            lambda qkv: fused.rotary_attention(qkv, cos, sin, heads),
            lambda qkv: attention(qkv, cos, sin, heads),
            qkv,
            grad=grad,
        )


@triton
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize(("tokens", "heads", "dim"), [(17, 3, 32), (82, 2, 64), (82, 6, 32)])
def test_attention_within_groups(tokens: int, heads: int, dim: int, rotary: bool) -> None:
    """Each head has its own groups; group 0 is with everyone, and a group may have one member."""
    groups = some_groups(heads, tokens)
    cos, sin = angles(tokens, dim) if rotary else (None, None)
    for grad in (True, False):
        assert_same(
            lambda qkv: fused.rotary_attention(qkv, cos, sin, heads, groups),
            lambda qkv: attention(qkv, cos, sin, heads, groups),
            normal(2, tokens, 3 * heads * dim),
            grad=grad,
        )


@triton
def test_attention_to_one_token_alone() -> None:
    """Large scores neither overflow nor turn into NaN."""
    assert_same(
        lambda qkv: fused.rotary_attention(qkv, None, None, 2),
        lambda qkv: attention(qkv, None, None, 2),
        normal(1, 20, 3 * 2 * 32, scale=12.0),
        grad=False,
    )


@triton
def test_angles_turn_as_rotate_half_does() -> None:
    """[a, b] becomes [a cos - b sin, b cos + a sin], so relative positions alone matter."""
    tokens, dim = 17, 32
    rate = torch.rand(dim // 2, device=DEVICE).repeat(2)
    place = torch.arange(tokens, device=DEVICE)[:, None]
    qkv = normal(1, tokens, 3 * dim)
    here = fused.rotary_attention(qkv, (place * rate).cos(), (place * rate).sin(), 1)
    there = fused.rotary_attention(qkv, ((place + 9) * rate).cos(), ((place + 9) * rate).sin(), 1)
    assert_near(there, here.double())
    assert (fused.rotary_attention(qkv, None, None, 1) - here).norm() > 0.1 * here.norm()


# More rows than one tile, and a last tile that is not full.
@triton
@pytest.mark.parametrize("rows", [(3, 50), (128,)])
def test_swiglu(rows: tuple[int, ...]) -> None:
    inputs = (normal(*rows, 64), normal(512, 64, scale=1 / 8), normal(64, 256, scale=1 / 16))
    for grad in (True, False):
        assert_same(fused.swiglu, swiglu, *inputs, grad=grad)


@triton
@pytest.mark.parametrize("tokens", LENGTHS)
def test_mix_tokens(tokens: int) -> None:
    x, w_gate_up = normal(2, tokens, 256), normal(256, tokens, scale=tokens**-0.5)
    w_down = normal(tokens, 128, scale=128**-0.5)
    for grad in (True, False):
        assert_same(fused.mix_tokens, mix_tokens, x, w_gate_up, w_down, grad=grad)


def unit_weights(width: int, message: int, inner: int) -> tuple[Tensor, ...]:
    return (
        normal(2 * message, width, scale=width**-0.5),
        normal(width, 4 * message, scale=0.3 * message**-0.5),
        normal(2 * inner, width, scale=width**-0.5),
        normal(width, inner, scale=inner**-0.5),
    )


# One puzzle, which Triton compiles otherwise; and more: tiles have candidates of several.
@triton
@pytest.mark.parametrize("geometry", [FOUR, SIX, NINE], ids=str)
@pytest.mark.parametrize("shape", fused.UNIT_SHAPES, ids=str)
@pytest.mark.parametrize("puzzles", [1, 3])
def test_unit_block(puzzles: int, geometry: Geometry, shape: tuple[int, int, int]) -> None:
    assert fused.fits_units(geometry.size, *shape)
    box = geometry.box_height, geometry.box_width
    inputs = (normal(puzzles, geometry.cells * geometry.size, shape[0]), *unit_weights(*shape))
    for grad in (True, False):
        assert_same(
            lambda *tensors: fused.unit_block(*tensors, box=box),
            lambda *tensors: unit_block(*tensors, geometry=geometry),
            *inputs,
            grad=grad,
        )


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("shape", fused.UNIT_SHAPES, ids=str)
def test_a_unit_block_of_many_puzzles(shape: tuple[int, int, int]) -> None:
    """As many as there are in training."""
    x, weights = normal(768, 729, shape[0]), unit_weights(*shape)
    tensors = [one.requires_grad_() for one in (x, *weights)]
    seed = torch.randn_like(x)
    found = fused.unit_block(*tensors, box=(3, 3))
    gradients = torch.autograd.grad(found, tensors, seed)
    expected = [torch.zeros_like(one, dtype=torch.float64) for one in tensors]
    for start in range(0, len(x), 8):
        some = slice(start, start + 8)
        parts = [x[some].detach().double(), *(one.detach().double() for one in weights)]
        parts = [one.requires_grad_() for one in parts]
        truth = unit_block(*parts, geometry=NINE)
        assert_near(found[some], truth)
        for total, part in zip(
            expected, torch.autograd.grad(truth, parts, seed[some].double()), strict=True
        ):
            (total[some] if total.shape == x.shape else total).add_(part)
    for gradient, truth in zip(gradients, expected, strict=True):
        assert_near(gradient, truth)


def alike(*shape: int) -> Tensor:
    """Rows that have something in common."""
    return normal(*shape) + normal(shape[-1])


def rounded(x: Tensor) -> Tensor:
    """To 8 bits and back; the largest number of a weight becomes the largest there is."""
    return x.to(torch.float8_e4m3fn).to(x.dtype)


def rounded_linear(x: Tensor, weight: Tensor, turn: int) -> Tensor:
    """The product with a rounded weight, put right for the mean row. x is rounded."""
    scale = weight.abs().max() / 448
    before = torch.zeros_like(weight)
    for past in range(turn + 1):
        # All turns together are to be as many times the weight.
        eight = rounded((((past + 1) * weight - before) / scale).clamp(-448, 448)) * scale
        before += eight
    return x @ eight.T + (weight - eight) @ x.flatten(0, -2).mean(0)


def assert_rough(found: Tensor, rounded_where_it_is: Tensor, exact: Tensor) -> None:
    """Rounded to 8 bits at the right places and nowhere else, and not far from the truth."""
    scale = exact.norm()
    # On a GPU numbers in between are bfloat16: some fall on the other side of a step of 8 bits.
    assert (found.double() - rounded_where_it_is).norm() / scale < (2.5e-2 if CUDA else 5e-3)
    assert 1e-2 < (found.double() - exact).norm() / scale < 8e-2


@triton
@pytest.mark.parametrize(("tokens", "turn", "grouped"), [(17, 0, True), (82, 3, False)])
def test_rough_attention(tokens: int, turn: int, grouped: bool) -> None:
    cos, sin = angles(tokens, 64)
    groups = some_groups(2, tokens) if grouped else None
    x, w_qkv, w_out = alike(2, tokens, 128), normal(384, 128), normal(128, 128)
    w_qkv, w_out = w_qkv.float() / 11, w_out.float() / 11
    found = fused.rough.attention(x, w_qkv, w_out, cos, sin, groups, 2, turn)
    eight = rounded_linear(rounded(x.double()), w_qkv.double(), turn)
    eight = attention(eight, cos, sin, 2, groups)
    eight = rounded_linear(rounded(eight), w_out.double(), turn)
    exact = attention(x.double() @ w_qkv.double().T, cos, sin, 2, groups) @ w_out.double().T
    assert found.dtype == DTYPE
    assert_rough(found, eight, exact)


@triton
@pytest.mark.parametrize("turn", [0, 3])
def test_rough_swiglu(turn: int) -> None:
    x, w_gate_up, w_down = alike(3, 50, 128), normal(512, 128), normal(128, 256)
    w_gate_up, w_down = w_gate_up.float() / 11, w_down.float() / 16
    found = fused.rough.swiglu(x, w_gate_up, w_down, turn)
    gate, up = rounded_linear(rounded(x.double()), w_gate_up.double(), turn).chunk(2, dim=-1)
    eight = rounded_linear(rounded(F.silu(gate) * up), w_down.double(), turn)
    exact = swiglu(x.double(), w_gate_up.double(), w_down.double())
    assert found.dtype == DTYPE
    assert_rough(found, eight, exact)


# All rows of a small batch are looked at, and a sample of those of a large one.
@pytest.mark.parametrize("batch", [3, 256])
def test_a_rounded_weight_is_right_about_the_mean_row(batch: int) -> None:
    # Puzzles differ, the first ones most, and so do tokens: the sample must be of them all.
    puzzles = normal(batch, 1, 128)
    puzzles[:9] += 3 * normal(128)
    x = alike(batch, 17, 128) + puzzles + 2 * normal(17, 128)
    x, weight = fused.rough.rounded(x), normal(128, 128).float()
    scaled = fused.rough.scaled(weight, 0)
    found = fused.rough.product(x, scaled, DTYPE).double()
    exact = x.double() @ weight.double().T
    uncorrected = exact - x.double() @ scaled.rest.double().T
    error, before = ((y - exact).flatten(0, -2).mean(0).norm() for y in (found, uncorrected))
    assert error < 0.2 * before


def test_the_mean_of_all_turns_is_nearer_to_the_weight_than_any() -> None:
    weight = torch.randn(128, 128, device=DEVICE)
    turns = [fused.rough.scaled(weight, turn) for turn in range(fused.rough.TURNS)]
    for one in turns:
        torch.testing.assert_close(one.rounded.float() * one.scale + one.rest, weight)
    # Of what was owed only the last turn's part is left.
    mean = torch.stack([one.rest for one in turns]).mean(0)
    assert mean.norm() < 1.2 / fused.rough.TURNS * turns[0].rest.norm()
    again = fused.rough.scaled(weight, fused.rough.TURNS)
    assert torch.equal(again.rounded.float(), turns[0].rounded.float())


@triton
def test_rough_layers_bear_what_8_bits_cannot_hold() -> None:
    """Nothing overflows: what is too large becomes the largest number there is."""
    x, w_gate_up = normal(1, 16, 128, scale=1e3), normal(256, 128, scale=5e-3).float()
    w_down = normal(128, 128).float()
    for turn in (0, 3):
        assert fused.rough.swiglu(x, w_gate_up, w_down, turn).isfinite().all()
        assert fused.rough.swiglu(x, w_gate_up * 0, w_down, turn).eq(0).all()


@pytest.mark.parametrize("tokens", LENGTHS)
def test_mix_tokens_for_the_compiler(tokens: int) -> None:
    x, w_gate_up = normal(2, tokens, 32), normal(32, tokens, scale=tokens**-0.5)
    w_down = normal(tokens, 16, scale=1 / 4)
    assert_same(fused.mix_tokens_plain, mix_tokens, x, w_gate_up, w_down, grad=True)


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


@triton
def test_a_block_is_one_graph() -> None:
    cos, sin = angles(17, 64)

    def block(qkv: Tensor, x: Tensor, *w: Tensor) -> Tensor:
        x = norm(x + fused.rotary_attention(qkv, cos, sin, 2))
        return fused.swiglu(fused.mix_tokens(x, w[0], w[1]), w[2], w[3]) + x

    assert_one_graph(
        block,
        normal(2, 17, 3 * 128),
        normal(2, 17, 128),
        normal(128, 17, scale=1 / 4),
        normal(17, 64, scale=1 / 8),
        normal(256, 128, scale=1 / 11),
        normal(128, 128, scale=1 / 11),
    )


@triton
def test_a_block_over_units_is_one_graph() -> None:
    assert_one_graph(
        lambda *tensors: fused.unit_block(*tensors, box=(2, 2)),
        normal(2, 64, 32),
        normal(32, 32, scale=1 / 6),
        normal(32, 64, scale=1 / 8),
        normal(128, 32, scale=1 / 6),
        normal(32, 64, scale=1 / 8),
    )


@triton
def test_rough_layers_are_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    # The compiler cannot look into the checks of shapes.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    cos, sin = angles(17, 64)
    inputs = [normal(2, 17, 128), *(normal(n, 128).float() / 11 for n in (384, 128, 256, 128))]

    def block(x: Tensor, *w: Tensor) -> Tensor:
        x = x + fused.rough.attention(x, w[0], w[1], cos, sin, None, 2, 0)
        return x + fused.rough.swiglu(x, w[2], w[3], 1)

    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert_equal_compiled(compiled(*inputs), block(*inputs))


def test_the_processor_never_gets_kernels() -> None:
    assert not fused.available(torch.zeros(1, dtype=torch.bfloat16))


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_kernels_are_for_bfloat16_and_can_be_switched_off() -> None:
    x = torch.zeros(1, dtype=torch.bfloat16, device="cuda")
    fused.look(x.device)
    assert fused.available(x)
    assert not fused.available(x.float())
    with fused.switched(False):
        assert not fused.available(x)
    assert fused.available(x)


def test_kernels_are_not_imported_before_they_are_called() -> None:
    code = "import sys, ronri.nn.fused; assert 'ronri.nn.fused.kernels' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
