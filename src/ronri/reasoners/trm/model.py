"""TRM, the Tiny Recursive Model: one small network that corrects its own notes.

The notes are two latents for every position: z_H, from which the board is read, and z_L, in which
it works. One *step* (supervision step in the paper) is

    for h in range(h_cycles):               n times "latent recursion"; the last with gradient
        for l in range(l_cycles):
            z_L = f(z_L, z_H + x)           think
        z_H = f(z_H, z_L)                   answer

with the same f, two blocks, every time: 3 x (6 + 1) = 21 calls a step at the published size.

Training takes one step per update on every slot of the batch. A slot keeps its puzzle and its
notes until it halts, then it takes a new puzzle: the *carry*. So the network is taught to improve
any notes it may find itself with, and thinking can go on for as many steps as one likes.

Shapes: B rows, L positions (context tokens, then cells; or every digit of every cell), D width,
V tokens that a cell may hold, of which the last are the digits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor, nn

from ronri.data import chance
from ronri.data.stream import Batch
from ronri.nn.fused.rough import TURNS
from ronri.nn.linear import Linear, truncated_normal_
from ronri.nn.losses import softmax_cross_entropy, stablemax_cross_entropy
from ronri.nn.taps import Taps
from ronri.nn.world import global_mean
from ronri.reasoner import Lesson, Noise, Reasoner, Thought
from ronri.reasoners.trm.config import Config
from ronri.reasoners.trm.network import CandidateEmbedder, Embedder, Recursion
from ronri.sudoku.geometry import Geometry


@final
@dataclass(frozen=True)
class Notes:
    """The scratchpad."""

    z_H: Float[Tensor, "B L D"]
    z_L: Float[Tensor, "B L D"]


@final
@dataclass(frozen=True)
class Carry:
    """What every slot keeps from one training step to the next."""

    z_H: Float[Tensor, "B L D"]
    z_L: Float[Tensor, "B L D"]
    clues: UInt8[Tensor, "B cells"]
    solutions: UInt8[Tensor, "B cells"]
    # Steps spent on this puzzle.
    steps: Int64[Tensor, "B"]
    # Slots that are done: the next step gives them a new puzzle and empty notes.
    halted: Bool[Tensor, "B"]

    @property
    def free(self) -> Bool[Tensor, "B"]:
        return self.halted

    def tensors(self) -> dict[str, Tensor]:
        return dict(vars(self))


@final
@dataclass(frozen=True)
class State:
    """What rows keep from one step of thinking to the next."""

    x: Float[Tensor, "B L D"]
    notes: Notes
    noise: Noise
    # Steps taken. A tensor: a number would be compiled into the graph.
    step: Int64[Tensor, "B"]


@final
@dataclass(frozen=True)
class Output:
    """What is read from the notes after a step."""

    notes: Notes
    logits: Float[Tensor, "B cells V"]
    # Above 0 where the network holds its board for right.
    q_halt: Float[Tensor, "B"]


@final
class TRM(Reasoner):
    H_init: Tensor
    L_init: Tensor

    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.config = config
        self.usual_steps = config.max_steps
        embedder = CandidateEmbedder if config.mixer == "units" else Embedder
        self.embed = embedder(config, geometry)
        self.recursion = Recursion(config, geometry)
        self.lm_head = Linear(config.width, self.embed.outputs, hidden=False)
        self.q_head = Linear(config.width, 1, bias=True, hidden=False)
        # Before it has learned anything the network should think on, not halt.
        nn.init.zeros_(self.q_head.weight)
        assert self.q_head.bias is not None
        nn.init.constant_(self.q_head.bias, -5.0)
        for name in ("H_init", "L_init"):
            start = truncated_normal_(torch.empty(config.width), std=1.0)
            if config.latent_init == "learned":
                self.register_parameter(name, nn.Parameter(start))
            else:
                self.register_buffer(name, start)
        self.taps = Taps(
            x="the puzzle, embedded",
            z_L="z_L after each L cycle (h, l)",
            z_H="z_H after each H cycle (h)",
            logits="what is read from z_H after a step",
        )

    # One step.

    def step(
        self,
        x: Float[Tensor, "B L D"],
        notes: Notes,
        fresh: Bool[Tensor, "B"],
        *,
        h_cycles: int | None = None,
        rough: bool = False,
    ) -> Output:
        """All cycles of one step; gradients flow through the last H cycle only.

        `rough`: the other cycles in 8 bits, where the device can.
        """
        last = (h_cycles or self.config.h_cycles) - 1
        x = self.taps("x", x)
        z_H, z_L = notes.z_H, notes.z_L
        with torch.no_grad():
            for h in range(last):
                z_H, z_L = self._cycle(z_H, z_L, x, h, rough=rough)
        if self.config.latent_init == "learned":
            # The cycles above let no gradient through to where the notes began. It is handed
            # past them, as it is in all of TRM: the last cycle stands for the whole recursion.
            z_H = z_H + self._handed_past(self.H_init, fresh, z_H)
            z_L = z_L + self._handed_past(self.L_init, fresh, z_L)
        z_H, z_L = self._cycle(z_H, z_L, x, last)
        board, whole = self.embed.apart(z_H)
        logits = self.lm_head(board).view(len(board), self.geometry.cells, -1)
        q_halt = self.q_head(whole)[:, 0]
        return Output(Notes(z_H, z_L), self.taps("logits", logits), q_halt.float())

    def _cycle(
        self,
        z_H: Float[Tensor, "B L D"],
        z_L: Float[Tensor, "B L D"],
        x: Float[Tensor, "B L D"],
        h: int,
        *,
        rough: bool = False,
    ) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B L D"]]:
        calls = self.config.l_cycles + 1
        turns = [(h * calls + call) % TURNS if rough else None for call in range(calls)]
        told = z_H + x
        for l in range(self.config.l_cycles):  # noqa: E741 (the paper's letter)
            z_L = self.taps("z_L", self.recursion(z_L, told, rough=turns[l]), h, l)
        z_H = self.taps("z_H", self.recursion(z_H, z_L, rough=turns[-1]), h)
        return z_H, z_L

    def _empty_notes(self, rows: int) -> Notes:
        z_H, z_L = (
            start.detach().to(self.compute_dtype).expand(rows, self.embed.positions, -1)
            for start in (self.H_init, self.L_init)
        )
        return Notes(z_H, z_L)

    def _handed_past(
        self, start: Tensor, fresh: Bool[Tensor, "B"], like: Tensor
    ) -> Float[Tensor, "B 1 D"]:
        """Zero, with the gradient of `start` in rows that have just begun."""
        return ((start - start.detach()) * fresh[:, None, None]).to(like.dtype)

    # Learning.

    def initial_carry(self, slots: Int64[Tensor, "B"]) -> Carry | None:
        if not self.config.carry:
            return None
        notes = self._empty_notes(len(slots))
        board = torch.zeros(len(slots), self.geometry.cells, dtype=torch.uint8, device=slots.device)
        return Carry(
            z_H=notes.z_H.contiguous(),
            z_L=notes.z_L.contiguous(),
            clues=board,
            solutions=board.clone(),
            # Slots that all begin at once would all be at the same step for ever: for the first
            # puzzle some have fewer steps than others.
            steps=slots % self.config.max_steps,
            halted=torch.ones_like(slots, dtype=torch.bool),
        )

    def stage_at(self, progress: float) -> int:
        """1 while steps are shallow, then 0."""
        return int(progress < self.config.shallow)

    def _taught_step(
        self, x: Float[Tensor, "B L D"], notes: Notes, fresh: Bool[Tensor, "B"]
    ) -> Output:
        h_cycles = 1 if self.stage else None
        return self.step(x, notes, fresh, h_cycles=h_cycles, rough=self.config.float8)

    def hot_parts(self) -> Sequence[nn.Module]:
        return (self.recursion,)

    def training_step(
        self, batch: Batch, carry: Carry | None, progress: Float[Tensor, ""]
    ) -> Lesson:
        del progress
        if carry is None:
            return self._all_steps_at_once(batch)
        fresh = carry.halted
        clues = torch.where(fresh[:, None], batch.clues, carry.clues)
        solutions = torch.where(fresh[:, None], batch.solutions, carry.solutions)
        empty = self._empty_notes(len(fresh))
        notes = Notes(
            torch.where(fresh[:, None, None], empty.z_H, carry.z_H),
            torch.where(fresh[:, None, None], empty.z_L, carry.z_L),
        )
        x = self.embed(clues, self.compute_dtype)
        output = self._taught_step(x, notes, fresh)
        with torch.no_grad():
            steps = carry.steps + 1
            halted = self._halts(output.q_halt, steps, batch.keys)
        taught = halted if self.config.supervise == "halted" else None
        loss, metrics = self._loss(output, solutions, taught)
        next_carry = Carry(
            z_H=output.notes.z_H.detach(),
            z_L=output.notes.z_L.detach(),
            clues=clues,
            solutions=solutions,
            steps=torch.where(halted, 0, steps),
            halted=halted,
        )
        return Lesson(loss, next_carry, {**metrics, "halted": halted.float().mean()})

    def _all_steps_at_once(self, batch: Batch) -> Lesson:
        """Training without a carry: the whole thinking of a puzzle in one update."""
        notes = self._empty_notes(len(batch.clues))
        fresh = torch.ones_like(batch.keys, dtype=torch.bool)
        losses = []
        for step in range(self.config.max_steps):
            x = self.embed(batch.clues, self.compute_dtype)
            begun = fresh if step == 0 else ~fresh
            output = self._taught_step(x, notes, begun)
            loss, metrics = self._loss(output, batch.solutions, None)
            losses.append(loss)
            notes = Notes(output.notes.z_H.detach(), output.notes.z_L.detach())
        return Lesson(torch.stack(losses).mean(), None, metrics)

    def _loss(
        self, output: Output, solutions: UInt8[Tensor, "B cells"], taught: Tensor | None
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Say every cell, and know whether the board is right; all slots are taught, or some."""
        with torch.no_grad():
            solved = (self._board(output.logits) == solutions).all(dim=1).float()
        lm_loss = global_mean(self._cross_entropy(output.logits, solutions), taught)
        q_loss = F.binary_cross_entropy_with_logits(output.q_halt, solved, reduction="none")
        halt_loss = global_mean(q_loss, taught)
        metrics = {
            "lm_loss": lm_loss.detach(),
            "halt_loss": halt_loss.detach(),
            "solved": solved.mean(),
        }
        return lm_loss + self.config.halt_weight * halt_loss, metrics

    def _cross_entropy(
        self, logits: Float[Tensor, "B cells V"], solutions: UInt8[Tensor, "B cells"]
    ) -> Float[Tensor, "B"]:
        """Mean over all cells, clues included: these have to be said too."""
        stable = self.config.cross_entropy == "stablemax"
        loss = stablemax_cross_entropy if stable else softmax_cross_entropy
        # Digits are the last classes.
        lowest = 1 + self.geometry.size - logits.shape[-1]
        return loss(logits, solutions, lowest).mean(dim=1).float()

    def _halts(
        self, q_halt: Float[Tensor, "B"], steps: Int64[Tensor, "B"], keys: Int64[Tensor, "B"]
    ) -> Bool[Tensor, "B"]:
        """Slots that are sure or out of steps; now and then a sure one must go on."""
        most = self.config.max_steps
        halted = (q_halt > 0) | (steps >= most)
        chosen, least = chance.uniform(keys, 2).unbind(dim=1)
        least_steps = 2 + (least * (most - 1)).long()
        return halted & ((chosen >= self.config.exploration) | (steps >= least_steps))

    # Thinking.

    @torch.no_grad()
    def begin(self, clues: UInt8[Tensor, "B cells"], noise: Noise) -> State:
        empty = self._empty_notes(len(clues))
        # In memory as all later notes are: one compiled graph serves every step.
        notes = Notes(empty.z_H.contiguous(), empty.z_L.contiguous())
        x = self.embed(clues, self.compute_dtype)
        return State(x, notes, noise, torch.zeros_like(noise.keys))

    @torch.no_grad()
    def advance(self, state: State) -> tuple[State, Thought]:
        fresh = torch.zeros_like(state.noise.loud)
        output = self.step(state.x, self._stirred(state), fresh)
        thought = Thought(
            beliefs=self._beliefs(output.logits),
            board=self._board(output.logits),
            halted=output.q_halt > math.log(self.config.sure / (1 - self.config.sure)),
            confidence=torch.sigmoid(output.q_halt),
        )
        return State(state.x, output.notes, state.noise, state.step + 1), thought

    def keep(self, state: State, rows: Int64[Tensor, "some"]) -> State:
        notes = Notes(state.notes.z_H[rows], state.notes.z_L[rows])
        return State(state.x[rows], notes, state.noise.rows(rows), state.step[rows])

    def _stirred(self, state: State) -> Notes:
        """The notes, disturbed in loud rows, so that samples go different ways."""
        if state.noise.silent:
            return state.notes
        z_H, z_L = state.notes.z_H, state.notes.z_L
        noise = self.config.noise * state.noise.normal(state.step, 2 * z_H[0].numel())
        noise = noise.to(z_H.dtype).view(len(z_H), 2, *z_H.shape[1:])
        return Notes(z_H + noise[:, 0], z_L + noise[:, 1])

    def _beliefs(self, logits: Float[Tensor, "B cells V"]) -> Float[Tensor, "B cells digits"]:
        digits = logits[..., -self.geometry.size :].float()
        if self.config.cross_entropy == "softmax":
            return torch.softmax(digits, dim=-1)
        weight = torch.where(digits < 0, 1 / (1 - digits.clamp(max=0)), digits + 1)
        return weight / weight.sum(dim=-1, keepdim=True)

    def _board(self, logits: Float[Tensor, "B cells V"]) -> UInt8[Tensor, "B cells"]:
        """The likeliest digit of each cell."""
        return (logits[..., -self.geometry.size :].argmax(dim=-1) + 1).to(torch.uint8)
