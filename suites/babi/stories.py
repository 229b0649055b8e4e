"""Stories of the ten tasks: drawn until the world gives the wanted answer, and the sentences alone do too.

Labels are drawn first, so that each is as frequent as any other. A story is taken only if a reader of its sentences comes
to the label that the world gives, and if each of its supporting facts is needed: without it the answer is another one, or
open. Source of the rules: the bAbI tasks (Weston et al. 2015) as BABILong (Kuratov et al. 2024) uses them.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longreach.suites.babi.questions import FORMS, LABELS, NUMBERS, answer, questions
from longreach.suites.babi.world import ACTORS, OBJECTS, OPPOSITE, PLACES, Fact, World, told

TRIES = 20_000
"""Stories drawn for one label before giving up; a few hundred are needed for the rarest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a task's stories are made of."""

    n_facts: tuple[int, int]
    """Fewest and most facts."""
    actions: tuple[str, ...] = ("move",)
    """Kinds of fact, as often as they are named."""
    n_support: tuple[int, int] = (1, 1)
    """Fewest and most supporting facts."""


KINDS: dict[str, Kind] = {
    "qa1": Kind(n_facts=(2, 10)),
    "qa2": Kind(n_facts=(4, 16), actions=("move", "take", "drop"), n_support=(2, 2)),
    "qa3": Kind(n_facts=(5, 18), actions=("move", "move", "take", "drop"), n_support=(3, 3)),
    "qa4": Kind(n_facts=(2, 2), actions=("lies",)),
    "qa5": Kind(n_facts=(4, 16), actions=("move", "take", "give", "give")),
    "qa6": Kind(n_facts=(2, 10)),
    "qa7": Kind(n_facts=(4, 14), actions=("move", "take", "take", "drop", "give"), n_support=(1, 8)),
    "qa8": Kind(n_facts=(4, 14), actions=("move", "take", "take", "drop", "give"), n_support=(1, 8)),
    "qa9": Kind(n_facts=(2, 10), actions=("move", "move", "not")),
    "qa10": Kind(n_facts=(2, 10), actions=("move", "move", "either")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Facts in order, a question and its answer."""

    facts: tuple[Fact, ...]
    question: str
    answer: tuple[str, ...]
    """One label; for qa8 the objects in the order of OBJECTS, or nothing."""
    support: tuple[int, ...]
    """Indices of the supporting facts, ascending."""


def tell(task: str, rng: random.Random) -> Story:
    """A story of a task."""
    wanted = _label(task, rng)
    form = _form(task, wanted, rng)
    everything = questions(task, form)
    for _ in range(TRIES):
        facts, truth = _draw(task, rng)
        fitting = [question for question in everything if answer(task, facts, question) == wanted]
        rng.shuffle(fitting)
        for question in fitting:
            support = supporting(task, facts, question)
            fewest, most = KINDS[task].n_support
            if fewest <= len(support) <= most and truth(question, wanted):
                return Story(facts=tuple(facts), question=question, answer=wanted, support=support)
    raise AssertionError(f"no story of {task} has the answer {wanted}")


def supporting(task: str, facts: Sequence[Fact], question: str) -> tuple[int, ...]:
    """Indices of the facts without which the question has another answer, or none."""
    whole = answer(task, facts, question)
    return tuple(
        index for index in range(len(facts)) if answer(task, [*facts[:index], *facts[index + 1 :]], question) != whole
    )


def _label(task: str, rng: random.Random) -> tuple[str, ...]:
    """An answer: every label is as likely; lists of qa8 are as likely to hold nothing, one, two or three objects."""
    if task != "qa8":
        return (rng.choice(LABELS[task]),)
    chosen = rng.sample(OBJECTS, rng.randrange(len(NUMBERS)))
    return tuple(thing for thing in OBJECTS if thing in chosen) or ("nothing",)


def _form(task: str, wanted: tuple[str, ...], rng: random.Random) -> str:
    forms = FORMS[task]
    if task == "qa5":
        forms = tuple(form for form in forms if form.startswith("What") == (wanted[0] in OBJECTS))
    return rng.choice(forms)


Truth = Callable[[str, tuple[str, ...]], bool]
"""Does the world agree that a question has an answer?"""


def _draw(task: str, rng: random.Random) -> tuple[list[Fact], Truth]:
    """Facts of a story, and what is really so at its end."""
    if task == "qa4":
        return _line(rng)
    kind, world, facts = KINDS[task], World.drawn(rng), list[Fact]()
    n_facts = rng.randint(*kind.n_facts)
    while len(facts) < n_facts:
        action = rng.choice(kind.actions)
        possible = world.possible(action) if action not in ("not", "either") else _hints(action, world, rng)
        fact = told(rng.choice(possible), facts, rng) if possible else None
        if fact is not None:
            world.happen(fact)
            facts.append(fact)
    return facts, lambda question, wanted: _agrees(task, world, question, wanted)


def _hints(action: str, world: World, rng: random.Random) -> list[Fact]:
    """Where somebody is not, or one of two places where somebody is, after a move that is not told."""
    who = rng.choice(ACTORS)
    left = world.place[who]
    world.place[who] = rng.choice([place for place in PLACES if place != left])
    if action == "not":
        return [Fact(kind=action, a=who, x=left)]
    both = [world.place[who], rng.choice([place for place in PLACES if place != world.place[who]])]
    rng.shuffle(both)
    return [Fact(kind=action, a=who, x=both[0], y=both[1])]


def _line(rng: random.Random) -> tuple[list[Fact], Truth]:
    """Three places in a line, told by two sentences about the one in the middle."""
    first, middle, last = rng.sample(PLACES, 3)
    side = rng.choice(tuple(OPPOSITE))
    pairs = [(first, middle, side), (middle, last, side)]  # first is on that side of middle, and so on
    facts: list[Fact] = []
    for a, x, direction in rng.sample(pairs, 2):
        turned = rng.random() < 0.5
        fact = (
            Fact(kind="lies", a=x, x=a, direction=OPPOSITE[direction])
            if turned
            else Fact(kind="lies", a=a, x=x, direction=direction)
        )
        said = told(fact, facts, rng)
        assert said is not None, "two sentences for two places"
        facts.append(said)
    spots = {first: 2, middle: 1, last: 0}  # along `side`

    def agrees(question: str, wanted: tuple[str, ...]) -> bool:
        words = question.rstrip("?").split()
        about = next(word for word in words if word in PLACES)
        direction = next(word for word in words if word in OPPOSITE)
        step = 1 if direction == side else -1
        if question.startswith("What is the"):
            step = -step
        return about == middle and spots[wanted[0]] - spots[about] == step

    return facts, agrees


def _agrees(task: str, world: World, question: str, wanted: tuple[str, ...]) -> bool:
    """Whether an answer is true in the world; the words of the question are its only clue to what is asked."""
    words = question.rstrip("?").split()
    who = [word for word in words if word in ACTORS]
    things = [word for word in words if word in OBJECTS]
    places = [word for word in words if word in PLACES]
    if task == "qa1":
        return world.place[who[0]] == wanted[0]
    if task == "qa2":
        return world.track[things[0]][-1] == wanted[0]
    if task == "qa3":
        track = world.track[things[0]]
        return (wanted[0], places[0]) in itertools.pairwise(track) and track.count(places[0]) == 1
    if task == "qa5":
        return any({*who, *things, wanted[0]} <= set(gift) for gift in world.gives)
    if task in ("qa7", "qa8"):
        carried = world.carried(who[0])
        return wanted == ((NUMBERS[len(carried)],) if task == "qa7" else carried or ("nothing",))
    is_there = world.place[who[0]] == places[0]
    return wanted[0] == "maybe" or (wanted[0] == "yes") == is_there
