"""Numbers as little bars."""

import math

import pytest

from ronri.evaluation.bars import bars


@pytest.mark.parametrize(
    ("values", "width", "expected"),
    [
        ([], 4, ""),
        ([3.0], 4, "▁"),
        ([0.0, 7.0, 3.5], 8, "▁█▅"),
        ([0.0, 2.0, 6.0, 8.0], 2, "▁█"),
        # Through orders of magnitude: by their logarithms.
        ([1.0, 10.0, 100.0], 3, "▁▅█"),
        ([1.0, math.nan, 2.0, math.inf], 4, "▁█"),
    ],
)
def test_the_lowest_is_low_and_the_highest_high(
    values: list[float], width: int, expected: str
) -> None:
    assert bars(values, width) == expected
