"""Another way to mix tokens, to be measured."""

import triton
import triton.language as tl

from ronri.nn.fused.kernels.mixing import activated, load_rows, store_normed


@triton.jit
def mix_tokens_resident(
    x, w_gate_up, w_down, y, length, epsilon, count,
    WIDTH: tl.constexpr, INNER: tl.constexpr, CHANNELS: tl.constexpr, CHUNK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, PROGRAMS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Programs stay, and keep all weights in shared memory while puzzles come and go."""
    a = tl.arange(0, A)
    b = A + tl.arange(0, B)
    weights = ()
    for chunk in tl.static_range(INNER // CHUNK):
        inner = chunk * CHUNK + tl.arange(0, CHUNK)
        gate_at = w_gate_up + inner[:, None] * (A + B)
        up_at = gate_at + INNER * (A + B)
        weights = weights + (  # type: ignore[assignment]  # noqa: RUF005
            tl.load(gate_at + a[None, :]), tl.load(gate_at + b[None, :]),
            tl.load(up_at + a[None, :]), tl.load(up_at + b[None, :]),
            load_rows(w_down, a, inner, INNER, length), load_rows(w_down, b, inner, INNER, length),
        )  # fmt: skip
    parts: tl.constexpr = WIDTH // CHANNELS
    for tile in tl.range(tl.program_id(0), count, PROGRAMS, num_stages=STAGES):
        channels = tile % parts * CHANNELS + tl.arange(0, CHANNELS)
        offset = tile // parts * length.to(tl.int64) * WIDTH
        x_a = tl.trans(load_rows(x + offset, a, channels, WIDTH, length))
        x_b = tl.trans(load_rows(x + offset, b, channels, WIDTH, length))
        total_a = tl.zeros([CHANNELS, A], tl.float32)
        total_b = tl.zeros([CHANNELS, B], tl.float32)
        for chunk in tl.static_range(INNER // CHUNK):
            hidden = activated(
                x_a, x_b, weights[6 * chunk], weights[6 * chunk + 1],
                weights[6 * chunk + 2], weights[6 * chunk + 3],
            )  # fmt: skip
            total_a = tl.dot(hidden, tl.trans(weights[6 * chunk + 4]), total_a)
            total_b = tl.dot(hidden, tl.trans(weights[6 * chunk + 5]), total_b)
        store_normed(
            y + offset, x_a, x_b, total_a, total_b, a, b, channels, length, epsilon, WIDTH
        )  # fmt: skip
