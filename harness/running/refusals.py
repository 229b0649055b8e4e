"""Phrases by which an answer refuses. They label an answer and never give or take credit: the scorer does that."""

import re

HEAD = 200
"""Characters at the start of an answer that are looked at: a refusal says so at once."""
_PHRASES = re.compile(
    r"""
    \bI(?:\ am|'m)?\ (?:cannot|can't|can\ not|could\ not|couldn't|won't|will\ not|(?:am\ )?(?:unable|not\ able)\ to)
        \ (?:\w+\ ){0,2}?(?:access|answer|assist|help|provide|comply|fulfil|fulfill|discuss|read|open|view|share|do\ that|continue)
  | \bI(?:'m|\ am)\ (?:unable|not\ able)\ to\ 
  | \bI(?:'m|\ am)\ sorry,?\ (?:but\ )?(?:I|as)\b
  | \bI\ (?:must|have\ to)\ (?:decline|refuse)\b
  | \bas\ an?\ (?:AI|artificial|language\ model)\b
  | 抱歉|对不起|我无法|我不能
  | \bне\ могу\ (?:помочь|ответить|предоставить)\b|\bизвините\b
  | \bnão\ posso\ (?:ajudar|responder|fornecer)\b|\bdesculpe\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def refusal_phrase(text: str) -> str | None:
    """The phrase near the start of `text` by which it refuses, if there is one.

    >>> refusal_phrase("I cannot access that document."), refusal_phrase("The code is 4817.")
    ('I cannot access', None)
    """
    found = _PHRASES.search(text[:HEAD].replace("\u2019", "'"))
    return " ".join(found.group(0).split()) if found else None
