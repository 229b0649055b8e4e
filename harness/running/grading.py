"""The score of one answer: the task's own scorer, and on top of it a judge model where the user named one."""

import dataclasses
import random
from dataclasses import dataclass, field
from typing import Any

from longreach.harness.errors import ModelError
from longreach.harness.judge import MAX_NEW_TOKENS, judge_request, parse_verdict
from longreach.harness.model import Model, Price, Response
from longreach.harness.running.attempts import Gate, Policy, ask
from longreach.harness.running.budget import Extra, cost_usd
from longreach.harness.sample import Sample
from longreach.harness.task import Score, Task
from longreach.harness.tokenizer import WordsTokenizer

TRIES = 2
"""Replies of a judge that are waited for."""
QUESTION_TOKENS = 800
"""Rubric, question and reference; generous."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A model that grades, and the tokens that it may use for reasoning before its verdict."""

    model: Model
    policy: Policy = field(default_factory=Policy)
    reasoning_budget: int = 1024

    def extra(self, n_answer: int, price: Price) -> Extra:
        """The most that grading an answer of `n_answer` tokens can take, both tries counted.

        Args:
            price: of the model under test; stands in where the judge's own is unknown.
        """
        n_prompt, n_output = TRIES * (QUESTION_TOKENS + n_answer), TRIES * (MAX_NEW_TOKENS + self.reasoning_budget)
        return Extra(tokens=n_prompt + n_output, cost=self.cost(n_prompt, n_output, price))

    def cost(self, n_prompt: int, n_output: int, price: Price) -> float:
        """USD of so many tokens; 0 where neither price is known."""
        own = self.model.price
        used = price if own.input is None or own.output is None else own
        return cost_usd(used, n_prompt=n_prompt, n_cached=0, n_output=n_output) or 0.0


@dataclass(slots=True)
class Bill:
    """Tokens that grading one answer has used; the judge's count, or the most that it can be."""

    n_prompt: int = 0
    n_output: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For a record's `extra`; empty where no judge was asked."""
        used = {"prompt_tokens": self.n_prompt, "output_tokens": self.n_output}
        return {"judge": used} if self.n_prompt else {}


async def grade(
    task: Task, sample: Sample, response: Response, judge: Judge | None, gate: Gate, rng: random.Random, bill: Bill
) -> Score:
    """The task's score; with a judge its verdict is the value and the task's own goes to `parts["strict"]`.

    Args:
        bill: what the judge uses is added to it, whatever comes of it.

    Raises:
        ModelError: the judge gave no verdict. The answer is then not scored at all.
    """
    score = task.score(sample, response)
    if judge is None:
        return score
    question = str(sample.extra.get("question") or sample.messages[-1].content[-500:])
    request = judge_request(question, ", ".join(sample.target), response.text)
    request = dataclasses.replace(request, max_new_tokens=request.max_new_tokens + judge.reasoning_budget)
    n_prompt = sum(WordsTokenizer().count(message.content) for message in request.messages)
    for _ in range(TRIES):
        answer = await ask(judge.model, request, policy=judge.policy, gate=gate, rng=rng)
        bill.n_prompt += answer.waste * n_prompt
        if answer.response is None:
            raise answer.error or ModelError("the run was stopped before the judge answered")
        said = answer.response
        bill.n_prompt += n_prompt if said.n_prompt_tokens is None else said.n_prompt_tokens
        bill.n_output += request.max_new_tokens if said.n_output_tokens is None else said.n_output_tokens
        verdict = parse_verdict(said.text)
        if verdict is not None:
            return dataclasses.replace(score, value=float(verdict), parts={**score.parts, "strict": score.value})
    raise ModelError(f"{judge.model.name} gave no verdict in two replies")
