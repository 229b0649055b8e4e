"""The score of one answer: the task's own scorer, and on top of it a judge model where the user named one."""

import dataclasses
import random
from dataclasses import dataclass, field

from longreach.harness.errors import ModelError
from longreach.harness.judge import judge_request, parse_verdict
from longreach.harness.model import Model, Response
from longreach.harness.running.attempts import Gate, Policy, ask
from longreach.harness.sample import Sample
from longreach.harness.task import Score, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A model that grades, and the tokens that it may use for reasoning before its verdict."""

    model: Model
    policy: Policy = field(default_factory=Policy)
    reasoning_budget: int = 1024


async def grade(
    task: Task, sample: Sample, response: Response, judge: Judge | None, gate: Gate, rng: random.Random
) -> Score:
    """The task's score; with a judge its verdict is the value and the task's own goes to `parts["strict"]`.

    Raises:
        ModelError: the judge gave no verdict. The answer is then not scored at all.
    """
    score = task.score(sample, response)
    if judge is None:
        return score
    question = str(sample.extra.get("question") or sample.messages[-1].content[-500:])
    request = judge_request(question, ", ".join(sample.target), response.text)
    request = dataclasses.replace(request, max_new_tokens=request.max_new_tokens + judge.reasoning_budget)
    for _ in range(2):
        answer = await ask(judge.model, request, policy=judge.policy, gate=gate, rng=rng)
        if answer.response is None:
            raise answer.error or ModelError("the run was stopped before the judge answered")
        verdict = parse_verdict(answer.response.text)
        if verdict is not None:
            return dataclasses.replace(score, value=float(verdict), parts={**score.parts, "strict": score.value})
    raise ModelError(f"{judge.model.name} gave no verdict in two replies")
