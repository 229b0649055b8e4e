"""The sanity gate: a score near zero at the shortest length is rarely the model and mostly the set-up."""

from collections.abc import Iterable, Mapping

from longreach.harness.lengths import format_length
from longreach.harness.record import COUNTED, Record
from longreach.harness.running.plan import Item, Plan

FLOOR = 0.2
"""Mean score below which the shortest length of a headline looks broken."""
FEWEST = 5
"""Samples without which nothing is said."""
ADVICE = "chat template? answer budget or reasoning budget too small? wrong model or base model?"


def gate_of(plan: Plan) -> tuple[str, int] | None:
    """The capability that can stop a run, and the shortest length of its headline.

    Retrieval where the battery has it, else reasoning: a small model that cannot reason at all is a finding, but one
    that cannot copy a lone fact out of a short prompt is a set-up that does not work.
    """
    for capability in ("retrieval", "reasoning"):
        labels = plan.headline.get(capability, ())
        lengths = [item.point.length for item in plan.items if item.label in labels]
        if lengths:
            return capability, min(lengths)
    return None


def split_at_gate(items: Iterable[Item], plan: Plan) -> tuple[list[Item], list[Item]]:
    """What is asked before the gate looks, and the rest."""
    gate = gate_of(plan)
    first: list[Item] = []
    rest: list[Item] = []
    for item in items:
        (first if gate and item.point.length <= gate[1] else rest).append(item)
    return first, rest


def broken_headlines(plan: Plan, records: Mapping[str, Record]) -> dict[str, str]:
    """Capability -> a sentence, for each headline whose shortest length scores below the floor."""
    found = {}
    for capability, labels in plan.headline.items():
        lengths = [item.point.length for item in plan.items if item.label in labels]
        if not lengths:
            continue
        length = min(lengths)
        counted = [
            record
            for record in records.values()
            if record.task in labels and record.length == length and record.outcome in COUNTED
        ]
        chance = sum(plan.tasks[label].task.info.chance for label in labels) / len(labels)
        floor = max(FLOOR, min(2 * chance, (1 + chance) / 2))
        mean = sum(record.score or 0.0 for record in counted) / len(counted) if counted else 0.0
        if len(counted) >= FEWEST and mean < floor:
            empty = sum(record.outcome == "no_answer" for record in counted)
            found[capability] = (
                f"{capability} scores {mean:.2f} at {format_length(length)}, the shortest length "
                f"({len(counted)} samples, {empty} without an answer)"
            )
    return found
