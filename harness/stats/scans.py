"""The adaptive scans of a run folder: their rules as config.yaml holds them, and what the stored records make of them.

Only complete blocks that the scan has taken enter means and intervals. Depths are shown by stratum (its centre), and
intervals are confidence sequences: limits for a fixed n would be wrong for a sample that chose its own size.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.record import COUNTED, Record
from longreach.harness.report.wording import join_words, percent
from longreach.harness.stats.ascend import Rule, Scan
from longreach.harness.stats.blocks import STRATA, BlockTask, block_of, centres, replay, stratum
from longreach.harness.stats.cache_mode import pooled_icc
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.evalues import Zone
from longreach.harness.stats.scan_report import ScanReport, read_scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """One scan: the search for the effective length of one capability."""

    capability: str
    tasks: tuple[BlockTask, ...]
    rule: Rule

    @property
    def definition(self) -> str:
        """The rule in words, for the card."""
        tasks, zone = join_words([task.label for task in self.tasks]), self.rule.zone
        mean = f"equal-weight mean of {tasks}" if len(self.tasks) > 1 else f"mean score of {tasks}"
        places = f"; depth uniform over {STRATA} equal strata" if any(task.has_depth for task in self.tasks) else ""
        return (
            f"{mean}{places}; >= {percent(zone.threshold)} at every length up to it; adaptive scan, zone {zone.low:.2f} to "
            f"{zone.high:.2f}{self._mode}"
        )

    @property
    def _mode(self) -> str:
        """The name of the mode, where contexts are shared."""
        if not self.rule.icc:
            return ""
        return f"; prefix-cache mode, {self.rule.size} questions on one context, assumed correlation {self.rule.icc:g}"

    def to_config(self) -> dict[str, Any]:
        """Plain values for config.yaml."""
        rule = self.rule
        numbers = {name: getattr(rule, name) for name in ("size", "alpha", "beta", "cap", "certify", "refine", "icc")}
        return {
            "tasks": [task.label for task in self.tasks],
            "lengths": list(rule.lengths),
            "threshold": rule.zone.threshold,
            "delta": rule.zone.delta,
            **numbers,
        }


def hunts_of(config: Mapping[str, Any]) -> dict[str, Hunt]:
    """The scans that a config.yaml stands for, by capability; none for a fixed grid."""
    entries = {entry.get("label") or entry["task"]: entry for entry in config.get("tasks") or ()}
    found = {}
    for capability, known in ((config.get("scan") or {}).get("rules") or {}).items():
        tasks = tuple(
            BlockTask(
                label=label,
                task_id=entries[label]["id"],
                has_depth=bool(entries[label]["info"]["has_depth"]),
                one_context=bool(known["icc"]),
            )
            for label in known["tasks"]
        )
        numbers = {name: known[name] for name in ("size", "alpha", "beta", "cap", "certify", "refine", "icc")}
        zone = Zone(threshold=known["threshold"], delta=known["delta"])
        rule = Rule(lengths=tuple(known["lengths"]), zone=zone, **numbers)
        found[capability] = Hunt(capability=capability, tasks=tasks, rule=rule)
    return found


def scan_config(hunts: Mapping[str, Hunt]) -> dict[str, Any]:
    """The `scan` of config.yaml."""
    return {"strata": STRATA, "rules": {capability: hunt.to_config() for capability, hunt in hunts.items()}}


def replayed(hunt: Hunt, records: Sequence[Record]) -> Scan:
    """The scan as the records left it."""
    scan = Scan(hunt.rule)
    replay(scan, records, hunt.tasks)
    return tempered(scan)


def measured_icc(scan: Scan) -> float | None:
    """Correlation of the scores that share a context, over the blocks that the scan has taken; None where it has none."""
    contexts = {
        stream.length: [block for block in stream.taken if not isinstance(block, str)] for stream in scan.tested()
    }
    return pooled_icc(contexts)


def tempered(scan: Scan) -> Scan:
    """The scan, or where it is over and shared contexts turn out to tie its scores more closely than it assumes, the same
    blocks under the measured correlation: it may go on then. With contexts of their own, nothing changes."""
    while scan.rule.icc and scan.finished:
        found = measured_icc(scan)
        if found is None or found <= scan.rule.icc:
            return scan
        scan = scan.with_icc(found)
    return scan


def mode_note(scan: Scan) -> str:
    """What prefix-cache mode assumed and measured, for the card."""
    found = measured_icc(scan)
    measured = "not measurable here" if found is None else f"{found:.2f} measured"
    return (
        f"Prefix-cache mode, a calibrated approximation: {scan.rule.size} questions share each context, and evidence is "
        f"divided by {scan.rule.divisor:.2f} for a correlation of {scan.rule.icc:.2f} ({measured})."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanView:
    """What a card reads of the scans of a run."""

    reports: Mapping[str, ScanReport]
    """By capability; empty for a fixed grid."""
    estimates: Mapping[str, Estimate]
    records: tuple[Record, ...]
    """Last states that enter the cells, depths by stratum; all of them for a fixed grid, with their depths unless it draws
    these inside strata."""
    tempered: Mapping[str, float] | None = None
    """What the evidence of each task is divided by; None for a fixed grid."""


def view_scans(records: Sequence[Record], config: Mapping[str, Any]) -> ScanView:
    """Reads the scans of a run; passes the records of a fixed grid through."""
    hunts = hunts_of(config)
    if not hunts:
        shown = map(by_stratum, records) if config.get("strata") else records
        return ScanView(reports={}, estimates={}, records=tuple(shown))
    scans = {capability: replayed(hunt, records) for capability, hunt in hunts.items()}
    owner = {task.label: scans[capability] for capability, hunt in hunts.items() for task in hunt.tasks}
    reports = {capability: _report(scan) for capability, scan in scans.items()}
    return ScanView(
        reports=reports,
        estimates={
            capability: report.estimate(
                hunts[capability].definition, hunts[capability].rule.zone.threshold, hunts[capability].rule.lengths[0]
            )
            for capability, report in reports.items()
        },
        records=tuple(
            by_stratum(record) for record in records if record.task not in owner or _counts(owner[record.task], record)
        ),
        tempered={task: scan.rule.divisor for task, scan in owner.items()},
    )


def _report(scan: Scan) -> ScanReport:
    report = read_scan(scan)
    if not scan.rule.icc:
        return report
    return dataclasses.replace(report, notes=(*report.notes, mode_note(scan)), icc=measured_icc(scan))


def by_stratum(record: Record) -> Record:
    """The record at the centre of its depth stratum."""
    if record.depth is None:
        return record
    return dataclasses.replace(record, depth=centres()[stratum(record.depth)])


def _counts(scan: Scan, record: Record) -> bool:
    """Scores enter from blocks that the scan has taken; whatever is no score is shown."""
    if record.outcome not in COUNTED:
        return True
    block, _ = block_of(record)
    stream = scan.streams.get(block.length)
    return stream is not None and block.number < stream.next and not isinstance(stream.taken[block.number], str)


def set_aside(records: Sequence[Record], view: ScanView) -> int:
    """Scored samples that are stored and not used: of unfinished blocks, or back after the decision."""
    return len(records) - len(view.records)


def evidence_lines(capability: str, scan: Scan) -> list[str]:
    """One line per length that the scan has reached, shortest first: hits and evidence, in natural logs."""
    rule = scan.rule
    lines = []
    for stream in scan.tested():
        hits = f"{stream.s:.6g}/{stream.n}"
        if stream.step == "open":
            state = f"{max(stream.zone.up, 0.0):.2f} of {rule.to_pass:.2f} to pass, {max(stream.zone.dn, 0.0):.2f} of {rule.to_fail:.2f} to fail"
        else:
            state = stream.step
            if rule.certify:
                state += f", {max(stream.strict.up, 0.0):.2f} of {rule.to_pass:.2f} to certify"
        lines.append(f"{capability} {format_length(stream.length)}: {hits}, {state}")
    return lines
