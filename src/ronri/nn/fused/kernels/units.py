"""A block whose positions are candidates, a digit in a cell: exchange over units, then think.

    said = silu(x w_gate') (x w_value')                          what each candidate says
    sums = of what is said in each row, column, box and cell     [4, puzzles, units, message]
    heard = sums w_hear'                                         [4, puzzles, units, width]
    y = norm(x + heard in its row + in its column + in its box + in its cell)
    out = norm(y + swiglu(y))

Vectors are short and candidates are many, so that reading and writing them is what takes the time:
`say` reads x once and writes sums, `think` reads x once and writes the result, and the small
product between them works on units, of which there are fewer. `w_hear` has the factor in it by
which sums are multiplied.
"""

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from ronri.nn.fused.kernels.activation import sigmoid


@triton.jit
def say(
    x, weight, pool, sums, puzzles,
    SIZE: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, MESSAGE: tl.constexpr,
    TILE: tl.constexpr, OUTS: tl.constexpr, GATED: tl.constexpr,
):  # fmt: skip
    """Sums over the units of one puzzle; if not GATED, of x itself.

    Row after row of the board. What is said there is multiplied by `pool`, ones and zeros: so the
    sums of each digit, of each cell and of each digit in each box, as far as it lies in this row,
    come out one below the other.
    """
    puzzle = tl.program_id(0).to(tl.int64)
    CELLS: tl.constexpr = SIZE * SIZE
    inside = tl.arange(0, TILE)
    numbers = tl.arange(0, WIDTH)
    message = tl.arange(0, MESSAGE)
    outs = tl.arange(0, OUTS)
    x += puzzle * (CELLS * SIZE * WIDTH)
    sums += puzzle * (CELLS * MESSAGE)
    # `puzzles` may be a constant: Triton compiles a 1 into the kernel.
    each_kind = tl.cast(puzzles, tl.int64) * (CELLS * MESSAGE)
    pooling = tl.load(pool + outs[:, None] * TILE + inside[None, :])
    if GATED:
        weight_at = weight + message[:, None] * WIDTH + numbers[None, :]
        w_gate = tl.load(weight_at)
        w_value = tl.load(weight_at + MESSAGE * WIDTH)
    in_columns = tl.zeros([TILE, MESSAGE], tl.float32)
    in_boxes = tl.zeros([OUTS, MESSAGE], tl.float32)
    # Where the sums of a row belong: digits to rows (units of kind 0), then cells (of kind 3).
    in_row = sums + tl.where(outs < SIZE, outs * MESSAGE, (outs - SIZE) * MESSAGE + 3 * each_kind)
    for row in range(SIZE):
        at = x + (row * CELLS + inside)[:, None] * WIDTH + numbers[None, :]
        here = tl.load(at, mask=(inside < CELLS)[:, None], other=0.0)
        if GATED:
            gate = tl.dot(here, tl.trans(w_gate))
            said = gate * sigmoid(gate) * tl.dot(here, tl.trans(w_value))
        else:
            said = here.to(tl.float32)
        in_columns += said
        pooled = tl.dot(pooling, said.to(x.dtype.element_ty))
        here_to = in_row[:, None] + row * (SIZE * MESSAGE) + message[None, :]
        tl.store(here_to, pooled.to(sums.dtype.element_ty), mask=(outs < 2 * SIZE)[:, None])
        in_boxes += pooled
        if row % HEIGHT == HEIGHT - 1:
            box = (row // HEIGHT) * (HEIGHT * SIZE) + outs - 2 * SIZE
            box_to = sums + 2 * each_kind + box[:, None] * MESSAGE + message[None, :]
            boxed = (outs >= 2 * SIZE) & (outs < (2 + HEIGHT) * SIZE)
            tl.store(box_to, in_boxes.to(sums.dtype.element_ty), mask=boxed[:, None])
            in_boxes = tl.zeros([OUTS, MESSAGE], tl.float32)
    column_to = sums + each_kind + inside[:, None] * MESSAGE + message[None, :]
    tl.store(column_to, in_columns.to(sums.dtype.element_ty), mask=(inside < CELLS)[:, None])


@triton.jit
def heard_by(
    units, candidates, inside, puzzles,
    SIZE: tl.constexpr, HEIGHT: tl.constexpr, NUMBERS: tl.constexpr,
):  # fmt: skip
    """What the four units of each candidate have, added up."""
    CELLS: tl.constexpr = SIZE * SIZE
    WIDE: tl.constexpr = SIZE // HEIGHT
    puzzle = (candidates // (CELLS * SIZE)).to(tl.int64)
    row = candidates // CELLS % SIZE
    column = candidates // SIZE % SIZE
    digit = candidates % SIZE
    box = row // HEIGHT * HEIGHT + column // WIDE
    each_kind = tl.cast(puzzles, tl.int64) * (CELLS * NUMBERS)
    start = units + puzzle * (CELLS * NUMBERS)
    numbers = tl.arange(0, NUMBERS)[None, :]
    mask = inside[:, None]
    in_row = tl.load((start + (row * SIZE + digit) * NUMBERS)[:, None] + numbers, mask, 0.0)
    start += each_kind
    in_column = tl.load((start + (column * SIZE + digit) * NUMBERS)[:, None] + numbers, mask, 0.0)
    start += each_kind
    in_box = tl.load((start + (box * SIZE + digit) * NUMBERS)[:, None] + numbers, mask, 0.0)
    start += each_kind
    in_cell = tl.load((start + (row * SIZE + column) * NUMBERS)[:, None] + numbers, mask, 0.0)
    one = in_row.to(tl.float32) + in_column.to(tl.float32)
    return one + (in_box.to(tl.float32) + in_cell.to(tl.float32))


@triton.jit
def activated(y, gate_at, WIDTH: tl.constexpr, INNER: tl.constexpr):
    """Gates, opened; how far they are open; ups: for some inner numbers."""
    gate = tl.dot(y, tl.trans(tl.load(gate_at)))
    up = tl.dot(y, tl.trans(tl.load(gate_at + INNER * WIDTH)))
    opening = sigmoid(gate)
    return gate * opening, opening, up


@triton.jit
def think(
    x, heard, w_gate_up, w_down, out, puzzles, total, epsilon,
    SIZE: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, INNER: tl.constexpr,
    ROWS: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """The result for some candidates; inner numbers in parts, for want of registers."""
    dtype: tl.constexpr = x.dtype.element_ty
    candidates = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = candidates < total
    numbers = tl.arange(0, WIDTH)
    part = tl.arange(0, PART)
    at = candidates.to(tl.int64)[:, None] * WIDTH + numbers[None, :]
    y = tl.load(x + at, mask=inside[:, None], other=0.0).to(tl.float32)
    y += heard_by(heard, candidates, inside, puzzles, SIZE, HEIGHT, WIDTH)
    narrow = (y * tl.rsqrt(tl.sum(y * y, 1) / WIDTH + epsilon)[:, None]).to(dtype)
    gate_at = w_gate_up + part[:, None] * WIDTH + numbers[None, :]
    down_at = w_down + numbers[:, None] * INNER + part[None, :]
    result = narrow.to(tl.float32)
    for start in tl.static_range(0, INNER, PART):
        active, _, up = activated(narrow, gate_at + start * WIDTH, WIDTH, INNER)
        result = tl.dot((active * up).to(dtype), tl.trans(tl.load(down_at + start)), result)
    result *= tl.rsqrt(tl.sum(result * result, 1) / WIDTH + epsilon)[:, None]
    tl.store(out + at, result.to(dtype), mask=inside[:, None])


# How each kernel is launched: what was fastest on an H200, for vectors of 64 numbers. With one
# stage `say` stops with an illegal access, compiled by Triton 3.6; why was not found.
SAY = {"num_warps": 4, "num_stages": 3}
SUM = {"num_warps": 4, "num_stages": 3}
THINK = {"ROWS": 64, "PART": 32, "num_warps": 4, "num_stages": 1}


@functools.cache
def pooling(size: int, height: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """For the candidates of a row of the board: what belongs to a digit, a cell, a digit in a box.

    Ones and zeros, padded to powers of two.
    """
    wide = size // height
    candidates = torch.arange(size * size)
    column, digit = candidates // size, candidates % size
    each = torch.arange(size)
    boxed = (column // wide) * size + digit
    parts = (
        each[:, None] == digit,
        each[:, None] == column,
        torch.arange(height * size)[:, None] == boxed,
    )
    matrix = torch.cat(parts).to(dtype)
    padded = matrix.new_zeros(
        max(16, triton.next_power_of_2(len(matrix))), max(16, triton.next_power_of_2(size * size))
    )
    padded[: len(matrix), : size * size] = matrix
    return padded.to(device)


def sums_over_units(x: Tensor, w_say: Tensor | None, size: int, height: int) -> Tensor:
    """[4, puzzles, units, message]: rows, columns, boxes, cells; of x itself without a weight."""
    puzzles, _, width = x.shape
    message = width if w_say is None else w_say.shape[0] // 2
    pool = pooling(size, height, x.dtype, x.device)
    sums = x.new_empty(4, puzzles, size * size, message)
    say[(puzzles,)](
        x, x if w_say is None else w_say, pool, sums, puzzles,
        SIZE=size, HEIGHT=height, WIDTH=width, MESSAGE=message,
        TILE=pool.shape[1], OUTS=pool.shape[0], GATED=w_say is not None,
        **(SUM if w_say is None else SAY),
    )  # fmt: skip
    return sums


def heard_in_units(sums: Tensor, w_hear: Tensor) -> Tensor:
    """[4, puzzles, units, width]: each kind of unit has weights of its own."""
    kinds, puzzles, units, message = sums.shape
    weights = w_hear.view(-1, kinds, message).permute(1, 2, 0)
    return torch.bmm(sums.view(kinds, -1, message), weights).view(kinds, puzzles, units, -1)


def thought(
    x: Tensor, heard: Tensor, w_gate_up: Tensor, w_down: Tensor,
    size: int, height: int, epsilon: float,
) -> Tensor:  # fmt: skip
    puzzles, length, width = x.shape
    out = torch.empty_like(x)
    total = puzzles * length
    assert total < 2**31, "candidates are counted in 32 bits"
    think[(triton.cdiv(total, THINK["ROWS"]),)](
        x, heard, w_gate_up, w_down, out, puzzles, total, epsilon,
        SIZE=size, HEIGHT=height, WIDTH=width, INNER=w_down.shape[1], **THINK,
    )  # fmt: skip
    return out
