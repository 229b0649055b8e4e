"""Where needles go relative to the one that a point's depth is about, and how a sample of several needles is made."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from longreach.harness.sample import Point, Sample
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.facts import Bank, check_language
from longreach.suites.filler import words
from longreach.suites.generated import haystack_spec
from longreach.suites.haystack import Needle, build
from longreach.suites.layouts import LINES
from longreach.suites.structures import STRUCTURES, Structure


def check_setting(haystack: str, language: str, structure: str) -> None:
    """Raise ValueError for a language or structure that does not exist, or that does not go with the haystack."""
    check_language(language)
    haystack_spec(haystack, language, structure)


def depth_of(point: Point) -> float:
    """The depth of a point of a task that has depths."""
    if point.depth is None:
        raise ValueError(f"task {point.task!r} places its needle at a depth, and this point has none")
    return point.depth


def to_the_end(depth: float, n: int) -> list[float]:
    """`n` depths, the first at `depth`, the others evenly spread from there to the end (needle-in-a-haystack's rule)."""
    return [depth + (1.0 - depth) * index / (n - 1) for index in range(n)] if n > 1 else [depth]


def around(depth: float, n: int, rng: random.Random) -> list[float]:
    """`n` ascending depths over the whole haystack, one in each of `n` equal strata, none close to `depth`."""
    gap = 0.4 / (n + 1)
    low, high = max(0.0, depth - gap), min(1.0, depth + gap)
    room = 1.0 - (high - low)
    spots = [(index + rng.random()) / n * room for index in range(n)]
    return [spot if spot < low else spot + high - low for spot in spots]


def wrong_lists(items: Sequence[str], stranger: str) -> tuple[str, ...]:
    """Plausible wrong answers to "list all": the last one forgotten, and taken for another."""
    lists = (items[:-1], [*items[:-1], stranger])
    return tuple(", ".join(entries) for entries in lists if len(entries) > 1)


def hide(
    point: Point,
    tokenizer: Tokenizer,
    *,
    haystack: str,
    sought: Sequence[Needle],
    others: Sequence[Needle] = (),
    bank: Bank,
    ask: str,
    question: str,
    reserve: int,
    target: tuple[str, ...],
    language: str = "en",
    structure: str = "",
    choices: tuple[str, ...] = (),
    absent: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    every_depth: bool = False,
    nested: bool = False,
) -> Sample:
    """A prompt with needles in order of depth; `placed` begins with the sought ones, in the order given.

    Needles of equal depth stand side by side: at depth 1.0 all that is sought is the end of the haystack.

    Args:
        sought: the needles that the answer needs, the one that the point's depth is about first.
        others: distractors and decoys.
        language: of the filler; "mixed" for all of them in turn.
        structure: format of the haystack; each needle is an element of it, and `extra` says which document it is.
        every_depth: all needles keep to their depths as closely as the first one sought.
        nested: the filler starts with the same words at every length and depth of this index, and is longer at a longer one.
    """
    spec = haystack_spec(haystack, language, structure)
    form = STRUCTURES.get(structure, PLAIN)
    needles = (*sought, *others)
    order = sorted(range(len(needles)), key=lambda index: needles[index].depth)
    groups = [tuple(group) for _, group in groupby(order, key=lambda index: needles[index].depth)]
    texts = [form.quote(needle.text) for needle in needles]
    elements = _elements(structure, [needle.text for needle in needles], bank.language, point)
    together = form.layout.together if structure or haystack == "noise" else words(bank.language).joint.join
    sample = build(
        point,
        tokenizer,
        haystack=spec,
        needles=[
            Needle(text=together([elements[index] for index in group]), depth=needles[group[0]].depth)
            for group in groups
        ],
        head=bank.head + form.first,
        tail=form.last + bank.closing(ask, question),
        reserve=reserve,
        rng=point.rng(),
        target=target,
        choices=choices,
        absent=absent,
        extra={
            "needles": [texts[index] for index in order],
            "sought": texts[: len(sought)],
            "question": question,
            **({"language": bank.language} if language != "en" else {}),
            **({"structure": structure} if structure else {}),
            **(extra or {}),
        },
        anchor=next(at for at, group in enumerate(groups) if 0 in group),
        every_depth=every_depth,
        item=dataclasses.replace(point, task=f"{point.task}#filler", depth=None).paired_rng() if nested else None,
    )
    reached = {index: spot for group, spot in zip(groups, sample.placed, strict=True) for index in group}
    start, end = sample.extra["context"]
    return dataclasses.replace(
        sample,
        placed=tuple(reached[index] for index in range(len(needles))),
        extra={**sample.extra, "context": [start - len(form.first), end + len(form.last)]},
    )


PLAIN = Structure(layout=LINES, opening=lambda topic, rng: "", quote=str)
"""Running text: a needle is what it is."""


def _elements(structure: str, texts: Sequence[str], language: str, point: Point) -> list[str]:
    """The texts as elements of a document; what else these say is the same at every length."""
    if not structure:
        return list(texts)
    rng = dataclasses.replace(point, task=f"{point.task}#elements").paired_rng()
    return [STRUCTURES[structure].element(text, rng.choice(words(language).topics), rng) for text in texts]
