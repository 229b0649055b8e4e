"""Answers that refuse. A phrase labels an answer; only an answer that is nothing but a refusal has the outcome `refused`.

Neither gives credit: both are worth 0. The rule for the outcome is strict, because an answer that was wrongly taken for a
refusal would hide a failure of the model: the whole of a short answer declines to act or says that it cannot open what it
was given. "I cannot find that in the text" is an answer, and so is whatever names the target.
"""

import re
from collections.abc import Sequence

HEAD = 200
"""Characters at the start of an answer that are looked at for a phrase: a refusal says so at once."""
LONGEST = 300
"""Characters of the longest answer that may be nothing but a refusal."""
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
_UNABLE = r"""(?:
    (?:I|we)\ (?:cannot|can't|can\ not|won't|will\ not|refuse\ to|must\ decline\ to|have\ to\ decline\ to)
  | (?:I'm|I\ am|we're|we\ are)\ (?:unable|not\ able|not\ allowed|not\ permitted)\ to
)"""
_SOURCE = r"(?:documents?|files?|attachments?|links?|urls?|websites?|web\ ?pages?|external\ \w+|the\ internet|the\ text|texts)"
_REFUSAL = re.compile(
    rf"""
    (?:(?:I'm|I\ am|we\ are)\ (?:really\ |very\ |so\ )?sorry|sorry|I\ apologi[sz]e|my\ apologies|unfortunately)?[,.:;!]?\ ?
    (?:but\ )?(?:as\ an?\ (?:AI|artificial\ intelligence)?(?:\ ?(?:language\ )?(?:model|assistant))?,\ )?
    (?:
        {_UNABLE}\ (?:(?:assist|help|comply|engage)(?:\ you)?(?:\ with\ (?:that|this|it|your|the)(?:\ \w+)?)?
          | (?:fulfil|fulfill|discuss|do|process|complete)\ (?:that|this|it|your)(?:\ \w+)?
          | continue(?:\ with\ (?:that|this)(?:\ \w+)?)?
          | (?:directly\ )?(?:access|open|view|read|browse|see)\ (?:(?:the|that|this|any|your|those|these)\ )?(?:\w+\ )?{_SOURCE}
        )
      | (?:I|we)\ (?:must|have\ to)\ (?:decline|refuse)(?:\ to\ (?:answer|help|assist)|\ (?:that|this|your)\ request)?
      | I\ (?:don't|do\ not)\ have\ (?:access\ to|the\ ability\ to\ (?:access|open|view|read|browse))
          \ (?:(?:the|that|this|any|your)\ )?(?:\w+\ )?{_SOURCE}
      | (?:很|非常)?(?:抱歉|对不起)[,，。]?\ ?(?:但是?)?我(?:无法|不能)(?:为(?:你|您))?(?:提供帮助|提供协助|帮助(?:你|您)|协助(?:你|您)?|满足(?:这个|该|此|你的|您的)请求)
      | (?:извините|простите|к\ сожалению)?[,.]?\ ?(?:но\ )?я?\ ?не\ могу\ (?:(?:вам\ )?(?:с\ (?:этим|этой)\ )?помочь(?:\ (?:вам|с\ этим))*|выполнить\ (?:этот|ваш)\ запрос)
      | (?:desculpe|sinto\ muito|lamento|infelizmente)?[,.]?\ ?(?:mas\ )?(?:eu\ )?não\ posso\ (?:(?:te\ |lhe\ )?ajudar(?:\ (?:com\ isso|você))*|atender\ (?:a\ )?(?:esse|este|seu|ao\ seu)\ pedido)
    )
    (?:\ (?:request|at\ this\ time|right\ now|here|directly|you\ (?:mentioned|shared|sent|provided)|that\ you\ \w+))*
    \s*[.!。]?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OFFER = re.compile(
    r"(?:if|is there|please|let me|feel free|can i|how (?:else )?(?:can|may)|would you|i'd be|i would be|i can (?:only|help))\b",
    re.IGNORECASE,
)
"""How a sentence begins that may follow a refusal and says nothing about the question."""


def refusal_phrase(text: str) -> str | None:
    """The phrase near the start of `text` by which it refuses, if there is one.

    >>> refusal_phrase("I cannot access that document."), refusal_phrase("The code is 4817.")
    ('I cannot access', None)
    """
    found = _PHRASES.search(text[:HEAD].replace("\u2019", "'"))
    return " ".join(found.group(0).split()) if found else None


def is_refusal(text: str, target: Sequence[str]) -> bool:
    """True if `text` does nothing but refuse: one refusing sentence, then offers at most, and no target.

    >>> is_refusal("I'm sorry, but I can't help with that.", ("4817",)), is_refusal("I cannot find it.", ("4817",))
    (True, False)
    """
    plain = " ".join(text.replace("\u2019", "'").replace("*", "").strip("\"'` \n\t").split())
    found = _REFUSAL.match(plain) if len(plain) <= LONGEST else None
    if found is None or any(item.strip() and item.casefold() in plain.casefold() for item in target):
        return False
    if not plain[found.end() :]:
        return True
    sentences = re.split(r"(?<=[.!?。])\s+", plain[found.end() :].strip())
    return found[0].rstrip().endswith((".", "!", "。")) and all(_OFFER.match(sentence) for sentence in sentences)
