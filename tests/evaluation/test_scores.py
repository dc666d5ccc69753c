"""Intervals, classes of ratings and paired tests, against values known from elsewhere."""

import subprocess
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronri.evaluation.commit import commit_of
from ronri.evaluation.paired import mcnemar
from ronri.evaluation.scores import by_rating, wilson


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # And seen from the other side.
        (20, 20, 0.8389, 1.0),
        (28, 29, 0.8282, 0.9939),
    ],
)
def test_wilson_intervals_are_those_of_the_literature(
    right: int, n: int, low: float, high: float
) -> None:
    assert wilson(right, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_intervals_hold_the_fraction_and_stay_in_range(counts: tuple[int, int]) -> None:
    right, n = counts
    low, high = wilson(right, n)
    assert 0 <= low <= right / n <= high <= 1
    assert low < high


def solved(*answers: int) -> np.ndarray:
    return np.array(answers, bool)


def test_mcnemar_by_hand() -> None:
    # One puzzle for the first, four for the second: 2 (1 + 5) / 32.
    found = mcnemar(solved(1, 0, 0, 0, 0, 1, 0), solved(0, 1, 1, 1, 1, 1, 0))
    assert (found.only_first, found.only_second, found.p) == (1, 4, 0.375)
    # Five heads in a row, either way round.
    assert mcnemar(np.zeros(5, bool), np.ones(5, bool)).p == 0.0625
    assert mcnemar(np.ones(5, bool), np.zeros(5, bool)).p == 0.0625


def test_reasoners_that_do_not_differ_are_not_told_apart() -> None:
    assert mcnemar(solved(1, 1, 0), solved(1, 1, 0)).p == 1
    assert mcnemar(solved(1, 0, 1), solved(0, 1, 1)).p == 1


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_sums_the_binomial_distribution(first: int, second: int) -> None:
    n = first + second
    ours = np.arange(n) < first
    tail = sum(Fraction(comb(n, k), 2**n) for k in range(min(first, second) + 1))
    assert mcnemar(ours, ~ours).p == pytest.approx(float(min(1, 2 * tail)), rel=1e-12)


RATINGS = st.one_of(st.floats(0, 1000, width=32), st.just(float("nan")))


@given(st.lists(st.tuples(st.booleans(), RATINGS), max_size=60))
def test_every_rated_puzzle_is_in_one_class(puzzles: list[tuple[bool, float]]) -> None:
    right = np.array([answer for answer, _ in puzzles], bool)
    ratings = np.array([rating for _, rating in puzzles], np.float32)
    known = ~np.isnan(ratings)
    strata = by_rating(right, ratings)
    assert sum(stratum.n for stratum in strata) == known.sum()
    assert sum(stratum.errors for stratum in strata) == (known & ~right).sum()
    assert all(stratum.n > 0 for stratum in strata)


def test_classes_of_ratings_by_hand() -> None:
    strata = by_rating(solved(1, 0, 1, 0, 1), np.array([0, 0.4, 20, 49.5, 50], np.float32))
    assert [(s.label, s.n, s.puzzle_accuracy) for s in strata] == [
        ("0 to <0.5", 2, 0.5),
        ("20 to <50", 2, 0.5),
        ("50 or more", 1, 1.0),
    ]


def test_the_commit_is_that_of_files_that_are_kept(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        known = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        done = subprocess.run(
            ["git", *known, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    kept, stranger = tmp_path / "kept.py", tmp_path / "stranger.py"
    kept.write_text("1")
    assert commit_of(kept) is None
    git("init")
    git("add", "kept.py")
    git("commit", "-m", "first")
    stranger.write_text("2")
    assert commit_of(kept) == git("rev-parse", "HEAD")
    assert commit_of(stranger) is None
    kept.write_text("3")
    assert commit_of(kept) == git("rev-parse", "HEAD") + "-dirty"
