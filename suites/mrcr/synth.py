"""mrcr.synth: one request comes N times in a long conversation; the i-th reply is wanted, word for word, behind a marker.

Source: own texts and wording, after OpenAI MRCR (Hugging Face openai/mrcr), which has 2, 4 and 8 needles and texts by a
language model; 24 and 100 needles are this project's own. No score of it may be set beside one of MRCR. Example: "Please write a
letter about the ferry at dawn." comes twice; "the 2nd (counted from 1) letter about the ferry at dawn" -> marker + second letter.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from string import Formatter

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import UNPROVEN, Tokenizer, proves
from longreach.suites.mrcr.conversation import Growing, Turn, converse
from longreach.suites.mrcr.grading import grade_reply
from longreach.suites.mrcr.needles import item_of, ordinal, slots
from longreach.suites.mrcr.texts import Bank, Key, bank

COUNTS = (2, 4, 8, 24, 100)
RESERVE = 256
"""1.5 times the longest reply (480 characters, up to 170 tokens where each digit is one)."""
NEAR_MISSES = {1: "topic", 5: "form"}
"""Of eight fillers in a row, those that share the topic or the form with the needles; the other six share neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synth:
    """One of `needles` replies to the same request."""

    needles: int = 2
    """2, 4, 8, 24 or 100."""
    reserve: int = RESERVE
    """Tokens kept free for the answer."""

    def __post_init__(self) -> None:
        if self.needles not in COUNTS:
            raise ValueError(f"needles {self.needles!r} is not one of {', '.join(map(str, COUNTS))}")
        if not isinstance(self.reserve, int) or self.reserve < 1:
            raise ValueError(f"reserve {self.reserve!r} is not a whole number from 1 on")

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="mrcr.synth",
            version=1,
            capability="reasoning",
            family="coreference",
            reserve=self.reserve,
            chance=1 / self.needles,
            has_depth=False,
            summary="the i-th of 2 to 100 replies to one request in a conversation, word for word",
            source="own, after OpenAI MRCR (Hugging Face openai/mrcr)",
        )

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        words, item, rng = bank(), item_of(point, self.needles), point.rng()
        request = words.ask(item.key)
        fillers: list[Turn] = []

        def filler(index: int) -> Turn:
            while len(fillers) <= index:
                key = _filler_key(words, item.key, len(fillers), rng)
                fillers.append(Turn(words.ask(key), words.reply(key, rng)))
            return fillers[index]

        topic = rng.choice(words.topics["filler"])
        listed = rng.sample(words.short_words, len(words.short_words))
        found = converse(
            point,
            tokenizer,
            opening=Turn(words.intro, words.ready),
            needles=[Turn(request, text) for text in item.needles],
            filler=filler,
            growing=Growing(request=words.elastic_request.format(topic=topic), reply=words.elastic_reply, words=listed),
            arrange=lambda n_turns: slots(item, n_turns, point.rng()),
            closing=words.question.format(
                marker=item.marker, ordinal=ordinal(item.asked), form=item.key.form, topic=item.key.topic
            ),
            reserve=self.reserve,
        )
        asked = item.asked - 1
        depths = [offset / found.n_context for offset in found.offsets]
        return Sample(
            point=point,
            messages=found.messages,
            target=(item.marker + item.gold,),
            choices=tuple(item.marker + text for text in item.others),
            placed=(depths[asked], *depths[:asked], *depths[asked + 1 :]),
            n_tokens=found.n_tokens,
            tokenizer=tokenizer.name,
            extra={
                "needles": list(item.needles),
                "question": found.messages[-1].content,
                "turns": list(found.turns),
                "offsets": list(found.offsets),
                "marker": item.marker,
                "asked": item.asked,
                "floor": item.floor,
                "recycled": False,
                "notes": [],
                **({} if proves(tokenizer, point) else UNPROVEN),
            },
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """The ratio of the text behind the marker, 0 for another needle's; `published`: OpenAI's rule to the letter."""
        marker = sample.extra["marker"]
        return grade_reply(
            response.text,
            marker=marker,
            gold=sample.target[0].removeprefix(marker),
            others=[text.removeprefix(marker) for text in sample.choices],
            floor=sample.extra["floor"],
        )

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        match = _asked(bank()).fullmatch(messages[-1].content) if messages else None
        if match is None or match["form"] not in bank().articles:
            return None
        request = bank().ask(Key(match["form"], match["topic"]))
        replies = [
            reply.content
            for turn, reply in pairwise(messages)
            if turn.role == "user" and turn.content == request and reply.role == "assistant"
        ]
        number = int(re.sub(r"\D", "", match["ordinal"]))
        return match["marker"] + (replies[number - 1] if 0 < number <= len(replies) else "")


def _filler_key(words: Bank, target: Key, index: int, rng: random.Random) -> Key:
    """A key that is not the needles', near to it at fixed shares."""
    shared = NEAR_MISSES.get(index % 8)
    form = target.form if shared == "form" else rng.choice([form for form in words.articles if form != target.form])
    return Key(form, target.topic if shared == "topic" else rng.choice(words.topics["filler"]))


def _asked(words: Bank) -> re.Pattern[str]:
    """The question as a pattern with its slots as groups."""
    parts = Formatter().parse(words.question)
    return re.compile("".join(re.escape(text) + (f"(?P<{slot}>.+?)" if slot else "") for text, slot, _, _ in parts))


TASKS = (Synth(),)
