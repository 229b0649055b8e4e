"""The regression section of a card: the run against a base, as strings for the two templates."""

from typing import Any

from longreach.harness.report.compare_text import HEAD, notes, rows, setting_rows, to_markdown, verdict_sentence
from longreach.harness.stats.compare import Comparison


def regression_view(comparison: Comparison | None) -> dict[str, Any] | None:
    """What regression.md.j2 and regression.html.j2 read; None without a base."""
    if comparison is None:
        return None
    return {
        "base": comparison.base,
        "verdict": verdict_sentence(comparison),
        "head": HEAD,
        "rows": rows(comparison),
        "margin": f"{100 * comparison.margin:g}",
        "notes": notes(comparison),
        "settings": setting_rows(comparison),
        "markdown": to_markdown(comparison),  # its own strings are made harmless already
    }
