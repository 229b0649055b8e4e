"""Filler text made here, seeded, without download: `repeat`, `noise` and `mixed`.

`repeat` is one sentence again and again: the easiest haystack. `noise` is the line of RULER's synthetic tasks (Hsieh
et al. 2024, section 3). `mixed` wanders through everyday topics in paragraphs of a few sentences; it holds no digits
and nothing that reads as an instruction, and a sentence hardly ever comes twice.
"""

import random
from collections.abc import Callable, Mapping

from longreach.harness.sample import digest
from longreach.suites.filler_words import ENDINGS, OPENINGS, PATTERNS, REMARKS, TIMES, TOPICS, Topic

REPEATED = "It rained all day in the valley."
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
REDRAWS = 8
"""Tries for a sentence that has not been used yet."""


def repeat(n_characters: int, seed: int) -> str:
    """One sentence, again and again, at least `n_characters` long; the seed changes nothing."""
    del seed
    return " ".join([REPEATED] * (n_characters // (len(REPEATED) + 1) + 1))


def noise(n_characters: int, seed: int) -> str:
    """RULER's noise line, one copy a line, at least `n_characters` long; the seed changes nothing."""
    del seed
    return "\n".join([NOISE] * (n_characters // (len(NOISE) + 1) + 1))


def mixed(n_characters: int, seed: int) -> str:
    """Paragraphs on everyday topics, at least `n_characters` long: a pure function of both arguments."""
    rng = random.Random(int(digest(["mixed", 1, seed])[:32], 16))
    used: set[str] = set()
    paragraphs: list[str] = []
    missing = n_characters
    topic = -1
    while missing > 0:
        topic = (topic + 1 + int(rng.random() * (len(TOPICS) - 1))) % len(TOPICS)  # never the same twice running
        sentences = [_fresh(TOPICS[topic], rng, used) for _ in range(3 + int(rng.random() * 5))]
        paragraphs.append(" ".join(sentences))
        missing -= len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)


def _fresh(topic: Topic, rng: random.Random, used: set[str]) -> str:
    sentence = ""
    for _ in range(REDRAWS):
        sentence = _sentence(topic, rng)
        if sentence not in used:
            break
    used.add(sentence)
    return sentence


def _sentence(topic: Topic, rng: random.Random) -> str:
    tables = (topic.people, topic.verbs, topic.things, topic.places, topic.looks, TIMES, ENDINGS, OPENINGS, REMARKS)
    pattern = PATTERNS[int(rng.random() * len(PATTERNS))]
    parts = [
        piece if isinstance(piece, str) else tables[piece][int(rng.random() * len(tables[piece]))] for piece in pattern
    ]
    text = "".join(parts)
    return text[0].upper() + text[1:]


GENERATORS: Mapping[str, Callable[[int, int], str]] = {"mixed": mixed, "repeat": repeat, "noise": noise}
"""Haystack name -> function of (characters, seed)."""
