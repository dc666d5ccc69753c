"""What can be chosen about a TRM."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Config:
    """The Tiny Recursive Model. The defaults are those of the paper's attention model."""

    # Numbers in a vector.
    width: int = 512
    # Attention heads, for the attention mixer.
    heads: int = 8
    # Heads in which a cell sees only its row, or its column, or its box, a third of them each; the
    # other heads see the whole board. Context tokens see, and are seen, in every head.
    unit_heads: int = 0
    # Blocks in the reasoner that is called again and again.
    layers: int = 2
    # SwiGLU's inner width.
    inner: int = 1536
    # How positions exchange what they know: by attention; by a feed-forward layer over positions;
    # or by units, and then a position is not a cell but a digit in a cell, and hears the sum of
    # what is said in its row, in its column, in its box and in its cell. All digits are then alike
    # to the network, as all rows are, and there are no context tokens.
    mixer: Literal["attention", "mlp", "units"] = "attention"
    # Inner width of the feed-forward layer over positions.
    mixer_inner: int = 256
    # Numbers that a position says to its units, for the units mixer.
    message: int = 32
    # How a cell knows its place: by rotation in attention, by row, column and box embeddings.
    # The mlp mixer has a weight for every position and rotates nothing; the units mixer has none.
    positions: Literal["rotary", "grid", "both", "none"] = "rotary"
    # Learned tokens in front of the board. The halting head reads the first; without any, as for
    # the units mixer, the mean of all positions.
    context_tokens: int = 1
    # Updates of z_H in a step; all but the last run without gradient.
    h_cycles: int = 3
    # In this part of a run, from its beginning, a training step has one H cycle only: cheap, while
    # there is little to think about.
    shallow: float = 0.0
    # Updates of z_L for each one of z_H.
    l_cycles: int = 6
    # Where z_H and z_L start: at random vectors for ever, or at learned ones.
    latent_init: Literal["fixed", "learned"] = "fixed"
    # Steps a training slot may spend on a puzzle.
    max_steps: int = 16
    # Slots keep puzzle and notes between updates, one step each. Without, every update takes
    # max_steps steps on new puzzles: the slow way, to compare with.
    carry: bool = True
    # In training, compute the cycles that have no gradient in 8 bits, on a GPU that can: faster,
    # and rougher. Thinking never does.
    float8: bool = False
    # How often a training slot that would halt goes on to a random least number of steps.
    exploration: float = 0.1
    # Which slots are taught at a training step.
    supervise: Literal["every", "halted"] = "every"
    # How logits become probabilities; stablemax grows linearly where softmax is exponential.
    cross_entropy: Literal["stablemax", "softmax"] = "stablemax"
    # Weight of the halting loss.
    halt_weight: float = 0.5
    # Rows that think halt by themselves when they are sure of their board by more than this. Slots
    # in training do when they are more sure than not.
    sure: float = 0.5
    # Noise on the latents at each step of thinking, for samples after the first.
    noise: float = 0.3

    def __post_init__(self) -> None:
        sizes = "width", "heads", "layers", "inner", "message", "context_tokens"
        for name in (*sizes, "h_cycles", "l_cycles"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.mixer == "attention" and self.width % (2 * self.heads):
            raise ValueError(
                f"{self.heads} heads need a width that is a multiple of {2 * self.heads}, "
                f"not {self.width}"
            )
        if self.mixer == "mlp" and self.positions in ("rotary", "both"):
            raise ValueError(
                "the mlp mixer has no queries to rotate: set positions to none or grid"
            )
        if self.mixer == "units" and self.positions != "none":
            raise ValueError("the units mixer knows places by their units: set positions to none")
        if self.mixer == "units" and self.context_tokens != 1:
            raise ValueError("the units mixer has no context tokens: leave context_tokens alone")
        if self.mixer == "units" and self.float8:
            raise ValueError("the units mixer has no 8 bits: leave float8 off")
        if self.unit_heads % 3 or not 0 <= self.unit_heads <= self.heads:
            raise ValueError(
                f"unit_heads is a multiple of 3, at most the {self.heads} heads, "
                f"not {self.unit_heads}"
            )
        if self.mixer != "attention" and self.unit_heads:
            raise ValueError(f"the {self.mixer} mixer has no heads: set unit_heads to 0")
        if not self.carry and self.supervise == "halted":
            raise ValueError("without the carry no slot halts: set supervise to every")
        if not 0 <= self.shallow <= 1:
            raise ValueError(f"shallow is a part of a run, from 0 to 1, not {self.shallow}")
        if not 0 < self.sure < 1:
            raise ValueError(f"sure is a probability between 0 and 1, not {self.sure}")
        if self.max_steps < 2:
            raise ValueError("max_steps is at least 2: a step to think and a step to answer")
