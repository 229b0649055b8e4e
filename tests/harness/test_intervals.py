"""Values of the statistics study, to 1e-6."""

import pytest

from longreach.harness.stats.intervals import (
    cannot_show,
    clopper_pearson,
    jeffreys,
    min_n,
    needed_text,
    plan_n,
    power,
    state_of,
    wilson,
)


@pytest.mark.parametrize(
    ("s", "n", "low", "high"),
    [(30, 30, 0.886487, 1.0), (72, 72, 0.949349, 1.0), (73, 73, 0.950008, 1.0), (45, 50, 0.786398, 0.956524)],
)
def test_wilson_matches_the_study(s: int, n: int, low: float, high: float) -> None:
    interval = wilson(s, n)
    assert interval.low == pytest.approx(low, abs=1e-6)
    assert interval.high == pytest.approx(high, abs=1e-6)


@pytest.mark.parametrize(
    ("s", "n", "tail", "low"),
    [
        (72, 72, 0.025, 0.950056),
        (71, 71, 0.025, 0.949371),
        (48, 50, 0.025, 0.862862),
        (59, 59, 0.05, 0.950492),
        (58, 58, 0.05, 0.949661),
    ],
)
def test_clopper_pearson_lower_bounds_match_the_study(s: int, n: int, tail: float, low: float) -> None:
    assert clopper_pearson(s, n, tail).low == pytest.approx(low, abs=1e-6)


def test_clopper_pearson_upper_bound_at_a_shared_level_matches_the_study() -> None:
    assert clopper_pearson(40, 50, 0.025 / 8).high == pytest.approx(0.926378, abs=1e-6)


def test_jeffreys_matches_the_study() -> None:
    assert jeffreys(50, 50).low == pytest.approx(0.951242, abs=1e-6)


def test_bounds_are_exact_at_the_ends_even_after_float_sums() -> None:
    third = sum([1 / 3] * 30)
    assert wilson(30 - 1e-12, 30).high == 1.0
    assert clopper_pearson(1e-12, 30).low == 0.0
    assert wilson(third, 30).low == pytest.approx(wilson(10, 30).low)


def test_fractional_sums_lie_between_their_neighbours() -> None:
    assert clopper_pearson(9, 10).low < clopper_pearson(9.5, 10).low < clopper_pearson(10, 10).low


@pytest.mark.parametrize(("s", "n"), [(31, 30), (-1, 30), (0, 0)])
def test_impossible_counts_are_refused(s: int, n: int) -> None:
    with pytest.raises(ValueError, match="no interval"):
        wilson(s, n)


@pytest.mark.parametrize(
    ("threshold", "expected"), [(0.95, (73, 110, 142, 173)), (0.90, (36, 54, 70, 85)), (0.70, (11, 17, 22, 27))]
)
def test_smallest_n_takes_the_larger_of_both_intervals(threshold: float, expected: tuple[int, ...]) -> None:
    assert tuple(min_n(threshold, failures) for failures in range(4)) == expected


@pytest.mark.parametrize(
    ("threshold", "rate", "n"),
    [
        (0.95, 0.99, 174),
        (0.95, 0.98, 392),
        (0.90, 0.99, 70),
        (0.90, 0.97, 127),
        (0.90, 0.95, 304),
        (0.90, 0.93, 945),
        (0.70, 0.85, 86),
        (0.70, 0.80, 205),
    ],
)
def test_planned_samples_have_the_promised_power(threshold: float, rate: float, n: int) -> None:
    assert plan_n(threshold, rate) == n
    assert power(n, threshold, rate) >= 0.90


def test_planning_works_for_any_threshold() -> None:
    planned = plan_n(0.80, 0.95)
    assert planned is not None
    assert power(planned, 0.80, 0.95) >= 0.90 > power(planned - 1, 0.80, 0.95)
    assert plan_n(0.90, 0.90) is None


@pytest.mark.parametrize(
    ("s", "n", "threshold", "state"),
    [
        (36, 36, 0.90, "pass"),
        (35, 35, 0.90, "undecided"),  # Wilson alone would pass it
        (72, 72, 0.95, "undecided"),  # Clopper-Pearson alone would pass it
        (73, 73, 0.95, "pass"),
        (11, 11, 0.70, "pass"),
        (5, 10, 0.90, "fail"),
        (0, 0, 0.90, "not_tested"),
    ],
)
def test_a_state_needs_both_intervals(s: int, n: int, threshold: float, state: str) -> None:
    assert state_of(s, n, threshold) == state


def test_thirty_samples_cannot_show_more_than_95_percent_and_the_text_says_how_many_would() -> None:
    assert cannot_show("64k", 30, 0.95) == (
        "64k with 30 samples cannot show > 0.95: even 30/30 gives a lower bound of 0.886. Needs 73/73, or at most "
        "1 miss in 110; plan 174 for a 90% chance if the true rate is 0.99."
    )
    assert cannot_show("64k", 73, 0.95) is None


def test_the_bound_that_binds_is_the_one_printed() -> None:
    text = cannot_show("4k", 35, 0.90)
    assert text is not None
    assert "lower bound of 0.899" in text
    assert "Needs 36/36" in text


def test_needed_text_for_other_thresholds() -> None:
    assert needed_text(0.70) == (
        "Needs 11/11, or at most 1 miss in 17; plan 86 for a 90% chance if the true rate is 0.85."
    )
    assert needed_text(1.0) == "No number of samples can."
    assert cannot_show("4k", 0, 0.90) == (
        "4k with no samples cannot show > 0.90. Needs 36/36, or at most 1 miss in 54; plan 70 for a 90% chance if "
        "the true rate is 0.99."
    )
