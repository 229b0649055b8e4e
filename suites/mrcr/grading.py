"""How a reply to MRCR is graded: the reference ratio, and beside it what the ratio hides.

Source: the grader on the card of openai/mrcr. 0 unless the answer starts with the marker; else the ratio of `SequenceMatcher`
(answer first, reference second, default `autojunk`) after the marker. It is `published`, nothing stripped. The strict
score takes reasoning and outer white space off, and gives nothing for the text of another needle.
"""

import re
from collections.abc import Sequence

from longreach.harness.scoring import sequence_ratio, without_reasoning
from longreach.harness.task import Score

NEAR = 0.5
"""Ratio from which an answer counts as the text of a needle; unrelated texts are below 0.45."""


def reference_ratio(answer: str, gold: str, marker: str) -> float:
    """OpenAI's rule on the answer as it came; `gold` without the marker."""
    return sequence_ratio(answer.removeprefix(marker), gold) if answer.startswith(marker) else 0.0


def mean_ratio(gold: str, others: Sequence[str]) -> float:
    """Mean ratio of the other replies to the one that is wanted."""
    return sum(sequence_ratio(other, gold) for other in others) / len(others)


def floor_of(gold: str, others: Sequence[str]) -> float:
    """Expected ratio of one of the N replies drawn at random: 1/N + (1 - 1/N) x the mean ratio of the others."""
    share = 1 / (len(others) + 1)
    return share + (1 - share) * mean_ratio(gold, others)


def grade_reply(
    answer: str, *, marker: str, gold: str, others: Sequence[str] = (), floor: float | None = None
) -> Score:
    """Score of an answer that should be marker + `gold`.

    Args:
        others: the other replies to the same request.
        floor: the published score that guessing among the replies is worth.

    Returns:
        value: the lenient ratio, 0 if the answer is the text of another needle or recites one besides. published: the
        reference ratio. parts: `lenient`, `exact` (marker and text and nothing else), `marker_missing`; with `others`
        `distractor` (the nearest needle is another one), `both` (another one is recited beside the right one); with
        `floor` `corrected` = (published - floor) / (1 - floor), below 0 for an answer that is worse than guessing.
    """
    published = reference_ratio(answer, gold, marker)
    given = without_reasoning(answer).strip()
    is_marked = given.startswith(marker)
    text = given.removeprefix(marker).strip()
    ratio = sequence_ratio(text, gold)
    lenient = ratio if is_marked else 0.0
    exact = is_marked and text == gold.strip()
    parts = {"lenient": lenient, "exact": float(exact), "marker_missing": float(not is_marked)}
    wrong = both = False
    if others:
        nearest = 0.0 if exact else max(sequence_ratio(text, other) for other in others)
        wrong = nearest >= NEAR and nearest > ratio
        both = not exact and not wrong and any(recites(text, other) for other in others)
        parts |= {"distractor": float(wrong), "both": float(both)}
    if floor is not None:
        parts["corrected"] = (published - floor) / (1 - floor)
    return Score(
        value=0.0 if wrong or both else lenient,
        published=published,
        parts=parts,
        extracted=text[:200] or None,
    )


def recites(text: str, needle: str) -> bool:
    """True if more than half of a needle's sentences stand in a text, word for word."""
    sentences = re.split(r"(?<=[.!?]) ", needle)
    return sum(sentence in text for sentence in sentences) > len(sentences) / 2
