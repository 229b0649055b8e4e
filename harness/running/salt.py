"""Cold prompts: each starts with numbers that no other request has, so that no prefix cache can help.

The salt is counted as part of the length. It is drawn anew for each request, from the system's generator: a repeated run
must not find the prompts of the first one in a cache. Its groups of three digits have the same number of tokens each in
the tokenizers in use, whatever the digits.
"""

import dataclasses
import secrets
from collections.abc import Sequence

from longreach.harness.sample import Message
from longreach.harness.tokenizer import Tokenizer, Wrapped

GROUPS = 6
TRIES = 200


def _text(groups: Sequence[int]) -> str:
    return f"Request {' '.join(str(group) for group in groups)}.\n\n"


REFERENCE = _text([481, 729, 356, 914, 267, 583])
"""The salt that lengths are counted with."""


def salted(messages: Sequence[Message], salt: str) -> tuple[Message, ...]:
    """The messages with `salt` at the very start."""
    first, *rest = messages
    return (dataclasses.replace(first, content=salt + first.content), *rest)


def fresh_salt(tokenizer: Tokenizer) -> str:
    """A salt that nobody has seen, of as many tokens as the reference."""
    wanted = tokenizer.count(REFERENCE)
    for _ in range(TRIES):
        salt = _text([100 + secrets.randbelow(900) for _ in range(GROUPS)])
        if tokenizer.count(salt) == wanted:
            return salt
    return salt


class WithSalt(Wrapped):
    """Another tokenizer whose `render` puts a salt first, so that lengths include it."""

    def render(self, messages: Sequence[Message], answer_prefix: str = "") -> str:
        return self.inner.render(salted(messages, REFERENCE), answer_prefix)
