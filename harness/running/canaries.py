"""Canaries: small and large prompts that show what an endpoint reads. A code stands at the very start, another at the end.

Plain numbered remarks fill the space between. Each prompt starts with a number of its own, so that a prefix cache of an
earlier check does not shorten the count of servers that leave cached tokens out.
"""

import secrets
from dataclasses import dataclass
from typing import Literal

from longreach.harness.sample import Message
from longreach.harness.tokenizer import Tokenizer

End = Literal["start", "end"]
_REMARKS = (
    "The post came late and the gate stood open.",
    "A clerk counted the chairs in the hall and wrote the number down.",
    "Rain fell on the station roof until noon.",
    "Somebody had left a green umbrella near the stairs.",
    "The baker sold the last loaf before the bell rang.",
    "Two trains waited side by side without a whistle.",
    "On the second floor a window was being painted white.",
    "The gardener watered the beds along the wall again.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One text with two codes; each question about it is a prompt."""

    body: str
    codes: dict[End, str]

    def messages(self, end: End) -> tuple[Message, ...]:
        """The prompt that asks for the code at one end of the text."""
        door = "first" if end == "start" else "last"
        question = f"What is the code of the {door} door? Answer with the number only."
        return (Message(role="user", content=f"{self.body}\n\n{question}"),)

    def is_found(self, end: End, text: str) -> bool:
        """True if an answer names the code of that end and not the other one."""
        other: End = "end" if end == "start" else "start"
        return self.codes[end] in text and self.codes[other] not in text


def make_canary(n_tokens: int, tokenizer: Tokenizer) -> Canary:
    """A canary whose prompt has nearly `n_tokens` tokens (at most so many, at least a few sentences)."""
    codes: dict[End, str] = {"start": _code(), "end": _code()}
    head = f"Log {secrets.randbelow(10**9):09d}. The code of the first door is {codes['start']}."
    tail = f"The code of the last door is {codes['end']}."
    block = " ".join(_REMARKS)
    fixed = tokenizer.count(tokenizer.render(Canary(body=f"{head}\n\n{tail}", codes=codes).messages("start")))
    lines = max((n_tokens - fixed) // (tokenizer.count(f"\n8888. {block}") + 1), 0)
    body = "".join(f"\n{number}. {block}" for number in range(1000, 1000 + lines))
    left = max(n_tokens - fixed - tokenizer.count(body), 0) if lines < 100 else 0
    short = [remark for remark in _REMARKS if tokenizer.count(f"\n{remark}") <= left][:1]
    return Canary(body="\n".join([head + body, *short, tail]), codes=codes)


def _code() -> str:
    return str(10_000 + secrets.randbelow(90_000))
