"""Lists of nodes in answers, and how they are graded: F1 of sets, 0 for an answer that holds no list.

The code on the card of openai/graphwalks loses the first node of every list and gives 1 to any answer without overlap;
here neither happens. Right: nothing readable 0, nothing to be found and nothing named 1, no overlap 0, else F1.
"""

import re
from collections.abc import Collection

from longreach.harness.scoring import clean
from longreach.harness.task import Score

NODE = r"[0-9a-f]{10}"
_LIST = re.compile(r"\[([^\[\]]*)\]\W*\Z")
_MARKED = re.compile(r"final answer\s*:\s*\[([^\[\]]*)\]\s*\Z", re.IGNORECASE)
_BARE = re.compile(rf"(?:final answer\s*:)?\s*({NODE}(?:[\s,;]+{NODE})*)\W*\Z", re.IGNORECASE)
_NONE = re.compile(r"final answer\s*:\s*none\W*\Z", re.IGNORECASE)


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def nodes_in(answer: str) -> list[str] | None:
    """Nodes listed on the last line of an answer, each once; None if that is no list.

    A list stands in brackets at the end of the line, with or without "Final Answer:", or is all of the line (ten
    hexadecimal digits a node).
    """
    line = last_line(clean(answer))
    if _NONE.search(line):
        return []
    found = _LIST.search(line) or _BARE.fullmatch(line)
    return _split(found[1]) if found else None


def marked_nodes(answer: str) -> list[str] | None:
    """The same by the form that the published prompt asks for: the last line ends in `Final Answer: [...]`."""
    found = _MARKED.search(last_line(answer))
    return _split(found[1]) if found else None


def _split(text: str) -> list[str]:
    parts = (part.strip(" \t'\"`*").lower() for part in re.split(r"[,;\s]+", text))
    return list(dict.fromkeys(part for part in parts if part))


def f1(named: Collection[str] | None, wanted: Collection[str]) -> float:
    """Harmonic mean of precision and recall of sets; None is an answer that could not be read."""
    if named is None:
        return 0.0
    given, gold = set(named), set(wanted)
    return 2 * len(given & gold) / (len(given) + len(gold)) if given or gold else 1.0


def grade_nodes(answer: str, wanted: Collection[str]) -> Score:
    """F1 of the nodes on the last line; parts: precision, recall, `exact` (the very set), `format_fail` (no list)."""
    named = nodes_in(answer)
    hits = len(set(named or ()) & set(wanted))
    value = f1(named, wanted)
    return Score(
        value=value,
        parts={
            "precision": hits / len(named) if named else value,
            "recall": hits / len(set(wanted)) if wanted else value,
            "exact": float(value == 1.0),
            "format_fail": float(named is None),
        },
        extracted=", ".join(named)[:500] if named else None,
    )
