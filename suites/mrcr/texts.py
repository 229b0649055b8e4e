"""The short texts of mrcr.synth, read from `data/mrcr.yaml`: keys (form, topic), requests, and replies made by a grammar.

A reply is a plan of facts with invented names and numbers: an opening of its form, sentences in random order, a closing.
Needles and filler come from the same grammar, so that nothing but the request tells them apart.
"""

import functools
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from string import Formatter
from typing import Any, NamedTuple

import yaml

SENTENCES = (4, 6)
"""Sentences of a reply between its opening and its closing, fewest and most."""
FEWEST_CHARACTERS = 250
"""Of a reply: above 200 characters `SequenceMatcher` leaves frequent characters out, and so must every needle."""
MOST_CHARACTERS = 480
_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeiou]|hour)")
Table = tuple[str, ...]


class Key(NamedTuple):
    """What a request asks for."""

    form: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """All wording of the task."""

    intro: str
    """The first message, example included."""
    ready: str
    request: str
    question: str
    elastic_request: str
    elastic_reply: str
    articles: Mapping[str, str]
    """Form -> form with its article."""
    forms: Mapping[str, Table]
    """target or filler -> forms."""
    topics: Mapping[str, Table]
    """target or filler -> topics."""
    openings: Mapping[str, Table]
    """By form."""
    closings: Table
    body: Table
    tables: Mapping[str, Table]
    """Slot -> what may fill it."""
    first: Table
    last: Table
    short_words: Table

    def ask(self, key: Key) -> str:
        """The request for a text."""
        return self.request.format(form=self.articles[key.form], topic=key.topic)

    def reply(self, key: Key, rng: random.Random) -> str:
        """A text of FEWEST_CHARACTERS to MOST_CHARACTERS about a key; another one each time."""
        while True:
            sentences = rng.sample(self.body, rng.randint(*SENTENCES))
            parts = (rng.choice(self.openings[key.form]), *sentences, rng.choice(self.closings))
            text = " ".join(self._filled(part, key, rng) for part in parts)
            if FEWEST_CHARACTERS <= len(text) <= MOST_CHARACTERS:
                return text

    def _filled(self, pattern: str, key: Key, rng: random.Random) -> str:
        written = "".join(before + self._value(slot, key, rng) for before, slot in _pieces(pattern))
        written = _BEFORE_VOWEL.sub(r"\1n ", written)
        start = 1 if written.startswith('"') else 0
        return written[:start] + written[start : start + 1].upper() + written[start + 1 :]

    def _value(self, slot: str, key: Key, rng: random.Random) -> str:
        if slot == "name":
            return rng.choice(self.first) + rng.choice(self.last)
        if slot == "n":
            return str(rng.randint(13, 989))
        if slot == "topic":
            return key.topic
        return rng.choice(self.tables[slot]) if slot else ""


@functools.cache
def _pieces(pattern: str) -> tuple[tuple[str, str], ...]:
    """Text and the slot behind it, "" at the end."""
    return tuple((before, slot or "") for before, slot, _, _ in Formatter().parse(pattern))


@functools.cache
def bank() -> Bank:
    """The wording, read once."""
    file = resources.files("longreach.suites").joinpath("data", "mrcr.yaml")
    data: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    forms = {use: tuple(tuple(_table(pair)) for pair in pairs) for use, pairs in data["forms"].items()}
    settings = _table(data["settings"])
    topics = {
        use: tuple(f"{thing} {setting}" for thing in _table(data["things"][use]) for setting in settings)
        for use in ("target", "filler")
    }
    example = {f"example_{name}": text for name, text in data["example"].items()}
    return Bank(
        intro=data["intro"].strip().format(**example),
        ready=data["ready"],
        request=data["request"],
        question=data["question"],
        elastic_request=data["elastic_request"],
        elastic_reply=data["elastic_reply"],
        articles={form: article for pairs in forms.values() for article, form in pairs},
        forms={use: tuple(form for _, form in pairs) for use, pairs in forms.items()},
        topics=topics,
        openings={form: _table(text) for form, text in data["openings"].items()},
        closings=tuple(data["closings"]),
        body=tuple(data["body"]),
        tables={name: _table(text) for name, text in data["tables"].items()},
        first=_table(data["names"]["first"]),
        last=_table(data["names"]["last"]),
        short_words=_table(data["short_words"]),
    )


def _table(text: str) -> Table:
    """Entries parted by strokes."""
    return tuple(" ".join(entry.split()) for entry in text.split("/"))
