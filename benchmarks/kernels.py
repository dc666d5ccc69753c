"""How fast the fused kernels are, beside compiled PyTorch, and how exact.

    python benchmarks/kernels.py [WORK ...] [--out FILE] [--batch N]

Needs CUDA and Triton; takes about a minute, most of it for compiling. Every result is compared with
float32. One that fails says so in one line, and the rest go on. Inputs are random bfloat16 of the
paper's sizes; times are medians.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import triton
from torch import Tensor

from ronri.nn import fused
from ronri.nn.fused.kernels import attention, swiglu

TOKENS, WIDTH, HEADS, INNER, MIXED, EPSILON = 82, 512, 8, 1536, 256, 1e-5
# How far from float32 in bfloat16, and in 8 bits.
WORST_ERROR, WORST_ROUGH_ERROR = 1e-2, 8e-2

Run = Callable[[], Tensor]


@dataclass(frozen=True)
class Case:
    """One way to compute something: kernels, or compiled PyTorch."""

    work: str
    way: str
    run: Run
    truth: Run
    flops: float
    traffic: float
    """The fewest bytes this work must read and write."""


@dataclass(frozen=True)
class Result:
    work: str
    way: str
    ms: float
    error: float
    tflops: float
    gbs: float


@dataclass(frozen=True)
class Setting:
    """Where and how large: the sizes of the paper on a GPU, small ones where code is checked."""

    device: str
    batch: int
    dtype: torch.dtype

    @property
    def rows(self) -> int:
        return self.batch * TOKENS

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, device=self.device) * scale).to(self.dtype)

    def size(self, *counts: int) -> float:
        return sum(counts) * torch.finfo(self.dtype).bits / 8


# ---- plain PyTorch --------------------------------------------------------------------------


def plain_norm(x: Tensor) -> Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + EPSILON)).to(x.dtype)


def plain_attention(qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    heads = (*qkv.shape[:2], HEADS, -1)
    q, k, v = (part.reshape(heads).transpose(1, 2) for part in qkv.chunk(3, dim=-1))

    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return (x * cos + torch.cat([-b, a], dim=-1) * sin).to(x.dtype)

    out = F.scaled_dot_product_attention(turned(q), turned(k), v)
    return out.transpose(1, 2).flatten(-2)


def plain_hidden(x: Tensor, w_gate_up: Tensor) -> Tensor:
    gate, up = F.linear(x, w_gate_up).chunk(2, dim=-1)
    return F.silu(gate) * up


def plain_swiglu(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> Tensor:
    return F.linear(plain_hidden(x, w_gate_up), w_down)


def plain_swiglu_backward(out_grad: Tensor, w_down: Tensor, gate_up: Tensor) -> Tensor:
    grad = out_grad @ w_down
    gate, up = gate_up.chunk(2, dim=-1)
    opening = torch.sigmoid(gate)
    slope = opening * (1 + gate * (1 - opening))
    return torch.cat([grad * up * slope, grad * gate * opening], dim=-1)


def plain_mix(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> Tensor:
    turned = x.transpose(1, 2)
    return plain_norm(turned + plain_swiglu(turned, w_gate_up, w_down)).transpose(1, 2)


# ---- the cases ------------------------------------------------------------------------------


def once(make: Run) -> Run:
    """Compute a truth when it is first asked for, and keep it for the next way."""
    kept: list[Tensor] = []

    def truth() -> Tensor:
        if not kept:
            kept.append(make())
        return kept[0]

    return truth


def exact(function: Callable[..., Tensor], *inputs: Tensor) -> Run:
    return once(lambda: function(*(tensor.float() for tensor in inputs)))


def gradient(
    function: Callable[..., Tensor],
    x: Tensor,
    seed: Tensor,
    *rest: Any,
    wanted: tuple[Tensor, ...] = (),
) -> Run:
    """Forward and backward, to x and to the weights that are wanted; the gradient of x."""

    def run() -> Tensor:
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(function(leaf, *rest), [leaf, *wanted], seed)[0]

    return run


def angles(s: Setting) -> tuple[Tensor, Tensor]:
    half = WIDTH // HEADS // 2
    turns = torch.arange(TOKENS, device=s.device)[:, None] * 1e4 ** (
        -torch.arange(half, device=s.device) / half
    )
    return turns.cos().repeat(1, 2), turns.sin().repeat(1, 2)


def attention_cases(s: Setting) -> Iterator[Case]:
    qkv = s.normal(s.batch, TOKENS, 3 * WIDTH)
    cos, sin = angles(s)
    case = partial(
        Case, "attention", truth=exact(plain_attention, qkv, cos, sin),
        flops=4.0 * s.batch * TOKENS * TOKENS * WIDTH, traffic=s.size(qkv.numel() * 4 // 3),
    )  # fmt: skip
    compiled = torch.compile(plain_attention, dynamic=False)
    yield case("compiled", lambda: compiled(qkv, cos, sin))
    yield case("fused", lambda: attention.rotary_attention_alone(qkv, cos, sin, None, HEADS))
    yield case(
        "rough", lambda: attention.rotary_attention_alone(qkv, cos, sin, None, HEADS, rough=True)
    )


def attention_backward_cases(s: Setting) -> Iterator[Case]:
    qkv = s.normal(s.batch, TOKENS, 3 * WIDTH)
    seed = s.normal(s.batch, TOKENS, WIDTH)
    cos, sin = angles(s)
    out, level = attention.rotary_attention(qkv, cos, sin, None, HEADS)
    case = partial(
        Case, flops=10.0 * s.batch * TOKENS * TOKENS * WIDTH,
        truth=once(gradient(plain_attention, qkv.float(), seed.float(), cos, sin)),
        traffic=s.size(2 * qkv.numel(), 2 * seed.numel()),
    )  # fmt: skip
    compiled = torch.compile(plain_attention, dynamic=False)
    yield case("attention both ways", "compiled", gradient(compiled, qkv, seed, cos, sin))
    yield case(
        "attention backward", "fused",
        lambda: attention.rotary_attention_backward(seed, qkv, cos, sin, None, HEADS, out, level),
    )  # fmt: skip


def swiglu_cases(s: Setting) -> Iterator[Case]:
    x = s.normal(s.rows, WIDTH)
    weight = s.normal(2 * INNER, WIDTH, scale=WIDTH**-0.5)
    case = partial(
        Case, "swiglu", truth=exact(plain_hidden, x, weight), flops=4.0 * s.rows * WIDTH * INNER,
        traffic=s.size(x.numel(), weight.numel(), s.rows * INNER),
    )  # fmt: skip
    compiled = torch.compile(plain_hidden, dynamic=False)
    yield case("compiled", lambda: compiled(x, weight))
    yield case("fused", lambda: swiglu.swiglu_hidden(x, weight))
    eight, scaled = fused.rough.rounded(x), fused.rough.scaled(weight, 0)
    shift = fused.rough.missed(eight.view(s.batch, TOKENS, WIDTH), scaled)
    yield case("rough", lambda: swiglu.swiglu_hidden(eight, scaled.rounded, scaled.scale, shift))


def swiglu_backward_cases(s: Setting) -> Iterator[Case]:
    grad = s.normal(s.rows, WIDTH)
    weight = s.normal(WIDTH, INNER, scale=INNER**-0.5)
    gate_up = s.normal(s.rows, 2 * INNER)
    case = partial(
        Case, "swiglu backward", truth=exact(plain_swiglu_backward, grad, weight, gate_up),
        flops=2.0 * s.rows * WIDTH * INNER, traffic=s.size(grad.numel(), 2 * gate_up.numel()),
    )  # fmt: skip
    compiled = torch.compile(plain_swiglu_backward, dynamic=False)
    yield case("compiled", lambda: compiled(grad, weight, gate_up))
    yield case("fused", lambda: swiglu.swiglu_backward_op(grad, weight, gate_up))


def mixing_cases(s: Setting) -> Iterator[Case]:
    x = s.normal(s.batch, TOKENS, WIDTH)
    seed = s.normal(s.batch, TOKENS, WIDTH)
    weights = (
        s.normal(2 * MIXED, TOKENS, scale=TOKENS**-0.5).requires_grad_(),
        s.normal(TOKENS, MIXED, scale=MIXED**-0.5).requires_grad_(),
    )
    still = (weights[0].detach(), weights[1].detach())
    flops = 6.0 * s.rows * WIDTH * MIXED
    compiled = torch.compile(fused.mix_tokens_plain, dynamic=False)
    case = partial(
        Case, "mix tokens", truth=exact(plain_mix, x, *still), flops=flops,
        traffic=s.size(2 * x.numel()),
    )  # fmt: skip
    yield case("compiled", lambda: compiled(x, *still))
    yield case("fused", torch.no_grad()(lambda: fused.mix_tokens(x, *still)))
    yield Case(
        "mix tokens both ways", "compiled", gradient(compiled, x, seed, *weights, wanted=weights),
        once(gradient(plain_mix, x.float(), seed.float(), *(weight.float() for weight in still))),
        3 * flops, s.size(5 * x.numel()),
    )  # fmt: skip


def rough_product(x: Tensor, weight: fused.rough.Scaled, dtype: torch.dtype) -> Tensor:
    return fused.rough.product(x, weight, dtype).flatten(0, 1)


def product_cases(s: Setting) -> Iterator[Case]:
    """The products that are not ours, beside those in 8 bits."""
    for name, inputs, outputs in (
        ("qkv", WIDTH, 3 * WIDTH),
        ("out", WIDTH, WIDTH),
        ("down", INNER, WIDTH),
    ):
        x, weight = s.normal(s.rows, inputs), s.normal(outputs, inputs, scale=inputs**-0.5)
        case = partial(
            Case, f"product {name}", truth=exact(F.linear, x, weight),
            flops=2.0 * s.rows * inputs * outputs,
            traffic=s.size(x.numel(), weight.numel(), s.rows * outputs),
        )  # fmt: skip
        yield case("plain", partial(F.linear, x, weight))
        eight = fused.rough.rounded(x).view(s.batch, TOKENS, inputs)
        scaled = fused.rough.scaled(weight, 0)
        yield case("rough", partial(rough_product, eight, scaled, s.dtype))


WORKS: dict[str, Callable[[Setting], Iterator[Case]]] = {
    "product": product_cases,
    "swiglu": swiglu_cases,
    "swiglu-backward": swiglu_backward_cases,
    "attention": attention_cases,
    "attention-backward": attention_backward_cases,
    "mixing": mixing_cases,
}


# ---- measuring ------------------------------------------------------------------------------


def median_ms(run: Run) -> float:
    return float(triton.testing.do_bench(run, warmup=10, rep=60, return_mode="median"))


def measured(case: Case, clock: Callable[[Run], float] = median_ms) -> Result:
    found, truth = case.run().float(), case.truth()
    error = float((found - truth).norm() / truth.norm())
    ms = clock(case.run)
    return Result(case.work, case.way, ms, error, case.flops / ms / 1e9, case.traffic / ms / 1e6)


def shown(result: Result) -> str:
    # NaN compares false: it is wrong too.
    worst = WORST_ROUGH_ERROR if result.way == "rough" else WORST_ERROR
    note = "" if result.error < worst else "WRONG"
    return (
        f"{result.work:22} {result.way:10} {result.ms:8.4f} ms {result.tflops:7.0f} TFLOP/s"
        f" {result.gbs:7.0f} GB/s  error {result.error:.1e} {note}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("works", nargs="*", choices=[*WORKS, []], help="all of them, unless named")
    parser.add_argument("--out", type=Path, help="where to write the results as JSON")
    parser.add_argument("--batch", type=int, default=768, help="puzzles in a batch")
    options = parser.parse_args()
    torch.manual_seed(0)
    setting = Setting("cuda", options.batch, torch.bfloat16)
    results = []
    started = time.perf_counter()
    for work in options.works or WORKS:
        for case in WORKS[work](setting):
            try:
                results.append(measured(case))
                print(shown(results[-1]), flush=True)
            except Exception as failure:
                words = " ".join(str(failure).split())[:200]
                print(f"{case.work:22} {case.way:10} failed: {type(failure).__name__} {words}")
    name = torch.cuda.get_device_properties(0).name
    print(f"{time.perf_counter() - started:.0f} s on {name}")
    if options.out:
        facts = {
            "device": name,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "batch": options.batch,
            "results": [asdict(result) for result in results],
        }
        options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
