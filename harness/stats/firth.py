"""Logistic regression, plain or with Firth's penalty (half the log determinant of the information), which is finite even
where everything passes; average marginal effects; standard errors robust to clusters of samples that are alike.

Source: Firth 1993 (Biometrika 80:27), Heinze and Schemper 2002 (Statistics in Medicine 21:2409).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEPS = 200
LARGEST_STEP = 2.0
"""Of a coefficient in one Newton step."""
LARGEST = 12.0
"""Coefficient of a plain fit beyond which it is on its way to infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One fitted curve; arrays have one entry per column of the design."""

    beta: Floats
    covariance: Floats
    """(columns, columns), robust to clusters."""
    n_clusters: int
    converged: bool

    def p_value(self, column: int) -> float:
        """Two-sided, by t with clusters - 1 degrees of freedom; 1 where there is no error to measure against."""
        from scipy.special import stdtr

        variance = float(self.covariance[column, column])
        if self.n_clusters < 2 or variance <= 0.0:
            return 1.0
        t = abs(float(self.beta[column])) / math.sqrt(variance)
        return float(2 * stdtr(self.n_clusters - 1, -t))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An average over the samples on the scale of rates, with its 95% limits by t with clusters - 1 degrees of freedom."""

    value: float
    low: float
    high: float
    p: float
    """Two-sided; 1, and limits of -1 and 1, where there is no error to measure against."""


def average_slope(fit: Fit, design: Floats, moved: Floats) -> Effect:
    """Average marginal effect: how fast the rate changes, on average over the samples.

    Args:
        design: (n, columns).
        moved: (n, columns), change of each row per unit of what is asked for.
    """
    p = _rate(design, fit.beta)
    spread, change = p * (1 - p), moved @ fit.beta
    gradient = ((spread * (1 - 2 * p) * change)[:, None] * design + spread[:, None] * moved).mean(axis=0)
    return _effect(fit, float((spread * change).mean()), gradient)


def average_difference(fit: Fit, high: Floats, low: Floats) -> Effect:
    """Mean rate over the rows of one design less that over the rows of another."""
    above, below = _rate(high, fit.beta), _rate(low, fit.beta)
    gradient = (above * (1 - above)) @ high / len(high) - (below * (1 - below)) @ low / len(low)
    return _effect(fit, float(above.mean() - below.mean()), gradient)


def _effect(fit: Fit, value: float, gradient: Floats) -> Effect:
    """Limits by the delta method."""
    from scipy.special import stdtr, stdtrit

    error = math.sqrt(max(float(gradient @ fit.covariance @ gradient), 0.0))
    if fit.n_clusters < 2 or error == 0.0:
        return Effect(value=value, low=-1.0, high=1.0, p=1.0)
    half = float(stdtrit(fit.n_clusters - 1, 0.975)) * error
    p = float(2 * stdtr(fit.n_clusters - 1, -abs(value) / error))
    return Effect(value=value, low=max(value - half, -1.0), high=min(value + half, 1.0), p=p)


def fit_logistic(design: Floats, scores: Floats, clusters: Sequence[object], *, penalised: bool) -> Fit:
    """The fit of scores in [0, 1], by plain maximum likelihood or with Firth's penalty.

    Plain likelihood has no finite solution where a column parts rights from wrongs: `converged` is False then, as it is
    where a coefficient passes `LARGEST`.

    Args:
        design: (n, columns), the first column all ones.
        scores: (n,).
        clusters: (n,), which samples belong together.
    """
    share = 0.5 if penalised else 0.0
    beta = np.zeros(design.shape[1])
    best, converged = _penalised(design, scores, beta, share), False
    for _ in range(STEPS):
        p = _rate(design, beta)
        weights = p * (1 - p)
        if not penalised and float(np.abs(beta).max()) > LARGEST:
            break
        inverse = np.linalg.inv((design.T * weights) @ design)
        leverage = weights * np.einsum("ij,jk,ik->i", design, inverse, design)
        step = inverse @ (design.T @ (scores - p + 2 * share * leverage * (0.5 - p)))
        step *= min(1.0, LARGEST_STEP / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(step).max()) < 1e-9:
            converged = True
            break
        size = 1.0
        while size > 1e-6 and _penalised(design, scores, beta + size * step, share) < best - 1e-12:
            size /= 2
        beta, best = beta + size * step, _penalised(design, scores, beta + size * step, share)
    p = _rate(design, beta)
    inverse = np.linalg.inv((design.T * (p * (1 - p))) @ design)
    names = {name: rank for rank, name in enumerate(dict.fromkeys(clusters))}
    groups = np.array([names[name] for name in clusters])
    sums = np.stack([design[groups == rank].T @ (scores - p)[groups == rank] for rank in names.values()])
    factor = len(names) / (len(names) - 1) if len(names) > 1 else 1.0
    covariance = factor * inverse @ (sums.T @ sums) @ inverse
    return Fit(beta=beta, covariance=covariance, n_clusters=len(names), converged=converged)


def _rate(design: Floats, beta: Floats) -> Floats:
    logits = np.clip(design @ beta, -30, 30)
    rates: Floats = 1 / (1 + np.exp(-logits))
    return rates


def _penalised(design: Floats, scores: Floats, beta: Floats, share: float) -> float:
    """Log likelihood plus `share` of the log determinant of the information: a half is Firth's penalty."""
    p = _rate(design, beta)
    likelihood = float(scores @ np.log(p) + (1 - scores) @ np.log1p(-p))
    _, log_det = np.linalg.slogdet((design.T * (p * (1 - p))) @ design)
    return likelihood + share * float(log_det)
