"""Whether a representation has collapsed: several monitors, for none of them tells by itself."""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from ronri.reasoners.enso.losses import Spread

# Below these it has: the mean standard deviation; and RankMe, a part of the width where one vector
# stands for a board, and a number where there is one for each digit of each cell: of those, a right
# board has no more than two kinds, those that are right and those that are not, as each hears the
# same in all of its units.
LEAST_STD, LEAST_PART, LEAST_RANK = 0.05, 0.05, 1.5


def monitors(name: str, representation: Float[Tensor, "B vectors D"]) -> dict[str, float]:
    """How a representation spreads over a batch."""
    spread = Spread.of(representation)
    return {
        f"{name}_std": float(spread.std.mean()),
        f"{name}_least_std": float(spread.std.min()),
        f"{name}_rank": float(spread.rank()),
        f"{name}_correlation": float(spread.correlation()),
    }


def collapsed(readings: Mapping[str, float], least_rank: float) -> list[str]:
    """Which of the two representations says the same of every puzzle."""
    found = []
    for name in ("context", "target"):
        std, rank = readings[f"{name}_std"], readings[f"{name}_rank"]
        if std < LEAST_STD:
            found.append(f"the {name} collapses: its numbers vary by {std:.3f} only")
        if rank < least_rank:
            found.append(f"the {name} collapses: RankMe {rank:.1f}, and {least_rank:.1f} is little")
    return found
