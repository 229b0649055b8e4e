"""Texts from outside as shuffled snippets: pieces of a few paragraphs in random order, so that no thread leads through.

After NoLiMa's haystacks (Modarressi et al. 2025, section 3), which are made of random snippets of books. Each snippet is
whole lines, or whole sentences where a line is long, of at least SNIPPET characters, and is used once before any is again.
"""

import random
import re

from longreach.harness.data import GENERATED, read_corpus
from longreach.harness.sample import digest

NAME = "snippets"
SNIPPET = 1000
"""Characters of a snippet, at least (NoLiMa)."""
_PIECE = re.compile(r"[^\n]*?[.!?][\"'\u201d\u2019)]*(?=\s)|[^\n]+")


def snippets_of(haystack: str) -> str:
    """The spec of a haystack in shuffled snippets; texts that are made here are in random order as they are."""
    return haystack if haystack.partition("/")[0] in GENERATED else f"{NAME}/{haystack}"


def shuffled(haystack: str, n_characters: int, seed: int) -> str:
    """Snippets of the text `haystack` in an order drawn by `seed`: `n_characters` of them, or all that there are.

    Raises:
        DataError: the text cannot be read, or is not what was pinned.
    """
    snippets = split(read_corpus(haystack).text)
    random.Random(int(digest([NAME, 1, haystack, seed])[:32], 16)).shuffle(snippets)
    taken, size = 0, 0
    while taken < len(snippets) and size < n_characters:
        size += len(snippets[taken]) + 1
        taken += 1
    return "\n".join(snippets[:taken])


def split(text: str) -> list[str]:
    """`text` in snippets of SNIPPET characters or more, but for the last; white space between pieces is levelled.

    >>> split("One. Two.")
    ['One. Two.']
    """
    found: list[str] = []
    lines: list[str] = []
    size = 0
    for line in text.splitlines():
        pieces = [line.strip()] if len(line) <= SNIPPET else [piece.strip() for piece in _PIECE.findall(line)]
        current: list[str] = []
        for piece in filter(None, pieces):
            current.append(piece)
            size += len(piece) + 1
            if size >= SNIPPET:
                found.append("\n".join([*lines, " ".join(current)]))
                lines, current, size = [], [], 0
        if current:
            lines.append(" ".join(current))
    return [*found, "\n".join(lines)] if lines else found
