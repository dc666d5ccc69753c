"""Enso: a board is thought of as a point in a landscape, and thinking is walking down.

The parts, with the document's letters:

    s = context(puzzle)                 what is known                       f_theta
    t = target(solution)                what is wanted; a moving average    f_bar_theta
    z = z_encoder(t), disturbed         a latent: what is not known yet
    logits, prediction = reader(s, z)   the board it means, the t it expects  D_psi, g_phi

The energy of a latent asks whether what it expects fits the board that it means, and whether that
board keeps the rules:

    E(z) = |prediction - target(softmax(logits))|^2 + weight * broken rules

Thinking is Langevin dynamics: z <- z - step_size * dE/dz + noise, and noise fades. A *chain* is a
row that begins somewhere else and is disturbed in its own way: a sample. The first one begins at 0
and is never disturbed. Each step shows the board and the energy of one and the same z, then moves.

There are two ways to learn. *Truth*, the document's: z is the solution's own latent, disturbed, and
the prediction has to be t, the board the solution. *Descent*, ours: slots walk as thinking does,
and after every step the same is asked of the latent that they have come to. The step is
differentiated, too, so that the slope of the energy learns where to lead.

Shapes: B rows, N vectors of a board (1, or one for every digit of every cell), D width, Z numbers
in a latent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor, nn

from ronri.data import chance
from ronri.data.stream import Batch
from ronri.nn.dropout import Dropout
from ronri.nn.taps import Taps
from ronri.nn.world import global_mean
from ronri.reasoner import Lesson, Noise, Reasoner, Thought
from ronri.reasoners.enso.collapse import collapsed, monitors
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.landscape import Landscape
from ronri.reasoners.enso.losses import Spread, broken_rules, decode_loss, distance
from ronri.reasoners.enso.reading import Reading
from ronri.sudoku.geometry import Geometry

# Keys for what is random in a training step.
_START, _SHOCK, _KIND = 1, 2, 3


@final
@dataclass(frozen=True)
class Carry:
    """What every slot keeps from one step down to the next."""

    z: Float[Tensor, "B N Z"]
    clues: UInt8[Tensor, "B cells"]
    solutions: UInt8[Tensor, "B cells"]
    # Steps taken for this puzzle.
    steps: Int64[Tensor, "B"]
    # Whether this walk is disturbed, and whether it began near the truth.
    loud: Bool[Tensor, "B"]
    near: Bool[Tensor, "B"]
    done: Bool[Tensor, "B"]

    @property
    def free(self) -> Bool[Tensor, "B"]:
        return self.done

    def tensors(self) -> dict[str, Tensor]:
        return dict(vars(self))


@final
@dataclass(frozen=True)
class State:
    """What rows keep from one step of thinking to the next."""

    clues: UInt8[Tensor, "B cells"]
    context: Float[Tensor, "B N D"]
    z: Float[Tensor, "B N Z"]
    noise: Noise
    # Steps taken. A tensor: a number would be compiled into the graph.
    step: Int64[Tensor, "B"]
    # The last board, and for how many steps it has been the same.
    board: UInt8[Tensor, "B cells"]
    same: Int64[Tensor, "B"]


@final
class Enso(Reasoner):
    def __init__(self, config: Config, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.config = config
        self.usual_steps = config.steps
        self.taps = Taps(
            context="what is known of the puzzle: the context encoder's representation",
            z="the latent at each step, before it moves",
            prediction="the target representation that is predicted from it",
            estimate="the representation of the board that it decodes to",
            logits="that board",
        )
        self.landscape = Landscape(config, geometry, self.taps)

    # Learning.

    def initial_carry(self, slots: Int64[Tensor, "B"]) -> Carry | None:
        if self.config.teach == "truth":
            return None
        grid = torch.zeros(len(slots), self.geometry.cells, dtype=torch.uint8, device=slots.device)
        return Carry(
            z=self.landscape.nowhere(len(slots)),
            clues=grid,
            solutions=grid.clone(),
            # Slots that all begin at once would all be at the same step for ever: some begin their
            # first puzzle late, that is, with fewer steps left and less noise.
            steps=slots % self.config.max_steps,
            loud=torch.zeros_like(slots, dtype=torch.bool),
            near=torch.zeros_like(slots, dtype=torch.bool),
            done=torch.ones_like(slots, dtype=torch.bool),
        )

    def training_step(
        self, batch: Batch, carry: Carry | None, progress: Float[Tensor, ""]
    ) -> Lesson:
        del progress
        if carry is None:
            return self._at_the_truth(batch)
        return self._after_a_step(batch, carry)

    def _at_the_truth(self, batch: Batch) -> Lesson:
        """The document's way: the solution's own latent, disturbed."""
        target = self.landscape.wanted(batch.solutions, self.compute_dtype)
        own = self.landscape.own_latent(target)
        shock = self._normal(batch.keys, _SHOCK, 1).view(own.shape)
        z = own + self.config.latent_noise * shock
        forget = Dropout.of(batch.keys, self.config.dropout)
        context = self.landscape.known(batch.clues, self.compute_dtype, forget)
        reading = self.landscape.read(batch.clues, context, z, forget=forget)
        loss, metrics = self._loss(batch.clues, batch.solutions, context, target, reading)
        right = (self._board(reading.logits) == batch.solutions).all(dim=1)
        # Not solved: its latent is made of the solution.
        return Lesson(loss, None, metrics | {"decoded": right.float().mean()})

    def _after_a_step(self, batch: Batch, carry: Carry) -> Lesson:
        """Our way: wherever a walk has come to."""
        fresh = carry.done
        clues = torch.where(fresh[:, None], batch.clues, carry.clues)
        solutions = torch.where(fresh[:, None], batch.solutions, carry.solutions)
        target = self.landscape.wanted(solutions, self.compute_dtype)
        chosen, level, leaving = chance.uniform(chance.fork(batch.keys, _KIND), 3).unbind(dim=1)
        close, quiet = chosen < self.config.near, chosen >= 1 - self.config.quiet
        loud = torch.where(fresh, ~quiet, carry.loud)
        near = torch.where(fresh, close, carry.near)
        start = self._start(batch.keys, self.landscape.own_latent(target), close, quiet, level)
        z = torch.where(fresh[:, None, None], start, carry.z)
        context = self.landscape.known(clues, self.compute_dtype)
        heat = self.landscape.heat(carry.steps)
        down, here = self.landscape.slope(clues, context, z, self.landscape.weight(heat))
        shock = self._normal(batch.keys, _SHOCK, 1) * loud[:, None]
        z = self.landscape.moved(z, down, heat, shock)
        reading = self.landscape.read(clues, context, z)
        loss, metrics = self._loss(clues, solutions, context, target, reading)
        # Where the step began, too: a slope is of no use where nobody knows how high one is.
        loss = loss + self.config.energy_weight * global_mean(distance(here.prediction, target))
        with torch.no_grad():
            steps = carry.steps + 1
            solved = (self._board(reading.logits) == solutions).all(dim=1)
            done = (steps >= self.config.max_steps) | (solved & (leaving < self.config.leave))
        carry = Carry(
            z=z.detach(),
            clues=clues,
            solutions=solutions,
            steps=torch.where(done, 0, steps),
            loud=loud,
            near=near,
            done=done,
        )
        # What was begun near the truth is no achievement.
        metrics["solved"] = global_mean(solved.float(), ~near)
        metrics["step_size"] = self.landscape.log_step_size.detach().exp()
        return Lesson(loss, carry, metrics | {"done": done.float().mean()})

    def _start(
        self,
        keys: Int64[Tensor, "B"],
        own: Float[Tensor, "B N Z"],
        near: Bool[Tensor, "B"],
        quiet: Bool[Tensor, "B"],
        level: Float[Tensor, "B"],
    ) -> Float[Tensor, "B N Z"]:
        """Where walks begin: near the truth, at 0, or where chains do."""
        noise = self._normal(keys, _START, 2)
        far = torch.where(quiet[:, None, None], 0.0, self.landscape.prior(noise))
        shock = noise.view(len(noise), 2, *own.shape[1:])[:, 1]
        close = own + (level * self.config.latent_noise)[:, None, None] * shock
        return torch.where(near[:, None, None], close, far)

    def _normal(
        self, keys: Int64[Tensor, "B"], purpose: int, times: int
    ) -> Float[Tensor, "B many"]:
        """As many normal numbers as a row's latents have, `times` over."""
        return chance.normal(chance.fork(keys, purpose), times * self.landscape.numbers)

    def _loss(
        self,
        clues: UInt8[Tensor, "B cells"],
        solutions: UInt8[Tensor, "B cells"],
        context: Float[Tensor, "B N D"],
        target: Float[Tensor, "B N D"],
        reading: Reading,
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        """Expect the target, mean the solution, keep the rules, and do not collapse."""
        config = self.config
        beliefs = reading.logits.softmax(dim=-1)
        energy = global_mean(distance(reading.prediction, target))
        decode = global_mean(decode_loss(reading.logits, solutions, clues))
        constraint = global_mean(broken_rules(beliefs, self.landscape.units))
        spread = Spread.of(context if config.vicreg_on == "context" else reading.prediction)
        variance, covariance = spread.variance_loss(), spread.covariance_loss()
        loss = (
            config.energy_weight * energy
            + config.variance_weight * variance
            + config.covariance_weight * covariance
            + config.decode_weight * decode
            + config.constraint_weight * constraint
        )
        parts = {
            "energy": energy,
            "variance": variance,
            "covariance": covariance,
            "decode": decode,
            "constraint": constraint,
            "context_std": Spread.of(context.detach()).std.mean(),
            "target_std": Spread.of(target).std.mean(),
        }
        return loss, {name: value.detach() for name, value in parts.items()}

    def after_update(self, progress: Float[Tensor, ""]) -> None:
        self.landscape.follow(progress)

    @torch.no_grad()
    def diagnose(self, batch: Batch) -> dict[str, float]:
        """What latents are worth that have not moved, the truth's own among them; and collapse."""
        context = self.landscape.known(batch.clues, self.compute_dtype)
        target = self.landscape.wanted(batch.solutions, self.compute_dtype)
        own = self.landscape.own_latent(target)
        latents = {
            "oracle": own,
            # As disturbed as latents to learn with are, or, for descent, at most.
            "disturbed": own
            + self.config.latent_noise * self._normal(batch.keys, _SHOCK, 1).view(own.shape),
            "zero": torch.zeros_like(own),
            "prior": self.landscape.prior(self._normal(batch.keys, _START, 2)),
        }
        readings: dict[str, float] = {}
        for name, z in latents.items():
            reading = self.landscape.read(batch.clues, context, z)
            right = (self._board(reading.logits) == batch.solutions).all(dim=1)
            readings[name] = float(right.float().mean())
            if name == "oracle":
                readings["energy"] = float(distance(reading.prediction, target).mean())
        readings |= monitors("context", context) | monitors("target", target)
        return readings

    def alarms(self, readings: Mapping[str, float]) -> Sequence[str]:
        return collapsed(readings, self.config)

    # Thinking.

    def thinking_parts(self) -> Sequence[nn.Module]:
        return self.landscape.target, self.landscape.reader

    @torch.no_grad()
    def begin(self, clues: UInt8[Tensor, "B cells"], noise: Noise) -> State:
        context = self.taps("context", self.landscape.known(clues, self.compute_dtype))
        if noise.silent:
            z = self.landscape.nowhere(len(clues))
        else:
            start = noise.normal(0, 2 * self.landscape.numbers)
            # Quiet rows have drawn zeros, and a direction of no length is none.
            z = self.landscape.prior(start)
        step = torch.zeros_like(noise.keys)
        nothing, never = torch.zeros_like(clues), torch.zeros_like(step)
        return State(clues, context, z, noise, step, nothing, never)

    @torch.no_grad()
    def advance(self, state: State) -> tuple[State, Thought]:
        """Show what z means, and how low it lies; then move it."""
        clues, context, noise = state.clues, state.context, state.noise
        z = self.taps("z", state.z)
        heat = self.landscape.heat(state.step)
        down, here = self.landscape.slope(clues, context, z, self.landscape.weight(heat))
        energy = here.consistency + self.config.penalty * here.penalty
        board = self._board(here.logits)
        same = torch.where((board == state.board).all(dim=1), state.same + 1, 0)
        thought = Thought(
            beliefs=here.logits.softmax(dim=-1),
            board=board,
            halted=same >= self.config.settled,
            confidence=1 / (1 + energy),
            energy=energy,
        )
        shock = torch.zeros_like(z).flatten(1)
        if not noise.silent:
            shock = noise.normal(state.step + 1, z[0].numel())
        z = self.landscape.moved(z, down, heat, shock)
        return State(clues, context, z, noise, state.step + 1, board, same), thought

    def keep(self, state: State, rows: Int64[Tensor, "some"]) -> State:
        return State(
            clues=state.clues[rows],
            context=state.context[rows],
            z=state.z[rows],
            noise=state.noise.rows(rows),
            step=state.step[rows],
            board=state.board[rows],
            same=state.same[rows],
        )

    def _board(self, logits: Float[Tensor, "B cells digits"]) -> UInt8[Tensor, "B cells"]:
        """The likeliest digit of each cell."""
        return (logits.argmax(dim=-1) + 1).to(torch.uint8)
