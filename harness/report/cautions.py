"""What a reader must know before trusting a card: warnings, where the model breaks, what the card does not show."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.bias_text import bias_sentences
from longreach.harness.report.card_tables import WORDS, infeasible_lines, tested_text
from longreach.harness.report.wording import counts_text, join_words, percent
from longreach.harness.stats.curves import MAX_UNANSWERED, Curve
from longreach.harness.stats.estimates import Estimates, command_for
from longreach.harness.stats.verdict import unanswered_note
from longreach.harness.stats.zones import zone_sentences

LANGUAGES = {"en": "English", "zh": "Chinese", "ru": "Russian", "pt": "Portuguese", "mixed": "several languages"}
MAX_NOTES = 8
"""Kinds of notes on prompts that are listed; more are counted."""


def warnings(estimates: Estimates, config: Mapping[str, Any]) -> list[str]:
    """Whole sentences, plain text, most serious first."""
    return [
        *_about_model(config),
        *_unanswered(estimates),
        *_incomplete(estimates),
        *_refused_rows(config),
        *_notes_of_lengths(estimates),
        *_side_tasks(estimates),
        *_united(config),
        *_units(estimates),
        *_tokenizer(config),
        *_window(estimates, config),
        *_overcounts(estimates),
        *_prompts(estimates),
    ]


def _about_model(config: Mapping[str, Any]) -> list[str]:
    if ((config.get("model") or {}).get("facts") or {}).get("kind") == "program":
        return ["The model is a program that reads the prompt by rules, not a language model."]
    return []


def _unanswered(estimates: Estimates) -> list[str]:
    return [
        f"{capability.capitalize()}: {unanswered_note(point)}"
        for capability, curve in estimates.headline.items()
        for point in curve.points
        if point.n and max(point.no_answer_rate, point.refused_rate) > MAX_UNANSWERED
    ]


def _refused_rows(config: Mapping[str, Any]) -> list[str]:
    return [
        f"{entry['task']}: {entry['reason']}."
        for entry in config.get("infeasible") or ()
        if entry.get("rows") and entry.get("refused")
    ]


def _incomplete(estimates: Estimates) -> list[str]:
    counts = estimates.outcomes
    found = []
    meaning = {
        "overflow": "were rejected as too long: not supported there, which is no failure",
        "truncated": "reached the model cut short: those cells are not tested",
        "failed": "failed in transport after retries and are not scored",
        "not_run": "were planned and not run",
    }
    for outcome, words in meaning.items():
        if counts[outcome]:
            lengths = sorted({cell.length for cell in estimates.cells if cell.outcomes[outcome]})
            count = f"{counts[outcome]:,} {'sample' if counts[outcome] == 1 else 'samples'}"
            found.append(f"{count} at {tested_text(lengths)} {words}.")
    if estimates.too_large:
        found.append(
            f"{sum(estimates.too_large.values()):,} of the rejected samples, at "
            f"{tested_text(list(estimates.too_large))}, broke a limit on the size of one request: that says nothing about "
            f"the model's window."
        )
    partial = sum(cell.partial for cell in estimates.cells)
    if partial:
        noun = "cell holds" if partial == 1 else "cells hold"
        found.append(f"{partial:,} {noun} fewer samples than planned; repeat the command to fill them.")
    return found


def _notes_of_lengths(estimates: Estimates) -> list[str]:
    return [
        f"{capability.capitalize()}: {note[0].lower() + note[1:] if note[0].isalpha() else note}"
        for capability, found in estimates.effective.items()
        for note in found.notes
        if note.startswith("Non-monotone")
    ]


def _side_tasks(estimates: Estimates) -> list[str]:
    """Tasks outside the headline that hold less far than it does: the two must be read together."""
    found = []
    for capability, headline in estimates.headline.items():
        best = estimates.effective[capability].value
        for name, own in estimates.by_task.items():
            outside = estimates.facts[name].capability == capability and name not in headline.tasks
            if outside and best is not None and own.first is not None and own.first <= best and (own.value or 0) < best:
                reach = own.text if own.value or own.censored else "no length"
                found.append(
                    f"{name} reaches {reach} tokens where the {capability} headline ({join_words(list(headline.tasks))}) "
                    f"has its best estimate at {best:,}: read the two together."
                )
    return found


def _united(config: Mapping[str, Any]) -> list[str]:
    """Runs that were counted together although something that may change an answer differs between them."""
    found = []
    entries: Sequence[Mapping[str, Any]] = config.get("united") or ()
    for entry in entries:
        if differs := entry.get("differs") or ():
            more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""
            found.append(
                f"Run {entry['run']} is counted together with {entries[0]['run']}, but was made with other settings: "
                f"{'; '.join(differs[:3])}{more}."
            )
    doubled = sum(int(entry["records"]) - int(entry["counted"]) for entry in entries)
    if doubled:
        found.append(
            f"{doubled:,} {'sample was' if doubled == 1 else 'samples were'} in more than one of the runs and count once: an "
            f"answer beats a failure, and the later answer the earlier."
        )
    return found


def _units(estimates: Estimates) -> list[str]:
    """Records whose lengths were counted by different tokenizers."""
    names = sorted(estimates.tokenizers)
    if len(names) < 2:
        return []
    parts = join_words([f"{name} ({estimates.tokenizers[name]:,} samples)" for name in names])
    return [
        f"Lengths are in different units: counted by {parts}. The same length stands for different amounts of text."
    ]


def _tokenizer(config: Mapping[str, Any]) -> list[str]:
    tokenizer, model = config.get("tokenizer") or {}, config.get("model") or {}
    if model.get("simulated") or (model.get("facts") or {}).get("kind") == "program":
        return []
    name = tokenizer.get("name") or "unknown"
    if tokenizer.get("is_estimate"):
        return [f"Lengths are estimated: they are counted with {name}, which stands in for the model's own tokenizer."]
    if tokenizer and not tokenizer.get("knows_template"):
        return [f"Lengths leave out the model's chat template, which {name} does not know."]
    return []


def _window(estimates: Estimates, config: Mapping[str, Any]) -> list[str]:
    facts = (config.get("model") or {}).get("facts") or {}
    native = facts.get("native_window")
    rope = facts.get("rope") or {}
    scaling = facts.get("rope_scaling") or any("scaling" in name for name in rope)
    lengths = sorted({cell.length for cell in estimates.cells if cell.n})
    if not isinstance(native, int) or not lengths or lengths[-1] <= native or scaling:
        return []
    beyond = tested_text([length for length in lengths if length > native])
    text = f"{beyond}: above the native window of {native:,} tokens, and no RoPE or YaRN scaling is known"
    return [f"{text}; the engine may run unscaled."]


def _overcounts(estimates: Estimates) -> list[str]:
    if not estimates.overcounts:
        return []
    ours, theirs = estimates.overcounts[0]
    n = len(estimates.overcounts)
    prompts = f"{n:,} {'prompt' if n == 1 else 'prompts'}, such as one of {ours:,} tokens that it counts as {theirs:,}"
    return [
        f"Token counts of the server cannot be right: {prompts}. Do not rely on the tokens and the cost of this run."
    ]


def _prompts(estimates: Estimates) -> list[str]:
    found = []
    if estimates.recycled:
        some = sum(count for count, _ in estimates.recycled.values())
        total = sum(n for _, n in estimates.recycled.values())
        found.append(
            f"Recycled text: in {some:,} of {total:,} prompts at {tested_text(list(estimates.recycled))} the haystack "
            f"repeats parts of its corpus, so that it is less varied than its length suggests."
        )
    for note, count in estimates.notes[:MAX_NOTES]:
        found.append(f"{count:,} {'prompt' if count == 1 else 'prompts'}: {note.rstrip('.')}.")
    if len(estimates.notes) > MAX_NOTES:
        found.append(f"{len(estimates.notes) - MAX_NOTES} more kinds of notes on prompts are in records.jsonl.")
    return found


def breaks(estimates: Estimates) -> list[str]:
    """Where the model breaks, in sentences."""
    return [
        *_first_failures(estimates),
        *_zones(estimates),
        *_worst(estimates),
        *(bias_sentences(estimates.bias) or _contrasts(estimates)),
        *_distractors(estimates),
    ]


def _first_failures(estimates: Estimates) -> list[str]:
    found = []
    for capability, curve in estimates.headline.items():
        below = next((p for p in curve.points if p.mean is not None and p.mean < (curve.threshold or 0.0)), None)
        if below is not None and below.mean is not None and below.limits is not None:
            words = "fails" if below.state == "fail" else "is first below its threshold (undecided)"
            found.append(
                f"{capability.capitalize()} {words} at {format_length(below.length)}: {percent(below.mean)} "
                f"({percent(below.limits.low)} to {percent(below.limits.high)}, n {below.n:,})."
            )
        elif tested := [point for point in curve.points if point.tested]:
            passed = sum(point.state == "pass" for point in tested)
            counts = counts_text(point.n for point in tested)
            found.append(
                f"{capability.capitalize()}: the mean is not below {percent(curve.threshold or 0)} at any tested length; "
                f"{passed} of {len(tested)} lengths pass beyond doubt (n {counts})."
            )
    return found


def _zones(estimates: Estimates) -> list[str]:
    grid = {curve.name: curve.lengths for curve in estimates.tasks}
    return zone_sentences(estimates.zones, grid)


def _worst(estimates: Estimates) -> list[str]:
    """The weakest task at the largest length that two tasks or more were tested at."""
    lengths = sorted({length for curve in estimates.tasks for length in curve.lengths}, reverse=True)
    for length in lengths:
        rows = [
            (p.mean, curve.name, p.n) for curve in estimates.tasks if (p := curve.at(length)) and p.mean is not None
        ]
        if len(rows) > 1:
            mean, name, n = min(rows)
            return [f"Weakest task at {format_length(length)}: {name} with {percent(mean)} (n {n:,})."]
    return []


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _contrasts(estimates: Estimates) -> list[str]:
    found = []
    for title, entry in (
        ("Position effect (edges minus middle)", estimates.position),
        ("Length effect (per doubling)", estimates.length),
    ):
        if entry["value"] is None:
            found.append(f"{title}: not measured, it {entry['reason']}.")
            continue
        low, high, n = entry["low"], entry["high"], entry["n"]
        if low <= 0.0 <= high:
            bound = math.ceil(1000 * max(-low, high)) / 10
            found.append(f"{title}: none detectable; it is smaller than {bound:.1f} points (95%, n {n:,}).")
        else:
            found.append(f"{title}: {_points(entry['value'])} points ({_points(low)} to {_points(high)}, n {n:,}).")
    return found


def _distractors(estimates: Estimates) -> list[str]:
    totals: dict[str, dict[str, int]] = {}
    for row in estimates.wrong:
        total = totals.setdefault(row["task"], {})
        for name in ("n", "distractor", "other", "no_answer", "refused"):
            total[name] = total.get(name, 0) + row[name]
    return [
        f"Wrong answers of {task}: {total['distractor']:,} name a distractor, {total['other']:,} something else, "
        f"{total['no_answer']:,} are empty, {total['refused']:,} refused (of n {total['n']:,})."
        for task, total in totals.items()
        if total["distractor"] + total["other"] + total["no_answer"] + total["refused"]
    ]


def limits(estimates: Estimates, config: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """What the card does not show: a sentence, and the command that would show it where there is one."""
    found: list[tuple[str, str | None]] = []
    for capability, estimate in estimates.effective.items():
        if estimate.state == "not_measured" and capability not in estimates.headline:
            found.append((f"{capability.capitalize()}: not measured. To measure it:", command_for(config, capability)))
    sentences = [*_simulated(config), *_beyond(estimates, config), *_banks(estimates)]
    if not any(fact.capability == "documents" for fact in estimates.facts.values()):
        sentences.append("Real documents: the tasks are synthetic.")
    sentences.append("Noise of the server: each sample was asked once.")
    sentences += [*_imports(estimates, config), *infeasible_lines(config)]
    return found + [(sentence, None) for sentence in sentences]


def _simulated(config: Mapping[str, Any]) -> list[str]:
    if not (config.get("model") or {}).get("simulated"):
        return []
    return ["Any language model: the answers come from a simulated one that is given the answer key."]


def _beyond(estimates: Estimates, config: Mapping[str, Any]) -> list[str]:
    tested = sorted({point.length for curve in estimates.headline.values() for point in curve.points if point.tested})
    if not tested:
        return []
    advertised = config.get("advertised")
    text = f"Lengths above {tested[-1]:,} tokens, the largest tested"
    if advertised and advertised > tested[-1]:
        text += f"; the advertised {advertised:,} were not"
    return [f"{text}."]


def _banks(estimates: Estimates) -> list[str]:
    if not estimates.facts:
        return []
    facts = [fact for fact in estimates.facts.values() if "data" not in fact.params]
    loaded = [fact.label for fact in estimates.facts.values() if "data" in fact.params]
    rows = [f"Other rows and prompts: those of {join_words(loaded)} are published ones."] if loaded else []
    if not facts:
        return rows
    names = join_words([f"{fact.label} (version {fact.version})" for fact in facts])
    # `needles` is a file in one task, a number in another
    own = [fact.label for fact in facts if isinstance(fact.params.get("needles"), str) and fact.params["needles"]]
    spoken = sorted({str(fact.params.get("language") or "en") for fact in facts if fact.label not in own})
    languages = join_words([LANGUAGES.get(language, language) for language in spoken])
    found = [f"Other wordings: every number is about the template banks and haystacks of {names}."]
    if own:
        found.append(f"Other needles: those of {join_words(own)} are the ones in the user's file, in its own language.")
    if spoken:
        found.append(f"Other languages: {'built-in ' if own else ''}needles and questions are in {languages}.")
    return found + rows


def _imports(estimates: Estimates, config: Mapping[str, Any]) -> list[str]:
    total = sum(estimates.origins.values())
    found = [
        f"{count:,} of {total:,} samples were imported ({origin.partition(':')[2] or 'unknown tool'}), not run here."
        for origin, count in estimates.origins.items()
        if origin.startswith("imported")
    ]
    vendor = sum(record.origin == "vendor" for record in estimates.reported)
    if vendor:
        found.append(f"{vendor:,} rows are vendor-reported; no effective length uses them.")
    if others := len(estimates.reported) - vendor:
        found.append(f"{others:,} rows are another tool's means without their samples; no effective length uses them.")
    for tool, facts in imported_from(config).items():
        found += [f"{tool}: {note}" for note in facts.get("notes") or ()]
        if left := facts.get("not_understood"):
            found.append(f"{tool}: {len(left):,} entries were not understood and are left out, such as {left[0]}.")
    return found


def imported_from(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Tool -> what its import noted, of this folder or of those that it unites."""
    entries = [config.get("imported"), *(entry.get("imported") for entry in config.get("united") or ())]
    return {str(entry["tool"]): entry for entry in entries if entry}


def curve_words(curve: Curve) -> str:
    """The numbers of a curve for alt text."""
    parts = []
    for point in curve.points:
        value = percent(point.mean) if point.mean is not None else "not tested"
        parts.append(f"{format_length(point.length)} {value}" + (f" (n {point.n:,})" if point.tested else ""))
    return f"{curve.name}: {', '.join(parts)}"


def count_word(outcome: str) -> str:
    """An outcome as it is written on a card."""
    return WORDS.get(outcome, outcome)
