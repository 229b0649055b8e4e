"""RULER's variable tracking: which variables share one value, through a chain of assignments in noise.

Source: Hsieh et al. 2024, "RULER", section 3 and data/synthetic/variable_tracking.py of github NVIDIA/RULER at c3f5e3b
(variant `head`: one statement a line, example value redrawn, "assigned" spelt right; `2024`: as it was up to early 2025).
The strings below are theirs, literally. Example: "VAR ABCDE = 54321", "VAR FGHIJ = VAR ABCDE " and the question for 54321
-> "ABCDE, FGHIJ". What differs is in DEPARTURES; `--set ruler.vt.reserve=30` gives RULER's own reserve.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from string import ascii_uppercase

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import clean, recall_precision, string_match_all, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.filler import NOISE
from longreach.suites.haystack import Needle, build
from longreach.suites.placing import wrong_lists
from longreach.suites.ruler.common import COMMON_DEPARTURES, SOURCE, check_common
from longreach.suites.ruler.noise_lines import compose_noise, write_lines
from longreach.suites.units import fill, remembered

OPENING = "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n"
QUESTION = "Question: Find all variables that are assigned the value {query} in the text above."
PREFIX = (
    " Answer: According to the chain(s) of variable assignment in the text above, {num_v} variables are assigned the "
    "value {query}, they are: "
)
NAME_LENGTH = 5
EXAMPLE_NAME_LENGTH = 3
EXAMPLE_LENGTH = 500  # tokens of the one-shot example with 30 for its answer; RULER: max_seq_length=500
EXAMPLE_RESERVE = 30  # RULER, data/synthetic/constants.py: variable_tracking tokens_to_generate
VALUES = (10_000, 99_999)  # RULER: numpy randint, upper end excluded
MOST_HOPS = 20

PREFIX_2024 = PREFIX.replace("assigned", "assgined")  # as RULER spelt it then

DEPARTURES = (
    *COMMON_DEPARTURES,
    "64 tokens are reserved for the answer, not 30: five names are up to 30 tokens where capitals are split one by one.",
    "The last noise line may be cut, at the end of a sentence if that does, so that the length is met.",
    "A statement may end the haystack (head); RULER's always stand before a noise line.",
    'A name of the example is never "VAR", which RULER\'s redrawing by text replacement would hit.',
)

_ASKED = re.compile(
    re.escape(QUESTION).replace(r"\{query\}", r"(?P<query>\d+)")
    + "(?:"
    + re.escape(PREFIX)
    .replace("assigned", "ass(?:igned|gined)")
    .replace(r"\{num_v\}", r"\d+")
    .replace(r"\{query\}", r"\d+")
    .rstrip("\\ ")
    + r")?\s*\Z"
)
_NAMES = re.compile(rf"(?<![A-Za-z0-9_])[A-Z]{{{EXAMPLE_NAME_LENGTH},{NAME_LENGTH}}}(?![A-Za-z0-9_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """One chain of `hops` + 1 variables with one value."""

    hops: int = 4
    """Assignments of one variable to the next, 1 to 20; RULER: 4."""
    variant: str = "head"
    """head, or 2024: RULER's layout of its first year, with its spelling and one example value for a whole run."""
    prefill: bool = False
    """True: the answer prefix starts the assistant's turn; False: it ends the user's message."""
    reserve: int = 64
    """Tokens kept free for the answer; RULER: 30."""

    def __post_init__(self) -> None:
        if not isinstance(self.hops, int) or not 1 <= self.hops <= MOST_HOPS:
            raise ValueError(f"hops {self.hops!r} is not a whole number from 1 to {MOST_HOPS}")
        check_common(self.variant, self.prefill, self.reserve)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="ruler.vt",
            version=1,
            capability="reasoning",
            family="tracing",
            reserve=self.reserve,
            chance=0.0,
            has_depth=False,
            summary="RULER variable tracking: all variables that share one value",
            source=SOURCE,
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        value, example_value = rng.sample(range(*VALUES), 2)
        names = draw_names(self.hops + 1, NAME_LENGTH, rng)
        example_names = draw_names(self.hops + 1, EXAMPLE_NAME_LENGTH, rng)
        example = self._example(point, example_names, example_value, tokenizer)
        depths = sorted(rng.random() for _ in names)
        prefix = self._prefix(value)
        question = QUESTION.format(query=value)
        stranger = draw_names(1, NAME_LENGTH, rng)[0]
        chain = statements(names, value)
        head, tail = example + OPENING, "\n" + question + ("" if self.prefill else prefix)
        choices = wrong_lists(names, stranger)
        answer_prefix = prefix if self.prefill else ""
        if self._is_2024:
            return fill(
                point,
                tokenizer,
                head=head,
                tail=tail,
                reserve=self.reserve,
                compose=lambda n: compose_noise(n, tokenizer, chain, depths),
                target=tuple(names),
                choices=choices,
                answer_prefix=answer_prefix,
                extra={"question": question},
            )
        return build(
            point,
            tokenizer,
            haystack="noise",
            needles=[Needle(text=text, depth=depth) for text, depth in zip(chain, depths, strict=True)],
            head=head,
            tail=tail,
            reserve=self.reserve,
            rng=point.rng(),
            target=tuple(names),
            choices=choices,
            answer_prefix=answer_prefix,
            absent=(*names, str(value)),
            extra={"question": question},
        )

    @property
    def _is_2024(self) -> bool:
        return str(self.variant) == "2024"

    def _prefix(self, value: int) -> str:
        return (PREFIX_2024 if self._is_2024 else PREFIX).format(num_v=self.hops + 1, query=value)

    def _example(self, point: Point, names: Sequence[str], value: int, tokenizer: Tokenizer) -> str:
        """The one-shot example: the same layout for a whole run, fresh names and (head) value for each sample."""
        key = ("ruler.vt example", self.hops, self._is_2024)
        n_lines = max(self.hops + 1, remembered(tokenizer, key, lambda: self._fitting(tokenizer)))
        places, same_value = _layout(point.task, point.depth, point.seed, n_lines, self.hops + 1)
        if self._is_2024:
            value = same_value
        shot = f"{self._one_shot(n_lines, names, places, value)} {' '.join(names)}"
        return f" {shot}\n\n\n\n" if self._is_2024 else f"{shot}\n"

    def _fitting(self, tokenizer: Tokenizer) -> int:
        """Noise lines that fit the example's length: bisected, as RULER does, on stand-in names."""
        names = [letter * EXAMPLE_NAME_LENGTH for letter in ascii_uppercase[: self.hops + 1]]
        low, high = 0, EXAMPLE_LENGTH // 10  # a noise line is 20 words
        while high - low > 1:
            middle = (low + high) // 2
            text = self._one_shot(middle, names, [0] * len(names), VALUES[0])
            fits = tokenizer.count(text) + EXAMPLE_RESERVE <= EXAMPLE_LENGTH
            low, high = (middle, high) if fits else (low, middle)
        return low

    def _one_shot(self, n_lines: int, names: Sequence[str], places: Sequence[int], value: int) -> str:
        chain = statements(names, value)
        if self._is_2024:
            text = write_lines(n_lines, chain, places)
        else:
            lines = [NOISE] * n_lines
            for shift, place in enumerate(places):
                lines.insert(place + shift, chain[shift])
            text = "\n".join(lines)
        return OPENING + text + "\n" + QUESTION.format(query=value) + self._prefix(value)

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the names in the answer are exactly the target's. `published`: RULER's string_match_all."""
        named = names_in(response.text, sample.messages[-1].content)
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
        match = _ASKED.search(content)
        if match is None:
            return None
        text = content[: match.start()].rpartition(OPENING)[2]
        return ", ".join(_chain(text, match["query"]))


@lru_cache(maxsize=64)
def _layout(task: str, depth: float | None, seed: int, n_lines: int, n: int) -> tuple[tuple[int, ...], int]:
    """Lines of the example before which its `n` statements stand, ascending, and the value of 2024's."""
    rng = Point(task=task, length=0, depth=depth, index=0, seed=seed).paired_rng()
    return tuple(sorted(rng.sample(range(n_lines), n))), rng.randrange(*VALUES)


def draw_names(n: int, n_letters: int, rng: random.Random) -> list[str]:
    """`n` different names of capital letters, uniform; never the keyword VAR."""
    names: dict[str, None] = {}
    while len(names) < n:
        name = "".join(rng.choice(ascii_uppercase) for _ in range(n_letters))
        if name != "VAR":
            names[name] = None
    return list(names)


def statements(names: Sequence[str], value: int) -> list[str]:
    """RULER's statements in chain order; all but the first end in a blank, as there."""
    return [
        f"VAR {names[0]} = {value}",
        *(f"VAR {name} = VAR {before} " for before, name in pairwise(names)),
    ]


def names_in(answer: str, prompt: str) -> list[str]:
    """Variable names in an answer, each once: words of five capitals, and shorter ones that the prompt assigns."""
    text = clean(answer)
    return list(
        dict.fromkeys(
            name
            for name in _NAMES.findall(text)
            if name != "VAR" and (len(name) == NAME_LENGTH or f"VAR {name} = " in prompt)
        )
    )


def _chain(text: str, value: str) -> list[str]:
    """Names that hold `value`, following assignments until no new one is found."""
    name = rf"([A-Z]{{{NAME_LENGTH}}})"
    names = dict.fromkeys(re.findall(rf"\bVAR {name} = {value}\b", text))
    copies = re.findall(rf"\bVAR {name} = VAR {name}\b", text)
    grown = True
    while grown:
        new = {target: None for target, source in copies if source in names and target not in names}
        names |= new
        grown = bool(new)
    return list(names)


TASKS = (Tracking(),)
