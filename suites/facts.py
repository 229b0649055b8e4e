"""Facts to hide: seeded draws from a bank of wordings, and the way back from a prompt to its answer.

All wording lives in `data/needles.LANGUAGE.yaml`; a further language is a further file. `Draw` fills templates so that no
key and no value comes twice in one prompt; `asked`, `recognise` and `find` are what the reference solvers are made of:
they read the rendered prompt and nothing else.
"""

import functools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from string import Formatter
from typing import Any

import yaml

from longreach.harness.errors import ConfigError
from longreach.harness.sample import Message

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Capitals of codes: without I and O, which look like digits."""
MIXED = "mixed"
"""Language parameter: any of them, drawn sample by sample."""
TRIES = 1000
"""Draws after which a pool counts as used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One kind of fact: sentences with slots, and the question about them."""

    needles: tuple[str, ...]
    """Variants, links of a chain, or outdated and current: the task knows which."""
    question: str
    value: str = "number"
    """Pool that `{value}` is drawn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What a slot is filled from: a mask, a range of numbers, or a form with lists of parts."""

    mask: str = ""
    """`#` is a digit (never 0 in front), `@` a capital letter; other characters stand for themselves."""
    first: int = 0
    last: int = 0
    form: str = ""
    parts: tuple[tuple[str, ...], ...] = ()
    lower: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """All wording of one language."""

    language: str
    head: str
    """What stands before the haystack."""
    tail: str
    """What stands behind it, with `{question}` and `{ask}`."""
    asks: Mapping[str, str]
    """Last line of the prompt by task or kind of answer."""
    pools: Mapping[str, Pool]
    groups: Mapping[str, tuple[Template, ...]]
    arith: Mapping[str, str]
    lures: tuple[str, ...]
    """Sentences that look like instructions to the reader."""

    def closing(self, ask: str, question: str) -> str:
        """The text behind the haystack."""
        return self.tail.format(question=question, ask=self.asks[ask])


def languages() -> tuple[str, ...]:
    """Languages that a bank exists for."""
    names = (entry.name for entry in resources.files("longreach.suites").joinpath("data").iterdir())
    return tuple(sorted(name.split(".")[1] for name in names if name.startswith("needles.") and name.endswith(".yaml")))


def check_language(language: str) -> None:
    """Raise ValueError if `language` is neither one that a bank exists for nor "mixed"."""
    if language not in (*languages(), MIXED):
        raise ValueError(f"there is no wording in language {language!r}; one of: {', '.join((*languages(), MIXED))}")


def draw_bank(language: str, rng: random.Random) -> "Bank":
    """The bank of a language; of one drawn by `rng` for "mixed"."""
    return bank(rng.choice(languages()) if language == MIXED else language)


@functools.cache
def bank(language: str) -> Bank:
    """The bank of one language, read once.

    Raises:
        ConfigError: there is none.
    """
    if language not in languages():
        raise ConfigError(f"there is no wording in language {language!r}; one of: {', '.join(languages())}")
    text = resources.files("longreach.suites").joinpath("data", f"needles.{language}.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    named = {key: data.pop(key) for key in ("language", "head", "tail", "asks", "arith")}
    lures = tuple(data.pop("lures"))
    pools = {name: _pool(spec) for name, spec in data.pop("pools").items()}
    groups = {name: tuple(_template(entry) for entry in entries) for name, entries in data.items()}
    return Bank(**named, pools=pools, groups=groups, lures=lures)


def _pool(spec: Mapping[str, Any]) -> Pool:
    return Pool(
        mask=spec.get("mask", ""),
        first=spec.get("from", 0),
        last=spec.get("to", 0),
        form=spec.get("form", ""),
        parts=tuple(tuple(part) for part in spec.get("parts", ())),
        lower=spec.get("lower", False),
    )


def _template(entry: Mapping[str, Any]) -> Template:
    return Template(needles=tuple(entry["needles"]), question=entry["question"], value=entry.get("value", "number"))


@dataclass(slots=True)
class Draw:
    """Fills slots for one prompt; nothing that it gave is, or is part of, anything that it gave before."""

    bank: Bank
    rng: random.Random
    _used: list[str] = field(default_factory=list)

    def template(self, group: str) -> Template:
        """One template of a group."""
        return self.rng.choice(self.bank.groups[group])

    def one(self, pool: str, *, like: str = "") -> str:
        """A new entry of `pool`; with `like`, one that begins with the same part as that earlier entry."""
        source = self.bank.pools[pool]
        kept = next((part for part in source.parts[0] if like.startswith(part)), None) if like else None
        for _ in range(TRIES):
            entry = self._entry(source, kept)
            if not any(entry in used or used in entry for used in self._used):
                self._used.append(entry)
                return entry
        raise ConfigError(f"pool {pool!r} of language {self.bank.language!r} has no unused entry left; ask for fewer")

    def _entry(self, pool: Pool, kept: str | None) -> str:
        if pool.mask:
            return "".join(self._sign(sign, index) for index, sign in enumerate(pool.mask))
        if pool.last:
            return str(self.rng.randrange(pool.first, pool.last + 1))
        chosen = [self.rng.choice(part) for part in pool.parts]
        if kept is not None:
            chosen[0] = kept
        entry = pool.form.format(*chosen)
        return entry.lower() if pool.lower else entry

    def _sign(self, sign: str, index: int) -> str:
        if sign == "#":
            return str(self.rng.randrange(1 if index == 0 else 0, 10))
        return self.rng.choice(LETTERS) if sign == "@" else sign


def asked(messages: Sequence[Message], ask: str) -> Iterator[tuple[Bank, str, str]]:
    """Bank, text and question of a prompt that ends with the last line of `ask`, in whatever language.

    The text is all that stands before the question in the last message; its beginning may be cut off.
    """
    content = messages[-1].content if messages else ""
    for language in languages():
        found = bank(language)
        before, _, after = found.closing(ask, "\0").partition("\0")
        if content.endswith(after):
            text, mark, question = content[: -len(after)].rpartition(before)
            if mark:
                yield found, text, question


def recognise(templates: Sequence[Template], question: str) -> tuple[Template, dict[str, str]] | None:
    """The template that `question` was made from and what filled its slots."""
    for template in templates:
        match = pattern(template.question, {}).fullmatch(question)
        if match:
            return template, match.groupdict()
    return None


def find(sentence: str, text: str, known: Mapping[str, str]) -> list[dict[str, str]]:
    """What fills the open slots of `sentence` wherever it stands in `text`, in order."""
    return [match.groupdict() for match in pattern(sentence, known).finditer(text)]


_FILLING = r"(?!\s)[^\n.,:;?!。，：；？！\"<>\[\]]"
"""What fills an open slot: no blank first, no stops, nothing that parts the fields of a document."""


@functools.lru_cache(maxsize=4096)
def _compiled(sentence: str, known: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    filled = dict(known)
    seen: set[str] = set()
    pieces = []
    for literal, slot, _, _ in Formatter().parse(sentence):
        pieces.append(re.escape(literal))
        if slot is None:
            continue
        if slot in filled:
            pieces.append(re.escape(filled[slot]))
        elif slot in seen:
            pieces.append(f"(?P={slot})")
        else:
            seen.add(slot)
            pieces.append(rf"(?P<{slot}>{_FILLING}{{1,80}}?)")
    return re.compile("".join(pieces))


def pattern(sentence: str, known: Mapping[str, str]) -> re.Pattern[str]:
    """A regular expression for a sentence whose slots are filled by `known` or left open as named groups."""
    return _compiled(sentence, tuple(sorted(known.items())))
