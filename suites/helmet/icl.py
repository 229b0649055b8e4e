"""helmet.icl: many examples of texts with numbers for labels, and one more text to label.

Source: the ICL tasks of HELMET (Yen et al. 2025, arXiv 2410.02694): their prompt, labels that are shuffled numbers, so that
only the examples say what they mean, and rounds of one example per label in random order. Texts and labels are generated:
each label has keywords of its own, invented words that stand in requests. What differs is in DEPARTURES.
Example: "could you check the lumbot before the grivel\nlabel: 7" ... and a new text with other keywords of label 7 -> "7"
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import clean, without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.cuts import Ints
from longreach.suites.helmet.pairs import HELMET
from longreach.suites.joins import count
from longreach.suites.units import Composed, fill

RESERVE = 20  # HELMET, ICL: new tokens
MOST_LABELS = 151  # as many as clinc150, the largest of HELMET's sets
KEYWORDS = 6
"""Words that belong to one label alone."""
HEAD = (
    "Use the provided mapping from the text to label to assign a label to the text. Only output "
    '"label: {label}" and nothing else. \n\n'
)
TAIL = "\n\n{question}\nlabel:"
DEPARTURES = (
    "Texts are generated requests with invented keywords, not those of TREC, banking77, clinc150 or nlu.",
    "The number of examples follows from the length, which is met within 8 tokens; the last one may have more words for that.",
    "The text to be labelled holds two keywords of its label, which stand in examples of the first two rounds, never together.",
    "The headline score is strict: the right number and no other. HELMET's exact match is `score_published`.",
)
_FRAMES = (
    "could you check the {a} before the {b}",
    "please send the {a} and the {b} to my address",
    "i would like to know more about the {a} and its {b}",
    "my {a} does not go with the {b} any longer",
    "where do i find a {a} for the {b}",
    "the {b} came without the {a} again",
    "is there a {a} that is better than this {b}",
    "we had to bring back the {a} because of the {b}",
    "how long does a {a} last with a {b}",
    "someone told me that the {a} needs a new {b}",
)
_MORE = ["today", "again", "soon", "now", "please", "thanks", "often", "maybe", "later", "still", "also"]
_STARTS = [
    "bl",
    "br",
    "cl",
    "cr",
    "dr",
    "fl",
    "fr",
    "gl",
    "gr",
    "kl",
    "kr",
    "l",
    "m",
    "n",
    "pl",
    "pr",
    "r",
    "s",
    "sk",
    "sl",
    "sn",
    "sp",
    "st",
    "str",
    "t",
    "tr",
    "v",
    "vr",
    "w",
    "z",
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ou"]
_ENDS = [
    "b",
    "bel",
    "bot",
    "d",
    "del",
    "din",
    "g",
    "gel",
    "gon",
    "k",
    "kel",
    "l",
    "lo",
    "m",
    "mor",
    "n",
    "nix",
    "p",
    "per",
    "r",
    "rin",
    "s",
    "sko",
    "t",
    "tel",
    "v",
    "vel",
    "x",
    "zen",
]

_PLAIN = {*" ".join((*_FRAMES, *_MORE)).split()}
"""Words that are no keywords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Icl:
    """Many-shot labels."""

    labels: int = 20
    """How many labels there are, 2 to 151."""

    def __post_init__(self) -> None:
        if not isinstance(self.labels, int) or not 2 <= self.labels <= MOST_LABELS:
            raise ValueError(f"labels {self.labels!r} is not a whole number from 2 to {MOST_LABELS}")

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="helmet.icl",
            version=1,
            capability="reasoning",
            family="many-shot",
            reserve=RESERVE,
            chance=1 / self.labels,
            has_depth=False,
            summary="HELMET: label a text after many labelled examples",
            source=HELMET,
            departures=DEPARTURES,
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        rng = point.paired_rng()
        words = _keywords(self.labels * KEYWORDS, rng)
        numbers = rng.sample(range(self.labels), self.labels)  # what each group of keywords is called
        asked = rng.randrange(self.labels)
        first, second = rng.sample(words[asked * KEYWORDS : (asked + 1) * KEYWORDS], 2)
        question = rng.choice(_FRAMES).format(a=first, b=second)
        wrong = rng.sample([number for number in numbers if number != numbers[asked]], min(3, self.labels - 1))
        return fill(
            point,
            tokenizer,
            head=HEAD,
            tail=TAIL.format(question=question),
            reserve=RESERVE,
            compose=lambda n: _compose(n, tokenizer, point, words, numbers, asked, (first, second)),
            target=(str(numbers[asked]),),
            choices=tuple(map(str, wrong)),
            extra={"question": question},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """Strict: the number and no other. `published`: exact match of the line after "label:", or of the whole answer."""
        named = list(
            dict.fromkeys(str(int(number)) for number in re.findall(r"(?<![\w.])\d{1,6}(?!\w)", clean(response.text)))
        )
        parsed = re.search(r"label:\s*([^\n]*)", response.text, re.IGNORECASE)
        given = {response.text.strip().lower(), parsed[1].strip().lower() if parsed else ""}
        score = Score(
            value=float(named == list(sample.target)),
            published=float(sample.target[0] in given),
            extracted=", ".join(named) or None,
        )
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        """The label that the text's keywords stood with most often."""
        content = messages[-1].content if messages else ""
        found = re.search(r"\n\n([^\n]+)\nlabel:\s*\Z", content)
        if found is None or not re.search(r"\nlabel: \S+\n\n", content):
            return None
        shown = re.findall(r"([^\n]+)\nlabel: (\S+)\n", content[: found.start() + 1] + "\n")
        keywords = set(found[1].split()) - _PLAIN
        votes = Counter(label for text, label in shown for word in text.split() if word in keywords)
        return votes.most_common(1)[0][0] if votes else ""


def _keywords(n: int, rng: random.Random) -> list[str]:
    """`n` invented words, none of which is a word of the frames."""
    found: dict[str, None] = {}
    while len(found) < n:
        word = rng.choice(_STARTS) + rng.choice(_VOWELS) + rng.choice(_ENDS) + rng.choice(("", "o", "a", "el"))
        if len(word) > 4 and word not in _PLAIN:
            found[word] = None
    return list(found)


def _shots(
    rng: random.Random, words: Sequence[str], numbers: Sequence[int], sought: tuple[str, str], asked: int
) -> Iterator[str]:
    """Examples without end, in rounds of one for each label; both keywords that are sought come in the first two rounds."""
    n_round = 0
    while True:
        for group in rng.sample(range(len(numbers)), len(numbers)):
            own = words[group * KEYWORDS : (group + 1) * KEYWORDS]
            a, b = rng.sample(own, 2)
            if group == asked and n_round < len(sought):
                a, b = sought[n_round], rng.choice([word for word in own if word not in sought])
            elif group == asked and {a, b} == set(sought):
                b = next(word for word in own if word not in sought)
            yield f"{rng.choice(_FRAMES).format(a=a, b=b)}\nlabel: {numbers[group]}\n\n"
        n_round += 1


def _compose(
    n_tokens: int,
    tokenizer: Tokenizer,
    point: Point,
    words: Sequence[str],
    numbers: Sequence[int],
    asked: int,
    sought: tuple[str, str],
) -> Composed:
    """About `n_tokens` of examples, one round at least; each example's tokens are counted where it stands."""
    rng = point.rng()
    shots = _shots(rng, words, numbers, sought, asked)
    texts = [next(shots) for _ in range(max(len(numbers), max(0, n_tokens) // 8))]
    counts = _counted(tokenizer, texts)
    total = np.cumsum(counts)
    n = max(len(numbers), int(np.searchsorted(total, n_tokens, side="right")))
    left = n_tokens - int(total[n - 1])
    kept = texts[:n]
    text, label = kept[-1].split("\nlabel:")
    size = count(tokenizer, text + "\n")
    more = ""
    while (longer := f"{more} {rng.choice(_MORE)}") and count(tokenizer, f"{text}{longer}\n") - size <= left:
        more = longer
    used = count(tokenizer, f"{text}{more}\n") - size
    kept[-1] = f"{text}{more}\nlabel:{label}"
    whole = "".join(kept)
    end = count(tokenizer, whole[-40:]) - count(tokenizer, whole[-40:-2])
    return Composed(text=whole[:-2], n_tokens=n_tokens - left + used - end)


def _counted(tokenizer: Tokenizer, texts: Sequence[str]) -> Ints:
    """Tokens of each of the texts where they follow each other."""
    _, ends = tokenizer.spans("".join(texts))
    edges = np.cumsum([len(text) for text in texts])
    before = np.searchsorted(np.maximum.accumulate(ends), edges, side="right") if len(ends) else np.zeros_like(edges)
    counts: Ints = np.diff(before, prepend=0).astype(np.int64)
    return counts


TASKS = (Icl(),)
