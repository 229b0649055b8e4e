"""Time and money from records: latency by length with cold and cached apart, cost, tokens. Unknown is None, never 0."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from longreach.harness.record import Record

TEMPLATE_TOKENS = 64
"""Cached tokens up to which a prompt counts as cold: chat templates alone share that many."""

MOST_RATIO, MOST_ADDED = 8, 1_000
"""A model of bytes counts five or six tokens to one of another tokenizer's, and a server may add a text of its own."""


def is_overcount(ours: int, theirs: int) -> bool:
    """True if no tokenizer and no template explains the server's count of a prompt by ours."""
    return theirs > MOST_RATIO * ours + MOST_ADDED


def overcounts(records: Sequence[Record]) -> tuple[tuple[int, int], ...]:
    """Tokens by our count and by the server's, of the samples where those cannot be of one prompt; the worst first."""
    pairs = [(record.n_tokens, record.n_prompt_tokens) for record in records]
    known = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    return tuple(sorted((pair for pair in known if is_overcount(*pair)), key=lambda pair: -pair[1]))


def quantile(values: Sequence[float], share: float) -> float | None:
    """Nearest-rank quantile; None of nothing."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None


def cache_state(record: Record) -> str:
    """cold, cached, or unknown where the backend does not report cached tokens and the prompt had no salt."""
    if record.n_cached_tokens is None:
        return "cold" if record.extra.get("cold") else "unknown"
    return "cold" if record.n_cached_tokens <= TEMPLATE_TOKENS else "cached"


def latency(records: Sequence[Record]) -> dict[str, Any]:
    """Seconds by length and cache state; first attempts only, because a retry waits in another queue."""
    groups: dict[tuple[int, str], list[Record]] = defaultdict(list)
    retried = 0
    for record in records:
        if record.outcome not in ("scored", "no_answer") or record.latency_s is None:
            continue
        if len(record.attempts) > 1:
            retried += 1
            continue
        groups[record.length, cache_state(record)].append(record)
    return {
        "unit": "s",
        "retried_left_out": retried,
        "by_length": [_latency_row(length, cache, rows) for (length, cache), rows in sorted(groups.items())],
    }


def _latency_row(length: int, cache: str, rows: Sequence[Record]) -> dict[str, Any]:
    first = [row.ttft_s for row in rows if row.ttft_s is not None]
    answer = [row.ttft_answer_s for row in rows if row.ttft_answer_s is not None]
    whole = [row.latency_s for row in rows if row.latency_s is not None]
    return {
        "length": length,
        "cache": cache,
        "n": len(rows),
        "n_ttft": len(first),
        "ttft_p50_s": quantile(first, 0.5),
        "ttft_p95_s": quantile(first, 0.95),
        "ttft_answer_p50_s": quantile(answer, 0.5),
        "ttft_answer_p95_s": quantile(answer, 0.95),
        "latency_p50_s": quantile(whole, 0.5),
        "latency_p95_s": quantile(whole, 0.95),
    }


def _sum_known(values: Sequence[float | None]) -> float | None:
    """The sum; None if there is nothing or if one part is unknown."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and len(known) == len(values) else None


def cost(records: Sequence[Record], price: Mapping[str, Any] | None) -> dict[str, Any]:
    """USD and tokens of everything that was sent and answered."""
    sent = [record for record in records if record.outcome in ("scored", "no_answer", "refused", "truncated")]
    by_length: dict[int, list[Record]] = defaultdict(list)
    for record in sent:
        by_length[record.length].append(record)
    known = [record.cost_usd for record in sent if record.cost_usd is not None]
    total = _sum_known([record.cost_usd for record in sent])
    return {
        "currency": "USD",
        "price_per_million": dict(price or {}),
        "n": len(sent),
        "n_priced": len(known),
        "total_usd": total,
        "known_usd": math.fsum(known) if known else None,
        "total_low_usd": _sum_known([_low_usd(record, price or {}) for record in sent]),
        "per_query_usd": total / len(sent) if total is not None else None,
        "tokens": _tokens(sent),
        "by_length": [_cost_row(length, rows) for length, rows in sorted(by_length.items())],
    }


def _low_usd(record: Record, price: Mapping[str, Any]) -> float | None:
    """USD of a request if all of its prompt came from a cache that the backend does not tell of; else its cost."""
    cached, full = price.get("cached"), price.get("input")
    if record.cost_usd is None or record.n_cached_tokens is not None or record.extra.get("cold"):
        return record.cost_usd
    if cached is None or full is None:
        return record.cost_usd
    n_prompt = record.n_prompt_tokens if record.n_prompt_tokens is not None else record.n_tokens or 0
    return float(record.cost_usd - n_prompt * (full - cached) / 1e6)


def _tokens(sent: Sequence[Record]) -> dict[str, Any]:
    """Tokens by kind. Prompt tokens fall back to our own count where the backend reports none, and say so."""
    prompt = [record.n_prompt_tokens if record.n_prompt_tokens is not None else record.n_tokens for record in sent]
    return {
        "prompt": _whole(_sum_known(prompt)),
        "prompt_estimated": any(record.n_prompt_tokens is None for record in sent),
        "output": _whole(_sum_known([record.n_output_tokens for record in sent])),
        "reasoning": _whole(_sum_known([record.n_reasoning_tokens for record in sent])),
        "cached": _whole(_sum_known([record.n_cached_tokens for record in sent])),
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _cost_row(length: int, rows: Sequence[Record]) -> dict[str, Any]:
    total = _sum_known([row.cost_usd for row in rows])
    return {"length": length, "n": len(rows), "per_query_usd": total / len(rows) if total is not None else None}
