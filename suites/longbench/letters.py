"""Reading a choice of A to D out of an answer: LongBench v2's own rule, and a stricter and more forgiving one of ours.

"The correct answer is (C)"                 both: C
"**The correct answer is C**"               both: C
"The correct answer is Because of ..."      published: B, ours: none
"Answer: (C)", "C.", "\\boxed{C}"             published: none, ours: C
"The correct answer is (A) or (B)"          published: A, ours: none
"""

import re
from collections.abc import Sequence

from longreach.harness.scoring import clean, normalise

LETTERS = ("A", "B", "C", "D")
# LongBench v2, pred.py: asterisks away, then these two in turn, first match, case-sensitive.
_PUBLISHED = (re.compile(r"The correct answer is \(([A-D])\)"), re.compile(r"The correct answer is ([A-D])"))

_LETTER = r"(?:[\(\[]\s*([A-Da-d])\s*[\)\]]|[\"'`(\[]*([A-D])(?![A-Za-z0-9'’]))"
"""A capital, or a letter in brackets."""
_STATED = re.compile(
    r"(?i:\b(?:correct|right|best|final|most\s+likely)\s+(?:answer|choice|option)|\banswer|\bchoice|\boption|答案|正确选项)"
    r"(?i:\s+choice)?\s*(?i:is|would\s+be|must\s+be|[:：=]|是|为|应为)\s*[:：]?\s*(?i:option|choice|answer)?\s*"
    + _LETTER
)
_BOXED = re.compile(r"\\boxed\{\s*(?:\\text\{)?\s*\(?([A-D])\)?\s*\}")
_ALONE = re.compile(r"\W*(?i:option|choice|answer)?\W*([A-D])\W*")
_OPENING = re.compile(r"\s*(?:[\(\[]([A-D])[\)\]]|([A-D])(?:[).:：]|[ \t]*(?:\n|\Z)))(?:\s|\Z)?")
_OTHER = re.compile(r"[)\]]?\s*(?:,|/|\b(?:or|and)\b|或|和)\s*(?i:option|choice)?\s*" + _LETTER)


def published_letter(answer: str) -> str | None:
    """The letter by LongBench v2's rule; None = the answer cannot be read, which counts as wrong."""
    text = answer.replace("*", "")
    for pattern in _PUBLISHED:
        found = pattern.search(text)
        if found is not None:
            return found[1]
    return None


def stated_letter(answer: str, choices: Sequence[str] = ()) -> str | None:
    """The one letter that an answer settles on; None if it names none, or two at once.

    In this order: the last letter in a box, the last that is said to be the answer, a letter that stands alone, a letter
    that opens the answer ("B) because ..."), and the text of exactly one choice.

    Args:
        choices: texts of the choices A to D, for answers that repeat one in the place of its letter.
    """
    boxed = _BOXED.findall(answer.replace("*", ""))
    if boxed:
        return str(boxed[-1])
    text = clean(answer)
    stated = list(_STATED.finditer(text))
    if stated:
        letter = _letter(stated[-1])
        other = _OTHER.match(text, stated[-1].end())
        return letter if other is None or _letter(other) == letter else None
    for pattern in (_ALONE.fullmatch, _OPENING.match):
        found = pattern(text)
        if found is not None:
            return _letter(found)
    plain = _plain(text)
    same = [letter for letter, choice in zip(LETTERS, choices, strict=False) if plain and _plain(choice) == plain]
    return same[0] if len(same) == 1 else None


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).upper()


def _plain(text: str) -> str:
    return normalise(text).strip(" .\"'")
