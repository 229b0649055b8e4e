"""The sentences of a card about its two effective lengths. The same templates serve good and bad news."""

import shlex
from collections.abc import Mapping
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.markup import Markup
from longreach.harness.report.scan_text import scan_clause, speaks
from longreach.harness.report.wording import join_words, percent
from longreach.harness.stats.curves import CurvePoint
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.estimates import Estimates, command_for
from longreach.harness.stats.groups import GroupScore

VERBS = {"retrieval": ("retrieves", "retrieve"), "reasoning": ("reasons", "reason")}


def marks(estimates: Estimates, config: Mapping[str, Any]) -> list[str]:
    """Words that stand in the title and the verdict: SIMULATED, IMPORTED, VENDOR-REPORTED, REPORTED, NOT A LANGUAGE MODEL."""
    model = config.get("model") or {}
    found = []
    if model.get("simulated"):
        found.append("SIMULATED")
    if (model.get("facts") or {}).get("kind") == "program":
        found.append("A PROGRAM, NOT A LANGUAGE MODEL")
    imported = [origin for origin in estimates.origins if origin.startswith("imported")]
    if imported:
        found.append("IMPORTED" if len(imported) == len(estimates.origins) else "PARTLY IMPORTED")
    if estimates.reported:
        vendor = any(record.origin == "vendor" for record in estimates.reported)
        word = "VENDOR-REPORTED" if vendor else "REPORTED"
        found.append(word if not estimates.cells else f"WITH {word} ROWS")
    return found


def clause(capability: str, found: Estimate, markup: Markup) -> str:
    """What the model does, as the end of a sentence that begins with its name."""
    verbs, verb = VERBS[capability]
    if speaks(found):
        return scan_clause(verbs, verb, found, markup)
    if found.low is None:
        return _nothing_reliable(verb, found, markup)
    reliable = markup.strong(format_length(found.low))
    start = f"{verbs} reliably up to {reliable} tokens"
    if found.censored == "above grid" and found.value == found.low:
        return f"{start}, the largest length tested"
    if found.low == found.value == found.high:
        return f"{start} (not beyond)"
    return f"{start} ({_ends(found)})"


def _nothing_reliable(verb: str, found: Estimate, markup: Markup) -> str:
    if found.censored == "below grid" and found.state == "measured" and found.high is not None:
        first = markup.strong(format_length(found.high))
        return f"does not {verb} reliably even at {first} tokens, the shortest length tested"
    return f"is not shown to {verb} reliably at any tested length ({_ends(found)})"


def _ends(found: Estimate) -> str:
    """Best estimate and upper end; the largest tested length as best estimate says both."""
    return _best(found) if found.censored == "above grid" else f"{_best(found)}, {_upper(found)}"


def _best(found: Estimate) -> str:
    if found.value is None:
        if found.censored == "below grid" and found.first:
            return f"best estimate below {format_length(found.first)}"
        return "no best estimate"
    largest = ", the largest tested" if found.censored == "above grid" else ""
    sign = ">= " if largest else ""
    return f"best estimate {sign}{format_length(found.value)}{largest}"


def _upper(found: Estimate) -> str:
    if found.high is None:
        return "no upper end found"
    if found.high_found:
        return f"not beyond {format_length(found.high)}"
    return f"no upper end found up to {format_length(found.high)}"


def verdict(estimates: Estimates, config: Mapping[str, Any], markup: Markup) -> str:
    """The verdict: one sentence that can be quoted, then one for each claim that is missing."""
    advertised = config.get("advertised")
    name = markup.strong(markup.code(model_name(config)))
    prefix = "".join(f"{word}: " for word in marks(estimates, config))
    stated = {c: e for c, e in estimates.effective.items() if e.state != "not_measured" and not _without_basis(e)}
    sentences = []
    if stated:
        native = native_window(config)
        if advertised:
            lead = f"Of the advertised {format_length(advertised)} tokens, {name}"
        else:
            lead = f"{name} (native window {format_length(native)})" if native else name
        clauses = join_words([clause(capability, found, markup) for capability, found in stated.items()])
        sentences.append(f"{lead} {clauses}{_shares(stated, advertised)}.")
    else:
        sentences.append(f"{name} has no effective length on this card.")
    for capability, found in estimates.effective.items():
        sentences += _missing(capability, found, estimates, config, markup)
    return prefix + " ".join(sentences)


def _without_basis(found: Estimate) -> bool:
    return found.state == "refused" and found.value is None


def _shares(stated: Mapping[str, Estimate], advertised: int | None) -> str:
    """`: 25% and 13% of the window`, by what is reliable."""
    reliable = {capability: found.low for capability, found in stated.items() if found.low}
    if not advertised or not reliable:
        return ""
    shares = [percent(low / advertised) for low in reliable.values()]
    if len(stated) == len(reliable):
        return f": {join_words(shares)} of the window"
    return f": {shares[0]} of the window for {next(iter(reliable))}"


def _missing(
    capability: str, found: Estimate, estimates: Estimates, config: Mapping[str, Any], markup: Markup
) -> list[str]:
    noun = capability.capitalize()
    if found.state == "not_measured":
        if capability in estimates.headline:  # planned, but no length could be tested
            return [f"{noun} was not measured. {markup.text(' '.join(found.notes))}"]
        return [f"{noun} was not measured: run {markup.code(command_for(config, capability))}."]
    limits = [note for note in found.notes if not note.startswith("Non-monotone")]
    if _without_basis(found):
        return [f"No statement on {capability}: {markup.text(' '.join(limits))}"]
    return [f"{noun}: {markup.text(note[0].lower() + note[1:] if note[0].isalpha() else note)}" for note in limits]


def model_name(config: Mapping[str, Any]) -> str:
    """Name of the model, as the run wrote it down."""
    model = config.get("model") or {}
    return str(model.get("name") or model.get("spec") or "unnamed model")


def advertised_text(config: Mapping[str, Any]) -> str:
    """The advertised length in tokens; where nobody stated one, the window that the model or its server gives."""
    advertised = config.get("advertised")
    if advertised is not None:
        return f"{advertised:,}"
    model = config.get("model") or {}
    native, window = native_window(config), model.get("window")
    if native is not None:
        return f"not stated; native window {native:,} (from the model)"
    return f"not stated; window {window:,} (as served)" if isinstance(window, int) else "not stated"


def native_window(config: Mapping[str, Any]) -> int | None:
    """The window that the model was trained for, tokens, where its facts tell."""
    native = ((config.get("model") or {}).get("facts") or {}).get("native_window")
    return native if isinstance(native, int) and native > 0 else None


def reproduce(config: Mapping[str, Any]) -> list[str]:
    """The commands that ask for the same again: one, or one for each run that was united."""
    commands = config.get("commands") or [config.get("command") or "longreach run"]
    return [_without_folder(str(command)) for command in commands]


def _without_folder(command: str) -> str:
    """Without --out, which names a folder of one machine."""
    try:
        words = shlex.split(command)
    except ValueError:  # no command line of ours
        return command
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("--out", "--output-path", "--output_path"):
            skip = True
        elif not word.startswith(("--out=", "--output-path=", "--output_path=")):
            kept.append(word)
    return shlex.join(kept) if len(kept) < len(words) else command


def bracket_text(found: Estimate) -> str:
    """The 95% bracket for a table; its low end is what is reliable."""
    if found.state == "not_measured":
        return "-"
    if _without_basis(found):
        return "cannot be stated"
    if found.low is None:
        first = f"< {found.first:,}" if found.first else "none"
        if found.state == "measured" or found.high is None:
            return first
        return f"{first} to {_high_text(found)}" if found.high_found else "open: neither end is certain"
    if found.low == found.high:
        return f">= {found.low:,}" if found.censored == "above grid" else f"{found.low:,}"
    return f"{found.low:,} to {_high_text(found)}"


def _high_text(found: Estimate) -> str:
    return f"{found.high:,}" if found.high_found else f">= {found.high:,}"


def mean_text(point: CurvePoint | None) -> str:
    """Mean with its interval and n: `71% (63 to 78, n 120)`; words if there is none."""
    if point is None:
        return "not tested"
    limits = point.limits
    if point.mean is None or limits is None:
        return "not supported" if point.blocked_by == "overflow" else "not tested"
    low, high = percent(limits.low).removesuffix("%"), percent(limits.high).removesuffix("%")
    return f"{percent(point.mean)} ({low} to {high}, n {point.n:,})"


def headline_rows(estimates: Estimates, config: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Rows of the headline table: label, then advertised, retrieval, reasoning."""
    advertised = config.get("advertised")
    both = list(estimates.effective)
    found = [estimates.effective[capability] for capability in both]
    curves = [estimates.headline.get(capability) for capability in both]
    rules = [estimates.rules.get(capability) for capability in both]
    rows = [
        ("best estimate, tokens", [advertised_text(config), *(estimate.text for estimate in found)]),
        (
            "95% bracket, tokens (its low end is what is reliable)",
            ["", *(bracket_text(estimate) for estimate in found)],
        ),
        ("rule", ["", *(estimate.definition for estimate in found)]),
    ]
    if advertised:
        at = [mean_text(curve.at(advertised)) if curve else "-" for curve in curves]
        rows.append(("mean score at the advertised length", ["", *at]))
    last = [_last_tested(estimates, capability) for capability in both]
    rows.append(("mean score at the largest tested length", ["", *last]))
    rows.append(("same runs by other rules", ["", *(_rules_text(rule) if rule else "-" for rule in rules)]))
    return rows


def _last_tested(estimates: Estimates, capability: str) -> str:
    curve = estimates.headline.get(capability)
    tested = [point for point in curve.points if point.tested] if curve else []
    return f"{format_length(tested[-1].length)}: {mean_text(tested[-1])}" if tested else "-"


def _rules_text(rules: Any) -> str:
    def word(value: int | None) -> str:
        return format_length(value) if value else "none"

    if not rules.stated:
        return "not measured"
    parts = [f"RULER 85.6: {word(rules.ruler)}"]
    if rules.nolima_base is not None:
        parts.append(f"NoLiMa 0.85 x base ({percent(rules.nolima_base)} up to 1k): {word(rules.nolima)}")
    if rules.complete:
        parts.append(f"largest passing: {word(rules.largest_passing)}")
    return "; ".join(parts)


def terminal_lines(estimates: Estimates, config: Mapping[str, Any], markup: Markup) -> list[str]:
    """At most nine lines for the end of a run, so that the card's path is the tenth: verdict, headline table, one line
    each on the tasks beside the headline and on published rows."""
    lines = [verdict(estimates, config, markup), ""]
    rows = [row for row in headline_rows(estimates, config) if row[0] not in ("rule", "same runs by other rules")]
    table = [("", ["advertised", "effective retrieval", "effective reasoning"]), *rows]
    table = [(label.split(" (")[0], [cells[0].split(" (")[0], *cells[1:]]) for label, cells in table]
    widths = [max(len(row[0]) for row in table)]
    widths += [max(len(row[1][i]) for row in table) for i in range(3)]
    for label, cells in table:
        padded = [text.ljust(width) for text, width in zip([label, *cells], widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    headline = {task for curve in estimates.headline.values() for task in curve.tasks}
    beside = [f"{name} {found.text}" for name, found in estimates.by_task.items() if name not in headline]
    if beside:
        more = f" and {len(beside) - 4} more on the card" if len(beside) > 4 else ""
        lines.append(f"beside the headline (best estimates): {markup.text(', '.join(beside[:4]))}{more}")
    made = {item.task for item in estimates.relative}  # groups of needles, not rows of a set
    tables = [table for table in estimates.groups if table.overall.n and table.task not in made]
    told = [f"{table.task} {_overall(table.overall)}" for table in tables]
    if told:
        more = f" and {len(told) - 3} more on the card" if len(told) > 3 else ""
        lines.append(f"published rows: {markup.text(', '.join(told[:3]))}{more}")
    return lines


def _overall(score: GroupScore) -> str:
    limits = score.limits
    span = f" ({percent(limits.low, 1)} to {percent(limits.high, 1)}, n {score.n:,})" if limits is not None else ""
    return f"{percent(score.mean or 0.0, 1)}{span}"
