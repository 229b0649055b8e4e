"""What differs between two runs besides their answers, and what a reader must be warned of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from longreach.harness.report.wording import join_words
from longreach.harness.stats.pairs import Pairing, RunData

_SHOWN = ("longreach", "battery", "seed", "advertised", "model", "tokenizer", "sampling", "corpus", "environment")
_HIDDEN = ("model.price", "model.spec", "corpus.notes")
_CAN_CHANGE_ANSWERS = ("sampling.", "model.args.", "model.facts.", "model.concurrency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One setting; None where a run does not have it."""

    setting: str
    """Dotted path in config.yaml."""
    base: Any
    new: Any


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _flat(value[key], f"{path}.{key}" if path else str(key))
    elif value not in (None, {}, []):
        yield path, value


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {name: config[name] for name in _SHOWN if name in config}
    found = {path: value for path, value in _flat(chosen, "") if not path.startswith(_HIDDEN)}
    for task in config.get("tasks") or ():
        label = task.get("label") or task["task"]
        version = (task.get("info") or {}).get("version", 1)
        found[f"tasks.{label}"] = task.get("id") or f"{task['task']}@{version}"
    return found


def differences(base: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Settings of two configurations that are not the same, by path; money, time and place left out."""
    before, after = _settings(base), _settings(new)
    return [
        Difference(setting=name, base=before.get(name), new=after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def warnings(base: RunData, new: RunData, pairing: Pairing) -> Iterator[str]:
    """Whole sentences about what may mislead."""
    if base.tokenizer != new.tokenizer:
        yield (
            f"Lengths are in different units: {base.tokenizer} in the base, {new.tokenizer} in the new run. The same label "
            f"stands for different amounts of text; only samples with identical prompts are compared."
        )
    runs = ((base, "the base"), (new, "the new run"))
    if estimated := [which for run, which in runs if (run.config.get("tokenizer") or {}).get("is_estimate")]:
        yield f"Lengths of {join_words(estimated)} are estimated: the tokenizer is not the model's own."
    if simulated := [which for run, which in runs if (run.config.get("model") or {}).get("simulated")]:
        yield f"SIMULATED: {join_words(simulated)} answered from the answer key."
    if adaptive := [which for run, which in runs if run.config.get("scan")]:
        yield (
            f"{join_words(adaptive).capitalize()} chose how many samples to take as it went (find): limits and p-values are "
            f"those of a fixed number, and few pairs find little; compare fixed grids of 200 samples per length."
        )
    if base.config.get("seed") != new.config.get("seed"):
        yield (
            f"The seeds differ ({base.config.get('seed')} and {new.config.get('seed')}), so that the prompts do; run both "
            f"with the same --seed."
        )
    yield from _about_pairs(pairing)
    changed = [d.setting for d in differences(base.config, new.config) if d.setting.startswith(_CAN_CHANGE_ANSWERS)]
    if changed and base.model == new.model:
        yield f"The model is the same, but {join_words(changed)} differ: the change may come from there."


def _about_pairs(pairing: Pairing) -> Iterator[str]:
    reasons = pairing.reasons
    if reasons:
        parts = join_words([f"{n:,} {reason}" for reason, n in sorted(reasons.items())])
        yield f"{sum(reasons.values()):,} samples have no partner and are left out: {parts}."
    if pairing.unproven:
        yield f"{pairing.unproven:,} pairs carry no prompt hash; that their prompts are identical is not proven."
    if pairing.by_text:
        yield f"{pairing.by_text:,} pairs were found by their text, under different labels."
