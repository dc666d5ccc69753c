"""TRM's options: what does not go together is refused."""

from dataclasses import replace
from typing import Any

import pytest

from small_trm import SMALL


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mixer": "mlp"}, "set positions to none or grid"),
        ({"mixer": "units"}, "the units mixer knows places by their units"),
        ({"mixer": "units", "positions": "none", "message": 0}, "message is at least 1"),
        ({"mixer": "units", "positions": "none", "context_tokens": 2}, "no context tokens"),
        ({"mixer": "units", "positions": "none", "float8": True}, "no 8 bits"),
        ({"unit_heads": 2}, "unit_heads is a multiple of 3, at most the 2 heads, not 2"),
        ({"unit_heads": 3}, "at most the 2 heads"),
        (
            {"width": 24, "heads": 3, "unit_heads": 3, "mixer": "mlp", "positions": "none"},
            "no heads",
        ),
        ({"shallow": 1.5}, "shallow is a part of a run, from 0 to 1"),
        ({"context_tokens": 0}, "context_tokens is at least 1"),
        ({"h_cycles": 0}, "cycles is at least 1"),
        ({"sure": 1.0}, "sure is a probability between 0 and 1"),
        ({"max_steps": 1}, "max_steps is at least 2"),
        ({"carry": False, "supervise": "halted"}, "without the carry no slot halts"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(SMALL, **options)
