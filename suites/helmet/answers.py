"""The answer rules of Lost in the Middle and HELMET: a reference, in SQuAD's normal form, stands in the answer.

Sources: SQuAD (Rajpurkar et al. 2016) for the normal form; Liu et al. 2024, `best_subspan_em`; HELMET's `utils.py`, where
the whole output and the part after the answer prefix are both tried.
"""

import re
import string
from collections.abc import Sequence

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_form(text: str) -> str:
    """SQuAD's normal form: small letters, without punctuation and articles, single blanks."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", bare).split())


def holds(output: str, references: Sequence[str]) -> bool:
    """True if a reference is a substring of the output, both in SQuAD's form."""
    given = squad_form(output)
    return any(squad_form(reference) in given for reference in references)


def best_subspan_em(output: str, references: Sequence[str]) -> float:
    """Lost in the Middle: only what stands before the first newline is read; blank lines in front are not counted."""
    return float(holds(output.lstrip().partition("\n")[0], references))


def substring_em(output: str, references: Sequence[str], prefix: str) -> float:
    """HELMET's substring_exact_match: in the output, or in the line after its first `prefix`, whatever the case."""
    found = re.search(re.escape(prefix) + r"\s*([^\n]*)", output, re.IGNORECASE)
    return float(holds(output, references) or (found is not None and holds(found[1], references)))
