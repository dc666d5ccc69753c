"""Taps: idle they are not there; active they hear and may change what passes."""

import pytest
import torch
from torch import Tensor

from ronri.nn.taps import Site, Taps


def sites() -> Taps:
    return Taps(inner="after each layer (layer)", out="what comes out")


def network(taps: Taps, x: Tensor) -> Tensor:
    for layer in range(3):
        x = taps("inner", 2 * x, layer)
    return taps("out", x)


def test_idle_taps_return_what_they_were_given() -> None:
    taps, x = sites(), torch.ones(2)
    assert taps("inner", x, 1, 2) is x


def test_listeners_hear_every_pass_and_change_nothing() -> None:
    taps, x = sites(), torch.ones(2)
    heard: list[tuple[Site, float]] = []
    with taps.listening({"inner": lambda site, value: heard.append((site, value[0].item()))}):
        assert torch.equal(network(taps, x), 8 * x)
    assert heard == [(Site("inner", (layer,)), 2.0 ** (layer + 1)) for layer in range(3)]
    assert taps("inner", x) is x
    network(taps, x)
    assert len(heard) == 3


def test_a_listener_may_reach_in() -> None:
    taps, x = sites(), torch.ones(2)
    with taps.listening(
        {
            "inner": lambda site, value: value + 1 if site.cycles == (1,) else None,
            "out": lambda _, value: -value,
        }
    ):
        assert torch.equal(network(taps, x), -10 * x)
    assert torch.equal(network(taps, x), 8 * x)


def test_unknown_sites_are_refused() -> None:
    taps = sites()
    with (
        pytest.raises(ValueError, match="no site 'z'; there are inner, out"),
        taps.listening({"z": lambda *_: None}),
    ):
        pass
    # A network that names a site it did not declare is wrong, once someone listens.
    with taps.listening({}), pytest.raises(AssertionError, match="not among the sites"):
        taps("z", torch.ones(1))


def test_blocks_within_blocks_give_way_and_come_back() -> None:
    taps, x = sites(), torch.ones(1)
    with taps.listening({"out": lambda _, value: value + 1}):
        with taps.listening({"out": lambda _, value: value * 2}):
            assert taps("out", x).item() == 2.0
        assert taps("out", 3 * x).item() == 4.0
        with pytest.raises(KeyError), taps.listening({"inner": lambda *_: None}):
            raise KeyError
        assert taps("out", 3 * x).item() == 4.0
    assert taps("inner", x) is x
