"""The landscape that Enso walks in: what there is at a latent, how high it lies, and what is down.

Shapes: B rows, N vectors of a board (1, or one for every digit of every cell), D width, Z numbers
in a latent.
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn

from ronri.nn.dropout import Dropout
from ronri.nn.linear import Linear
from ronri.nn.taps import Taps
from ronri.reasoners.enso import board, cells
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.losses import broken_rules, distance
from ronri.reasoners.enso.reading import Reading
from ronri.sudoku.geometry import Geometry

# What clues weigh: after a softmax nothing is left for other digits.
CLUE = 1e3


@final
@dataclass(frozen=True)
class Energy:
    """The energy of latents, in its two parts, and what they mean."""

    consistency: Float[Tensor, "B"]
    penalty: Float[Tensor, "B"]
    logits: Float[Tensor, "B cells digits"]
    prediction: Float[Tensor, "B N D"]


@final
class Landscape(nn.Module):
    """The networks, and the energy that they make."""

    units: Tensor
    digits: Tensor

    def __init__(self, config: Config, geometry: Geometry, taps: Taps) -> None:
        super().__init__()
        self.config = config
        self.taps = taps
        self.vectors = 1 if config.latents == "board" else geometry.cells * geometry.size
        # In all latents of a row together.
        self.numbers = self.vectors * config.latent
        self.context: board.Encoder | cells.Encoder
        self.target: board.Encoder | cells.Encoder
        self.reader: board.Reader | cells.Reader
        if config.latents == "board":
            self.context = board.Encoder(config, geometry)
            self.target = board.Encoder(config, geometry)
            self.reader = board.Reader(config, geometry)
        else:
            self.context = cells.Encoder(config, geometry)
            self.target = cells.Encoder(config, geometry)
            self.reader = cells.Reader(config, geometry)
        # It begins as a copy and follows: no gradient ever moves it.
        self.target.load_state_dict(self.context.state_dict())
        self.target.requires_grad_(requires_grad=False)
        self.z_encoder: Linear | None = None
        if config.z_encoder:
            self.z_encoder = Linear(config.width, config.latent, bias=True, hidden=False)
        step_size = torch.tensor(config.step_size).log()
        if config.teach == "descent":
            self.log_step_size = nn.Parameter(step_size)
        else:
            self.register_buffer("log_step_size", step_size, persistent=False)
        self.register_buffer("units", torch.from_numpy(geometry.units), persistent=False)
        self.register_buffer("digits", torch.arange(1, geometry.size + 1), persistent=False)

    def known(
        self,
        clues: UInt8[Tensor, "B cells"],
        dtype: torch.dtype,
        forget: Dropout | None = None,
    ) -> Float[Tensor, "B N D"]:
        """What is known of a puzzle, to compute with in that precision."""
        return self.context(self._channels(clues, dtype), forget=forget)

    @torch.no_grad()
    def wanted(
        self, solutions: UInt8[Tensor, "B cells"], dtype: torch.dtype
    ) -> Float[Tensor, "B N D"]:
        """What is wanted: the target representation of a solution.

        A target forgets nothing: it is what others are measured by.
        """
        return self.target(self._channels(solutions, dtype))

    def _channels(
        self, grids: UInt8[Tensor, "B cells"], dtype: torch.dtype
    ) -> Float[Tensor, "B cells channels"]:
        """Whether a cell is empty, and which digit it holds."""
        return (grids[:, :, None] == F.pad(self.digits, (1, 0))).to(dtype)

    def read(
        self,
        clues: UInt8[Tensor, "B cells"],
        context: Float[Tensor, "B N D"],
        z: Float[Tensor, "B N Z"],
        *,
        twice: bool = False,
        forget: Dropout | None = None,
    ) -> Reading:
        """What a latent means, the clues being certain."""
        reading = self.reader(context, z, twice=twice, forget=forget)
        given = (clues[:, :, None] == self.digits) * CLUE
        return Reading(
            torch.where(clues[:, :, None] > 0, given, reading.logits), reading.prediction
        )

    def energy(
        self,
        clues: UInt8[Tensor, "B cells"],
        context: Float[Tensor, "B N D"],
        z: Float[Tensor, "B N Z"],
        *,
        twice: bool = False,
    ) -> Energy:
        """How well latents agree with themselves and with the rules.

        `twice`: the slope is to be differentiated again.
        """
        logits, prediction = self.read(clues, context, z, twice=twice)
        prediction = self.taps("prediction", prediction)
        logits = self.taps("logits", logits)
        beliefs = logits.softmax(dim=-1)
        if self.config.energy == "norm":
            consistency = distance(prediction, torch.zeros_like(prediction))
        else:
            full = F.pad(beliefs, (1, 0)).to(context.dtype)
            estimate = self.taps("estimate", self.target(full, twice=twice))
            consistency = distance(prediction, estimate)
        return Energy(consistency, broken_rules(beliefs, self.units), logits, prediction)

    def slope(
        self,
        clues: UInt8[Tensor, "B cells"],
        context: Float[Tensor, "B N D"],
        z: Float[Tensor, "B N Z"],
        weight: Float[Tensor, "B"],
    ) -> tuple[Float[Tensor, "B N Z"], Energy]:
        """The gradient of the energy, broken rules weighing `weight`, and what there is at z.

        Where gradients are asked for, the slope has one, too.
        """
        twice = torch.is_grad_enabled()

        def total(at: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
            there = self.energy(clues, context, at, twice=twice)
            parts = there.consistency, there.penalty, there.logits, there.prediction
            return (there.consistency + weight * there.penalty).sum(), parts

        if twice or torch.compiler.is_compiling():
            down, parts = torch.func.grad(total, has_aux=True)(z)
            return down, Energy(*parts)
        with torch.enable_grad():
            at = z.detach().requires_grad_()
            energy, parts = total(at)
            (down,) = torch.autograd.grad(energy, at)
        return down, Energy(*(part.detach() for part in parts))

    def own_latent(self, target: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Z"]:
        """The latent of a solution, from its representation."""
        if self.z_encoder is None:
            return target.new_zeros(*target.shape[:2], self.config.latent, dtype=torch.float32)
        z = self.z_encoder(target).float()
        return F.normalize(z, dim=-1) * self.config.radius if self.config.normalise else z

    def prior(self, noise: Float[Tensor, "B many"]) -> Float[Tensor, "B N Z"]:
        """Latents of no solution at all, from 2 N Z normal numbers each.

        They lie where those to learn with lie, if these are brought to one length: some direction
        in place of the solution's own, and the same noise on it.
        """
        way, shock = noise.view(len(noise), 2, self.vectors, -1).unbind(dim=1)
        if self.z_encoder is None:
            return self.config.latent_noise * shock
        return F.normalize(way, dim=-1) * self.config.radius + self.config.latent_noise * shock

    def nowhere(self, rows: int) -> Float[Tensor, "B N Z"]:
        """The latent 0, where thinking begins that is not disturbed."""
        return torch.zeros(rows, self.vectors, self.config.latent, device=self.digits.device)

    def heat(self, step: Int64[Tensor, "B"]) -> Float[Tensor, "B"]:
        """From 1 at the first step to 0."""
        return (1 - step / self.config.steps).clamp(min=0)

    def moved(
        self,
        z: Float[Tensor, "B N Z"],
        down: Float[Tensor, "B N Z"],
        heat: Float[Tensor, "B"],
        shock: Float[Tensor, "B many"],
    ) -> Float[Tensor, "B N Z"]:
        """One step of Langevin dynamics; `shock` are normal numbers."""
        disturbed = self.config.noise * heat[:, None, None] * shock.view(z.shape)
        return z - self.log_step_size.exp() * down + disturbed

    def weight(self, heat: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
        """What broken rules weigh at that heat."""
        first, last = self.config.penalty_first, self.config.penalty
        return last + (first - last) * heat

    @torch.no_grad()
    def follow(self, progress: Float[Tensor, ""]) -> None:
        """Let the target encoder follow, more and more slowly, until it stands still."""
        first = self.config.momentum
        keeps = first + (1 - first) * progress.clamp(max=1)
        targets: list[Tensor] = list(self.target.parameters())
        sources: list[Tensor] = list(self.context.parameters())
        steps = torch._foreach_mul(torch._foreach_sub(sources, targets), 1 - keeps)
        torch._foreach_add_(targets, list(steps))
