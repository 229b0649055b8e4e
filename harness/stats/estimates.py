"""Estimates: all that follows from the records of a run and its configuration, before a word of it is written.

Imported records count like our own and are named; means that were reported without samples never feed a length.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longreach.harness.record import Record
from longreach.harness.report.wording import join_words, percent
from longreach.harness.stats.answers import CellKey, examples, prompt_notes, recycled_shares, too_large, wrong_answers
from longreach.harness.stats.bias import Bias, bias_of
from longreach.harness.stats.cells import Cell, TaskFacts, add_outcomes, build_cells, last_states, task_facts
from longreach.harness.stats.conditions import Condition, conditions
from longreach.harness.stats.curves import Curve, make_curve
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.groups import GroupTable, group_tables
from longreach.harness.stats.position import length_bias, no_bias, position_bias
from longreach.harness.stats.scan_report import ScanReport
from longreach.harness.stats.scans import set_aside, view_scans
from longreach.harness.stats.summaries import RelativeLength, RulerSummary, relative_lengths, ruler_summary
from longreach.harness.stats.usage import cost, latency, overcounts
from longreach.harness.stats.verdict import OtherRules, effective, headline_tasks, not_measured, other_rules
from longreach.harness.stats.zones import Zone, dead_zones
from longreach.harness.task import THRESHOLDS

CONTROL = "control"
"""Family of the control arms."""
MEASURED_BY = {"retrieval": "niah", "reasoning": "reasoning"}
"""Battery that measures a capability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Numbers of one card."""

    facts: Mapping[str, TaskFacts]
    cells: tuple[Cell, ...]
    headline: Mapping[str, Curve]
    """Curve of each capability that has a headline in this run."""
    effective: Mapping[str, Estimate]
    """Effective length by capability; both capabilities, measured or not."""
    rules: Mapping[str, OtherRules]
    by_task: Mapping[str, Estimate]
    """Effective length of each task on its own."""
    families: tuple[Curve, ...]
    tasks: tuple[Curve, ...]
    outcomes: Mapping[str, int]
    zones: tuple[Zone, ...]
    position: Mapping[str, Any]
    length: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    controls: tuple[Curve, ...]
    """Control arms: the same questions without the haystack, or in a short context. Nothing else uses them."""
    groups: tuple[GroupTable, ...]
    """Scores by group of tasks on published rows."""
    latency: Mapping[str, Any]
    cost: Mapping[str, Any]
    wrong: Sequence[Mapping[str, Any]]
    examples: Mapping[CellKey, Mapping[str, Any]]
    recycled: Mapping[int, tuple[int, int]]
    notes: Sequence[tuple[str, int]]
    too_large: Mapping[int, int]
    overcounts: tuple[tuple[int, int], ...]
    """Prompt tokens by our count and by the server's, where the server's cannot be right."""
    reported: Sequence[Record]
    """Means that a vendor or another tool reported, without samples; nothing else uses them."""
    origins: Mapping[str, int]
    """Records that count, by origin."""
    tokenizers: Mapping[str, int]
    """Records that count, by the tokenizer that their length was counted with."""
    last_at: str | None
    """Time of the last record, ISO 8601."""
    scans: Mapping[str, ScanReport]
    """Adaptive scans by capability; empty for a fixed grid."""
    bias: tuple[Bias, ...]
    """Position against length, of tasks that share their items over all cells."""
    ruler: RulerSummary | None
    """RULER's own figures where all of its thirteen tasks were run."""
    relative: tuple[RelativeLength, ...]
    """Lengths relative to a base score, of tasks that name their question-needle pairs."""
    unused: int
    """Scored samples that a scan has not used: of unfinished blocks, or back after the decision."""


def command_for(config: Mapping[str, Any], capability: str) -> str:
    """The command that measures a capability which this run left out."""
    spec = (config.get("model") or {}).get("spec") or "SPEC"
    return f"longreach run {MEASURED_BY[capability]} --model {shlex.quote(str(spec))}"


def _infeasible(config: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    return frozenset((entry["task"], entry["length"]) for entry in config.get("infeasible") or ())


def _missing(config: Mapping[str, Any], capability: str, absent: Sequence[str]) -> Estimate:
    threshold = THRESHOLDS[capability]
    rule = f"mean score >= {percent(threshold)} at every tested length up to it"
    if absent:
        note = f"The headline needs {join_words(list(absent))}, which this run leaves out."
    else:
        note = f"No task of this run measures {capability}: run {command_for(config, capability)}."
    return not_measured(rule, threshold, note)


def _families(facts: Mapping[str, TaskFacts]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for fact in facts.values():
        groups.setdefault((fact.capability, fact.family), []).append(fact.label)
    return groups


def _family_name(place: tuple[str, str], groups: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """The family; with its capability where two capabilities have a family of this name."""
    capability, family = place
    return family if sum(other == family for _, other in groups) == 1 else f"{family} ({capability})"


def estimate(records: Sequence[Record], config: Mapping[str, Any]) -> Estimates:
    """Everything that a card shows, from the last state of each sample."""
    states = last_states(records)
    reported = [record for record in states if record.is_reported]
    states = [record for record in states if not record.is_reported]
    every = task_facts(config, states)
    facts = {label: fact for label, fact in every.items() if fact.family != CONTROL}
    arms = {label: fact for label, fact in every.items() if fact.family == CONTROL}
    asked = states
    aside = [record for record in states if record.task in arms]
    states = [record for record in states if record.task not in arms]
    scanned = view_scans(states, config)
    cells = build_cells(scanned.records, config, facts, scanned.tempered)
    infeasible = _infeasible(config)
    labels = [label for label in facts if any(cell.task == label for cell in cells)]
    headline: dict[str, Curve] = {}
    found: dict[str, Estimate] = {}
    for capability in THRESHOLDS:
        # Cells that share their items are no independent samples of one length.
        own = [label for label in labels if facts[label].capability == capability and not facts[label].shared]
        wanted = headline_tasks(config, capability, own) if own else ()
        absent = [task for task in wanted if task not in labels]
        if not wanted or absent:
            found[capability] = _missing(config, capability, absent)
            continue
        curve = make_curve(capability, "capability", wanted, cells, facts, infeasible)
        curve = headline[capability] = replace(curve, scan=scanned.estimates.get(capability))
        found[capability] = effective(curve, _depths(cells, wanted))
    tasks = tuple(make_curve(label, "task", (label,), cells, facts) for label in labels)
    by_task = {c.name: effective(c, _depths(cells, c.tasks)) for c in tasks if c.threshold is not None}
    groups = _families({label: facts[label] for label in labels})
    testable = [label for label in labels if facts[label].capability in THRESHOLDS]
    fixed = [label for label in testable if label not in (scanned.tempered or {})]  # a scan chooses its own sizes
    return Estimates(
        facts=facts,
        cells=cells,
        headline=headline,
        effective=found,
        rules={capability: other_rules(curve) for capability, curve in headline.items()},
        by_task=by_task,
        families=tuple(
            make_curve(_family_name(place, groups), "family", members, cells, facts, infeasible)
            for place, members in groups.items()
        ),
        tasks=tasks,
        outcomes=add_outcomes(cells),
        zones=dead_zones([cell for cell in cells if cell.task in fixed]),
        position=position_bias(cells, fixed) if fixed or not scanned.reports else no_bias(),
        length=length_bias(cells, fixed) if fixed or not scanned.reports else no_bias(),
        conditions=conditions(cells, config),
        controls=_controls(aside, config, arms),
        groups=group_tables(states, config, facts),
        latency=latency(states),
        cost=cost(asked, (config.get("model") or {}).get("price")),
        wrong=wrong_answers(states),
        examples=examples(scanned.records),
        recycled=recycled_shares(states),
        notes=prompt_notes(states),
        too_large=too_large(states),
        overcounts=overcounts(asked),
        reported=reported,
        origins=dict(sorted(Counter(record.origin for record in states).items())),
        tokenizers=dict(sorted(Counter(record.tokenizer for record in states).items())),
        last_at=max((record.at for record in states), default=None),
        scans=scanned.reports,
        bias=bias_of(cells, states, facts),
        ruler=ruler_summary(cells, config),
        relative=relative_lengths(states, config),
        unused=set_aside(states, scanned),
    )


def _controls(
    records: Sequence[Record], config: Mapping[str, Any], facts: Mapping[str, TaskFacts]
) -> tuple[Curve, ...]:
    """Curves of the control arms, one length each."""
    cells = build_cells(records, config, facts)
    labels = [label for label in facts if any(cell.task == label for cell in cells)]
    return tuple(make_curve(label, "task", (label,), cells, facts) for label in labels)


def _depths(cells: Sequence[Cell], tasks: Sequence[str]) -> list[float]:
    return sorted({cell.depth for cell in cells if cell.task in tasks and cell.depth is not None})
