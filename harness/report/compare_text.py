"""A comparison in words: Markdown for cards and pull requests, plain text for terminals."""

from collections.abc import Sequence
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.wording import join_words, markdown, percent, plain
from longreach.harness.stats.compare import CellChange, Comparison
from longreach.harness.stats.paired_tests import Change

HEAD = ("task", "length", "pairs", "base", "new", "change (95%)", "lost / won", "p (Holm)", "verdict")


def points(value: float) -> str:
    """A difference of scores in points of 100, with its sign: +1.5, -12.0, 0.0."""
    return f"{100 * value:+.1f}" if abs(value) >= 0.0005 else "0.0"


def change_text(change: Change) -> str:
    """The change with its limits, in points."""
    return f"{points(change.value)} ({points(change.low)} to {points(change.high)})"


def _row(cell: CellChange) -> list[str]:
    change = cell.change
    verdict = f"{cell.verdict}, worth a look" if cell.verdict == "cannot tell" and cell.worth_a_look else cell.verdict
    return [
        cell.task,
        format_length(cell.length),
        f"{change.n:,}",
        percent(change.base, 1),
        percent(change.new, 1),
        change_text(change),
        f"{change.lost} / {change.won}",
        f"{cell.p_holm:.2g}",
        verdict,
    ]


def _overall_row(comparison: Comparison) -> list[str]:
    change = comparison.overall
    if change is None:
        return ["overall", "", "0", "", "", "", "", "", comparison.verdict]
    return [
        "overall",
        "",
        f"{change.n:,}",
        percent(change.base, 1),
        percent(change.new, 1),
        change_text(change),
        f"{change.lost} / {change.won}",
        f"{change.p:.2g}",
        comparison.verdict,
    ]


def rows(comparison: Comparison) -> list[list[str]]:
    """The table under `HEAD`: a row per task and length, and all pairs together."""
    return [*map(_row, comparison.cells), _overall_row(comparison)]


def setting_rows(comparison: Comparison) -> list[tuple[str, str, str]]:
    """(setting, base, new) of what differs."""
    return [(item.setting, _setting(item.base), _setting(item.new)) for item in comparison.settings]


def verdict_sentence(comparison: Comparison) -> str:
    """One sentence to quote."""
    change = comparison.overall
    if change is None:
        return f"{comparison.verdict}: {comparison.reason}"
    return (
        f"{comparison.verdict}: {comparison.reason} Mean change {change_text(change)} points over {change.n:,} pairs."
    )


def notes(comparison: Comparison) -> list[str]:
    """Everything a reader needs beside the table, as sentences."""
    found = [claim.sentence for claim in comparison.lengths]
    for (task, length), outcomes in comparison.pairing.lost.items():
        counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items()))
        found.append(f"{task} at {format_length(length)} could be scored before and not now: {counts}.")
    found.extend(comparison.warnings)
    if comparison.noise is not None:
        noise = comparison.noise
        found.append(
            f"Run noise: a repeat of the base changed {percent(noise.churn, 1)} of its scores ({noise.n:,} pairs, mean "
            f"change {change_text(noise)} points)."
        )
    elif comparison.overall is not None:
        found.append(
            f"{percent(comparison.overall.churn, 1)} of the scores changed; how many change by themselves is not known "
            f"without a repeat of the base run (--repeat)."
        )
    weak = [cell.detectable or 1.0 for cell in comparison.cells if cell.verdict == "cannot tell"]
    if weak:
        ends = join_words(list(dict.fromkeys(f"{100 * value:.0f}" for value in (min(weak), max(weak)))), "to")
        found.append(
            f"Where it cannot tell, a drop of {ends} points is the smallest that so many pairs find four times in five; "
            f"200 pairs per length find about 8."
        )
    return found


def _setting(value: Any) -> str:
    return "(none)" if value is None else plain(value, 60)


def to_markdown(comparison: Comparison) -> str:
    """The whole comparison as Markdown."""
    lines = [
        f"**{markdown(comparison.new)} against {markdown(comparison.base)}: {markdown(verdict_sentence(comparison))}**",
        "",
    ]
    lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for row in rows(comparison):
        lines.append("| " + " | ".join(markdown(cell) for cell in row) + " |")
    lines += ["", f"Changes in points of 100; a change below {100 * comparison.margin:g} points does not matter.", ""]
    lines += [f"- {markdown(note)}" for note in notes(comparison)]
    if comparison.settings:
        lines += ["", "| setting | base | new |", "|---|---|---|"]
        for cells in setting_rows(comparison):
            lines.append("| " + " | ".join(markdown(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def to_lines(comparison: Comparison) -> list[str]:
    """The whole comparison for a terminal, the verdict last."""
    lines = table([list(HEAD), *rows(comparison)])
    lines += [plain(note) for note in notes(comparison)]
    lines += [f"setting {plain(name)}: {base} -> {new}" for name, base, new in setting_rows(comparison)]
    return [*lines, plain(verdict_sentence(comparison))]


def table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned columns: text to the left, the rest to the right."""
    lines = [[plain(cell) for cell in row] for row in cells]
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if i in (0, last) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    ]
