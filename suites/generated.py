"""The texts that suites make themselves, by spec: `mixed`, `repeat`, `noise`, or a structure, each with /LANGUAGE.

Without a language they are in English: `noise`, `mixed/zh`, `json/en`, `chat/mixed`. `snippets/TEXT` is a text from outside
in shuffled pieces.
"""

from longreach.suites.filler import GENERATORS, MIXED, NOISE, Writer
from longreach.suites.layouts import LINES, Made, made_of
from longreach.suites.snippets import NAME as SNIPPETS
from longreach.suites.snippets import shuffled
from longreach.suites.structures import STRUCTURES

CHARACTERS_PER_TOKEN = 8
"""Characters of generated text per token of its tier: about 1.6 times what prose needs."""
CHARACTERS_PER_TOKEN_OF = {"zh": 3, MIXED: 5}
"""The same for languages where it is another number."""


def _split(spec: str) -> tuple[str, str]:
    name, _, language = spec.partition("/")
    return name, language or "en"


def is_generated(spec: str) -> bool:
    """True for the specs of this module."""
    return _split(spec)[0] in {*GENERATORS, *STRUCTURES, SNIPPETS}


def haystack_spec(haystack: str, language: str, structure: str) -> str:
    """The spec for a task's parameters; texts from outside are what they are.

    Raises:
        ValueError: a structure together with another haystack than `mixed`.
    """
    if structure:
        if structure not in STRUCTURES:
            raise ValueError(f"structure {structure!r} is not one of {', '.join(STRUCTURES)}")
        if haystack != "mixed":
            raise ValueError(
                f"structure {structure!r} is made of records of its own and takes no haystack {haystack!r}; leave one out"
            )
        return f"{structure}/{language}"
    return f"{haystack}/{language}" if haystack in ("mixed", "repeat") and language != "en" else haystack


def characters_per_token(spec: str) -> int:
    """Characters to be made for each token of a window's tier."""
    return CHARACTERS_PER_TOKEN_OF.get(_split(spec)[1], CHARACTERS_PER_TOKEN)


def generate(spec: str, n_characters: int, seed: int) -> Made:
    """The text of `spec`, at least `n_characters` long (of a text from outside: as long as it is), a pure function."""
    name, language = _split(spec)
    if name == "noise":
        return made_of([("", NOISE)] * (n_characters // (len(NOISE) + 1) + 1), LINES)
    if name == SNIPPETS:
        return Made(text=shuffled(language, n_characters, seed))
    if name in GENERATORS:
        return Made(text=GENERATORS[name](n_characters, seed, language))
    structure = STRUCTURES[name]
    writer = Writer(seed, language)
    elements: list[tuple[str, str]] = []
    missing = n_characters
    while missing > 0:
        free = writer.sentences(1, 3)
        elements.append((structure.opening(writer.topic, writer.rng), free))
        missing -= len(elements[-1][0]) + len(free)
    return made_of(elements, structure.layout)
