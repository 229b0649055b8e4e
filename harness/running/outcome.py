"""From what came back to a Record: which of the seven outcomes it is, and what it is worth."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from longreach.harness.errors import ContentFiltered, ContextOverflow, ModelError, PromptTooLarge
from longreach.harness.model import Price, Response
from longreach.harness.record import Outcome, Record
from longreach.harness.running.attempts import Answer
from longreach.harness.running.budget import cost_usd
from longreach.harness.running.plan import Item
from longreach.harness.running.refusals import is_refusal, refusal_phrase
from longreach.harness.running.resolve import BatteryTask, Settings
from longreach.harness.running.two_calls import second_prompt
from longreach.harness.sample import Sample
from longreach.harness.task import Score


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def clean(text: str) -> str:
    """Text that any UTF-8 file can hold: lone surrogates replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def outcome_of_error(error: ModelError) -> Outcome:
    """The outcome of a sample whose last attempt raised `error`."""
    if isinstance(error, ContextOverflow | PromptTooLarge):
        return "overflow"
    return "refused" if isinstance(error, ContentFiltered) else "failed"


def outcome_of_response(response: Response, cut: str | None) -> Outcome:
    """The outcome of an answer; `cut` is the truncation guard's sentence, if it has one."""
    if response.finish == "filter" or response.raw.get("refusal"):
        return "refused"
    if cut is not None:
        return "truncated"
    return "scored" if response.text.strip() else "no_answer"


def outcome_of_score(score: Score, text: str, sample: Sample) -> Outcome:
    """The outcome of an answer that was graded: `refused` if it is worth nothing and does nothing but refuse."""
    return "refused" if score.value == 0.0 and is_refusal(text, sample.target) else "scored"


def base_record(item: Item, task: BatteryTask, settings: Settings) -> dict[str, Any]:
    """The fields that are known before anything is sent."""
    info, point = task.task.info, item.point
    return {
        "key": settings.key(point),
        "task": item.label,
        "task_id": point.task,
        "version": info.version,
        "capability": info.capability,
        "family": info.family,
        "params": {name: list(value) if isinstance(value, tuple) else value for name, value in task.params.items()},
        "length": point.length,
        "depth": point.depth,
        "index": point.index,
        "seed": point.seed,
        "model": settings.model,
        "tokenizer": settings.tokenizer,
        "at": now(),
    }


def unsent_record(item: Item, task: BatteryTask, settings: Settings, outcome: Outcome, error: str) -> Record:
    """A sample that was not asked: `failed` if it could not be built, `not_run` if a cap came first."""
    return Record(**base_record(item, task, settings), outcome=outcome, error=clean(error))


def sample_fields(sample: Sample) -> dict[str, Any]:
    """The fields that come from the built prompt."""
    kept = ("recycled", "notes", "groups", "cut", "template", "proof")
    return {
        "target": sample.target,
        "placed": sample.placed,
        "n_tokens": sample.n_tokens,
        "prompt_sha256": sample.prompt_sha256,
        "extra": {name: sample.extra[name] for name in kept if name in sample.extra},
    }


def error_record(
    item: Item, task: BatteryTask, settings: Settings, sample: Sample, answer: Answer, error: ModelError
) -> Record:
    """A sample whose last attempt failed."""
    outcome = outcome_of_error(error)
    return Record(
        **base_record(item, task, settings),
        **sample_fields(sample),
        outcome=outcome,
        attempts=answer.attempts,
        finish="filter" if outcome == "refused" else None,
        score=0.0 if outcome == "refused" else None,
        error=clean(str(error)),
    )


def answer_record(
    item: Item,
    task: BatteryTask,
    settings: Settings,
    sample: Sample,
    answer: Answer,
    response: Response,
    *,
    outcome: Outcome,
    score: Score | None,
    error: str | None,
    price: Price,
    more: Mapping[str, Any],
) -> Record:
    """A sample that was answered. `more` goes into `extra`."""
    n_prompt = response.n_prompt_tokens if response.n_prompt_tokens is not None else sample.n_tokens
    n_prompt += second_prompt(response.raw)
    fields = sample_fields(sample)
    backend = {name: value for name, value in response.raw.items() if name != "rates"}
    fields["extra"] = fields["extra"] | dict(more) | ({"backend": backend} if backend else {})
    if (phrase := refusal_phrase(response.text)) is not None:
        fields["extra"]["refusal_phrase"] = clean(phrase)
    return Record(
        **base_record(item, task, settings),
        **fields,
        outcome=outcome,
        attempts=answer.attempts,
        finish=response.finish,
        score=score.value if score else (0.0 if outcome in ("refused", "no_answer") else None),
        score_published=score.published if score else None,
        parts=dict(score.parts) if score else {},
        extracted=clean(score.extracted) if score and score.extracted is not None else None,
        text=clean(response.text),
        reasoning=clean(response.reasoning) if response.reasoning is not None else None,
        n_prompt_tokens=response.n_prompt_tokens,
        n_output_tokens=response.n_output_tokens,
        n_reasoning_tokens=response.n_reasoning_tokens,
        n_cached_tokens=response.n_cached_tokens,
        ttft_s=response.ttft_s,
        ttft_answer_s=response.ttft_answer_s,
        latency_s=response.latency_s,
        cost_usd=cost_usd(
            price, n_prompt=n_prompt, n_cached=response.n_cached_tokens, n_output=response.n_output_tokens or 0
        ),
        error=error,
    )
