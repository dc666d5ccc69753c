"""How fast the fused kernels are, beside compiled PyTorch, and how exact.

    python benchmarks/kernels.py [GROUP ...] [--out FILE] [--batch N]

Needs CUDA and Triton; takes about a minute. Every group of variants has a process of its own. All
of them compile and check their variants at the same time, against float32; then one after the other
measures. One that hangs is ended, one that fails says so in one line, and the rest go on. Inputs
are random bfloat16 of the paper's sizes; times are medians.
"""

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
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
from triton.tools.tensor_descriptor import TensorDescriptor

from ronri.nn import fused
from ronri.nn.fused.kernels import (
    attention,
    attention_backward,
    attention_variants,
    mixing,
    mixing_variants,
    residual,
    swiglu,
    swiglu_variants,
)

TOKENS, WIDTH, HEADS, INNER, MIXED, EPSILON = 82, 512, 8, 1536, 256, 1e-5
WORST_ERROR = 1e-2
# Seconds until every variant is compiled and checked, and for measuring one group.
READY, MEASURED = 55.0, 10.0

Run = Callable[[], Tensor]


@dataclass(frozen=True)
class Case:
    """One way to compute something: a variant of a kernel, or plain PyTorch."""

    work: str
    variant: str
    run: Run
    truth: Run
    flops: float
    traffic: float
    """The fewest bytes this work must read and write."""
    written: tuple[Tensor, ...] = ()
    """What the run writes into; poisoned before, so that what is left out stays visible."""


@dataclass(frozen=True)
class Result:
    work: str
    variant: str
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
    programs: int
    """As many as there are multiprocessors."""

    @property
    def rows(self) -> int:
        return self.batch * TOKENS

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, device=self.device) * scale).to(self.dtype)

    def empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, device=self.device, dtype=self.dtype)

    def size(self, *counts: int) -> float:
        return sum(counts) * torch.finfo(self.dtype).bits / 8


# ---- plain PyTorch --------------------------------------------------------------------------


def plain_norm(x: Tensor, dim: int = -1) -> Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(dim, keepdim=True) + EPSILON)).to(x.dtype)


def plain_attention(qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    heads = (*qkv.shape[:2], HEADS, -1)
    q, k, v = (part.reshape(heads).transpose(1, 2) for part in qkv.chunk(3, dim=-1))

    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return (x * cos + torch.cat([-b, a], dim=-1) * sin).to(x.dtype)

    out = F.scaled_dot_product_attention(turned(q), turned(k), v)
    return out.transpose(1, 2).flatten(-2)


def unturned_attention(qkv: Tensor) -> Tensor:
    one, zero = qkv.new_ones(1), qkv.new_zeros(1)
    return plain_attention(qkv, one, zero)


def plain_gate_up(x: Tensor, w_gate_up: Tensor) -> tuple[Tensor, Tensor]:
    gate_up = F.linear(x, w_gate_up)
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up, gate_up


def plain_hidden(x: Tensor, w_gate_up: Tensor) -> Tensor:
    return plain_gate_up(x, w_gate_up)[0]


def plain_swiglu(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> Tensor:
    return F.linear(plain_hidden(x, w_gate_up), w_down)


def plain_swiglu_backward(out_grad: Tensor, w_down: Tensor, gate_up: Tensor) -> Tensor:
    grad = out_grad @ w_down
    gate, up = gate_up.chunk(2, dim=-1)
    opening = torch.sigmoid(gate)
    slope = opening * (1 + gate * (1 - opening))
    return torch.cat([grad * up * slope, grad * gate * opening], dim=-1)


def plain_linear_add_norm(h: Tensor, weight: Tensor, stream: Tensor) -> Tensor:
    return plain_norm(stream + F.linear(h, weight))


def plain_mix(x: Tensor, w_gate_up: Tensor, w_down: Tensor) -> Tensor:
    turned = x.transpose(1, 2)
    mixed = plain_norm(turned + plain_swiglu(turned, w_gate_up, w_down))
    return mixed.transpose(1, 2)


# ---- the cases ------------------------------------------------------------------------------


def once(make: Run) -> Run:
    """Compute a truth when it is first asked for, and keep it for the next variant."""
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


ATTENTION = {"HEADS": HEADS, "HALF": WIDTH // HEADS // 2, "ROWS": 128}
SCALE = (WIDTH // HEADS) ** -0.5


def attention_cases(s: Setting, described: bool) -> Iterator[Case]:
    qkv = s.normal(s.batch, TOKENS, 3 * WIDTH)
    cos, sin = angles(s)
    out = s.empty(s.batch, TOKENS, WIDTH)
    level = torch.empty(s.batch, HEADS, TOKENS, device=s.device)
    count = s.batch * HEADS
    sizes = ATTENTION | {"A": 64, "B": 32, "KEEP": False}

    def early(rotary: bool = True, **options: Any) -> Tensor:
        attention.attention_forward[(count,)](
            qkv, cos, sin, out, level, TOKENS, SCALE, **sizes, ROTARY=rotary, **options
        )
        return out

    def persistent(each: int, **options: Any) -> Tensor:
        programs = each * s.programs
        attention_variants.attention_forward_persistent[(programs,)](
            qkv, cos, sin, out, level, TOKENS, SCALE, count,
            **sizes, PROGRAMS=programs, STAGES=2, **options,
        )  # fmt: skip
        return out

    def through_descriptors(each: int, **options: Any) -> Tensor:
        programs = each * s.programs
        attention_variants.attention_forward_tma[(programs,)](
            *(TensorDescriptor.from_tensor(qkv, [1, rows, 32]) for rows in (128, 64, 32)),
            cos, sin, out, level, TOKENS, SCALE, count,
            **sizes, PROGRAMS=programs, STAGES=2, **options,
        )  # fmt: skip
        return out

    def small(**options: Any) -> Tensor:
        attention_variants.attention_forward_small[(count,)](
            qkv, cos, sin, out, level, TOKENS, SCALE,
            **sizes | {"ROWS": 32}, TALL=96, **options,
        )  # fmt: skip
        return out

    case = partial(
        Case, "attention", truth=exact(plain_attention, qkv, cos, sin), written=(out,),
        flops=4.0 * s.batch * TOKENS * TOKENS * WIDTH, traffic=s.size(qkv.numel(), out.numel()),
    )  # fmt: skip
    if described:
        yield case("tma x2 w8 r128", lambda: through_descriptors(2, num_warps=8, maxnreg=128))
        yield case("tma x2 w4", lambda: through_descriptors(2, num_warps=4))
        return
    compiled = torch.compile(plain_attention, dynamic=False)
    yield case("compiled", lambda: compiled(qkv, cos, sin))
    yield case("early w4 r168 (default)", lambda: early(num_warps=4, maxnreg=168))
    yield case("early w8", lambda: early(num_warps=8))
    yield case("persistent x2 w8 r128", lambda: persistent(2, num_warps=8, maxnreg=128))
    yield case("persistent x2 w4", lambda: persistent(2, num_warps=4))
    yield case("rows 32 w2 s1", lambda: small(num_warps=2, num_stages=1))
    yield case("rows 32 w2 s2", lambda: small(num_warps=2, num_stages=2))
    case = partial(case, truth=exact(unturned_attention, qkv))
    yield case("early w4 r168, unturned", lambda: early(False, num_warps=4, maxnreg=168))


def attention_backward_cases(s: Setting) -> Iterator[Case]:
    qkv = s.normal(s.batch, TOKENS, 3 * WIDTH)
    seed = s.normal(s.batch, TOKENS, WIDTH)
    cos, sin = angles(s)
    out, level = attention.rotary_attention(qkv, cos, sin, HEADS)
    result = s.empty(s.batch, TOKENS, 3 * WIDTH)

    def backward(**options: Any) -> Tensor:
        attention_backward.attention_backward[(s.batch * HEADS,)](
            qkv, cos, sin, out, level, seed, result, TOKENS, SCALE,
            **ATTENTION, KEYS=64, TILES=2, ROTARY=True, **options,
        )  # fmt: skip
        return result

    case = partial(
        Case, "attention backward", flops=10.0 * s.batch * TOKENS * TOKENS * WIDTH,
        truth=once(gradient(plain_attention, qkv.float(), seed.float(), cos, sin)),
        written=(result,), traffic=s.size(2 * qkv.numel(), 2 * seed.numel()),
    )  # fmt: skip
    yield case(
        "w8 s1 r128 (default)", lambda: backward(num_warps=8, num_stages=1, maxnreg=128)
    )  # fmt: skip
    yield case("w8 s2 r128", lambda: backward(num_warps=8, num_stages=2, maxnreg=128))


def swiglu_cases(s: Setting, keep: bool) -> Iterator[Case]:
    x = s.normal(s.rows, WIDTH)
    weight = s.normal(2 * INNER, WIDTH, scale=WIDTH**-0.5)
    hidden = s.empty(s.rows, INNER)
    gate_up = s.empty(s.rows, 2 * INNER) if keep else hidden

    def described(columns: int, programs: int, flatten: bool, **options: Any) -> Tensor:
        swiglu.swiglu_forward[(programs,)](
            TensorDescriptor.from_tensor(x, [128, 64]),
            TensorDescriptor.from_tensor(weight.view(2, INNER, WIDTH), [2, columns, 64]),
            TensorDescriptor.from_tensor(hidden, [128, columns]),
            TensorDescriptor.from_tensor(gate_up, [128, columns]),
            s.rows,
            WIDTH=WIDTH, INNER=INNER, ROWS=128, COLUMNS=columns, DEPTH=64, GROUP=8, KEEP=keep,
            PROGRAMS=programs, FLATTEN=flatten, **options,
        )  # fmt: skip
        return gate_up if keep else hidden

    compiled: Any = torch.compile(plain_gate_up if keep else plain_hidden, dynamic=False)
    case = partial(
        Case,
        "swiglu kept" if keep else "swiglu",
        truth=once(lambda: plain_gate_up(x.float(), weight.float())[int(keep)]),
        flops=4.0 * s.rows * WIDTH * INNER,
        traffic=s.size(x.numel(), weight.numel(), hidden.numel(), keep * gate_up.numel()),
    )
    yield case("compiled", lambda: compiled(x, weight)[1] if keep else compiled(x, weight))
    case = partial(case, written=(hidden, gate_up))
    one, two = s.programs, 2 * s.programs
    yield case("w8 s4 (default)", lambda: described(128, one, True, num_warps=8, num_stages=4))
    if keep:
        yield case("w8 s3", lambda: described(128, one, True, num_warps=8, num_stages=3))
        yield case("64 x2 w4 s3", lambda: described(64, two, False, num_warps=4, num_stages=3))


def swiglu_backward_cases(s: Setting) -> Iterator[Case]:
    grad = s.normal(s.rows, WIDTH)
    weight = s.normal(WIDTH, INNER, scale=INNER**-0.5)
    gate_up = s.normal(s.rows, 2 * INNER)
    result = s.empty(s.rows, 2 * INNER)
    sizes = {"WIDTH": WIDTH, "INNER": INNER, "ROWS": 128, "DEPTH": 64, "GROUP": 8}

    def pointers(**options: Any) -> Tensor:
        tiles = triton.cdiv(s.rows, 128) * (INNER // 128)
        swiglu.swiglu_backward[(tiles,)](
            grad, weight, gate_up, result, s.rows, **sizes, COLUMNS=128, **options
        )
        return result

    def described(columns: int, each: int, early: bool, **options: Any) -> Tensor:
        programs = each * s.programs
        swiglu_variants.swiglu_backward_tma[(programs,)](
            TensorDescriptor.from_tensor(grad, [128, 64]),
            TensorDescriptor.from_tensor(weight, [64, columns]),
            TensorDescriptor.from_tensor(gate_up, [128, columns]),
            TensorDescriptor.from_tensor(result, [128, columns]),
            s.rows, **sizes, COLUMNS=columns, PROGRAMS=programs, EARLY=early, **options,
        )  # fmt: skip
        return result

    compiled = torch.compile(plain_swiglu_backward, dynamic=False)
    case = partial(
        Case, "swiglu backward", truth=exact(plain_swiglu_backward, grad, weight, gate_up),
        flops=2.0 * s.rows * WIDTH * INNER, traffic=s.size(grad.numel(), 2 * gate_up.numel()),
    )  # fmt: skip
    yield case("compiled", lambda: compiled(grad, weight, gate_up))
    case = partial(case, written=(result,))
    yield case("w8 s3 r128 (default)", lambda: pointers(num_warps=8, num_stages=3, maxnreg=128))
    yield case(
        "tma 128 x2 w8 s2 r128",
        lambda: described(128, 2, False, num_warps=8, num_stages=2, maxnreg=128),
    )
    yield case(
        "tma 64 x3 w4 s2 r168",
        lambda: described(64, 3, False, num_warps=4, num_stages=2, maxnreg=168),
    )
    yield case(
        "tma 64 x2 w8 s3 early", lambda: described(64, 2, True, num_warps=8, num_stages=3)
    )  # fmt: skip
    yield case("tma 128 w8 s3 early", lambda: described(128, 1, True, num_warps=8, num_stages=3))


def residual_cases(s: Setting, inner: int) -> Iterator[Case]:
    h = s.normal(s.rows, inner)
    weight = s.normal(WIDTH, inner, scale=inner**-0.5)
    stream = s.normal(s.rows, WIDTH)
    y = s.empty(s.rows, WIDTH)
    scale = torch.empty(s.rows, device=s.device)

    def pointers(**options: Any) -> Tensor:
        residual.linear_add_norm_forward[(triton.cdiv(s.rows, 64),)](
            h, weight, stream, y, scale, s.rows, EPSILON,
            WIDTH=WIDTH, INNER=inner, ROWS=64, DEPTH=64, KEEP=False, **options,
        )  # fmt: skip
        return y

    def described(depth: int, **options: Any) -> Tensor:
        residual.linear_add_norm_forward_tma[(s.programs,)](
            TensorDescriptor.from_tensor(h, [64, depth]),
            TensorDescriptor.from_tensor(weight.view(2, WIDTH // 2, inner), [2, WIDTH // 2, depth]),
            stream, y, scale, s.rows, EPSILON,
            WIDTH=WIDTH, INNER=inner, ROWS=64, DEPTH=depth, KEEP=False,
            PROGRAMS=s.programs, FLATTEN=True, **options,
        )  # fmt: skip
        return y

    compiled = torch.compile(plain_linear_add_norm, dynamic=False)
    norm = torch.compile(plain_norm, dynamic=False)
    flops = 2.0 * s.rows * WIDTH * inner
    case = partial(
        Case, f"linear add norm {inner}", truth=exact(plain_linear_add_norm, h, weight, stream),
        flops=flops, traffic=s.size(h.numel(), weight.numel(), 2 * stream.numel()),
    )  # fmt: skip
    yield Case(
        f"linear {inner}", "cuBLAS", lambda: F.linear(h, weight), exact(F.linear, h, weight),
        flops, s.size(h.numel(), weight.numel(), stream.numel()),
    )  # fmt: skip
    yield case("compiled", lambda: compiled(h, weight, stream))
    yield case("addmm, compiled norm", lambda: norm(torch.addmm(stream, h, weight.T)))
    case = partial(case, written=(y,))
    yield case("64x512 w8 s3", lambda: pointers(num_warps=8, num_stages=3))
    yield case("tma persistent w8 s2", lambda: described(64, num_warps=8, num_stages=2))
    yield case("tma persistent 32 w8 s4", lambda: described(32, num_warps=8, num_stages=4))


def mixing_cases(s: Setting) -> Iterator[Case]:
    x = s.normal(s.batch, TOKENS, WIDTH)
    w_gate_up = s.normal(2 * MIXED, TOKENS, scale=TOKENS**-0.5)
    w_down = s.normal(TOKENS, MIXED, scale=MIXED**-0.5)
    wide = F.pad(w_gate_up, (0, mixing.padded(TOKENS) - TOKENS))
    y = s.empty(s.batch, TOKENS, WIDTH)
    sizes = {"WIDTH": WIDTH, "INNER": MIXED, "A": 64, "B": 32}

    def chunks(channels: int, chunk: int, **options: Any) -> Tensor:
        mixing.mix_tokens_forward[(s.batch, WIDTH // channels)](
            x, wide, w_down, y, TOKENS, EPSILON,
            **sizes, CHANNELS=channels, CHUNK=chunk, **options,
        )  # fmt: skip
        return y

    def resident(channels: int, stages: int, **options: Any) -> Tensor:
        count = s.batch * (WIDTH // channels)
        mixing_variants.mix_tokens_resident[(s.programs,)](
            x, wide, w_down, y, TOKENS, EPSILON, count,
            **sizes, CHANNELS=channels, CHUNK=64, PROGRAMS=s.programs, STAGES=stages, **options,
        )  # fmt: skip
        return y

    compiled = torch.compile(fused.mix_tokens_plain, dynamic=False)
    case = partial(
        Case, "mix tokens", truth=exact(plain_mix, x, w_gate_up, w_down),
        flops=6.0 * s.rows * WIDTH * MIXED, traffic=s.size(2 * x.numel()),
    )  # fmt: skip
    yield case("compiled", lambda: compiled(x, w_gate_up, w_down))
    case = partial(case, written=(y,))
    yield case(
        "128/32 w8 s3 r128 (default)",
        lambda: chunks(128, 32, num_warps=8, num_stages=3, maxnreg=128),
    )
    yield case("128/64 w8 s2", lambda: chunks(128, 64, num_warps=8, num_stages=2))
    yield case("64/64 w4 s2", lambda: chunks(64, 64, num_warps=4, num_stages=2))
    yield case("256/32 w8 s3", lambda: chunks(256, 32, num_warps=8, num_stages=3))
    yield case("resident 128 w8 s1", lambda: resident(128, 1, num_warps=8))
    yield case("resident 128 w8 s2", lambda: resident(128, 2, num_warps=8))
    yield case("resident 64 w4 s2", lambda: resident(64, 2, num_warps=4))


def mixing_gradient_cases(s: Setting) -> Iterator[Case]:
    x = s.normal(s.batch, TOKENS, WIDTH)
    seed = s.normal(s.batch, TOKENS, WIDTH)
    weights = (
        s.normal(2 * MIXED, TOKENS, scale=TOKENS**-0.5).requires_grad_(),
        s.normal(TOKENS, MIXED, scale=MIXED**-0.5).requires_grad_(),
    )
    wide = [w.float() for w in weights]
    case = partial(
        Case, "mix tokens both ways", flops=18.0 * s.rows * WIDTH * MIXED,
        traffic=s.size(5 * x.numel()),
        truth=once(gradient(plain_mix, x.float(), seed.float(), *wide)),
    )  # fmt: skip
    for name, function in (("compiled", fused.mix_tokens_plain), ("fused", fused.mix_tokens)):
        compiled = torch.compile(function, dynamic=False)
        yield case(name, gradient(compiled, x, seed, *weights, wanted=weights))

    # Whether the library minds 82 rows in products over positions, or the copy to 88 is worth it.
    matrix = F.pad(weights[0].detach(), (0, 14)).expand(s.batch, -1, -1)
    long = F.pad(x, (0, 0, 0, 6))
    case = partial(
        Case, "product over positions", flops=4.0 * s.rows * WIDTH * MIXED,
        traffic=s.size(x.numel(), 2 * s.batch * MIXED * WIDTH),
        truth=once(lambda: torch.matmul(weights[0].detach().float(), x.float())),
    )  # fmt: skip
    yield case("82", lambda: torch.bmm(matrix[:, :, :TOKENS], x))
    yield case("88, copied before", lambda: torch.bmm(matrix[:, :, : TOKENS + 6], long))


GROUPS: dict[str, Callable[[Setting], Iterator[Case]]] = {
    "swiglu": partial(swiglu_cases, keep=False),
    "swiglu-kept": partial(swiglu_cases, keep=True),
    "swiglu-backward": swiglu_backward_cases,
    "attention": partial(attention_cases, described=False),
    "attention-described": partial(attention_cases, described=True),
    "attention-backward": attention_backward_cases,
    "residual-512": partial(residual_cases, inner=WIDTH),
    "residual-1536": partial(residual_cases, inner=INNER),
    "mixing": mixing_cases,
    "mixing-gradient": mixing_gradient_cases,
}


# ---- measuring: a process for each group ----------------------------------------------------


def median_ms(run: Run) -> float:
    return float(triton.testing.do_bench(run, warmup=10, rep=60, return_mode="median"))


def error_of(case: Case) -> float:
    for tensor in case.written:
        tensor.fill_(float("nan"))
    found, truth = case.run().float(), case.truth()
    return float((found - truth).norm() / truth.norm())


def work(group: str, s: Setting, clock: Callable[[Run], float] = median_ms) -> None:
    """Check every variant, wait for the word, measure them; say everything on standard output."""
    checked = []
    for case in GROUPS[group](s):
        print(f"checking {case.variant}", flush=True)
        try:
            checked.append((case, error_of(case)))
        except Exception as failure:
            words = " ".join(str(failure).split())[:200]
            print(f"{case.work:22} {case.variant:30} failed: {type(failure).__name__} {words}")
    print("ready", flush=True)
    input()
    for case, error in checked:
        ms = clock(case.run)
        result = Result(
            case.work, case.variant, ms, error, case.flops / ms / 1e9, case.traffic / ms / 1e6
        )
        print(json.dumps(asdict(result)), flush=True)
    print("done", flush=True)


class Worker:
    """A process that works on one group."""

    def __init__(self, group: str, batch: int) -> None:
        self.group, self.state = group, "starting"
        self.results: list[Result] = []
        self.lines: queue.Queue[str] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", group, "--batch", str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"},
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip())
        self.lines.put("gone")

    def follow(self, end: str, deadline: float) -> bool:
        """Show what it says until it says `end`; whether it did so in time."""
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, deadline - time.perf_counter()))
            except queue.Empty:
                line = "gone"
            if line == end:
                return True
            if line == "gone":
                print(f"{self.group}: ended while {self.state}", flush=True)
                self.process.kill()
                return False
            if line.startswith("checking"):
                self.state = line
            elif line.startswith("{"):
                result = Result(**json.loads(line))
                self.state = f"after {result.variant}"
                self.results.append(result)
                print(shown(result), flush=True)
            else:
                print(line, flush=True)

    def measure(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.follow("done", time.perf_counter() + MEASURED)


def shown(result: Result) -> str:
    # NaN compares false: an output that was not written is wrong.
    note = "" if result.error < WORST_ERROR else "WRONG"
    return (
        f"{result.work:22} {result.variant:30} {result.ms:8.4f} ms {result.tflops:7.0f} TFLOP/s"
        f" {result.gbs:7.0f} GB/s  error {result.error:.1e} {note}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "groups", nargs="*", choices=[*GROUPS, []], help="all of them, unless named"
    )
    parser.add_argument("--out", type=Path, help="where to write the results as JSON")
    parser.add_argument("--batch", type=int, default=768, help="puzzles in a batch")
    parser.add_argument("--work", choices=list(GROUPS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        torch.manual_seed(0)
        programs = torch.cuda.get_device_properties(0).multi_processor_count
        work(options.work, Setting("cuda", options.batch, torch.bfloat16, programs))
        return
    started = time.perf_counter()
    workers = [Worker(group, options.batch) for group in options.groups or GROUPS]
    able = [worker for worker in workers if worker.follow("ready", started + READY)]
    print(f"checked after {time.perf_counter() - started:.0f} s", flush=True)
    for worker in able:
        worker.measure()
    properties = torch.cuda.get_device_properties(0)
    print(f"{time.perf_counter() - started:.0f} s on {properties.name}")
    if options.out:
        facts = {
            "device": properties.name,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "batch": options.batch,
            "results": [asdict(result) for worker in workers for result in worker.results],
        }
        options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
