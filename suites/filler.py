"""Filler text made here, seeded, without download, in every language: `repeat`, `noise` and `mixed`.

`repeat` is one sentence again and again: the easiest haystack. `noise` is the line of RULER's synthetic tasks (Hsieh
et al. 2024, section 3), in English whatever the language. `mixed` wanders through everyday topics in paragraphs of a
few sentences; it holds no digits and nothing that reads as an instruction, and a sentence hardly ever comes twice. In
language "mixed" the paragraphs take turns in all of them.
"""

import functools
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

from longreach.harness.sample import digest
from longreach.suites import filler_words
from longreach.suites.filler_words import Topic

REPEATED = "It rained all day in the valley."
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
REDRAWS = 8
"""Tries for a sentence that has not been used yet."""
LANGUAGES = ("en", "pt", "ru", "zh")
"""Languages of the filler."""
MIXED = "mixed"
"""All of them, paragraph by paragraph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The word tables of one language."""

    patterns: tuple[tuple[str | int, ...], ...]
    """Pieces of a sentence: text, or the number of a table (`filler_words.PERSON`, ...)."""
    shared: tuple[tuple[str, ...], ...]
    """Tables that all topics share: times, endings, openings, remarks."""
    topics: tuple[Topic, ...]
    repeated: str
    """The sentence of `repeat`."""
    joint: str
    """Between two sentences: a blank, or nothing."""
    may_repeat: bool = False
    """True where a sentence may name one thing twice (English: its bytes are pinned)."""


@functools.cache
def words(language: str) -> Words:
    """The tables of one language, read once. The English ones are the module `filler_words`."""
    if language == "en":
        source = filler_words
        shared = (source.TIMES, source.ENDINGS, source.OPENINGS, source.REMARKS)
        return Words(
            patterns=source.PATTERNS,
            shared=shared,
            topics=source.TOPICS,
            repeated=REPEATED,
            joint=" ",
            may_repeat=True,
        )
    file = resources.files("longreach.suites").joinpath("data", f"filler.{language}.yaml")
    data: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Words(
        patterns=tuple(_pattern(text) for text in data["patterns"]),
        shared=tuple(_entries(data[name]) for name in ("times", "endings", "openings", "remarks")),
        topics=tuple(
            Topic(*(_entries(topic[name]) for name in ("people", "verbs", "things", "places", "looks")))
            for topic in data["topics"]
        ),
        repeated=data["repeated"],
        joint=data["joint"],
    )


_TABLES = ("person", "verb", "thing", "place", "look", "time", "ending", "opening", "remark")


def _pattern(text: str) -> tuple[str | int, ...]:
    pieces = re.split(r"\{(\w+)\}", text)
    return tuple(_TABLES.index(piece) if at % 2 else piece for at, piece in enumerate(pieces) if piece)


def _entries(table: str) -> tuple[str, ...]:
    """Entries of a table: parted by strokes, ~ for an empty one; a leading comma or blank belongs to an entry."""
    return tuple("" if entry.strip() == "~" else " ".join(entry.split()) for entry in table.split("/"))


def repeat(n_characters: int, seed: int, language: str = "en") -> str:
    """One sentence, again and again, at least `n_characters` long; the seed changes nothing."""
    del seed
    if language == MIXED:
        sentences, joint = [words(each).repeated for each in LANGUAGES], " "
    else:
        sentences, joint = [words(language).repeated], words(language).joint
    unit = joint.join(sentences)
    return joint.join([unit] * (n_characters // (len(unit) + len(joint)) + 1))


def noise(n_characters: int, seed: int, language: str = "en") -> str:
    """RULER's noise line, one copy a line, at least `n_characters` long; nothing else changes it."""
    del seed, language
    return "\n".join([NOISE] * (n_characters // (len(NOISE) + 1) + 1))


def mixed(n_characters: int, seed: int, language: str = "en") -> str:
    """Paragraphs on everyday topics, at least `n_characters` long: a pure function of its arguments."""
    writer = Writer(seed, language)
    paragraphs: list[str] = []
    missing = n_characters
    while missing > 0:
        paragraphs.append(writer.sentences(3, 7))
        missing -= len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)


class Writer:
    """Writes sentences on one topic after the other; hardly ever the same one twice."""

    def __init__(self, seed: int, language: str) -> None:
        key = ["mixed", 1, seed] if language == "en" else ["mixed", 1, seed, language]
        self.rng = random.Random(int(digest(key)[:32], 16))
        self._languages = LANGUAGES if language == MIXED else (language,)
        self._used: set[str] = set()
        self._topic = -1
        self._turn = -1

    @property
    def words(self) -> Words:
        """The tables of the language whose turn it is."""
        return words(self._languages[self._turn % len(self._languages)])

    @property
    def topic(self) -> Topic:
        """What the last sentences were about."""
        return self.words.topics[self._topic]

    def sentences(self, least: int, most: int) -> str:
        """From `least` to `most` sentences on a topic other than the last ones'."""
        self._turn += 1
        n_topics = len(self.words.topics)
        self._topic = (self._topic + 1 + int(self.rng.random() * (n_topics - 1))) % n_topics
        n = least + int(self.rng.random() * (most - least + 1))
        return self.words.joint.join([self._fresh() for _ in range(n)])

    def _fresh(self) -> str:
        sentence = ""
        for _ in range(REDRAWS):
            sentence = write_sentence(self.words, self.topic, self.rng)
            if sentence not in self._used:
                break
        self._used.add(sentence)
        return sentence


def write_sentence(source: Words, topic: Topic, rng: random.Random) -> str:
    """One sentence about a topic."""
    tables = (topic.people, topic.verbs, topic.things, topic.places, topic.looks, *source.shared)
    pattern = source.patterns[int(rng.random() * len(source.patterns))]
    parts: list[str] = []
    for piece in pattern:
        entry = piece if isinstance(piece, str) else draw_entry(tables[piece], rng)
        while not (isinstance(piece, str) or source.may_repeat) and entry in parts:
            entry = draw_entry(tables[piece], rng)
        parts.append(entry)
    text = "".join(parts)
    return text[0].upper() + text[1:]


def draw_entry(table: tuple[str, ...], rng: random.Random) -> str:
    """One entry of a table, each as likely as any other."""
    return table[int(rng.random() * len(table))]


GENERATORS: Mapping[str, Callable[[int, int, str], str]] = {"mixed": mixed, "repeat": repeat, "noise": noise}
"""Haystack name -> function of (characters, seed, language)."""
