"""Answers that are on disk and wait for a judge's verdict, so that a killed run or a broken judge costs no second prompt."""

from longreach.harness.model import Response
from longreach.harness.record import Record
from longreach.harness.running.attempts import Answer

MARK = "unjudged"
"""Key of a record's `extra`: the answer is whole, the verdict is missing."""
WAITING = "answered, not judged yet"


def waiting(record: Record | None) -> Answer | None:
    """The answer that a record holds, if all it lacks is a verdict."""
    if record is None or record.outcome != "failed" or not record.extra.get(MARK):
        return None
    response = Response(
        text=record.text,
        reasoning=record.reasoning,
        finish="length" if record.finish == "length" else "stop",
        n_prompt_tokens=record.n_prompt_tokens,
        n_output_tokens=record.n_output_tokens,
        n_reasoning_tokens=record.n_reasoning_tokens,
        n_cached_tokens=record.n_cached_tokens,
        ttft_s=record.ttft_s,
        ttft_answer_s=record.ttft_answer_s,
        latency_s=record.latency_s,
        raw=dict(record.extra.get("backend") or {}),
    )
    return Answer(response=response, error=None, attempts=record.attempts)
