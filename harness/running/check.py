"""Does this endpoint take what we send? Canaries tell before a long run does.

    two short canaries       does it answer; usage, stream, reasoning; the template's tokens and the tokens of our words
    a long one               does the server's count follow? without usage: is the code at each end found?
    the same, other end      which end is lost; are cached tokens reported

A server that reads less than it is sent, in silence, is unusable: everything longer would look like a weak model.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longreach.harness.errors import ContextOverflow, ModelError, ModelUnusable, PromptTooLarge
from longreach.harness.lengths import format_length
from longreach.harness.model import Model, Request, Response
from longreach.harness.running.attempts import Gate, Policy, ask
from longreach.harness.running.canaries import Canary, End, make_canary
from longreach.harness.running.check_text import advice
from longreach.harness.running.checked import Checked, Reading
from longreach.harness.running.truncation import LEAST_RATIO, TEMPLATE_TOKENS
from longreach.harness.tokenizer import Tokenizer

SHORT = (160, 640)
"""Tokens of the short canaries."""
ANSWER = 32
"""Tokens for an answer."""
ENDS: tuple[End, End] = ("start", "end")
TRIES = 2
"""Questions about each end where only the answers can tell; both must agree."""


@dataclass(slots=True, kw_only=True)
class Checker:
    """Sends canaries to one model."""

    model: Model
    tokenizer: Tokenizer
    reasoning_budget: int = 0
    temperature: float = 0.0
    policy: Policy = field(default_factory=lambda: Policy(tries=3))
    patience: Policy = field(default_factory=lambda: Policy(tries=3))
    """For the short canaries: the first requests that an endpoint sees."""
    admit: Callable[[int, int], bool] = lambda n_prompt, n_output: True
    """May a request of so many tokens be sent? Caps say no."""
    say: Callable[[str], None] = lambda text: None
    """Tells the user about long waits."""
    found: Checked = field(default_factory=Checked, init=False)
    _gate: Gate = field(init=False)
    _short: list[tuple[int, int]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._gate = Gate(asyncio.Event(), say=self.say)

    async def short(self) -> None:
        """The short canaries, each end once. Raises ModelError if the endpoint does not answer at all."""
        found, right = self.found, 0
        for n_tokens, end in zip(SHORT, ENDS, strict=True):
            canary = make_canary(n_tokens, self.tokenizer)
            response = await self._ask(canary, end, self.patience)
            right += canary.is_found(end, response.text)
            found.streaming = found.streaming or response.ttft_s is not None
            found.reasoning = found.reasoning or bool(response.reasoning)
            found.empty = found.empty or (not response.text.strip() and response.finish == "length")
            if response.n_prompt_tokens is not None:
                self._short.append((self._count(canary, end), response.n_prompt_tokens))
        found.answers = right == len(SHORT)
        found.usage = len(self._short) == len(SHORT)
        if found.usage:
            (ours, theirs), (more, longer) = self._short
            found.ratio = round((longer - theirs) / (more - ours), 4) if more > ours else None
            plain = self.tokenizer.count(make_canary(SHORT[0], self.tokenizer).messages("start")[0].content)
            found.template_tokens = round(theirs - (found.ratio or 1.0) * plain) if not self._exact else theirs - plain

    async def long(self, length: int) -> Reading:
        """One long canary, and the questions about its ends where they are needed."""
        canary = make_canary(length - ANSWER - self.reasoning_budget, self.tokenizer)
        sent = self._count(canary, "start")
        try:
            first = await self._ask(canary, "start")
        except ContextOverflow as error:
            return self._keep(Reading(length=length, sent=sent, state="overflow", error=str(error)))
        except PromptTooLarge as error:
            return self._keep(Reading(length=length, sent=sent, state="too_large", error=str(error)))
        except ModelUnusable:
            raise
        except ModelError as error:
            return self._keep(Reading(length=length, sent=sent, state="failed", error=str(error)))
        read = first.n_prompt_tokens
        state = "unknown" if read is None or not self._short else "read" if read >= self._least(sent) else "truncated"
        lost = None
        if state != "read" and self.found.answers:
            hits = await self._ends(length, canary, first, 1 if state == "truncated" else TRIES)
            if hits is not None and 0 in hits and max(hits) > 0 and (state == "truncated" or max(hits) == TRIES):
                state, lost = "truncated", ENDS[hits.index(0)]
            elif hits is not None and state == "unknown" and min(hits) > 0:
                state = "read"
        return self._keep(Reading(length=length, sent=sent, read=read, state=state, lost=lost))

    async def _ends(self, length: int, canary: Canary, first: Response, tries: int) -> tuple[int, int] | None:
        """How often the code at each end is found; None if that could not be asked."""
        hits = [int(canary.is_found("start", first.text)), 0]
        try:
            for number in range(tries):
                if number > 0:
                    canary = make_canary(length - ANSWER - self.reasoning_budget, self.tokenizer)
                    hits[0] += canary.is_found("start", (await self._ask(canary, "start")).text)
                hits[1] += canary.is_found("end", (await self._ask(canary, "end")).text)
        except ModelError:
            return None
        return hits[0], hits[1]

    @property
    def _exact(self) -> bool:
        return self.tokenizer.knows_template and not self.tokenizer.is_estimate

    def _least(self, sent: int) -> float:
        """Fewest tokens that a server counts which reads all of `sent`."""
        (ours, theirs), (more, longer) = self._short
        if self._exact:
            return sent + min(theirs - ours, longer - more)
        if not self.tokenizer.is_estimate:
            return 0.995 * sent
        ratio = (longer - theirs) / (more - ours) if more > ours else theirs / ours
        return max(0.97 * ratio * sent - TEMPLATE_TOKENS, LEAST_RATIO * sent)

    def _count(self, canary: Canary, end: End) -> int:
        return self.tokenizer.count(self.tokenizer.render(canary.messages(end)))

    def _keep(self, reading: Reading) -> Reading:
        self.found.readings.append(reading)
        return reading

    async def _ask(self, canary: Canary, end: End, policy: Policy | None = None, **fields: Any) -> Response:
        n_tokens = self._count(canary, end)
        request = Request(
            messages=canary.messages(end),
            max_new_tokens=ANSWER + self.reasoning_budget,
            n_tokens=n_tokens,
            temperature=self.temperature,
            **fields,
        )
        if not self.admit(n_tokens, request.max_new_tokens):
            raise ModelError("a limit of this run leaves no room for the canaries")
        self.found.requests += 1
        answer = await ask(self.model, request, policy=policy or self.policy, gate=self._gate, rng=random.Random(0))
        if answer.response is None:
            raise answer.error or ModelError("no answer came")
        if answer.response.n_cached_tokens is not None:
            self.found.cached = "reported"
        return answer.response

    async def parameters(self) -> None:
        """One request with every optional parameter: what is refused shows in the model's facts."""
        canary = make_canary(SHORT[0], self.tokenizer)
        await self._ask(canary, "start", stop=("\n\n\n\n",), seed=1, top_p=0.9)


async def check_lengths(checker: Checker, lengths: Sequence[int]) -> Checked:
    """The whole check, up to the first length that is not read."""
    await checker.short()
    await checker.parameters()
    for length in lengths:
        if (await checker.long(length)).state not in ("read", "unknown"):
            break
    checker.found.facts = dict(checker.model.facts)
    return checker.found


async def check_before_run(
    checker: Checker, length: int, known: Mapping[str, Any] | None, say: Callable[[str], None]
) -> Mapping[str, Any] | None:
    """What a run asks of an endpoint once: two short canaries and one of the longest length that is planned.

    Args:
        known: the result of an earlier call for this folder; a length that was read then is not sent again.

    Returns:
        For config.yaml; None if nothing was asked.

    Raises:
        ModelUnusable: the endpoint cuts prompts in silence, or cannot be used at all.
    """
    if checker.model.simulated or checker.model.facts.get("kind") != "endpoint":
        return None
    if known is not None and int(known.get("length") or 0) >= length:
        return None
    try:
        await checker.short()
        reading = await checker.long(length)
    except ModelUnusable:
        raise
    except ModelError as error:
        if error.transient:
            raise ModelUnusable(
                f"{_host(checker.model)} answers no request, not even a short one ({error}); check the server, then repeat "
                f"the command"
            ) from error
        say(f"the canaries could not be sent ({error}); the run goes on without them")
        return None
    checker.found.facts = dict(checker.model.facts)
    if reading.state == "truncated":
        raise ModelUnusable(
            f"{_host(checker.model)} {advice(reading, checker.found.facts)} (--force does not help: what was cut is "
            f"never scored)"
        )
    if reading.state == "unknown":
        say(
            f"warning: {_host(checker.model)} reports no token counts, and the canaries at {format_length(length)} cannot "
            f"show whether it reads everything"
        )
    return checker.found.to_dict() if reading.state != "failed" else None


def _host(model: Model) -> str:
    return str(model.facts.get("host") or model.name)
