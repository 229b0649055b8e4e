"""LongBench v2's prompts: what is asked with the text, step by step, without the text, and the second call after the steps.

Layout, order, placeholders and the answer line are those of the published templates (github THUDM/LongBench, prompts/);
the sentences between are ours. A folder of the published files (`prompts=FOLDER`) replaces them word for word.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from longreach.harness.data import read_corpus, read_text_file
from longreach.harness.errors import DataError

_CHOICES = "Question: $Q$\nChoices:\n(A) $C_A$\n(B) $C_B$\n(C) $C_C$\n(D) $C_D$"
_FORMAT = 'Format your response as follows: "The correct answer is (insert answer here)".'
_STEPS = "Think it through step by step before you decide:"
_READ = "Please read the following text and answer the {} below.\n\n"
_TEXT = "<text>\n$DOC$\n</text>\n\n"

OURS: Mapping[str, str] = {
    "0shot": _READ.format("question") + _TEXT + f"{_CHOICES}\n\n{_FORMAT}",
    "0shot_cot": _READ.format("questions") + _TEXT + f"{_CHOICES}\n\n{_STEPS}",
    "0shot_cot_ans": (
        _READ.format("questions")
        + f"The text is too long to be shown again and left out here.\n\n{_CHOICES}\n\n{_STEPS} $COT$\n\n"
        + f"After these steps, which single choice is the most likely one? {_FORMAT}"
    ),
    "0shot_no_context": f"{_CHOICES}\n\nWhich single choice is the most likely one? {_FORMAT}",
}
"""Name of the published file -> our template."""
_SLOT = re.compile(r"\$(DOC|Q|C_A|C_B|C_C|C_D|COT)\$")


@lru_cache(maxsize=16)
def template(name: str, prompts: str) -> str:
    """A template: ours, or the file NAME.txt of the pinned folder `prompts`.

    Raises:
        DataError: no such file, or the folder is not what was pinned.
    """
    if not prompts:
        return OURS[name]
    read_corpus(prompts)  # says so if anything in it has changed
    path = Path(prompts.removeprefix("file:").rpartition("#")[0]) / f"{name}.txt"
    if not path.is_file():
        raise DataError(
            f"{path} is not there; give the folder prompts/ of github THUDM/LongBench, or leave `prompts` out"
        )
    text, _ = read_text_file(path)
    needed = set(_SLOT.findall(OURS[name]))
    if missing := sorted(needed - set(_SLOT.findall(text))):
        raise DataError(
            f"{path} has no {', '.join(f'${slot}$' for slot in missing)}; it is not LongBench v2's template"
        )
    return text


def filled(text: str, slots: Mapping[str, str]) -> tuple[str, tuple[int, int] | None]:
    """A template with its slots filled, and [start, end) of the document in it."""
    found, places = one_pass(text, {f"${name}$": value for name, value in slots.items()})
    return found, places.get("$DOC$")


def one_pass(text: str, slots: Mapping[str, str]) -> tuple[str, dict[str, tuple[int, int]]]:
    """`text` with its slots filled at once, so that a document that holds the name of a slot stays as it is; and
    [start, end) of what each slot that occurs was filled with."""
    parts: list[str] = []
    places: dict[str, tuple[int, int]] = {}
    at = length = 0
    for match in re.finditer("|".join(map(re.escape, slots)), text):
        parts += [text[at : match.start()], slots[match[0]]]
        start = length + match.start() - at
        length = start + len(slots[match[0]])
        places[match[0]] = (start, length)
        at = match.end()
    return "".join(parts) + text[at:], places
