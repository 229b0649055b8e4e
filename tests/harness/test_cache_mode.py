"""Shared contexts: correlation, cost, saving."""

import pytest

from longreach.harness.stats.cache_mode import (
    anova_icc,
    cost_ratio,
    effective_samples,
    pooled_icc,
    saving_sentence,
    uncached_share,
)


def _contexts(passes: tuple[int, ...]) -> list[list[float]]:
    return [[1.0] * k + [0.0] * (5 - k) for k in passes]


def test_correlation_matches_the_study() -> None:
    assert anova_icc(_contexts((5, 5, 5, 4, 5, 2, 5, 5, 3, 5))) == pytest.approx(0.274194, abs=1e-6)


def test_correlation_of_equal_scores_has_no_value() -> None:
    assert anova_icc(_contexts((5, 5, 5))) is None
    assert anova_icc(_contexts((3,))) is None


def test_pooling_weighs_by_contexts_and_skips_what_has_no_value() -> None:
    loose = _contexts((5, 5, 5, 4, 5, 2, 5, 5, 3, 5))
    assert pooled_icc({1024: loose, 2048: _contexts((5, 5, 5))}) == pytest.approx(0.274194, abs=1e-6)
    assert pooled_icc({1024: _contexts((5, 5))}) is None


def test_uncached_share_of_eleven_depths_matches_the_study() -> None:
    assert uncached_share([i / 10 for i in range(11)]) == pytest.approx(0.590909, abs=1e-6)


@pytest.mark.parametrize(("cached_price", "ratio"), [(0.0, 0.28), (0.1, 0.39), (0.25, 0.56), (0.5, 0.84)])
def test_cost_per_effective_sample_matches_the_study(cached_price: float, ratio: float) -> None:
    assert cost_ratio(0.2, cached_price, 5, 0.1) == pytest.approx(ratio, abs=0.005)


def test_the_plan_says_what_is_saved_and_what_it_costs() -> None:
    assert "0.28 times" in saving_sentence(0.0)
    assert "100 answers are worth 71" in saving_sentence(0.0)
    assert "not worth it" in saving_sentence(0.5)


def test_a_negative_correlation_earns_nothing() -> None:
    assert effective_samples(100, 5, -0.2) == 100
