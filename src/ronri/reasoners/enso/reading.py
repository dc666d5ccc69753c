"""What is read from a puzzle and a latent."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Reading(NamedTuple):
    """Of one latent: the board it decodes to, and the target representation it predicts."""

    logits: Float[Tensor, "B cells digits"]
    prediction: Float[Tensor, "B vectors width"]
