"""The needles of the nolima.* tasks, read from `data/nolima.yaml`: groups, facts, names, and the pairs that they make.

A pair is one question with one needle: a fact of a group, in one order, asked at one number of hops.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

HOPS = ("direct", "onehop", "twohop")
ORDERS = ("default", "inverted")
"""The name before what is said of the person, or after it, where reading forward cannot yet tell whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What a needle says of a person, and what a question says instead."""

    word: str
    asked: Mapping[str, str]
    """Hops -> what the question says: the word itself, one association away, two."""
    conflicts: tuple[str, ...]
    """Strings that must not stand in the filler: they would suggest another answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Needles and questions of one form."""

    id: str
    reasoning: str
    """world knowledge or commonsense."""
    needles: Mapping[str, str]
    """Order -> sentence with {name} and {word}."""
    questions: Mapping[str, str]
    """Hops -> question with {asked}."""
    distractors: Mapping[str, str]
    """Hops -> sentence that holds the words of the question and tells nothing, with {asked}."""
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One question with one needle."""

    group: Group
    fact: Fact
    order: str
    hops: str

    @property
    def id(self) -> str:
        """Such as `museum/inverted/onehop/the Prado Museum`."""
        return f"{self.group.id}/{self.order}/{self.hops}/{self.fact.word}"

    @property
    def question(self) -> str:
        return self.group.questions[self.hops].format(asked=self.fact.asked[self.hops])

    @property
    def distractor(self) -> str:
        """A sentence with the words of the question that says nothing of anybody."""
        return self.group.distractors[self.hops].format(asked=self.fact.asked[self.hops])

    @property
    def sentence(self) -> str:
        """The needle, with `{name}` still open."""
        return self.group.needles[self.order].replace("{word}", self.fact.word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """All wording of the tasks."""

    head: str
    tail: str
    asks: Mapping[str, str]
    """Variant -> last line of the prompt."""
    choices: str
    names: tuple[str, ...]
    groups: tuple[Group, ...]

    def pairs(self, hops: str, orders: tuple[str, ...] = ORDERS) -> tuple[Pair, ...]:
        """All pairs of a number of hops, in the order of the file."""
        return tuple(
            Pair(group=group, fact=fact, order=order, hops=hops)
            for group in self.groups
            for order in orders
            for fact in group.facts
        )


@functools.cache
def bank() -> Bank:
    """The bank, read once."""
    text = resources.files("longreach.suites").joinpath("data", "nolima.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    groups = tuple(_group(entry) for entry in data.pop("groups"))
    return Bank(groups=groups, names=tuple(data.pop("names")), **data)


def _group(entry: Mapping[str, Any]) -> Group:
    told = entry["distractor"]
    return Group(
        id=entry["id"],
        reasoning=entry["reasoning"],
        needles=entry["needles"],
        questions=entry["questions"],
        distractors=dict.fromkeys(HOPS[1:], told) if isinstance(told, str) else told,
        facts=tuple(_fact(fact) for fact in entry["facts"]),
    )


def _fact(entry: Mapping[str, Any]) -> Fact:
    asked = {"direct": entry["word"], "onehop": entry["onehop"], "twohop": entry["twohop"]}
    own = (*asked.values(), *entry.get("conflicts", ()))
    return Fact(word=entry["word"], asked=asked, conflicts=tuple(dict.fromkeys(_bare(text) for text in own)))


def _bare(text: str) -> str:
    """Without a leading article: "Rijksmuseum" is looked for, with or without "the"."""
    first, _, rest = text.partition(" ")
    return rest if first.lower() in ("the", "a", "an") and rest else text
