"""BABILong's rule for one label out of a closed set, with its faults, and the strict rule that grades in its place.

Source: Kuratov et al. 2024 (arXiv 2406.10149), `compare_answers` of github booydar/babilong. Its labels are substrings:
`one` is found in `none`, so that the target `none` of qa7 can never be right, and `no` in `know`. The strict rule looks for
whole words, reads all of the answer, and takes counts in any written form.
"""

import re
from collections.abc import Sequence

from longreach.harness.numbers import find_numbers
from longreach.harness.scoring import clean, normalise
from longreach.harness.task import Score

COUNTS = ("none", "one", "two", "three")
"""Labels of qa7 in the order of their numbers."""
_NOUGHT = ("none", "zero", "nothing")


def official(output: str, question: str, target: str, labels: Sequence[str]) -> bool:
    """BABILong's own verdict, faults included.

    Args:
        target: as in the data; a list of several is separated by commas.
    """
    text = output.lower()
    for end in (".", "<context>", "<example>"):
        text = text.split(end)[0]
    asked = question.lower()
    named = {label for label in map(str.lower, labels) if label in text and label not in asked}
    wanted = target.lower()
    if "," in wanted and len(wanted) > 3:
        parts = wanted.split(",")
        return len(named) == len(parts) and all(part.strip() in named for part in parts)
    return named == {wanted}


def strict(output: str, question: str, target: Sequence[str], labels: Sequence[str]) -> Score:
    """1 if the answer names the target's labels and no other; labels of the question do not count.

    Args:
        target: one label, or the items of a list.
    """
    text = normalise(clean(output))
    asked = normalise(question)
    counts = set(labels) == set(COUNTS)
    named = _counts(text) if counts else [label for label in labels if _word(label, text) and not _word(label, asked)]
    right = set(named) == set(target)
    found = sum(label in named for label in target) / len(target)
    return Score(value=float(right), parts={"found": found}, extracted=", ".join(named) or None)


def _word(label: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(label.casefold())}(?!\w)", text) is not None


def _counts(text: str) -> list[str]:
    """The counts that an answer names, digits and "zero" included, each once."""
    named = [str(number.value) for number in find_numbers(text)]
    nought = any(_word(word, text) for word in _NOUGHT)
    return [label for index, label in enumerate(COUNTS) if str(index) in named or (index == 0 and nought)] + [
        number for number in dict.fromkeys(named) if number not in ("0", "1", "2", "3")
    ]
