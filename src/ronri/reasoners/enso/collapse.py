"""Whether a representation has collapsed: several monitors, for none of them tells by itself."""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from ronri.nn.losses import wide
from ronri.reasoners.enso.config import Config
from ronri.reasoners.enso.losses import Spread

# Below these it has: the mean standard deviation, and RankMe.
LEAST_STD, LEAST_RANK = 0.05, 1.5
# Where one vector stands for a board, RankMe is a part of the width at least.
LEAST_PART = 0.05
_SAME = "the {} has collapsed, or has not unfolded yet"


def monitors(name: str, representation: Float[Tensor, "B vectors D"]) -> dict[str, float]:
    """How a representation spreads over a batch."""
    spread = Spread.of(wide(representation))
    return {
        f"{name}_std": float(spread.std.mean()),
        f"{name}_least_std": float(spread.std.min()),
        f"{name}_rank": float(spread.rank()),
        f"{name}_correlation": float(spread.correlation()),
    }


def collapsed(readings: Mapping[str, float], config: Config) -> list[str]:
    """Which of the two representations says the same of every puzzle."""
    least = {"context": LEAST_RANK, "target": LEAST_RANK}
    if config.latents == "board":
        least = {name: max(rank, LEAST_PART * config.width) for name, rank in least.items()}
    else:
        # Of a right board it has two vectors, for digits that are right and for those that are not,
        # as each digit of each cell hears the same in all of its units. That they differ is all
        # there can be, and the standard deviation tells it.
        least["target"] = 0.0
    found = []
    for name, least_rank in least.items():
        std, rank = readings[f"{name}_std"], readings[f"{name}_rank"]
        if std < LEAST_STD:
            found.append(f"{_SAME.format(name)}: its numbers vary by {std:.3f} only")
        if rank < least_rank:
            found.append(f"{_SAME.format(name)}: RankMe is {rank:.1f}, below {least_rank:.1f}")
    return found
