"""The questions of the ten tasks, and their answers as a reader infers them from facts alone.

`answer` knows nothing of the world that a story was drawn from: it follows the sentences, and gives None where they leave
the answer open.
"""

import re
from collections.abc import Sequence

from longreach.suites.babi.world import ACTORS, OBJECTS, OPPOSITE, PLACES, Fact

NUMBERS = ("none", "one", "two", "three")
LABELS: dict[str, tuple[str, ...]] = {
    **{f"qa{number}": PLACES for number in (1, 2, 3, 4)},
    "qa5": (*ACTORS, *OBJECTS),
    "qa6": ("yes", "no"),
    "qa7": NUMBERS,
    "qa8": (*OBJECTS, "nothing"),
    "qa9": ("yes", "no"),
    "qa10": ("yes", "no", "maybe"),
}
"""Task -> the words that its answers are made of."""

FORMS: dict[str, tuple[str, ...]] = {
    "qa1": ("Where is {actor}?",),
    "qa2": ("Where is the {thing}?",),
    "qa3": ("Where was the {thing} before the {place}?",),
    "qa4": ("What is {side} of the {place}?", "What is the {place} {side} of?"),
    "qa5": (
        "What did {actor} give to {other}?",
        "Who gave the {thing} to {other}?",
        "Who did {actor} give the {thing} to?",
        "Who gave away the {thing}?",
        "Who was given the {thing}?",
    ),
    "qa7": ("How many objects is {actor} carrying?",),
    "qa8": ("What is {actor} carrying?",),
    **dict.fromkeys(("qa6", "qa9", "qa10"), ("Is {actor} in the {place}?",)),
}
"""Task -> its questions."""
_POOLS = {"actor": ACTORS, "other": ACTORS, "thing": OBJECTS, "place": PLACES, "side": tuple(OPPOSITE)}


def _pattern(form: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", form)
    named = (
        f"(?P<{part}>{'|'.join(_POOLS[part])})" if index % 2 else re.escape(part) for index, part in enumerate(parts)
    )
    return re.compile("".join(named))


_PATTERNS = {form: _pattern(form) for forms in FORMS.values() for form in forms}


def questions(task: str, form: str) -> list[str]:
    """Every question of one form that a task may ask."""
    slots = [name for name in _POOLS if f"{{{name}}}" in form]
    found: list[dict[str, str]] = [{}]
    for name in slots:
        found = [{**chosen, name: item} for chosen in found for item in _POOLS[name]]
    return [form.format(**chosen) for chosen in found if chosen.get("actor") != chosen.get("other", "")]


def answer(task: str, facts: Sequence[Fact], question: str) -> tuple[str, ...] | None:
    """What the facts answer; None if they leave it open, or if the question is none of the task's."""
    form, asked = next(
        ((form, match) for form in FORMS[task] if (match := _PATTERNS[form].fullmatch(question))), ("", None)
    )
    if asked is None:
        return None
    slots = asked.groupdict()
    if task == "qa1":
        return _single(_place_of(facts, slots["actor"]))
    if task == "qa2":
        return _single(_track(facts, slots["thing"])[-1])
    if task == "qa3":
        return _single(_before(_track(facts, slots["thing"]), slots["place"]))
    if task == "qa4":
        side = slots["side"] if form.startswith("What is {side}") else OPPOSITE[slots["side"]]
        return _single(_beside(facts, slots["place"], side))
    if task == "qa5":
        return _single(_given(facts, form, slots))
    if task in ("qa7", "qa8"):
        carried = _carried(facts, slots["actor"])
        if carried is None:
            return None
        return (NUMBERS[len(carried)],) if task == "qa7" else carried or ("nothing",)
    return _single(_is_in(facts, slots["actor"], slots["place"]))


def _single(found: str | None) -> tuple[str, ...] | None:
    return None if found is None else (found,)


def _place_of(facts: Sequence[Fact], who: str) -> str | None:
    """Where somebody was last said to go."""
    return next((fact.x for fact in reversed(facts) if fact.kind == "move" and fact.a == who), None)


def _track(facts: Sequence[Fact], thing: str) -> list[str | None]:
    """The places that an object is known to have been in, in order; None for one that is not told. Never empty."""
    holder: str | None = None
    place: dict[str, str] = {}
    track: list[str | None] = [None]

    def now_in(where: str | None) -> None:
        if where != track[-1]:
            track.append(where)

    for fact in facts:
        if fact.kind == "move":
            place[fact.a] = fact.x
            if fact.a == holder:
                now_in(fact.x)
        elif fact.x == thing and fact.kind in ("take", "drop", "give"):
            now_in(place.get(fact.a))
            holder = {"take": fact.a, "drop": None, "give": fact.y}[fact.kind]
    return track


def _before(track: Sequence[str | None], place: str) -> str | None:
    """The place before `place`; None unless it was visited once and where the object came from is told."""
    if track.count(place) != 1:
        return None
    at = track.index(place)
    return track[at - 1] if at else None


def _beside(facts: Sequence[Fact], place: str, side: str) -> str | None:
    """What lies on that side of a place."""
    for fact in facts:
        if fact.kind == "lies" and (fact.x, fact.direction) == (place, side):
            return fact.a
        if fact.kind == "lies" and (fact.a, fact.direction) == (place, OPPOSITE[side]):
            return fact.x
    return None


def _given(facts: Sequence[Fact], form: str, slots: dict[str, str]) -> str | None:
    """The missing part of the one gift that a question is about; None if several could be meant."""
    gifts = [
        fact
        for fact in facts
        if fact.kind == "give"
        and fact.a == slots.get("actor", fact.a)
        and fact.x == slots.get("thing", fact.x)
        and fact.y == slots.get("other", fact.y)
    ]
    if len(gifts) != 1:
        return None
    if form.startswith("What"):
        return gifts[0].x
    return gifts[0].y if form.startswith(("Who did", "Who was")) else gifts[0].a


def _carried(facts: Sequence[Fact], who: str) -> tuple[str, ...] | None:
    """What somebody holds, in the order of OBJECTS; None if nothing at all is told of that person."""
    if not any(who in (fact.a, fact.y) for fact in facts):
        return None
    held: set[str] = set()
    for fact in facts:
        if fact.kind == "take" and fact.a == who or fact.kind == "give" and fact.y == who:
            held.add(fact.x)
        elif fact.kind in ("drop", "give") and fact.a == who:
            held.discard(fact.x)
    return tuple(thing for thing in OBJECTS if thing in held)


def _is_in(facts: Sequence[Fact], who: str, place: str) -> str | None:
    """yes, no, maybe, by the last sentence about somebody; None if that leaves it open."""
    last = next((fact for fact in reversed(facts) if fact.a == who and fact.kind in ("move", "not", "either")), None)
    if last is None:
        return None
    if last.kind == "move":
        return "yes" if last.x == place else "no"
    if last.kind == "not":
        return "no" if last.x == place else None
    return "maybe" if place in (last.x, last.y) else "no"
