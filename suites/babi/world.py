"""A small world of four people, six places and three objects: what happens in it, and the sentences that tell it.

The kinds of action are those of bAbI (Weston et al. 2015): people move, take, drop and give; sentences may also say where
somebody is not, that somebody is in one of two places, or how places lie to each other. Names, nouns and most verbs are
our own, chosen so that none of the generated haystacks holds one of the nouns or names.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

ACTORS = ("Marta", "Oskar", "Tessa", "Felix")
PLACES = ("pantry", "veranda", "scullery", "nursery", "laundry", "balcony")
OBJECTS = ("lantern", "compass", "teapot")
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}

WORDING: dict[str, tuple[str, ...]] = {
    "move": tuple(
        f"{{a}} {verb} the {{x}}." for verb in ("walked to", "moved to", "hurried to", "went over to", "returned to")
    ),
    "take": tuple(
        f"{{a}} {verb} the {{x}}{there}."
        for there in ("", " there")
        for verb in ("took", "picked up", "grabbed", "fetched")
    ),
    "drop": tuple(
        f"{{a}} {verb} the {{x}}{there}."
        for there in ("", " there")
        for verb in ("put down", "dropped", "left", "set aside")
    ),
    "give": tuple(f"{{a}} {verb} the {{x}} to {{y}}." for verb in ("gave", "handed", "passed", "lent")),
    "not": ("{a} is not in the {x}.", "{a} is no longer in the {x}.", "{a} cannot be in the {x}."),
    "either": ("{a} is either in the {x} or in the {y}.", "{a} is in the {x} or in the {y}."),
    "lies": ("The {a} is {direction} of the {x}.", "The {a} lies {direction} of the {x}."),
}
"""Kind of fact -> its sentences: `a` does or is something, `x` and `y` are what it is done to or where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What one sentence of a story says."""

    kind: str
    """A key of WORDING."""
    a: str
    """Who, or for `lies` which place."""
    x: str
    """Place or object."""
    y: str = ""
    """Who receives (give), or the other place (either)."""
    direction: str = ""
    """For `lies`: `a` is in this direction of `x`."""
    text: str = ""
    """The sentence."""


def told(fact: Fact, before: Sequence[Fact], rng: random.Random) -> Fact | None:
    """`fact` in a sentence that none of `before` has; None if all its sentences are used up."""
    used = {other.text for other in before}
    texts = [
        text
        for form in WORDING[fact.kind]
        if (text := form.format(a=fact.a, x=fact.x, y=fact.y, direction=fact.direction)) not in used
    ]
    if not texts:
        return None
    return Fact(kind=fact.kind, a=fact.a, x=fact.x, y=fact.y, direction=fact.direction, text=rng.choice(texts))


def _pattern(kind: str, form: str) -> str:
    actors, places, objects = ("|".join(names) for names in (ACTORS, PLACES, OBJECTS))
    slots = {
        "a": places if kind == "lies" else actors,
        "x": objects if kind in ("take", "drop", "give") else places,
        "y": actors if kind == "give" else places,
        "direction": "|".join(OPPOSITE),
    }
    parts = re.split(r"\{(\w+)\}", form)
    return "".join(f"(?P<{part}>{slots[part]})" if index % 2 else re.escape(part) for index, part in enumerate(parts))


_PATTERNS = tuple((kind, re.compile(r"\b" + _pattern(kind, form))) for kind, forms in WORDING.items() for form in forms)


def read_facts(text: str) -> list[Fact]:
    """The facts that a text tells, in its order: its sentences are looked for wherever they stand."""
    found = [
        (match.start(), Fact(kind=kind, text=match.group(), **match.groupdict()))
        for kind, pattern in _PATTERNS
        for match in pattern.finditer(text)
    ]
    return [fact for _, fact in sorted(found, key=lambda pair: pair[0])]


@dataclass(slots=True)
class World:
    """What is really so, hidden starts included: labels come from here, never from the sentences."""

    place: dict[str, str]
    """Actor -> where."""
    holder: dict[str, str]
    """Object -> who holds it; missing: it lies somewhere."""
    track: dict[str, list[str]]
    """Object -> the places it has been in, in order; the last is where it is."""
    gives: list[tuple[str, str, str]] = field(default_factory=list)
    """(giver, object, receiver) in order."""

    @classmethod
    def drawn(cls, rng: random.Random) -> "World":
        """Everybody and everything somewhere, unknown to the reader."""
        return cls(
            place={actor: rng.choice(PLACES) for actor in ACTORS},
            holder={},
            track={thing: [rng.choice(PLACES)] for thing in OBJECTS},
        )

    def possible(self, kind: str) -> list[Fact]:
        """Every fact of a kind that the rules allow now: a move changes the place, hands take what lies where they are."""
        if kind == "move":
            return [Fact(kind=kind, a=who, x=to) for who in ACTORS for to in PLACES if to != self.place[who]]
        if kind == "take":
            return [
                Fact(kind=kind, a=who, x=thing)
                for who in ACTORS
                for thing in OBJECTS
                if thing not in self.holder and self.track[thing][-1] == self.place[who]
            ]
        if kind == "drop":
            return [Fact(kind=kind, a=who, x=thing) for thing, who in self.holder.items()]
        return [
            Fact(kind=kind, a=who, x=thing, y=to)
            for thing, who in self.holder.items()
            for to in ACTORS
            if to != who and self.place[to] == self.place[who]
        ]

    def happen(self, fact: Fact) -> None:
        """Carries a move, take, drop or give out."""
        if fact.kind == "move":
            self.place[fact.a] = fact.x
            for thing, who in self.holder.items():
                if who == fact.a:
                    self.track[thing].append(fact.x)
        elif fact.kind == "take":
            self.holder[fact.x] = fact.a
        elif fact.kind == "drop":
            del self.holder[fact.x]
        elif fact.kind == "give":
            self.holder[fact.x] = fact.y
            self.gives.append((fact.a, fact.x, fact.y))

    def carried(self, who: str) -> tuple[str, ...]:
        """What somebody holds, in the order of OBJECTS."""
        return tuple(thing for thing in OBJECTS if self.holder.get(thing) == who)
