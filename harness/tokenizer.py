"""The Tokenizer protocol, and two tokenizers that need no download: `bytes` and `words`.

A tokenizer counts text, tells where tokens begin and end (for the prompt builder), and renders messages to the very
text that the model reads, chat template included where it is known.
"""

import re
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from longreach.harness.sample import Message, Point

Spans = tuple[NDArray[np.int64], NDArray[np.int64]]


@runtime_checkable
class Tokenizer(Protocol):
    """Counts tokens as one model does."""

    @property
    def name(self) -> str:
        """SPEC-like name with what identifies it: `tiktoken:cl100k_base`, `gguf:SmolLM2-135M-Instruct.Q4_1`."""

    @property
    def knows_template(self) -> bool:
        """True if `render` applies the model's own chat template; false if it only joins the contents."""

    @property
    def is_estimate(self) -> bool:
        """True for a labelled fallback: lengths counted with it are estimates."""

    def count(self, text: str) -> int:
        """Tokens of `text`. Template strings such as `<|im_start|>` count as control tokens only where the
        tokenizer knows its template; no begin-of-text token is added beyond what `render` writes."""

    def spans(self, text: str) -> Spans:
        """Start and end of every token in characters of `text`: two int64 arrays of shape (n_tokens,).

        A token that begins or ends inside a character reports the whole character.
        """

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        """The text whose `count` is the prompt's length."""


def join_contents(messages: Sequence[Message], answer_prefix: str = "") -> str:
    """`render` for a tokenizer that knows no chat template: the contents, a blank line between turns."""
    return "\n\n".join(message.content for message in messages) + answer_prefix


class BytesTokenizer:
    """One token per UTF-8 byte."""

    name = "bytes"
    knows_template = False
    is_estimate = False

    def count(self, text: str) -> int:
        return len(text.encode("utf-8", "replace"))

    def spans(self, text: str) -> Spans:
        data = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
        starts = np.cumsum((data & 0xC0) != 0x80, dtype=np.int64) - 1
        return starts, starts + 1

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        return join_contents(messages, answer_prefix)


# A space leads the next piece, so that counts of pieces add up; runs of word characters are cut every 8 characters
# and scripts without spaces count by the character.
_WORDS = re.compile(
    r"[ \t]?(?:[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{1,8}|[^\w\s])|\s"
)


class WordsTokenizer:
    """A fixed rule that stands in for an unknown tokenizer; always labelled "length estimated"."""

    name = "words"
    knows_template = False
    is_estimate = True
    fingerprint = f"words {_WORDS.pattern}"
    """What its counts depend on (see `table_cache`)."""

    def count(self, text: str) -> int:
        return sum(1 for _ in _WORDS.finditer(text))

    def spans(self, text: str) -> Spans:
        edges = np.array([match.span() for match in _WORDS.finditer(text)], dtype=np.int64).reshape(-1, 2)
        return edges[:, 0].copy(), edges[:, 1].copy()

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        return join_contents(messages, answer_prefix)


class Wrapped:
    """Another tokenizer, passed through; what stands on it changes `render` at most, never counts and spans."""

    def __init__(self, inner: Tokenizer) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def knows_template(self) -> bool:
        return self.inner.knows_template

    @property
    def is_estimate(self) -> bool:
        return self.inner.is_estimate

    def count(self, text: str) -> int:
        return self.inner.count(text)

    def spans(self, text: str) -> Spans:
        return self.inner.spans(text)

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        return self.inner.render(messages, answer_prefix)


class WithSystem(Wrapped):
    """Another tokenizer whose `render` puts the user's system prompt first, so that lengths include it."""

    def __init__(self, inner: Tokenizer, system: str) -> None:
        super().__init__(inner)
        self._system = Message(role="system", content=system)

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        return self.inner.render((self._system, *messages), answer_prefix)


def innermost(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself, out of all that wraps it: its counts and spans are the same."""
    while isinstance(tokenizer, Wrapped):
        tokenizer = tokenizer.inner
    return tokenizer


Prove = Literal["always", "sample", "never"]
PROVEN_SHARE = 16
"""`sample` proves one prompt in so many."""


class WithProof(Wrapped):
    """Another tokenizer that says which prompts are proven by an encode of the whole text; the others keep the sum of
    counts that they were built from, which is the same number but for a join that nobody foresaw."""

    def __init__(self, inner: Tokenizer, prove: Prove) -> None:
        if prove not in ("always", "sample", "never"):
            raise ValueError(f"prove {prove!r} is none of always, sample, never")
        super().__init__(inner)
        self.prove = prove


UNPROVEN = {"proof": "none"}
"""What the `extra` of a sample says that was not encoded as a whole."""


def proves(tokenizer: Tokenizer, point: Point) -> bool:
    """True if the prompt of `point` is to be encoded as a whole: always, unless WithProof says."""
    prove = tokenizer.prove if isinstance(tokenizer, WithProof) else "always"
    return prove == "always" or (prove == "sample" and int(point.key, 16) % PROVEN_SHARE == 0)
