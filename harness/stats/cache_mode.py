"""Several questions on one context: what the shared context costs in power, and what the prefix cache saves."""

import math
from collections.abc import Mapping, Sequence

ASSUMED_ICC = 0.2
"""Correlation that evidence is tempered for until a larger one is measured."""
TYPICAL_ICC = 0.1
"""Correlation that savings are told for."""
WORTH = 0.6
"""Cost ratio up to which shared contexts are worth it: cached tokens at a quarter of the price, or less."""
CALIBRATION = (
    "a calibrated approximation, not a theorem: a length at the low end of the zone passes in 0.1, 0.4, 2.0 or 6.2% of "
    "searches if the true correlation is 0.05, 0.1, 0.2 or 0.4"
)


def anova_icc(contexts: Sequence[Sequence[float]]) -> float | None:
    """Intra-class correlation of scores that share a context: one-way ANOVA estimate, may be negative.

    Args:
        contexts: the scores of each context, equally many of them, two or more.

    Returns:
        None where it has no value: fewer than two contexts, or all scores equal.
    """
    if len(contexts) < 2:
        return None
    m = len(contexts[0])
    if m < 2 or any(len(scores) != m for scores in contexts):
        raise ValueError("the intra-class correlation needs contexts with equally many scores, two or more")
    means = [math.fsum(scores) / m for scores in contexts]
    grand = math.fsum(means) / len(means)
    between = m * math.fsum((mean - grand) ** 2 for mean in means) / (len(contexts) - 1)
    within = math.fsum((x - mean) ** 2 for mean, scores in zip(means, contexts, strict=True) for x in scores)
    within /= len(contexts) * (m - 1)
    total = between + (m - 1) * within
    return (between - within) / total if total > 0 else None


def pooled_icc(by_length: Mapping[int, Sequence[Sequence[float]]]) -> float | None:
    """Mean of the lengths' correlations with weights (contexts - 1); lengths without a value are left out."""
    found = [(len(contexts) - 1, icc) for contexts in by_length.values() if (icc := anova_icc(contexts)) is not None]
    weight = sum(w for w, _ in found)
    return math.fsum(w * icc for w, icc in found) / weight if weight else None


def effective_samples(n: int, queries: int, icc: float) -> float:
    """Independent samples that `n` scores are worth if `queries` of them share a context with correlation `icc`."""
    return n / (1 + (queries - 1) * max(icc, 0.0))


def uncached_share(insertions: Sequence[float]) -> float:
    """Share of the prompt tokens that must be read afresh when one filler carries one needle per prompt.

    Args:
        insertions: depth of the needle in each prompt; two prompts share what comes before the earlier needle, so that
            all but one of them find their own depth in an endless cache, in any order.
    """
    cached = math.fsum(insertions) - max(insertions)
    return 1 - cached / len(insertions)


def cost_ratio(uncached: float, cached_price: float, queries: int, icc: float) -> float:
    """Cost of one effective sample, relative to fresh haystacks.

    Args:
        uncached: share of the prompt tokens read afresh (1 / `queries` for several questions on one context).
        cached_price: price of a cached token relative to a fresh one; 0 on one's own server.
    """
    return (uncached + (1 - uncached) * cached_price) * (1 + (queries - 1) * icc)


def saving_sentence(cached_price: float, queries: int = 5, icc: float = TYPICAL_ICC) -> str:
    """What cache mode saves and what it costs, for the plan."""
    ratio = cost_ratio(1 / queries, cached_price, queries, icc)
    worth = effective_samples(100, queries, icc)
    advice = "worth it" if ratio <= WORTH else "not worth it: leave out --cache-mode"
    return (
        f"{queries} questions on one context cost {ratio:.2f} times as much per effective sample as fresh haystacks (cached "
        f"tokens at {cached_price:.0%} of the price, correlation {icc:g}): {advice}; 100 answers are worth {worth:.0f}."
    )
