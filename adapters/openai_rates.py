"""What the headers of a reply say about the rates that an account is granted.

`x-ratelimit-{limit,remaining,reset}-{tokens,requests}` (OpenAI, Azure, Groq and many others; a reset is `6m0s`, `20ms`
or seconds) and `anthropic-ratelimit-{input-tokens,tokens,requests}-{limit,remaining,reset}` (a reset is a time).
"""

import math
import re
import time
from collections.abc import Mapping
from datetime import datetime

_FAMILIES = (
    ("tokens", "x-ratelimit-{}-tokens"),
    ("requests", "x-ratelimit-{}-requests"),
    ("tokens", "anthropic-ratelimit-input-tokens-{}"),
    ("tokens", "anthropic-ratelimit-tokens-{}"),
    ("requests", "anthropic-ratelimit-requests-{}"),
)
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_UNITS_S = (86400.0, 3600.0, 60.0, 1.0, 0.001)


def rates_of(headers: Mapping[str, str], now: float | None = None) -> dict[str, float]:
    """`tokens_limit`, `tokens_left`, `tokens_reset_s` and the same for requests, as far as they are told and make sense.

    >>> rates_of({"x-ratelimit-limit-tokens": "30000", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m0s"})
    {'tokens_limit': 30000.0, 'tokens_left': 0.0, 'tokens_reset_s': 60.0}
    """
    found: dict[str, float] = {}
    for kind, form in _FAMILIES:
        limit, left = (_number(headers.get(form.format(word))) for word in ("limit", "remaining"))
        if limit is None or left is None or f"{kind}_limit" in found:
            continue
        found |= {f"{kind}_limit": limit, f"{kind}_left": left}
        reset_s = _seconds(headers.get(form.format("reset")), time.time() if now is None else now)
        if reset_s is not None:
            found[f"{kind}_reset_s"] = reset_s
    return found


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _seconds(text: str | None, now: float) -> float | None:
    """Seconds until a reset that is a span, a number of seconds, or a time."""
    if not text:
        return None
    if (value := _number(text)) is not None:
        return value if value < 1e6 else None  # larger ones are points in time, in units that nobody agrees on
    if match := _SPAN.fullmatch(text):
        return sum(float(part) * unit for part, unit in zip(match.groups(), _UNITS_S, strict=True) if part)
    try:
        return max(datetime.fromisoformat(text).timestamp() - now, 0.0)
    except ValueError:
        return None
