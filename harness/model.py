"""Request, Response and the Model protocol. `generate` is the only coroutine among the interfaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from longreach.harness.sample import Message, Sample
from longreach.harness.tokenizer import Tokenizer

Finish = Literal["stop", "length", "filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a model is asked."""

    messages: tuple[Message, ...]
    """System prompt of the user included."""
    answer_prefix: str = ""
    max_new_tokens: int
    """Answer budget plus reasoning budget, tokens."""
    temperature: float = 0.0
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    n_tokens: int | None = None
    """Our own count of the rendered prompt; time-outs grow with it."""
    options: tuple[str, ...] = ()
    """The closed set of answers of a multiple-choice question, for models that rank answers instead of writing one."""
    key: str | None = None
    """Names the record that the answer goes to, for models that hold stored answers."""
    sample: Sample | None = None
    """The answer key. Given to models that declare `simulated`, None for all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What a model gave back. Counts are as the backend reports them, None when it does not."""

    text: str
    """The answer, reasoning taken off."""
    reasoning: str | None = None
    finish: Finish | None = "stop"
    n_prompt_tokens: int | None = None
    n_output_tokens: int | None = None
    n_reasoning_tokens: int | None = None
    n_cached_tokens: int | None = None
    """None = unknown, 0 = the backend says none."""
    ttft_s: float | None = None
    """Seconds from sending to the first token of any kind."""
    ttft_answer_s: float | None = None
    """Seconds from sending to the first token of the answer."""
    latency_s: float | None = None
    """Seconds from sending to the last token; waiting for a turn is not in it."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """Small JSON facts worth keeping (server's model name, system fingerprint, adapted parameters). `rates` is for the
    limiter and not kept: tokens_limit, tokens_left, tokens_reset_s, and the same for requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per million tokens. None = unknown, which is shown as unknown and never as 0."""

    input: float | None = None
    cached: float | None = None
    output: float | None = None


@runtime_checkable
class Model(Protocol):
    """One language model behind one way of reaching it."""

    @property
    def name(self) -> str:
        """SPEC under which it can be opened again, without secrets: `openai:gpt-x`, `sim:cliff@32k`."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """Its own tokenizer with its chat template, or None if it cannot be had."""

    @property
    def window(self) -> int | None:
        """Tokens of prompt plus output; None = unknown."""

    @property
    def concurrency(self) -> int:
        """Requests that make sense at once when the user names no number (1 for a local model)."""

    @property
    def simulated(self) -> bool:
        """True: answers come from the answer key, and everything made from them is marked SIMULATED."""

    @property
    def price(self) -> Price:
        """Known prices; all None when unknown."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """JSON for the card's provenance: endpoint, server version, file hash, window, quantisation."""

    async def generate(self, request: Request) -> Response:
        """One answer.

        Raises:
            ContextOverflow, PromptTooLarge, ContentFiltered: final outcomes of this sample.
            ModelUnusable: the whole run has to stop.
            ModelError: with `transient` set, worth trying again.
        """

    async def close(self) -> None:
        """Free connections and memory; safe to call twice."""
