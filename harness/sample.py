"""What is asked: Grid, Point, Message, Sample. Pure data; a sample is a function of its point and a tokenizer.

A point's generators are seeded from SHA-256 of its fields, never from `hash()`, so that the same point gives the same
bytes on every machine. `paired_rng` leaves the length out: item i asks the same question at every length.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]


_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


def digest(value: object) -> str:
    """SHA-256 (hex) of `value` as canonical JSON: sorted keys, no blanks, UTF-8."""
    text = _canonical(value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_RARE = bytes({*range(0x20)} - set(b"\n\r\t"))
_ESCAPES = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"))


def json_text(text: str, errors: str = "surrogatepass") -> bytes:
    """`text` as `digest` writes it; a few passes over the bytes, because prompts are long, each is hashed and sent.

    Args:
        errors: what becomes of half a surrogate pair, as in `str.encode`.
    """
    data = text.encode("utf-8", errors)
    if len(data.translate(None, _RARE)) < len(data):
        return json.dumps(text, ensure_ascii=False).encode("utf-8", errors)
    for plain, escaped in _ESCAPES:
        if plain in data:
            data = data.replace(plain, escaped)
    return b'"%b"' % data


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell of a grid and the index of a sample in it."""

    task: str
    """Task id with version and parameters, as `task_id` gives it."""
    length: int
    """Tokens of the rendered prompt plus the tokens reserved for the answer."""
    depth: float | None
    """Requested depth of the (first) needle, 0.0 first to 1.0 last; None for tasks without depth."""
    index: int
    """Number of the sample within its cell, from 0."""
    seed: int
    """The user's seed."""

    @property
    def key(self) -> str:
        """32 hex digits that name this point on every machine."""
        return digest([self.task, self.length, self.depth, self.index, self.seed])[:32]

    def rng(self) -> random.Random:
        """A fresh generator that depends on every field."""
        return random.Random(int(self.key, 16))

    def paired_rng(self) -> random.Random:
        """A fresh generator that depends on every field but the length."""
        return random.Random(int(digest(["paired", self.task, self.depth, self.index, self.seed])[:32], 16))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What the user chose: lengths x depths x samples."""

    lengths: tuple[int, ...]
    """Tokens, ascending."""
    depths: tuple[float, ...]
    """Fractions, 0.0 to 1.0."""
    n: int
    """Samples per (task, length, depth)."""
    seed: int = 42

    def points(self, task: str, *, by_depth: bool = True) -> Iterator[Point]:
        """All points of one task, shortest length first.

        Index by index, so that each prefix of a cell's points is a smaller run. A task without depth (`by_depth`
        false) gets n x (number of depths) points per length, with depth None.
        """
        for length in self.lengths:
            if by_depth:
                for index in range(self.n):
                    for depth in self.depths:
                        yield Point(task=task, length=length, depth=depth, index=index, seed=self.seed)
            else:
                for index in range(self.n * len(self.depths)):
                    yield Point(task=task, length=length, depth=None, index=index, seed=self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation; text only."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One prompt with its target. `n_tokens + reserve <= point.length`, short of it by at most 8 tokens."""

    point: Point
    messages: tuple[Message, ...]
    """What is sent, without the user's system prompt."""
    target: tuple[str, ...]
    """Accepted answers, or items to be listed: the task's scorer knows which."""
    choices: tuple[str, ...] = ()
    """Plausible wrong answers (distractors, outdated values, other labels)."""
    answer_prefix: str = ""
    """Start of the assistant's turn, for models that continue it."""
    placed: tuple[float, ...] = ()
    """Depths really reached, needle by needle; empty for tasks without depth."""
    n_tokens: int
    """Tokens of the whole rendered prompt, counted once on the final text."""
    tokenizer: str
    """Name of the tokenizer that counted."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """JSON. Known keys: needles, question, context ([start, end) of the haystack in the last message) or turns ([first,
    end) of the messages that are the haystack), recycled, proof ("none" where no encode of the whole prompt proved its
    length, which is a sum of counts then), notes, template (family of wordings), groups (name -> value: what a row of a
    published set belongs to), cut ({before, after}: tokens of a text that was cut in the middle)."""

    @property
    def haystack_text(self) -> str:
        """The haystack with its needles: cut out of the last message, or the contents of its turns."""
        if "turns" in self.extra:
            first, end = self.extra["turns"]
            return "\n\n".join(message.content for message in self.messages[first:end])
        start, end = self.extra["context"]
        return self.messages[-1].content[start:end]

    @property
    def prompt_sha256(self) -> str:
        """SHA-256 of the messages and the answer prefix: what `verify` compares. The same as `digest` of them, sooner."""
        turns = b",".join(b"[%b,%b]" % (json_text(m.role), json_text(m.content)) for m in self.messages)
        return hashlib.sha256(b"[[%b],%b]" % (turns, json_text(self.answer_prefix))).hexdigest()
