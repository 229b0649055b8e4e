"""Haystacks that are documents: JSON, XML, CSV, YAML, a log, Python code, a chat. Each needle is an element of its own.

Records are made from the filler's vocabulary. Every element ends with its free text (a field, a message, a constant),
so that the last one can be cut there and closed: the whole is valid at any length. Numbers in them have at most two
digits, which no needle asks for.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from longreach.suites.filler import draw_entry
from longreach.suites.filler_words import Topic
from longreach.suites.layouts import Layout

Opening = Callable[[Topic, random.Random], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """One format."""

    layout: Layout
    opening: Opening
    """(topic, rng) -> what stands before the free text of an element."""
    quote: Callable[[str], str]
    """A text as it is written in this format's free text."""
    first: str = ""
    """What opens the document."""
    last: str = ""
    """What ends its last element and the document."""

    def element(self, text: str, topic: Topic, rng: random.Random) -> str:
        """An element that holds `text`."""
        return self.opening(topic, rng) + self.quote(text) + self.layout.close


def _two_digits(limit: int, rng: random.Random) -> str:
    return f"{int(rng.random() * limit):02d}"


def _time(rng: random.Random) -> str:
    return f"{_two_digits(24, rng)}:{_two_digits(60, rng)}"


def _json(topic: Topic, rng: random.Random) -> str:
    fields = (
        f'"at": "{_time(rng)}", "who": "{draw_entry(topic.people, rng)}", "where": "{draw_entry(topic.places, rng)}"'
    )
    return f'{{{fields}, "note": "'


def _xml(topic: Topic, rng: random.Random) -> str:
    who, where = escape(draw_entry(topic.people, rng)), escape(draw_entry(topic.places, rng))
    return f'<record at="{_time(rng)}"><who>{who}</who><where>{where}</where><note>'


def _csv(topic: Topic, rng: random.Random) -> str:
    return f'{_time(rng)},"{draw_entry(topic.people, rng)}","{draw_entry(topic.places, rng)}","'


def _yaml(topic: Topic, rng: random.Random) -> str:
    who, where = draw_entry(topic.people, rng), draw_entry(topic.places, rng)
    return f'- at: "{_time(rng)}"\n  who: "{who}"\n  where: "{where}"\n  note: "'


def _log(topic: Topic, rng: random.Random) -> str:
    del topic
    level = draw_entry(("INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"), rng)
    return f"{_time(rng)}:{_two_digits(60, rng)} {level} [{draw_entry(_NOUNS, rng)}-{_two_digits(30, rng)}] "


def _code(topic: Topic, rng: random.Random) -> str:
    del topic
    verb, noun, unit = draw_entry(_VERBS, rng), draw_entry(_NOUNS, rng), draw_entry(_UNITS, rng)
    body = (
        f"def {verb}_{noun}({unit}):\n    return {unit} {draw_entry(('+', '-', '*'), rng)} {2 + int(rng.random() * 90)}"
    )
    return f'{body}\n\n{draw_entry(_VERBS, rng).upper()}_{draw_entry(_NOUNS, rng).upper()}_{draw_entry(_ENDS, rng)} = "'


def _chat(topic: Topic, rng: random.Random) -> str:
    del topic
    return f"[{_time(rng)}] {draw_entry(_NICKNAMES, rng)}: "


_VERBS = ("check", "sort", "count", "move", "paint", "weigh", "pack", "clean", "plan", "label", "fetch", "mend", "list")
_NOUNS = (
    "garden",
    "harbour",
    "depot",
    "kitchen",
    "workshop",
    "archive",
    "orchestra",
    "orchard",
    "market",
    "mill",
    "farm",
)
_UNITS = ("days", "items", "boxes", "rows", "hours", "sacks", "steps", "pages", "visits")
_ENDS = ("NOTE", "TEXT", "REMARK", "LABEL", "HINT", "MESSAGE", "TITLE")
_NICKNAMES = (
    "Anna",
    "Ben",
    "Chen",
    "Dora",
    "Emil",
    "Faye",
    "Gleb",
    "Hana",
    "Igor",
    "Joao",
    "Kim",
    "Lena",
    "Mila",
    "Nuno",
)


def _in_quotes(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _in_cell(text: str) -> str:
    return text.replace('"', '""')


STRUCTURES: Mapping[str, Structure] = {
    "json": Structure(
        layout=Layout(close='"},'), opening=_json, quote=_in_quotes, first='{"records": [\n', last='"}\n]}'
    ),
    "xml": Structure(
        layout=Layout(close="</note></record>"),
        opening=_xml,
        quote=escape,
        first="<records>\n",
        last="</note></record>\n</records>",
    ),
    "csv": Structure(layout=Layout(close='"'), opening=_csv, quote=_in_cell, first="at,who,where,note\n", last='"'),
    "yaml": Structure(layout=Layout(close='"'), opening=_yaml, quote=_in_quotes, first="records:\n", last='"'),
    "log": Structure(layout=Layout(), opening=_log, quote=_on_one_line),
    "code": Structure(layout=Layout(close='"', separator="\n\n"), opening=_code, quote=_in_quotes, last='"'),
    "chat": Structure(layout=Layout(), opening=_chat, quote=_on_one_line),
}
"""Structure name -> format."""
