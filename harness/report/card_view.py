"""What the two card templates read: strings and rows in the order of the card, no arithmetic left to do."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report import card_tables as tables
from longreach.harness.report.card_text import bracket_text, headline_rows, marks, model_name, reproduce, verdict
from longreach.harness.report.cautions import breaks, count_word, limits, warnings
from longreach.harness.report.figures import Drawing
from longreach.harness.report.group_view import group_view
from longreach.harness.report.markup import HTML, MARKDOWN
from longreach.harness.report.palette import heat_color, ink_on
from longreach.harness.report.published_view import published_view
from longreach.harness.report.scan_text import interval_text, scan_protocol, scan_tile, speaks
from longreach.harness.report.wording import depth_text, percent
from longreach.harness.stats.cells import Cell
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.estimates import Estimates
from longreach.harness.tokenizer import PROVEN_SHARE


def view(estimates: Estimates, config: Mapping[str, Any], drawings: Sequence[Drawing]) -> dict[str, Any]:
    """The context of card.md.j2 and card.html.j2."""
    headline_tasks = {task for curve in estimates.headline.values() for task in curve.tasks}
    drawn = {drawing.name: (drawing, f"figures/{drawing.name}.png") for drawing in drawings}
    return {
        "marks": marks(estimates, config),
        "model": model_name(config),
        "simulated": bool((config.get("model") or {}).get("simulated")),
        "verdict_markdown": verdict(estimates, config, MARKDOWN),
        "verdict_html": verdict(estimates, config, HTML),
        "tiles": [_tile(capability, estimates, config) for capability in estimates.effective],
        "headline": headline_rows(estimates, config),
        "side_tasks": _side_tasks(estimates, headline_tasks),
        "outcomes": tables.outcome_counts(estimates),
        "warnings": warnings(estimates, config),
        "figures": [pair for name, pair in drawn.items() if name not in ("accuracy-by-position", "time-and-cost")],
        "position_figure": drawn.get("accuracy-by-position"),
        "usage_figure": drawn.get("time-and-cost"),
        "lengths": [format_length(length) for length in tables.score_lengths(estimates)],
        "scores": tables.score_rows(estimates),
        "conditions": tables.condition_rows(estimates),
        "controls": tables.control_rows(estimates),
        "groups": group_view(estimates),
        **published_view(estimates, config),
        "sizes": tables.size_sentences(estimates),
        "breaks": breaks(estimates),
        "time": tables.time_rows(estimates),
        "retried": estimates.latency["retried_left_out"],
        "money": tables.money_lines(estimates),
        "reported": tables.reported_rows(estimates),
        "limits": limits(estimates, config),
        "commands": reproduce(config),
        "protocol": protocol(estimates, config),
        "heat": [_heat(curve.name, estimates) for curve in estimates.tasks],
        "version": config.get("longreach") or "unknown",
        "date": (estimates.last_at or config.get("started") or "")[:10],
    }


def _side_tasks(estimates: Estimates, headline: set[str]) -> list[list[str]]:
    """Task, best estimate, bracket of tasks beside the headline."""
    return [
        [name, found.text, bracket_text(found)] for name, found in estimates.by_task.items() if name not in headline
    ]


def _tile(capability: str, estimates: Estimates, config: Mapping[str, Any]) -> dict[str, Any]:
    """One headline number for the page: large text, a line below it, and its bar on a log2 axis (percent of width)."""
    found = estimates.effective[capability]
    if found.state == "not_measured":
        return {"capability": capability, "label": "", "big": "not measured", "sub": "", "bar": None}
    big, label = "none shown", "reliable up to"
    if speaks(found):
        big, label = scan_tile(found)
    elif found.state == "refused" and found.value is None:
        big, label = "no statement", ""
    elif found.low is not None:
        big = format_length(found.low)
    elif found.state == "measured" and found.first is not None:
        big, label = f"< {format_length(found.first)}", "reliable"
    sub = f"best estimate {found.text}; 95% bracket {bracket_text(found)} tokens"
    return {"capability": capability, "label": label, "big": big, "sub": sub, "bar": _bar(found, estimates, config)}


def _bar(found: Estimate, estimates: Estimates, config: Mapping[str, Any]) -> dict[str, Any] | None:
    lengths = tables.score_lengths(estimates)
    if found.high is None or found.state == "refused" or not lengths:
        return None
    low, high = math.log2(lengths[0]) - 1, math.log2(max(lengths[-1], config.get("advertised") or 0))

    def place(length: int) -> float:
        return round(100 * (math.log2(length) - low) / (high - low), 2)

    return {
        "reliable": place(found.low) if found.low else 0.0,
        "open": place(found.high) if found.value or not found.high_found or found.state != "measured" else 0.0,
        "best": place(found.value) if found.value else None,
        "first": format_length(lengths[0]),
        "last": format_length(round(2**high)),
    }


_PROOF = {
    "sample": f"; one prompt in {PROVEN_SHARE} proven by an encode of the whole of it, the others summed from counted pieces",
    "never": "; summed from counted pieces, no prompt proven by an encode of the whole of it",
}


def protocol(estimates: Estimates, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and value of everything needed to run it again; what is empty is left out."""
    model, tokenizer = config.get("model") or {}, config.get("tokenizer") or {}
    sampling, environment = config.get("sampling") or {}, config.get("environment") or {}
    corpus = config.get("corpus") or {}
    counted = "with the chat template" if tokenizer.get("knows_template") else "without a chat template"
    proof = _PROOF.get(str(tokenizer.get("prove")), "")
    rows: list[tuple[str, Any]] = [
        ("longreach", config.get("longreach")),
        ("battery", config.get("battery")),
        *(("run", _united(entry)) for entry in config.get("united") or ()),
        ("model", model.get("spec")),
        ("model options", _flat(model.get("args"))),
        ("model facts", _flat(model.get("facts"))),
        ("window", model.get("window")),
        ("concurrency", model.get("concurrency")),
        ("length", "tokens of the whole rendered prompt plus the tokens reserved for the answer; k = 1024"),
        ("tokenizer", f"{tokenizer.get('name')}, counted {counted}{proof}" if tokenizer.get("name") else None),
        ("lengths", ", ".join(format_length(length) for length in config.get("lengths") or ())),
        ("depths", ", ".join(depth_text(depth) for depth in config.get("depths") or ())),
        ("samples per cell", _samples(config.get("samples"))),
        ("seed", config.get("seed")),
        *((f"task {fact.label}", _task(fact)) for fact in estimates.facts.values()),
        ("corpus", _flat({name: corpus.get(name) for name in ("spec", "digest", "source", "license")})),
        *((f"data of {entry['task']}", _flat(entry)) for entry in config.get("data") or ()),
        ("sampling", _flat(sampling)),
        ("limits", _flat(config.get("limits"))),
        ("price, USD per million tokens", _flat(model.get("price"))),
        ("intervals", interval_text(estimates)),
        *scan_protocol(estimates, config),
        ("started", config.get("started")),
        ("last record", estimates.last_at),
        ("Python", environment.get("python")),
        ("platform", environment.get("platform")),
        ("packages", _flat(environment.get("packages"))),
        ("plugins", ", ".join(environment.get("plugins") or ())),
    ]
    return [(label, str(value)) for label, value in rows if value not in (None, "", {}, [])]


def _united(entry: Mapping[str, Any]) -> str:
    """One of the runs that were united."""
    return (
        f"{entry['run']}: {entry['battery']}, started {entry['started']}, {entry['records']:,} samples, "
        f"{entry['counted']:,} of them counted, longreach {entry['longreach']}"
    )


def _task(fact: Any) -> str:
    parts = [f"version {fact.version}", fact.capability, fact.family, f"chance {percent(fact.chance)}"]
    parts += [f"{name}={value}" for name, value in sorted(fact.params.items())]
    parts += [f"source {fact.source}"] if fact.source else []
    parts += [fact.license] if fact.license else []
    return ", ".join(parts)


def _samples(samples: Any) -> str:
    if isinstance(samples, Mapping):
        return ", ".join(f"{format_length(int(length))}: {n}" for length, n in samples.items())
    return "" if samples is None else str(samples)


def _flat(values: Any) -> str:
    """`name=value` pairs of what is known."""
    if not isinstance(values, Mapping):
        return ""
    return ", ".join(f"{name}={value}" for name, value in values.items() if value not in (None, "", {}, []))


def _heat(task: str, estimates: Estimates) -> dict[str, Any]:
    """One task's cells as a table for the page."""
    cells = [cell for cell in estimates.cells if cell.task == task]
    depths = sorted({cell.depth for cell in cells}, key=lambda depth: -1.0 if depth is None else depth)
    grid = {(cell.length, cell.depth): cell for cell in cells}
    return {
        "task": task,
        "threshold": percent(cells[0].threshold) if cells and cells[0].threshold is not None else None,
        "by_depth": depths != [None],
        "depths": ["all samples" if depth is None else depth_text(depth) for depth in depths],
        "rows": [
            {
                "length": format_length(length),
                "cells": [
                    _heat_cell(grid.get((length, depth)), estimates, column, len(depths))
                    for column, depth in enumerate(depths)
                ],
            }
            for length in sorted({cell.length for cell in cells})
        ],
    }


def _heat_cell(cell: Cell | None, estimates: Estimates, column: int, columns: int) -> dict[str, Any] | None:
    if cell is None:
        return None
    where = f"{format_length(cell.length)}" + (f", depth {depth_text(cell.depth)}" if cell.depth is not None else "")
    outcomes = [f"{count_word(name)} {count:,}" for name, count in cell.outcomes.items() if count]
    lines = [", ".join(outcomes)]
    tested = cell.blocked_by is None and cell.mean is not None
    limits_ = cell.limits
    value = "n/s" if cell.blocked_by == "overflow" else "not tested"
    if tested and cell.mean is not None and limits_ is not None:
        value = percent(cell.mean)
        interval = f"95% interval {percent(limits_.low)} to {percent(limits_.high)}, n {cell.n:,}"
        lines = [interval, *([cell.state] if cell.threshold is not None else []), *lines]
    example = estimates.examples.get((cell.task, cell.length, cell.depth))
    color = heat_color(cell.mean, cell.threshold) if tested and cell.mean is not None else None
    return {
        "value": value,
        "n": f"{cell.n:,}",
        "tested": tested,
        "state": cell.state,
        "where": where,
        "lines": lines,
        "example": example,
        "color": color,
        "ink": ink_on(color) if color else None,
        "side": "left" if column * 2 >= columns else "right",
    }
