"""Numbers as a line of little bars, for where a figure would be too much."""

import math
from collections.abc import Sequence
from itertools import pairwise


def bars(values: Sequence[float], width: int) -> str:
    """At most `width` bars; of more values, means of neighbours. What is not finite is left out."""
    values = [value for value in values if math.isfinite(value)]
    count = len(values)
    width = min(width, count)
    edges = [count * i // width for i in range(width + 1)] if width else []
    means = [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    # A loss that falls through orders of magnitude would be flat for most of its way.
    if means and min(means) > 0 and max(means) > 10 * min(means):
        means = [math.log(mean) for mean in means]
    low, high = min(means, default=0.0), max(means, default=0.0)
    span = (high - low) or 1.0
    return "".join("▁▂▃▄▅▆▇█"[round(7 * ((mean - low) / span))] for mean in means)
