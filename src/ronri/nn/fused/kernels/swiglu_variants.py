"""Other ways back through SwiGLU, to be measured."""

import triton
import triton.language as tl

from ronri.nn.fused.kernels.swiglu import gradients, place


@triton.jit
def swiglu_backward_tma(
    out_grad, weight, gate_up, gate_up_grad, tokens,
    WIDTH: tl.constexpr, INNER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Tile after tile, everything through tensor descriptors; gates and ups read first or last."""
    tall = tl.cdiv(tokens, ROWS)
    for tile in tl.range(tl.program_id(0), tall * (INNER // COLUMNS), PROGRAMS):
        row, column = place(tile, tall, INNER // COLUMNS, GROUP)
        row *= ROWS
        column *= COLUMNS
        if EARLY:
            gate = gate_up.load([row, column])
            up = gate_up.load([row, column + INNER])
        grad = tl.zeros([ROWS, COLUMNS], tl.float32)
        for step in range(WIDTH // DEPTH):
            part = weight.load([step * DEPTH, column])
            grad = tl.dot(out_grad.load([row, step * DEPTH]), part, grad)
        if not EARLY:
            gate = gate_up.load([row, column])
            up = gate_up.load([row, column + INNER])
        gate_grad, up_grad = gradients(grad, gate, up)
        gate_up_grad.store([row, column], gate_grad)
        gate_up_grad.store([row, column + INNER], up_grad)
