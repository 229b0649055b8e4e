"""card.json: every number of a card under stable keys. The same run gives the same bytes; unknown is null."""

import math
from collections.abc import Mapping
from typing import Any

from longreach.harness.record import Record
from longreach.harness.report.card_tables import reporter, size_sentences
from longreach.harness.report.card_text import marks, model_name, reproduce, verdict
from longreach.harness.report.cautions import breaks, limits, warnings
from longreach.harness.report.markup import PLAIN
from longreach.harness.report.wording import plain
from longreach.harness.stats.compare import Comparison
from longreach.harness.stats.estimates import Estimates

SCHEMA = 1
DIGITS = 9
"""Decimals that are kept: enough to rebuild any printed number, few enough to be the same on every machine."""


def card_data(estimates: Estimates, config: Mapping[str, Any], regression: Comparison | None = None) -> dict[str, Any]:
    """The content of card.json."""
    curves = [*estimates.headline.values(), *estimates.families, *estimates.tasks]
    data = {
        "schema": SCHEMA,
        "model": model_name(config),
        "simulated": bool((config.get("model") or {}).get("simulated")),
        "marks": marks(estimates, config),
        "verdict": verdict(estimates, config, PLAIN),
        "advertised_length": config.get("advertised"),
        "effective_retrieval": estimates.effective["retrieval"].to_dict(),
        "effective_reasoning": estimates.effective["reasoning"].to_dict(),
        "effective_by_task": {name: found.to_dict() for name, found in estimates.by_task.items()},
        "scan": {capability: report.to_dict() for capability, report in estimates.scans.items()} or None,
        "other_rules": {capability: rules.to_dict() for capability, rules in estimates.rules.items()},
        "ruler_summary": estimates.ruler.to_dict() if estimates.ruler else None,
        "relative_to_base": [item.to_dict() for item in estimates.relative],
        "outcomes": dict(estimates.outcomes),
        "cells": [
            cell.to_dict() | {"example": estimates.examples.get((cell.task, cell.length, cell.depth))}
            for cell in estimates.cells
        ],
        "curves": [curve.to_dict() for curve in curves],
        "dead_zones": [zone.to_dict() for zone in estimates.zones],
        "position_bias": estimates.position,
        "length_bias": estimates.length,
        "bias": [bias.to_dict() for bias in estimates.bias],
        "conditions": [condition.to_dict() for condition in estimates.conditions],
        "controls": [curve.to_dict() for curve in estimates.controls],
        "groups": [table.to_dict() for table in estimates.groups],
        "wrong_answers": list(estimates.wrong),
        "latency": estimates.latency,
        "cost": estimates.cost,
        "regression": regression.to_dict() if regression else None,
        "sample_sizes": size_sentences(estimates),
        "warnings": [plain(text) for text in warnings(estimates, config)],
        "breaks": [plain(text) for text in breaks(estimates)],
        "not_shown": [plain(f"{text} {command or ''}") for text, command in limits(estimates, config)],
        "reported": [_reported(record) for record in estimates.reported],
        "provenance": _provenance(estimates, config),
    }
    found: dict[str, Any] = clean(data)
    return found


def _reported(record: Record) -> dict[str, Any]:
    found = {"task": record.task, "length": record.length, "score": record.score, "n": record.extra.get("n")}
    return found | {"model": record.model, "by": reporter(record)}


def _provenance(estimates: Estimates, config: Mapping[str, Any]) -> dict[str, Any]:
    names = ("longreach", "battery", "command", "started", "seed", "lengths", "depths", "samples", "headline")
    more = ("tasks", "infeasible", "tokenizer", "sampling", "corpus", "data", "limits", "environment", "model")
    found = {name: config.get(name) for name in (*names, *more)} | {"command": "\n".join(reproduce(config))}
    recycled = {str(length): some for length, (some, _) in estimates.recycled.items()}
    return found | {
        "last_record": estimates.last_at,
        "origins": dict(estimates.origins),
        "recycled": recycled,
        "notes": [{"note": note, "prompts": count} for note, count in estimates.notes],
    }


def clean(value: Any) -> Any:
    """JSON values only: string keys, lists, floats of `DIGITS` decimals, None for what is no number."""
    if isinstance(value, bool) or value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(item) for item in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
    return str(value)
