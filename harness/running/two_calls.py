"""Tasks whose protocol asks twice: steps first, then the answer. The two replies become one response."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from longreach.harness.model import Model, Price, Request, Response
from longreach.harness.running.attempts import Answer, Gate, Policy, ask
from longreach.harness.running.budget import Extra, cost_usd
from longreach.harness.sample import Sample
from longreach.harness.task import AsksTwice, FollowUp, Task
from longreach.harness.tokenizer import Tokenizer

SECOND = "second_prompt_tokens"
"""Key of `Response.raw` (and of the record's backend facts): prompt tokens of the second call."""


def second_call(task: Task, sample: Sample, first: str) -> FollowUp | None:
    """The second call after the reply `first`; None for a task that asks once."""
    return task.follow_up(sample, first) if isinstance(task, AsksTwice) else None


def extra_of(task: Task, sample: Sample, request: Request, tokenizer: Tokenizer, price: Price) -> Extra | None:
    """The most that the second call can take: its question, the longest first reply, and its own reply."""
    more = second_call(task, sample, "")
    if more is None:
        return None
    n_prompt = tokenizer.count(tokenizer.render(more.messages)) + request.max_new_tokens
    n_output = _most(task, more, request)
    cost = cost_usd(price, n_prompt=n_prompt, n_cached=0, n_output=n_output) or 0.0
    return Extra(tokens=n_prompt + n_output, cost=cost)


def _most(task: Task, more: FollowUp, request: Request) -> int:
    """Tokens for the second reply: its reserve, and the reasoning budget that the first one had too."""
    return request.max_new_tokens - task.info.reserve + more.reserve


async def ask_all(
    model: Model,
    request: Request,
    *,
    task: Task,
    sample: Sample,
    tokenizer: Tokenizer,
    policy: Policy,
    gate: Gate,
    rng: random.Random,
) -> Answer:
    """One answer, by one call or two. Of two, the first reply becomes the reasoning; counts and times are sums, but for
    the prompt's, which stay those of the first call.

    Raises:
        ModelUnusable: no request to this model can succeed.
    """
    first = await ask(model, request, policy=policy, gate=gate, rng=rng)
    said = first.response
    if said is None or not said.text.strip() or said.finish == "filter":
        return first
    more = second_call(task, sample, said.text)
    if more is None:
        return first
    system = request.messages[: len(request.messages) - len(sample.messages)]
    again = replace(
        request,
        messages=(*system, *more.messages),
        answer_prefix="",
        max_new_tokens=_most(task, more, request),
        n_tokens=tokenizer.count(tokenizer.render(more.messages)),
    )
    second = await ask(model, again, policy=policy, gate=gate, rng=rng)
    return Answer(
        response=_joined(said, second.response, again) if second.response is not None else None,
        error=second.error,
        attempts=(*first.attempts, *second.attempts),
        waste=first.waste + second.waste,
    )


def _joined(first: Response, second: Response, again: Request) -> Response:
    asked = again.n_tokens if second.n_prompt_tokens is None else second.n_prompt_tokens
    thought = [part for part in (first.reasoning, first.text, second.reasoning) if part]
    return replace(
        second,
        reasoning="\n\n".join(thought),
        n_prompt_tokens=first.n_prompt_tokens,
        n_cached_tokens=first.n_cached_tokens,
        n_output_tokens=_sum(first.n_output_tokens, second.n_output_tokens),
        n_reasoning_tokens=_sum(first.n_reasoning_tokens, second.n_reasoning_tokens),
        ttft_s=first.ttft_s,
        ttft_answer_s=None,
        latency_s=_sum(first.latency_s, second.latency_s),
        raw={**first.raw, **second.raw, SECOND: asked},
    )


def _sum(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


def second_prompt(raw: Mapping[str, Any]) -> int:
    """Prompt tokens of the second call of a response or record, 0 if there was none."""
    return int(raw.get(SECOND) or 0)
