"""Scoring rules: pure functions of an answer and what is accepted. Each names its source.

Strict rules grade the fact, not the wording: reasoning tags and Markdown are taken off, case and compatibility forms of
Unicode are levelled, and a match must stand on its own ("cat" is not in "concatenate", 4182 not in 14182). An answer
that also names a known wrong candidate earns nothing: listing every candidate is not finding one. The published rules
(`string_match_all`, `string_match_part`) stay as loose as their sources and are only reported beside the strict score.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal

from longreach.harness.numbers import Number, find_numbers, parse_number
from longreach.harness.task import Score

COPY_LENGTH = 1000
"""Characters; a shorter answer is never taken for a copy of the prompt."""
COMPARED = 4
"""Of a text that is more than so many times as long as the other, the rest is not compared."""


def without_reasoning(answer: str) -> str:
    """The answer without `<think>` blocks; an unclosed one swallows the rest."""
    text = re.sub(r"<(think|thinking|thought)>.*?(</\1>|\Z)", " ", answer, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(r"\A.*</(?:think|thinking|thought)>", " ", text, flags=re.DOTALL | re.IGNORECASE)


def clean(answer: str) -> str:
    """The answer without `<think>` blocks and Markdown or LaTeX dress."""
    text = without_reasoning(answer)
    text = re.sub(r"\\(?:boxed|text|mathbf|mathrm|textbf)\s*\{((?:[^{}]|\{,\})*)\}", r"\1", text)
    text = re.sub(r"\\([_*#$%&.\-])", r"\1", text)
    text = re.sub(r"[*`]+|^\s{0,3}(?:#{1,6}|>)\s", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?<!\w)_{1,2}(\S(?:[^\n]*?\S)?)_{1,2}(?!\w)", r"\1", text)
    return text.strip()


_QUOTES_AND_DASHES = str.maketrans(
    {**dict.fromkeys("\u2018\u2019\u02bc\u0060", "'"), **dict.fromkeys("\u201c\u201d\u201e", '"')}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)


def normalise(text: str) -> str:
    """NFKC, case folded, one kind of quote and dash, runs of white space as one blank."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).translate(_QUOTES_AND_DASHES).split())


def _checked(accepted: Sequence[str]) -> Sequence[str]:
    if not accepted or any(not normalise(item) for item in accepted):
        raise ValueError(
            f"an empty reference in {list(accepted)!r} would match anything; the task or its data is wrong"
        )
    return accepted


def exact(answer: str, accepted: Sequence[str]) -> bool:
    """True if the whole answer is one of `accepted`, but for outer punctuation (SQuAD's exact match, any alias)."""
    given = _trimmed(normalise(clean(answer)))
    return any(given == _trimmed(normalise(item)) for item in _checked(accepted))


def _trimmed(text: str) -> str:
    """`text` without outer punctuation; all of it if it is nothing else."""
    return text.strip(" .,;:!?\"'()[]«»。，！？、：；") or text


def contains(answer: str, accepted: Sequence[str]) -> bool:
    """True if one of `accepted` stands in the answer as whole words (own rule; RULER's substring rule, token-bounded)."""
    given = normalise(clean(answer))
    return any(_stands_in(given, normalise(item)) for item in _checked(accepted))


def _stands_in(text: str, part: str) -> bool:
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        if not _glued(text[:start][-2:][::-1], part[0]) and not _glued(text[end : end + 2], part[-1]):
            return True
        start = text.find(part, start + 1)
    return False


def _glued(outside: str, edge: str) -> bool:
    """True if the characters beyond an edge (nearest first) continue the word or number that ends there."""
    if not outside:
        return False
    near, far = outside[0], outside[1:]
    if _is_mark(near):
        return True
    if edge.isdigit() and far and ((near in ".,:/" and far.isdigit()) or (near == "-" and far.isalnum())):
        return True
    return _is_wordlike(edge) and _is_wordlike(near)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in ("Mn", "Mc", "Me")


# Scripts written without blanks between words: there, every character may end a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def _is_wordlike(char: str) -> bool:
    return (char.isalnum() or char == "_") and _UNSPACED.match(char) is None


def fuzzy(answer: str, accepted: Sequence[str], *, threshold: float = 0.9) -> bool:
    """True if the whole answer is nearly one of `accepted`: normalised indel similarity (rapidfuzz) >= `threshold`."""
    return fuzzy_ratio(answer, accepted) >= threshold


def fuzzy_ratio(answer: str, accepted: Sequence[str]) -> float:
    """Best normalised indel similarity of the answer to one of `accepted`, 0 to 1; time grows with both lengths."""
    from rapidfuzz import fuzz

    given = _trimmed(normalise(clean(answer)))
    return max(float(fuzz.ratio(given, _trimmed(normalise(item)))) / 100 for item in _checked(accepted))


def number(answer: str, accepted: Sequence[str]) -> bool:
    """True if the answer holds one of the numbers `accepted`, in any written form (`numbers.find_numbers`)."""
    values = [_value(item) for item in _checked(accepted)]
    return any(found.reads_as(value) for found in find_numbers(clean(answer)) for value in values)


def _value(text: str) -> Decimal:
    value = parse_number(text)
    if value is None:
        raise ValueError(f"the reference {text!r} is not a number; the task or its data is wrong")
    return value


def final_number(answer: str) -> Number | None:
    """The number that an answer settles on: boxed, or alone on the first line, or after the last "answer" (in any of our languages), or the last.

    Own ladder, as graders of arithmetic use it (GSM8K's last number, MATH's box): working may be shown before it.
    """
    boxed = re.findall(r"\\boxed\s*\{((?:[^{}]|\{,\})*)\}", answer)
    text = clean(answer)
    lines = [line for line in text.splitlines() if line.strip()]
    tails = re.split(r"(?i)\b(?:answer|resposta|ответ)\b|答案|答：", text)[1:]
    for part, pick in ((boxed[-1] if boxed else "", -1), (_if_number(lines[:1]), 0), (tails[-1] if tails else "", 0)):
        found = find_numbers(part)
        if found:
            return found[pick]
    found = find_numbers(text)
    return found[-1] if found else None


def _if_number(lines: Sequence[str]) -> str:
    return lines[0] if lines and parse_number(lines[0]) is not None else ""


Rule = Callable[[str, Sequence[str]], bool]
RULES: dict[str, Rule] = {"exact": exact, "contains": contains, "fuzzy": fuzzy, "number": number}
"""Rules for one answer with aliases, by name: any alias is enough."""


def grade_one(answer: str, accepted: Sequence[str], *, wrong: Sequence[str] = (), rule: Rule = contains) -> Score:
    """Score of one sought answer: 1 if it is named and no known wrong candidate is.

    Args:
        accepted: aliases of the right answer; any is enough.
        wrong: candidates known to be wrong (distractors in the text, an outdated value).

    Returns:
        parts: `found` (an alias is named), `distractor` (only a wrong one is), `both`.
    """
    found = next((item for item in accepted if rule(answer, (item,))), None)
    misled = next((item for item in wrong if rule(answer, (item,))), None)
    parts = {"found": float(found is not None)}
    if wrong:
        parts["distractor"] = float(misled is not None and found is None)
        parts["both"] = float(misled is not None and found is not None)
    _checked(accepted)
    return Score(value=float(found is not None and misled is None), parts=parts, extracted=found or misled)


def recall_precision(named: Collection[str], wanted: Collection[str]) -> tuple[float, float]:
    """Share of `wanted` that is named, and share of `named` that is wanted (0 if nothing is named).

    Args:
        named: distinct items read out of the answer.
        wanted: distinct items to be listed, not empty.
    """
    _checked(tuple(wanted))
    hits = len(set(named) & set(wanted))
    return hits / len(set(wanted)), hits / len(set(named)) if named else 0.0


def is_copy(answer: str, prompt: str) -> bool:
    """True for a long answer made mostly of stretches of the prompt: it may hold the target without having found it.

    Looks at up to 40 stretches of 40 characters, evenly spread over an answer of more than COPY_LENGTH characters.
    """
    if len(answer) <= COPY_LENGTH:
        return False
    step = max(40, len(answer) // 40)
    stretches = [answer[start : start + 40] for start in range(0, len(answer) - 40, step)]
    return sum(stretch in prompt for stretch in stretches) > len(stretches) / 2


def without_credit_for_copies(score: Score, answer: str, prompt: str) -> Score:
    """The same score, or 0 with parts `copied` = 1 if the answer recites the prompt."""
    if score.value == 0.0 or not is_copy(answer, prompt):
        return score
    return Score(value=0.0, published=score.published, parts={**score.parts, "copied": 1.0}, extracted=score.extracted)


def sequence_ratio(a: str, b: str) -> float:
    """`difflib.SequenceMatcher(None, a, b).ratio()`, with its default `autojunk`; not symmetric.

    Exactly that unless one text is more than COMPARED times as long as the other: then only so much of it is compared,
    so that the time is bounded, and its whole length still counts. The ratio is below 0.4 there in any case.
    """
    from difflib import SequenceMatcher

    total = len(a) + len(b)
    compared = a[: COMPARED * len(b)], b[: COMPARED * len(a)]
    matched = sum(block.size for block in SequenceMatcher(None, *compared).get_matching_blocks())
    return 2.0 * matched / total if total else 1.0


def ruler_text(prediction: str) -> str:
    """RULER's post-processing: strip, control characters U+0000 to U+001F become newlines, strip again."""
    return re.sub(r"[\x00-\x1f]", "\n", prediction.strip()).strip()


def string_match_all(prediction: str, references: Sequence[str]) -> float:
    """RULER's rule for lists: share of references that are case-insensitive substrings of the prediction, 0 to 1."""
    text = ruler_text(prediction).lower()
    return sum(item.lower() in text for item in _checked(references)) / len(references)


def string_match_part(prediction: str, references: Sequence[str]) -> float:
    """RULER's rule for aliases: 1 if any reference is a case-insensitive substring of the prediction, else 0."""
    text = ruler_text(prediction).lower()
    return float(any(item.lower() in text for item in _checked(references)))
