"""Logistic regression with Firth's penalty (half the log determinant of the information): finite estimates even where
everything passes; standard errors robust to clusters of samples that ask the same.

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


def fit_firth(design: Floats, scores: Floats, clusters: Sequence[int]) -> Fit:
    """The fit of scores in [0, 1].

    Args:
        design: (n, columns), the first column all ones.
        scores: (n,).
        clusters: (n,), which samples belong together.
    """
    beta = np.zeros(design.shape[1])
    best, converged = _penalised(design, scores, beta), False
    for _ in range(STEPS):
        p = _rate(design, beta)
        weights = p * (1 - p)
        inverse = np.linalg.inv((design.T * weights) @ design)
        leverage = weights * np.einsum("ij,jk,ik->i", design, inverse, design)
        step = inverse @ (design.T @ (scores - p + leverage * (0.5 - p)))
        step *= min(1.0, LARGEST_STEP / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(step).max()) < 1e-9:
            converged = True
            break
        share = 1.0
        while share > 1e-6 and _penalised(design, scores, beta + share * step) < best - 1e-12:
            share /= 2
        beta, best = beta + share * step, _penalised(design, scores, beta + share * step)
    p = _rate(design, beta)
    inverse = np.linalg.inv((design.T * (p * (1 - p))) @ design)
    groups = np.asarray(clusters)
    names = np.unique(groups)
    sums = np.stack([design[groups == name].T @ (scores - p)[groups == name] for name in names])
    factor = len(names) / (len(names) - 1) if len(names) > 1 else 1.0
    covariance = factor * inverse @ (sums.T @ sums) @ inverse
    return Fit(beta=beta, covariance=covariance, n_clusters=len(names), converged=converged)


def _rate(design: Floats, beta: Floats) -> Floats:
    logits = np.clip(design @ beta, -30, 30)
    rates: Floats = 1 / (1 + np.exp(-logits))
    return rates


def _penalised(design: Floats, scores: Floats, beta: Floats) -> float:
    """Log likelihood plus half the log determinant of the information."""
    p = _rate(design, beta)
    likelihood = float(scores @ np.log(p) + (1 - scores) @ np.log1p(-p))
    _, log_det = np.linalg.slogdet((design.T * (p * (1 - p))) @ design)
    return likelihood + 0.5 * float(log_det)
