"""Learning rates over a run: bounds, warm-up, and where the cosine goes."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronri.recipe import Optim
from ronri.training.schedules import Schedule, auto_batch, linear, scaled_lr

CONFIGS = st.builds(
    Optim,
    lr=st.just(1e-3),
    warmup=st.integers(0, 5000),
    schedule=st.sampled_from(["cosine", "constant"]),
    final=st.floats(0, 1),
)


@given(CONFIGS, st.integers(0, 10**6), st.floats(0, 1.5))
def test_scale_lies_between_zero_and_one(config: Optim, step: int, progress: float) -> None:
    scale = Schedule(config).scale(step, progress)
    # Even the first update moves something, unless the end of the cosine is zero.
    assert 0 <= scale <= 1
    if progress < 1:
        assert scale > 0


@given(st.integers(0, 200), st.integers(1, 400))
def test_warm_up_rises_and_takes_no_more_than_a_fifth(warmup: int, steps: int) -> None:
    schedule = Schedule(Optim(lr=1e-3, warmup=warmup, schedule="constant"))
    scales = [schedule.scale(step, step / steps) for step in range(steps)]
    assert scales == sorted(scales)
    # The last update of a warm-up is a full one already.
    assert sum(scale < 1 for scale in scales) == min(max(0, warmup - 1), math.ceil(steps / 5))


def test_warm_up_may_be_allowed_to_outlast_the_run() -> None:
    patient = Optim(lr=1e-3, warmup=1000, warmup_part=100.0, schedule="constant")
    assert Schedule(patient).scale(99, 1.0) == pytest.approx(0.1)
    assert Schedule(replace(patient, warmup_part=0.5)).scale(99, 0.25) == pytest.approx(0.5)


@given(CONFIGS, st.integers(0, 5000), st.floats(0, 1))
def test_cosine_lies_over_the_warm_up(config: Optim, step: int, progress: float) -> None:
    warm = Schedule(replace(config, schedule="constant")).scale(step, progress)
    found = Schedule(replace(config, schedule="cosine")).scale(step, progress)
    fall = (1 - config.final) * (1 - math.cos(math.pi * progress)) / 2
    assert found == pytest.approx(warm * (1 - fall), abs=1e-12)


@given(CONFIGS, st.integers(0, 10**5), st.floats(0.2, 1), st.floats(0.2, 1))
def test_scale_only_falls_after_warm_up(config: Optim, step: int, one: float, other: float) -> None:
    earlier, later = sorted((one, other))
    schedule = Schedule(config)
    assert schedule.scale(step + 1, later) <= schedule.scale(step, earlier) + 1e-12


@given(st.floats(0, 1), st.integers(0, 5000), st.floats(1, 2))
def test_cosine_ends_where_it_should_and_stays_there(
    final: float, warmup: int, progress: float
) -> None:
    config = Optim(lr=1e-3, warmup=warmup, final=final)
    assert Schedule(config).scale(10**6, progress) == pytest.approx(final)
    assert Schedule(config).scale(10**6, 0.5) == pytest.approx((1 + final) / 2)


def test_long_and_short_runs_warm_up_as_they_should() -> None:
    schedule = Schedule(Optim(lr=1e-3, warmup=100, schedule="constant"))
    # A long run: the first hundred updates.
    assert [schedule.scale(n, n / 10**6) for n in (0, 49, 99, 5000)] == [0.01, 0.5, 1.0, 1.0]
    # A run of fifty: ten updates.
    assert [schedule.scale(n, n / 50) for n in (0, 5, 10, 49)] == pytest.approx([0.01, 0.5, 1, 1])
    # No warm-up at all.
    assert Schedule(Optim(lr=1e-3, warmup=0, schedule="constant")).scale(0, 0.0) == 1


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_linear_goes_straight(start: float, stop: float, progress: float) -> None:
    assert linear(start, stop, 0.0) == start
    assert linear(start, stop, 1.0) == linear(start, stop, 1.1) == stop
    assert linear(start, stop, progress) == pytest.approx(start + progress * (stop - start))
    low, high = sorted((start, stop))
    assert low - 1e-15 <= linear(start, stop, progress) <= high + 1e-15


@pytest.mark.parametrize(
    ("gigabytes", "batch"),
    [
        (0.5, 256),
        (5.9, 256),
        (6, 512),
        (11.9, 512),
        (12, 1024),
        (23.9, 1024),
        (24, 2048),
        (141, 2048),
    ],
)
def test_batch_follows_memory(gigabytes: float, batch: int) -> None:
    assert auto_batch(int(gigabytes * 1e9)) == batch


def test_learning_rate_grows_with_the_root_of_the_batch() -> None:
    assert scaled_lr(3e-4, 2048, 512) == pytest.approx(6e-4)
    assert scaled_lr(3e-4, 512, 512) == 3e-4
    assert scaled_lr(scaled_lr(1e-3, 96, 768), 768, 96) == pytest.approx(1e-3)
