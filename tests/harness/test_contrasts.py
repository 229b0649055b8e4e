"""Contrasts of the statistics study, to 1e-6."""

import pytest

from longreach.harness.stats.contrasts import Term, bonett_price, mcnemar_mid_p, mover, slope_weights

LENGTHS = (8, 16, 32)  # log2 = 3, 4, 5
PASSES = {8: (10, 10, 10, 10, 10), 16: (10, 9, 8, 10, 10), 32: (9, 7, 5, 8, 10)}
POSITION = (0.5, 0.0, -1.0, 0.0, 0.5)


def _terms(by_length: dict[int, float], by_depth: tuple[float, ...]) -> list[Term]:
    return [
        Term(weight=by_length[length] * weight, s=s, n=10)
        for length, row in PASSES.items()
        for weight, s in zip(by_depth, row, strict=True)
    ]


@pytest.mark.parametrize(
    ("by_length", "by_depth", "value", "low", "high"),
    [
        (slope_weights(LENGTHS), (0.2,) * 5, -0.110000, -0.176208, -0.051606),
        (dict.fromkeys(LENGTHS, 1 / 3), POSITION, 0.216667, 0.080701, 0.393151),
        (slope_weights(LENGTHS), POSITION, 0.225000, 0.012249, 0.380752),
    ],
)
def test_mover_matches_the_study(
    by_length: dict[int, float], by_depth: tuple[float, ...], value: float, low: float, high: float
) -> None:
    contrast = mover(_terms(by_length, by_depth))
    assert (contrast.value, contrast.low, contrast.high) == pytest.approx((value, low, high), abs=1e-6)


@pytest.mark.parametrize(("lost", "won", "p"), [(9, 2, 0.038574), (5, 0, 0.031250), (4, 0, 0.0625), (0, 0, 1.0)])
def test_mcnemar_mid_p_matches_the_study(lost: int, won: int, p: float) -> None:
    assert mcnemar_mid_p(lost, won) == pytest.approx(p, abs=1e-6)


def test_bonett_price_matches_the_study() -> None:
    change = bonett_price(9, 2, 200)
    assert (change.value, change.low, change.high) == pytest.approx((-0.034653, -0.069309, 0.000003), abs=1e-6)
