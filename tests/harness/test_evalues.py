"""E-values against the statistics study, to 1e-6, and what they promise, exactly."""

import math
import random

import pytest

from longreach.harness.stats.evalues import (
    ZONES,
    Zone,
    confidence_sequence,
    count,
    relative_zone,
    strict_evidence,
    tempering,
    zone_evidence,
)

ZONE = ZONES["retrieval"]
TO_PASS, TO_FAIL = math.log(40), math.log(320)


@pytest.mark.parametrize(
    ("scores", "up", "dn"),
    [
        ([1] * 35, 3.892897, -4.586044),
        ([0] * 5, -5.493061, 10.721449),
        ([1, 0, 0, 1, 0], -3.073386, 4.986568),
        ([1] * 49 + [0], 4.351444, -5.044591),
        ([0.75] * 5, -0.408390, 4.578279),
        ([1, 1, 0.75, 1, 1], 0.363225, -0.555413),
    ],
)
def test_zone_evidence_matches_the_study(scores: list[float], up: float, dn: float) -> None:
    evidence = zone_evidence(count(scores), ZONE)
    assert (evidence.up, evidence.dn) == pytest.approx((up, dn), abs=1e-6)


@pytest.mark.parametrize(("passes", "up"), [(33, 3.670446), (34, 3.781672)])
def test_thirty_four_passes_are_enough_and_thirty_three_are_not(passes: int, up: float) -> None:
    found = zone_evidence({1.0: passes}, ZONE).up
    assert found == pytest.approx(up, abs=1e-6)
    assert (found >= TO_PASS) == (passes == 34)


@pytest.mark.parametrize(
    ("s", "n", "up", "dn"),
    [
        (50, 50, 3.634030, -3.942434),
        (51, 51, 3.720434, -3.962276),
        (95, 100, 1.017109, -4.051539),
        (3, 10, -2.042487, 9.354149),
    ],
)
def test_strict_evidence_matches_the_study(s: int, n: int, up: float, dn: float) -> None:
    evidence = strict_evidence({1.0: s, 0.0: n - s}, 0.90)
    assert (evidence.up, evidence.dn) == pytest.approx((up, dn), abs=1e-6)


@pytest.mark.parametrize(
    ("s", "n", "low", "high"),
    [(50, 50, 0.898805, 1.0), (95, 100, 0.855363, 0.994371), (3, 10, 0.028815, 0.750908)],
)
def test_confidence_sequence_matches_the_study(s: int, n: int, low: float, high: float) -> None:
    bounds = confidence_sequence({1.0: s, 0.0: n - s})
    assert (bounds.low, bounds.high) == pytest.approx((low, high), abs=1e-6)


def test_the_closed_form_would_pass_75_of_500_and_the_mixture_does_not() -> None:
    evidence = strict_evidence({1.0: 75, 0.0: 425}, 0.90)
    assert evidence.up < 0
    assert evidence.dn > 300


def test_evidence_does_not_depend_on_the_order_of_samples() -> None:
    scores = [1.0] * 30 + [0.5, 0.25, 0.0]
    before = zone_evidence(count(scores), ZONE)
    random.Random(1).shuffle(scores)
    assert zone_evidence(count(scores), ZONE) == before


def test_each_factor_has_mean_at_most_one_under_its_null() -> None:
    for zone in ZONES.values():
        up = zone.low * math.exp(zone_evidence({1.0: 1}, zone).up)
        up += (1 - zone.low) * math.exp(zone_evidence({0.0: 1}, zone).up)
        dn = zone.high * math.exp(zone_evidence({1.0: 1}, zone).dn)
        dn += (1 - zone.high) * math.exp(zone_evidence({0.0: 1}, zone).dn)
        assert up == pytest.approx(1.0)
        assert dn == pytest.approx(1.0)


def test_stratified_blocks_are_only_more_careful() -> None:
    """Five strata whose means add up to the null: the product of the factors' means is at most 1."""
    for rates in [(0.85,) * 5, (1.0, 1.0, 0.25, 1.0, 1.0), (0.95, 0.9, 0.55, 0.9, 0.95)]:
        gain = [math.exp(zone_evidence({x: 1}, ZONE).up) for x in (0.0, 1.0)]
        assert math.prod(rate * gain[1] + (1 - rate) * gain[0] for rate in rates) <= 1 + 1e-12


def test_tempering_divides_every_increment() -> None:
    divisor = tempering(0.2, 5)
    assert divisor == pytest.approx(1.8)
    plain, tempered = zone_evidence({1.0: 35}, ZONE), zone_evidence({1.0: 35}, ZONE, divisor)
    assert tempered.up == pytest.approx(plain.up / 1.8)
    assert plain.dn < tempered.dn < 0


@pytest.mark.parametrize(("threshold", "delta"), [(0.95, 0.05), (0.05, 0.05), (0.9, 0.0)])
def test_a_zone_that_leaves_the_open_interval_is_refused(threshold: float, delta: float) -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Zone(threshold=threshold, delta=delta)


def test_a_relative_threshold_pays_for_what_is_not_known_of_the_base() -> None:
    zone = relative_zone(1584, 1600)
    assert zone is not None
    assert 0.85 * 0.99 - 0.05 < zone.low < zone.high < 0.85 * 0.99 + 0.05
    assert relative_zone(180, 200) is None


def _exact(p: float, cap: int = 300) -> tuple[float, float, float, float]:
    """Chance of pass, fail, neither at the cap, and the mean number of samples: every road, by dynamic programming."""
    block = [math.comb(5, k) * p**k * (1 - p) ** (5 - k) for k in range(6)]
    alive, passed, failed, samples = {0: 1.0}, 0.0, 0.0, 0.0
    for n in range(5, cap + 1, 5):
        samples += 5 * sum(alive.values())
        after: dict[int, float] = {}
        for s, mass in alive.items():
            for k, chance in enumerate(block):
                after[s + k] = after.get(s + k, 0.0) + mass * chance
        alive = {}
        for s, mass in after.items():
            evidence = zone_evidence({1.0: s, 0.0: n - s}, ZONE)
            if evidence.up >= TO_PASS:
                passed += mass
            elif evidence.dn >= TO_FAIL:
                failed += mass
            else:
                alive[s] = mass
    return passed, failed, sum(alive.values()), samples


def test_exact_behaviour_at_the_low_end_of_the_zone() -> None:
    passed, failed, undecided, samples = _exact(0.85)
    assert (passed, failed, undecided) == pytest.approx((0.020391, 0.971688, 0.007921), abs=1e-6)
    assert samples == pytest.approx(97.665543, abs=1e-6)


def test_exact_behaviour_at_the_high_end_of_the_zone() -> None:
    passed, failed, _, samples = _exact(0.95)
    assert (passed, failed) == pytest.approx((0.995992, 0.001003), abs=1e-6)
    assert samples == pytest.approx(76.511030, abs=1e-6)


@pytest.mark.parametrize(("p", "samples"), [(0.99, 38.978740), (1.0, 35.0), (0.5, 12.0)])
def test_exact_number_of_samples(p: float, samples: float) -> None:
    assert _exact(p)[3] == pytest.approx(samples, abs=1e-6 if p != 0.5 else 0.5)
