"""Metrics on free text of LongBench v1 and L-Eval: F1 of words, ROUGE, classes, numbers, edit similarity of code.

`published_*` are the rules as they are published (THUDM/LongBench at 2e00731, LongBench/metrics.py and eval.py); the others
are ours and grade the cleaned answer. ROUGE comes from the packages `rouge` (published) and `rouge-score` (ours), Chinese
words from `jieba`, edit similarity from `rapidfuzz`; the first three are the extra `longbench`.
"""

import logging
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from longreach.harness.errors import MissingExtra
from longreach.harness.scoring import clean, contains, final_number, grade_one, normalise

MOST = 20_000
"""Characters of an answer that ROUGE looks at: its time grows with the product of both lengths."""
_INSTALL = "pip install 'longreach[longbench]'"
_CHINESE = "！？。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～、《》「」『』【】〔〕〖〗〝〞–—‘’“”„…‧﹏"
_PUNCTUATION = frozenset(string.punctuation) | frozenset(_CHINESE)
Words = Callable[[str], list[str]]


def require(*names: str) -> None:
    """Says what to install if a library is missing.

    Raises:
        MissingExtra: with the command.
    """
    import importlib

    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise MissingExtra(f"this task is scored by {name.replace('_', '-')}; run: {_INSTALL}") from error


def english_words(text: str) -> list[str]:
    """SQuAD's words: lower case, no punctuation, no a, an, the."""
    plain = "".join(char for char in text.lower() if char not in string.punctuation)
    return re.sub(r"\b(?:a|an|the)\b", " ", plain).split()


def chinese_words(text: str) -> list[str]:
    """Words by jieba, lower case, no punctuation."""
    words = ("".join(char for char in word.lower() if char not in _PUNCTUATION) for word in cut_words(text))
    return [word for word in ("".join(word.split()) for word in words) if word]


def cut_words(text: str) -> list[str]:
    """Words by jieba, as they stand."""
    return list(_jieba().cut(text, cut_all=False))


@cache
def _jieba() -> Any:
    require("jieba")
    import jieba

    jieba.setLogLevel(logging.ERROR)  # it tells of its cache on standard error
    return jieba


def f1(answer: str, references: Sequence[str], words: Words = english_words) -> float:
    """Best F1 of the bag of words with one of `references`, 0 to 1 (SQuAD)."""
    return max((_f1(words(answer), words(reference)) for reference in references), default=0.0)


def _f1(given: list[str], wanted: list[str]) -> float:
    same = sum((Counter(given) & Counter(wanted)).values())
    return 2 * same / (len(given) + len(wanted)) if same else 0.0


def published_rouge(answer: str, references: Sequence[str], *, chinese: bool) -> float:
    """Best ROUGE-L f of the package `rouge`; what it cannot take is 0, as published."""
    require("rouge")
    from rouge import Rouge

    scorer = Rouge(metrics=["rouge-l"])
    best = 0.0
    for reference in references:
        pair = [" ".join(cut_words(text)) if chinese else text for text in (answer[:MOST], reference[:MOST])]
        try:
            best = max(best, float(scorer.get_scores([pair[0]], [pair[1]], avg=True)["rouge-l"]["f"]))
        except (ValueError, RecursionError):  # empty, or nothing but full stops
            continue
    return best


def rouge(answer: str, references: Sequence[str], kinds: Sequence[str], words: Words | None = None) -> dict[str, float]:
    """Best F measure of each kind (rouge1, rouge2, rougeL) by `rouge-score`, no stemming.

    Args:
        words: how to cut texts without spaces; None: the package's own way.
    """
    require("rouge_score")
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(kinds), use_stemmer=False, tokenizer=_Cutter(words) if words else None)
    found = [scorer.score(reference[:MOST], answer[:MOST]) for reference in references]
    return {kind: max((float(scores[kind].fmeasure) for scores in found), default=0.0) for kind in kinds}


class _Cutter:
    """The tokenizer that `rouge-score` asks for."""

    def __init__(self, words: Words) -> None:
        self.tokenize = words


def published_class(answer: str, gold: str, classes: Sequence[str]) -> float:
    """1/k if `gold` is among the k class names found in the answer, names inside `gold` taken out while looping."""
    found = [name for name in classes if name in answer]
    for name in found:  # the published loop changes the list under itself, so that a name can be skipped
        if name in gold and name != gold:
            found.remove(name)
    return 1.0 / len(found) if gold in found else 0.0


def one_class(answer: str, gold: str, classes: Sequence[str]) -> float:
    """1 if the answer names `gold` and no other class, as whole words in any case."""
    wrong = [
        name for name in classes if normalise(name) not in normalise(gold) and normalise(gold) not in normalise(name)
    ]
    longer = [name for name in classes if name != gold and normalise(gold) in normalise(name)]
    return 0.0 if longer and contains(answer, longer) else grade_one(answer, (gold,), wrong=tuple(wrong)).value


def published_number(answer: str, gold: str) -> float:
    """Share of the integers in the answer that are the (first) one in `gold`."""
    wanted = re.search(r"\d+", gold)
    numbers = re.findall(r"\d+", answer)
    return sum(number == wanted[0] for number in numbers) / len(numbers) if numbers and wanted else 0.0


def settled_number(answer: str, gold: str) -> float:
    """1 if the number that the answer settles on is the one in `gold`."""
    wanted, given = re.search(r"\d+", gold), final_number(answer)
    return float(wanted is not None and given is not None and given.value == int(wanted[0]))


def published_code(answer: str, references: Sequence[str]) -> float:
    """Edit similarity of the first line without a backtick, `#` or `//` (fuzzywuzzy's ratio, a whole percent)."""
    lines = answer.lstrip("\n").split("\n")
    line = next((line for line in lines if not any(mark in line for mark in ("`", "#", "//"))), "")
    return max((round(_ratio(line, reference)) / 100 for reference in references), default=0.0)


def code_line(answer: str, references: Sequence[str]) -> float:
    """Edit similarity of the first line of code, blank lines, fences and comments passed over, outer blanks ignored."""
    lines = (line.strip() for line in answer.split("\n"))
    line = next((line for line in lines if line and not line.startswith(("```", "#", "//"))), "")
    return max((_ratio(line, reference.strip()) / 100 for reference in references), default=0.0)


def _ratio(first: str, second: str) -> float:
    from rapidfuzz import fuzz

    return fuzz.ratio(first, second) if first and second else 0.0


def first_line(answer: str) -> str:
    """The first line after leading newlines: all that is looked at of few-shot answers."""
    return answer.lstrip("\n").split("\n")[0]


def cleaned(answer: str) -> str:
    """The answer without thinking and Markdown."""
    return clean(answer)
