"""Paired tests of a change, and what they can detect."""

from collections.abc import Sequence

import pytest

from longreach.harness.stats.compare import verdict_of
from longreach.harness.stats.paired_tests import benjamini_hochberg, change_of, holm, minimal_drop, sign_flip


def pattern(n: int, wrong: Sequence[int] = ()) -> list[float]:
    """n scores, 0 at the indices `wrong`."""
    return [0.0 if i in wrong else 1.0 for i in range(n)]


def test_holm_and_benjamini_hochberg_by_hand() -> None:
    p_values = [0.01, 0.04, 0.03, 0.5]
    assert holm(p_values) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert benjamini_hochberg(p_values) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert holm([]) == []


@pytest.mark.parametrize(
    ("n", "churn", "tests", "drop"),
    [
        (50, 0.02, 1, 0.168),
        (100, 0.02, 1, 0.093),
        (400, 0.02, 1, 0.032),
        (50, 0.06, 1, 0.196),
        (100, 0.06, 1, 0.116),
        (200, 0.06, 1, 0.071),
        (400, 0.06, 1, 0.045),
        (200, 0.02, 8, 0.079),
        (200, 0.06, 8, 0.101),
    ],
)
def test_minimal_detectable_drops_match_the_study(n: int, churn: float, tests: int, drop: float) -> None:
    assert minimal_drop(n, churn, tests) == pytest.approx(drop, abs=0.0005)


def test_minimal_detectable_drop_matches_the_study_to_six_digits() -> None:
    assert minimal_drop(200, 0.02) == pytest.approx(0.053329, abs=1e-6)
    assert minimal_drop(2, 0.02) is None


def test_binary_changes_use_the_exact_test_and_the_limits_of_the_study() -> None:
    change = change_of(pattern(200, [198, 199]), pattern(200, range(9)))
    assert (change.lost, change.won, change.n) == (9, 2, 200)
    assert change.p == pytest.approx(0.038574, abs=1e-6)
    assert (change.low, change.high) == pytest.approx((-0.069309, 0.000003), abs=1e-6)


def test_limits_of_fractions_agree_with_those_of_binary_scores() -> None:
    base, new = pattern(50, [48, 49]), pattern(50, range(6))
    binary, fractional = change_of(base, new), change_of([*base, 0.5], [*new, 0.5])
    assert binary.method == "McNemar mid-p"
    assert fractional.method == "sign-flip permutation"
    assert fractional.low == pytest.approx(binary.low, abs=0.005)
    assert fractional.p == pytest.approx(2 * (1 + 8 + 28) / 256, abs=0.03)


def test_sign_flips_are_seeded_and_never_give_zero() -> None:
    differences = [-0.5] * 40
    assert sign_flip(differences) == sign_flip(differences) == pytest.approx(1 / 10_001)
    assert sign_flip([0.0] * 10) == 1.0


def test_a_drop_that_does_not_matter_but_is_certain_is_still_worse() -> None:
    change = change_of(pattern(2000), pattern(2000, range(30)))
    assert change.low > -0.05
    assert verdict_of(change, change.p, 0.05) == "worse"
