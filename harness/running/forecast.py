"""The price tag before the bill: requests, tokens, money and time of a plan, and what it cannot show."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from longreach.harness.lengths import format_length, format_threshold
from longreach.harness.model import Model
from longreach.harness.needle_file import read_needles
from longreach.harness.record import FINAL, Record
from longreach.harness.running.budget import cost_usd
from longreach.harness.running.grading import Judge
from longreach.harness.running.plan import Item, Plan
from longreach.harness.running.prepare import Prepared
from longreach.harness.running.store import CONFIG, read_config, read_records
from longreach.harness.stats.intervals import min_n, wilson
from longreach.harness.task import THRESHOLDS

NOTES_SHOWN = 3
"""Of a needle file."""


def forecast_lines(prepared: Prepared) -> Iterator[str]:
    """What `longreach plan` prints."""
    stored = read_records(prepared.folder) if prepared.folder.is_dir() else {}
    todo = [item for item in prepared.items if not _is_stored(stored.get(prepared.settings.key(item.point)))]
    yield f"battery {prepared.battery.name}, model {prepared.settings.model}, tokenizer {_tokenizer(prepared)}"
    if len(todo) < len(prepared.items):
        yield f"{len(prepared.items) - len(todo)} of {len(prepared.items)} samples are stored in {prepared.folder}"
    yield f"{'length':>8} {'requests':>9} {'prompt tokens':>14} {'answer tokens <=':>17} {'USD':>22} {'time':>9}"
    rates = _seconds_per_token(stored)
    for length in prepared.plan.lengths:
        yield _row(prepared, format_length(length), [item for item in todo if item.point.length == length], rates)
    yield _row(prepared, "total", todo, rates)
    cached = "no prompt token cached (--cold)" if prepared.settings.cold else "all prompt tokens cached"
    yield f"USD: from {cached} and no answers, to none cached and every answer at its limit."
    yield from _on_top(prepared, todo)
    for cell in prepared.plan.infeasible:
        yield f"left out: {cell.task} at {format_length(cell.length)}: {cell.reason}"
    yield from promises(prepared.plan)
    yield from needle_warnings(prepared.plan, prepared.model)


def _on_top(prepared: Prepared, todo: Sequence[Item]) -> Iterator[str]:
    """What is asked besides the samples, and what ends it early."""
    model, settings = prepared.model, prepared.settings
    if todo and not model.simulated and model.facts.get("kind") == "endpoint":
        longest = max(item.point.length for item in todo)
        if _checked(prepared.folder) < longest:
            yield (
                f"on top: 3 requests, and up to 6 where no tokens are reported, ask whether the server reads all it is "
                f"sent; the longest has {format_length(longest)}"
            )
    if prepared.judge is not None:
        judge = Judge(model=prepared.judge)
        answers = [prepared.plan.tasks[item.label].task.info.reserve + settings.reasoning_budget for item in todo]
        most = [judge.extra(n_answer, prepared.price) for n_answer in answers]
        cost = f", {sum(extra.cost for extra in most):.4f} USD" if any(extra.cost for extra in most) else ""
        yield f"on top: the judge {prepared.judge.name}, at most {sum(extra.tokens for extra in most):,} tokens{cost}"
    battery = prepared.battery
    caps = {"--max-cost": battery.max_cost, "--max-tokens": battery.max_tokens, "--max-time": battery.max_time}
    told = [f"{flag} {value:,.10g}" for flag, value in caps.items() if value is not None]
    if told:
        yield f"stops before {' or '.join(told)} is passed, requests in flight counted"


def _checked(folder: Path) -> int:
    """Longest length at which an earlier command has sent canaries for this folder."""
    if not (folder / CONFIG).is_file():
        return 0
    check = read_config(folder)["model"].get("facts", {}).get("check") or {}
    return int(check.get("length") or 0)


def _is_stored(record: Record | None) -> bool:
    return record is not None and record.outcome in FINAL


def _tokenizer(prepared: Prepared) -> str:
    return prepared.tokenizer.name + (" (lengths estimated)" if prepared.tokenizer.is_estimate else "")


def _row(prepared: Prepared, name: str, items: Sequence[Item], rates: float | None) -> str:
    n_prompt = n_output = 0
    for item in items:
        reserve = prepared.plan.tasks[item.label].task.info.reserve
        n_prompt += item.point.length - reserve
        n_output += reserve + prepared.settings.reasoning_budget
    n_cached = 0 if prepared.settings.cold else n_prompt
    low = cost_usd(prepared.price, n_prompt=n_prompt, n_cached=n_cached, n_output=0)
    high = cost_usd(prepared.price, n_prompt=n_prompt, n_cached=0, n_output=n_output)
    money = "price unknown" if low is None or high is None else f"{low:.4f} - {high:.4f}"
    concurrency = prepared.battery.concurrency or prepared.model.concurrency
    time = "unknown" if rates is None else f"{rates * n_prompt / concurrency / 60:.1f} min"
    return f"{name:>8} {len(items):>9,} {n_prompt:>14,} {n_output:>17,} {money:>22} {time:>9}"


def _seconds_per_token(stored: Mapping[str, Record]) -> float | None:
    """Measured in this folder: latency of the answers over the tokens of their prompts."""
    timed = [record for record in stored.values() if record.latency_s and record.n_tokens]
    tokens = sum(record.n_tokens or 0 for record in timed)
    return sum(record.latency_s or 0.0 for record in timed) / tokens if tokens else None


def sizes(plan: Plan, capability: str) -> dict[int, int]:
    """Samples of a headline by length."""
    counts: dict[int, int] = {}
    for item in plan.items:
        if item.label in plan.headline[capability]:
            counts[item.point.length] = counts.get(item.point.length, 0) + 1
    return counts


def promises(plan: Plan) -> Iterator[str]:
    """One sentence per headline and length whose samples cannot show what the headline asks for."""
    for capability in plan.headline:
        threshold = THRESHOLDS[capability]
        needed = min_n(threshold)
        counts = sizes(plan, capability)
        for length, n in sorted(counts.items()):
            low = wilson(n, n).low
            if low <= threshold:
                yield (
                    f"{capability}: {format_length(length)} with {n} samples cannot show > {format_threshold(threshold)}: even {n}/{n} "
                    f"gives a lower bound of {low:.3f}; it needs {needed}/{needed}"
                )


def warnings(plan: Plan, model: Model) -> Iterator[str]:
    """The same in one line per headline, for the start of a run, and what is to be said of the user's needles."""
    yield from needle_warnings(plan, model)
    for capability in plan.headline:
        threshold = THRESHOLDS[capability]
        small = {length: n for length, n in sizes(plan, capability).items() if wilson(n, n).low <= threshold}
        if small:
            cells = ", ".join(f"{format_length(length)} ({n})" for length, n in sorted(small.items()))
            yield (
                f"{capability}: too few samples to show > {format_threshold(threshold)} at {cells}; it needs {min_n(threshold)} right "
                f"out of {min_n(threshold)}"
            )


def needle_warnings(plan: Plan, model: Model) -> Iterator[str]:
    """What is odd in the user's needle files, and that a program that reads prompts cannot answer them."""
    own = {
        label: spec
        for label, task in plan.tasks.items()
        if isinstance(spec := task.params.get("needles"), str) and spec
    }
    for spec in sorted(set(own.values())):
        notes = list(dict.fromkeys(note for row in read_needles(spec) for note in row.notes))
        if notes:
            more = f"; and {len(notes) - NOTES_SHOWN} more" if len(notes) > NOTES_SHOWN else ""
            file = spec.removeprefix("file:").rpartition("#")[0]
            yield f"warning: needle file {file}: {'; '.join(notes[:NOTES_SHOWN])}{more}"
    if own and model.facts.get("kind") == "program":
        yield (
            f"warning: {model.name} is a program that knows the built-in questions only; it cannot answer those of your "
            f"needle file and will score 0 on {', '.join(own)}"
        )
