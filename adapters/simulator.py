"""Simulated models with a known truth: sim:perfect, sim:cliff@32k, sim:logistic@64k, sim:PROFILE.yaml.

A simulated model is given the answer key. It answers rightly with a probability that depends on the task, the length
and the depth, and is always marked SIMULATED. One uniform number per point, made from the point's key alone, is compared
with that probability: the same sample gets the same answer, and a better profile is right wherever a worse one is.
"""

import asyncio
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from longreach.adapters.options import read_length
from longreach.adapters.profile import Profile, named_profile, read_profile
from longreach.harness.errors import ContentFiltered, ContextOverflow, ModelError, UnknownName
from longreach.harness.model import Price, Request, Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Point, Sample, digest
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer

_COUNTER = WordsTokenizer()  # tokens of an answer: only latency and cost depend on it
_LONG = 120  # characters of an answer that is a text, not a fact
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")


class Simulator:
    """A model whose effective length is known because it is written down."""

    tokenizer: Tokenizer | None = None
    concurrency = 16
    simulated = True

    def __init__(self, name: str, profile: Profile) -> None:
        self._name = name
        self._profile = profile
        self._tried: set[str] = set()

    @property
    def name(self) -> str:
        return self._name

    @property
    def window(self) -> int | None:
        return self._profile.window

    @property
    def price(self) -> Price:
        return self._profile.price

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"kind": "simulated", "profile": dict(self._profile.source)}

    async def generate(self, request: Request) -> Response:
        sample = request.sample
        if sample is None:
            raise ModelError(
                f"{self._name} answers from the answer key and was given none; this is a fault of longreach"
            )
        window = self._profile.window
        if window is not None and sample.n_tokens + request.max_new_tokens > window:
            raise ContextOverflow(
                f"{self._name}: {sample.n_tokens:,} prompt tokens and {request.max_new_tokens:,} for the answer exceed "
                f"the profile's window of {window:,}"
            )
        fault = self._fault(sample.point)
        text = "" if fault == "no_answer" else self._answer(sample)
        n_read = sample.n_tokens // 2 if fault == "truncated" else sample.n_tokens
        n_output = request.max_new_tokens if fault == "no_answer" else _COUNTER.count(text)
        ttft_s, latency_s = self._profile.seconds(n_read, n_output)
        if self._profile.sleep and latency_s is not None:
            await asyncio.sleep(latency_s)
        return Response(
            text=text,
            reasoning="(simulated reasoning that never ended)" if fault == "no_answer" else None,
            finish="length" if fault == "no_answer" else "stop",
            n_prompt_tokens=n_read,
            n_output_tokens=n_output,
            n_reasoning_tokens=n_output if fault == "no_answer" else 0,
            n_cached_tokens=0,
            ttft_s=ttft_s,
            ttft_answer_s=None if fault == "no_answer" else ttft_s,
            latency_s=latency_s,
        )

    async def close(self) -> None:
        self._tried.clear()

    def probability(self, point: Point) -> float:
        """Chance that the answer at `point` is right: the truth that a run should find again."""
        return self._profile.probability(*_task(point), length=point.length, depth=point.depth)

    def _fault(self, point: Point) -> str | None:
        """What goes wrong at this point, always the same; raises what is not an answer."""
        draw = _uniform("fault", point)
        for fault, share in self._profile.faults.items():
            draw -= share
            if draw >= 0.0:
                continue
            if fault == "refused":
                raise ContentFiltered(f"{self._name}: simulated refusal")
            if fault == "overflow":
                raise ContextOverflow(f"{self._name}: simulated overflow")
            if fault == "failed":
                raise ModelError(f"{self._name}: simulated broken connection", transient=True)
            if fault == "flaky":
                if point.key not in self._tried:
                    self._tried.add(point.key)
                    raise ModelError(f"{self._name}: simulated rate limit, goes at the second try", transient=True)
                return None
            return fault
        return None

    def _answer(self, sample: Sample) -> str:
        if sample.extra.get("arm") == "no context":
            return "I do not know."  # what stood in the haystack cannot be known without it
        if _uniform("right", sample.point) < self.probability(sample.point):
            return ", ".join(sample.target)
        rng = random.Random(int(digest(["sim", "wrong", sample.point.key])[:32], 16))
        kinds = list(self._profile.wrong)
        kind = rng.choices(kinds, [self._profile.wrong[kind] for kind in kinds])[0]
        if kind == "empty":
            return ""
        distractors = _distractors(sample)
        # One number wrong in a long text would be nearly right where it is compared as a whole: there it is another text.
        is_long = any(len(item) > _LONG for item in sample.target)
        if distractors and (kind == "distractor" or is_long):
            return rng.choice(distractors)
        return ", ".join(_near(item) for item in sample.target)


def _uniform(use: str, point: Point) -> float:
    """A number in [0, 1) that belongs to the point alone; `use` keeps draws for different ends apart."""
    return int(digest(["sim", use, point.key])[:13], 16) / 16**13


def _task(point: Point) -> tuple[str, str]:
    """Name and capability of the point's task; a task that is not registered counts as retrieval."""
    name = point.task.split("@")[0]
    try:
        return name, get_task(name).info.capability
    except UnknownName:
        return name, "retrieval"


def _distractors(sample: Sample) -> Sequence[str]:
    """Plausible wrong answers that name none of the right ones."""
    targets = [item.casefold() for item in sample.target]
    return [choice for choice in sample.choices if not any(item in choice.casefold() for item in targets)]


def _near(item: str) -> str:
    """A near miss: the last number one higher, or, in words, cut off half way."""
    number = _LAST_NUMBER.search(item)
    if number is not None:
        return f"{item[: number.start()]}{int(number[0]) + 1:0{len(number[0])}d}{item[number.end() :]}"
    return item[: len(item) // 2] or chr(ord(item[0]) + 1) if item else "nothing"


def open_model(rest: str, *, window: int | str | None = None) -> Simulator:
    """`perfect`, `cliff@LENGTH`, `logistic@LENGTH`, or the path of a profile.

    Args:
        window: tokens of prompt and answer; above it the model overflows. Overrides the profile's.

    Raises:
        ConfigError: no such shape, or a profile that makes no sense.
    """
    profile = named_profile(rest) or read_profile(rest)
    if window is not None:
        profile = profile.with_window(read_length(window, "--model-args window"))
    return Simulator(f"sim:{rest}", profile)
