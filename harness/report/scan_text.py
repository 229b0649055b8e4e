"""What an adaptive search says on a card: its verdict is about a zone around the threshold, and is worded so."""

from collections.abc import Mapping
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.markup import Markup
from longreach.harness.stats.cache_mode import CALIBRATION
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.estimates import Estimates
from longreach.harness.stats.evalues import tempering
from longreach.harness.stats.scan_report import ScanReport
from longreach.harness.stats.scans import hunts_of

METHOD = "ascend"


def speaks(found: Estimate) -> bool:
    """Whether the scan's own verdict is the headline: it is, unless the strict bracket excludes it or says the same."""
    if found.method != METHOD or found.low is not None and found.low == found.high:
        return False
    excluded = found.high_found and found.high is not None and (found.value or 0) > found.high
    return not excluded and (found.low or 0) <= (found.value or 0)


def scan_clause(verbs: str, verb: str, found: Estimate, markup: Markup) -> str:
    """What the model does, as the end of a sentence that begins with its name."""
    if found.value is None:
        first = format_length(found.first or 0)
        if found.censored == "below grid":
            return f"does not {verb} even at {markup.strong(first)}, the shortest length of an adaptive search"
        return f"has no length that an adaptive search could decide for what it can {verb}"
    end = ", the largest length tested" if found.censored == "above grid" else ""
    certified = f", certified up to {format_length(found.low)}" if found.low else ""
    return f"{verbs} up to {markup.strong(format_length(found.value))}{end} by an adaptive search{certified}"


def scan_tile(found: Estimate) -> tuple[str, str]:
    """(large text, label above it)."""
    if found.value is None:
        return (f"< {format_length(found.first)}", "passes") if found.censored and found.first else ("undecided", "")
    sign = ">= " if found.censored == "above grid" else ""
    return f"{sign}{format_length(found.value)}", "passes up to"


def scan_protocol(estimates: Estimates, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows of the protocol: the rule of each scan, what its tables mean, and what it set aside."""
    rows = []
    for capability, hunt in hunts_of(config).items():
        rule = hunt.rule
        more = [word for word, wanted in (("certify", rule.certify), ("refine", rule.refine)) if wanted]
        rows.append(
            (
                f"scan, {capability}",
                f"{hunt.definition}; lengths {', '.join(map(format_length, rule.lengths))}; blocks of {rule.size}; alpha "
                f"{rule.alpha:g}, beta {rule.beta:g} over {len(rule.lengths)} lengths; at most {rule.cap} samples a length"
                + "".join(f"; {word}" for word in more),
            )
        )
        if rule.icc:
            rows.append((f"prefix-cache mode, {capability}", _mode(estimates.scans[capability], rule.size)))
    if rows:
        rows.append(("depths in tables", "five equal strata, named by their centres; 10% stands for 0 to 20%"))
    if estimates.unused:
        rows.append(("samples not used", f"{estimates.unused:,}: of unfinished blocks, or back after the decision"))
    return rows


def _mode(report: ScanReport, size: int) -> str:
    measured = "no correlation could be measured" if report.icc is None else f"{report.icc:.2f} was measured"
    return (
        f"each block is one context with {size} needles and {size} questions, a multi-key task that is the same at every "
        f"length; every log e-value is divided by {tempering(report.assumed_icc, size):.3g} (rho {report.assumed_icc:.3g}; "
        f"{measured}); {CALIBRATION}"
    )


def interval_text(estimates: Estimates) -> str:
    """How the intervals of a card were made."""
    text = "Wilson 95%; pass and fail need Wilson and Clopper-Pearson; n counts contexts"
    if estimates.scans:
        text = "confidence sequences, 95%, valid at any stop; n counts contexts of complete blocks"
        if any(report.assumed_icc for report in estimates.scans.values()):
            text = (
                "confidence sequences, 95%, tempered for the correlation of answers that share a context (prefix-cache "
                "mode, a calibrated approximation); n counts answers"
            )
    n = len(estimates.headline)
    joint = f"; each effective length holds at 95% by itself, all {n} together at {100 - 5 * n}% or more"
    return text + (joint if n > 1 else "")
