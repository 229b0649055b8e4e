"""How numbers are written on cards and terminals, and how strings that a model or a user gave are made harmless."""

import math
import re
from collections.abc import Iterable

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_MARKS = re.compile(r"[\\`*_{}\[\]#~$]|[|@]|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
_ENTITIES = {"|": "&#124;", "@": "&#64;", "<": "&lt;", "&": "&amp;"}  # backslashes before these differ by renderer
_STARTS = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=>])")


def percent(value: float, digits: int = 0) -> str:
    """A fraction as a percentage. Half is rounded up, but a miss is never rounded away: only exactly 1 is 100%, only exactly 0 is 0%."""
    value = round(value, 12)  # a mean of floats may miss 1 by the last bit
    scale = 10**digits
    text = f"{math.floor(100 * value * scale + 0.5 + 1e-9) / scale:.{digits}f}"
    step = 10.0**-digits
    if value < 1.0 and float(text) >= 100.0:
        text = f"{100 - step:.{digits}f}"
    if value > 0.0 and float(text) <= 0.0:
        text = f"{step:.{digits}f}"
    return f"{text}%"


def counts_text(counts: Iterable[int]) -> str:
    """Sample sizes as one number or a span: `36`, `6 to 36`; a dash for none."""
    found = sorted(set(counts))
    if not found:
        return "-"
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def depth_text(depth: float) -> str:
    """A depth as a percentage of the context, without needless digits."""
    return f"{100 * depth:.1f}".removesuffix(".0") + "%"


def join_words(words: list[str] | tuple[str, ...], last: str = "and") -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def usd(value: float | None) -> str:
    """Money; unknown is a word, never 0."""
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.2g}" if value < 0.0001 else f"${value:.4f}"


def seconds(value: float | None) -> str:
    """A time in seconds with three digits; unknown is a word."""
    if value is None:
        return "unknown"
    return f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def plain(text: object, limit: int | None = None) -> str:
    """One line without terminal codes, control, zero-width or direction characters, cut to `limit` characters."""
    line = _UNSEEN.sub("", _CONTROL.sub("", str(text)))
    line = " ".join(line.split())
    return line if limit is None or len(line) <= limit else line[: max(limit - 3, 0)] + "..."


def markdown(text: object, limit: int | None = None, *, inside: bool = False) -> str:
    """Text that Markdown shows as it is: no code, link, tag, mention or new line survives. `inside` a line or a table
    cell, what would begin a list or a quotation needs no escape."""
    escaped = _MARKS.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), plain(text, limit))
    escaped = re.sub(r"(?i)\bwww\.", "www&#46;", escaped.replace("://", "&#58;//"))
    if inside:
        return escaped
    return _STARTS.sub(lambda match: f"{match[1]}\\{match[2]}" if match[1] else f"\\{match[3]}", escaped)


def code(text: object, limit: int | None = None) -> str:
    """An inline code span that no backtick or pipe in `text` can end."""
    line = plain(text, limit).replace("|", "\u2502")
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"
