"""What can be chosen about an Enso."""

from dataclasses import dataclass, fields
from typing import Literal

# Settings that only one kind of latents, or one way to learn, has.
_ONLY: dict[tuple[str, object], tuple[str, ...]] = {
    ("latents", "board"): ("heads", "decoder_width", "decoder_heads"),
    ("latents", "cells"): ("message",),
    ("teach", "descent"): ("max_steps", "leave", "near", "quiet"),
    ("z_encoder", True): ("normalise", "radius"),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """Enso. The defaults are those of the document's fifth run, mended as docs/enso.md says."""

    # The networks.

    # Where representations and latents live: one vector for the whole board, written and read by
    # transformers over its cells; or, for every cell, one for each digit, and networks to which all
    # digits, all rows, all columns and all boxes are alike.
    latents: Literal["board", "cells"] = "board"
    # Numbers in a vector of the encoders.
    width: int = 512
    # Attention heads of the encoders, for latents of the board.
    heads: int = 8
    # Layers of the encoders.
    layers: int = 8
    # Inner width of their feed-forward layers.
    inner: int = 2048
    # Numbers that a digit says to its units, for latents of cells.
    message: int = 64
    # Numbers in a latent.
    latent: int = 256
    # Inner width of the predictor.
    predictor_inner: int = 1024
    # Layers of the decoder.
    decoder_layers: int = 4
    # Numbers in a vector of the decoder, for latents of the board; otherwise as in the encoders.
    decoder_width: int = 128
    # Attention heads of the decoder, for latents of the board. Four times as wide inside.
    decoder_heads: int = 4
    # Part of what transformers compute that is forgotten while they learn.
    dropout: float = 0.1

    # Learning.

    # Which latents the networks are taught with: the solution's own, disturbed once; or those that
    # thinking comes by, a step at a time, each slot keeping its puzzle and its latents. The second
    # way also teaches the slope of the energy, for the board is read after a step down it.
    teach: Literal["truth", "descent"] = "truth"
    # Whether latents to learn with know of the solution, or are noise and nothing else.
    z_encoder: bool = True
    # Whether the solution's own latents are brought to one length.
    normalise: bool = True
    # That length.
    radius: float = 1.0
    # Standard deviation of the noise on them; for descent, the largest one.
    latent_noise: float = 0.1
    # What is kept from being one and the same for all puzzles.
    vicreg_on: Literal["context", "prediction"] = "context"
    # Weights of what is to be small: the energy of the truth, the lack of variance, covariance,
    # the cross-entropy of empty cells, and broken rules.
    energy_weight: float = 1.0
    variance_weight: float = 1.0
    covariance_weight: float = 0.01
    decode_weight: float = 1.0
    constraint_weight: float = 0.1
    # Momentum of the target encoder at the beginning of a run; at its end it stands still.
    momentum: float = 0.996
    # For descent: steps a slot may spend on a puzzle, how often a slot with a right board takes a
    # new one at once, and the parts of slots that begin near the truth and without noise.
    max_steps: int = 24
    leave: float = 0.3
    near: float = 0.25
    quiet: float = 0.25

    # Thinking.

    # Steps over which noise fades and rules gain weight; what follows is plain descent.
    steps: int = 50
    # Length of a step for a slope of 1; for descent, where it begins to be learned.
    step_size: float = 0.01
    # Noise of the first step.
    noise: float = 0.005
    # Weight of broken rules in the energy, at the first step and when noise has faded.
    penalty_first: float = 1.0
    penalty: float = 3.0
    # What is small at a good latent: the distance from what is predicted to what the decoded board
    # is encoded as; or the length of what is predicted.
    energy: Literal["consistency", "norm"] = "consistency"
    # A row halts by itself when its board has been the same for so many steps.
    settled: int = 8

    def __post_init__(self) -> None:
        sizes = "width", "heads", "layers", "inner", "message", "latent", "predictor_inner"
        others = "decoder_layers", "decoder_width", "decoder_heads", "max_steps", "steps", "settled"
        for name in (*sizes, *others):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, not {getattr(self, name)}")
        for width, heads in (("width", "heads"), ("decoder_width", "decoder_heads")):
            if self.latents == "board" and getattr(self, width) % getattr(self, heads):
                raise ValueError(
                    f"a {width} of {getattr(self, width)} cannot be shared by "
                    f"{getattr(self, heads)} {heads}"
                )
        if self.latents == "cells" and self.dropout:
            raise ValueError("latents of cells have no dropout: set dropout to 0")
        if self.latents == "board" and self.teach == "descent":
            raise ValueError("descent is taught with latents of cells: set latents to cells")
        if self.teach == "descent" and not self.z_encoder:
            raise ValueError("descent also begins near the truth: keep z_encoder")
        if self.step_size <= 0:
            raise ValueError(f"step_size is above 0, not {self.step_size}")
        weights = [field.name for field in fields(self) if field.name.endswith("_weight")]
        for name in ("radius", "latent_noise", "noise", "penalty_first", "penalty", *weights):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is not below 0, as {getattr(self, name)} is")
        if self.near + self.quiet > 1:
            raise ValueError("near and quiet are parts of all walks: together at most 1")
        for name in ("dropout", "momentum", "leave", "near", "quiet"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a part, from 0 to 1, not {getattr(self, name)}")
        usual = {field.name: field.default for field in fields(self)}
        for (switch, value), names in _ONLY.items():
            for name in names:
                if getattr(self, switch) != value and getattr(self, name) != usual[name]:
                    raise ValueError(
                        f"{name} does nothing unless {switch} is {value}: leave it at {usual[name]}"
                    )
