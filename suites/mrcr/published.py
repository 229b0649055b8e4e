"""mrcr.openai and mrcr.google_v2: the two published sets that bear the name MRCR; loaded, never shipped.

Sources: Hugging Face openai/mrcr (MIT; rows of 2025-12-05 and later), Google's MRCR v2 (Michelangelo, arXiv 2409.12640;
github google-deepmind/eval_hub, folder mrcr_v2, at 67b7fd2; code Apache-2.0, CSV files in its bucket). Their scores are
not comparable: markers, order of arguments and bins differ. Checked against the schemas as documented, not against the
real files. Bins: o200k tokens of contents and answer (OpenAI), the set's own `context_len` (Google).
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Types
from longreach.harness.sample import Message, Point, Sample
from longreach.harness.scoring import sequence_ratio, without_reasoning
from longreach.harness.task import Score, TaskInfo
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.loaded import Asked, LoadedTask
from longreach.suites.mrcr.grading import floor_of, grade_reply

COUNTS = (2, 4, 8)
SMALLEST_BIN, LARGEST_BIN = 4096, 8 << 20
"""Tokens: lower edge of the first bin, which it holds, and upper edge of the last one of either set."""
GOOGLE_FLOORS = {2: 0.51, 4: 0.27, 8: 0.15}
"""Score of one of the N replies drawn at random, as stated in the set's own notes."""
GOOGLE_MARKER = re.compile(r"[A-Za-z0-9]{12}")
CHARACTERS_PER_TOKEN = 3
"""Fewest that English prose has; tells whether an answer may not fit the reserve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published(LoadedTask):
    """What both sets share."""

    needles: int = 8
    """2, 4 or 8: rows with so many replies to one request; sets of other numbers are not pooled."""
    reserve: int = 1024
    """Tokens kept free for the answer."""

    def __post_init__(self) -> None:
        LoadedTask.__post_init__(self)
        if self.needles not in COUNTS:
            raise ValueError(f"needles {self.needles!r} is not one of {', '.join(map(str, COUNTS))}")
        if not isinstance(self.reserve, int) or self.reserve < 1:
            raise ValueError(f"reserve {self.reserve!r} is not a whole number from 1 on")

    def _too_long(self) -> Iterator[str]:
        room = self.reserve * CHARACTERS_PER_TOKEN
        n = sum(len(row.data["answer"]) > room for row in self.rows().rows if self.keeps(row))
        if n:
            yield f"{n:,} references have more than {room:,} characters and may not fit the {self.reserve:,} reserved tokens"


def _openai_problem(row: Mapping[str, Any]) -> str | None:
    try:
        turns = json.loads(row["prompt"])
    except (ValueError, RecursionError):
        return "has a prompt that is not JSON"
    if not isinstance(turns, list) or len(turns) < 3:
        return "has a prompt that is no list of messages"
    for turn in turns:
        if not isinstance(turn, dict) or not isinstance(turn.get("content"), str):
            return "has a message without text in its prompt"
        if turn.get("role") not in ("system", "user", "assistant"):
            return f"has a message of role {str(turn.get('role'))[:20]!r} in its prompt"
    marker = row["random_string_to_prepend"]
    if not marker or not row["answer"].startswith(marker):
        return "has an answer that does not begin with random_string_to_prepend"
    return None if row["n_needles"] in COUNTS else f"has n_needles {row['n_needles']}, which is none of 2, 4, 8"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAi(_Published):
    """OpenAI MRCR."""

    columns: ClassVar[Types] = {
        "prompt": str,
        "answer": str,
        "random_string_to_prepend": str,
        "n_needles": int,
        "desired_msg_index": int,
    }
    optional: ClassVar[Types] = {"total_messages": int, "n_chars": int, "date_added": str}
    hub: ClassVar[str] = "hf:openai/mrcr"
    check: ClassVar[Check | None] = staticmethod(_openai_problem)

    merge: bool = False
    """True: neighbouring messages of one role are sent as one, for templates that refuse them; the set begins so."""

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="mrcr.openai",
            version=1,
            capability="reasoning",
            family="coreference",
            reserve=self.reserve,
            chance=1 / self.needles,
            has_depth=False,
            summary="OpenAI MRCR: the i-th of 2, 4 or 8 replies, word for word (data is loaded, not shipped)",
            source="OpenAI MRCR (Hugging Face openai/mrcr)",
            license="MIT (the data, which is not shipped)",
            data_revision=self.data or self.hub,
            departures=(
                "Reasoning and outer white space are taken off the answer; OpenAI's rule to the letter is the published score.",
                "The text of another reply to the same request earns nothing; by OpenAI's rule it earns its likeness.",
                "Of an answer of more than four times the reference, the rest is not compared, but its length counts.",
                "Strings that a tokenizer would take for control tokens are spaced apart.",
            ),
        )

    def keeps(self, row: Row) -> bool:
        return bool(row.data["n_needles"] == self.needles)

    def ask(self, row: Row, part: int) -> Asked:
        messages = _messages(row)
        marker = row.data["random_string_to_prepend"]
        gold = row.data["answer"].removeprefix(marker)
        others = _other_replies(messages, gold)
        if self.merge:
            messages = _merged(messages)
        return Asked(
            messages=messages,
            target=(row.data["answer"],),
            choices=tuple(marker + text for text in others),
            groups={"needles": f"{self.needles} needles", "added": row.data.get("date_added") or "not stated"},
            extra={
                "question": messages[-1].content,
                "marker": marker,
                # Merged, the example and the first request are one message, which stays.
                "turns": [1, len(messages) - 1],
            },
        )

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        found = LoadedTask.sample(self, point, tokenizer)
        n = sum(tokenizer.count(message.content) for message in found.messages) + tokenizer.count(found.target[0])
        by = "" if "o200k" in tokenizer.name else f" by {tokenizer.name}"
        groups = {**found.extra["groups"], "bin": bin_of(n) + by}
        return dataclasses.replace(found, extra={**found.extra, "groups": groups})

    def score(self, sample: Sample, response: Response) -> Score:
        """The ratio behind the marker, 0 for another reply's text. `published`: OpenAI's rule to the letter."""
        marker = sample.extra["marker"]
        gold = sample.target[0].removeprefix(marker)
        others = [text.removeprefix(marker) for text in sample.choices]
        floor = floor_of(gold, others) if others else None
        return grade_reply(response.text, marker=marker, gold=gold, others=others, floor=floor)

    def notes(self) -> Iterator[str]:
        yield from self._too_long()
        rows = [row for row in self.rows().rows if self.keeps(row)]
        n_none = n_other = n_moved = 0
        for row in rows:
            messages, gold = _messages(row), _gold(row)
            n_found = len(_other_replies(messages, gold)) + 1
            at = row.data["desired_msg_index"]
            is_reply = any(m.role == "assistant" and m.content == gold for m in messages)
            n_none += not is_reply
            n_other += is_reply and n_found != self.needles
            n_moved += is_reply and not (0 <= at < len(messages) - 1 and messages[at + 1].content == gold)
        for n, what in (
            (n_none, "a reference that is no reply of the conversation"),
            (n_other, f"a request that does not come {self.needles} times"),
            (n_moved, "a desired_msg_index that is not that of the request for the reference"),
        ):
            if n:
                yield f"{n:,} of {len(rows):,} rows have {what}"


def _messages(row: Row) -> tuple[Message, ...]:
    return tuple(Message(role=turn["role"], content=turn["content"]) for turn in json.loads(row.data["prompt"]))


def _gold(row: Row) -> str:
    return str(row.data["answer"]).removeprefix(row.data["random_string_to_prepend"])


def _other_replies(messages: Sequence[Message], gold: str) -> list[str]:
    """The other replies to the request that `gold` answers, each once; none if it answers none."""
    pairs = [(ask.content, reply.content) for ask, reply in pairwise(messages) if reply.role == "assistant"]
    request = next((ask for ask, reply in pairs if reply == gold), None)
    return list(dict.fromkeys(reply for ask, reply in pairs if ask == request and reply != gold))


def _merged(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Neighbours of one role as one message, a blank line between them."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            merged[-1] = Message(role=message.role, content=f"{merged[-1].content}\n\n{message.content}")
        else:
            merged.append(message)
    return tuple(merged)


def bin_of(n_tokens: float) -> str:
    """The published bin: [4k, 8k], then (8k, 16k] and so on.

    >>> bin_of(4096), bin_of(8192), bin_of(8193), bin_of(1048576)
    ('4k to 8k', '4k to 8k', '8k to 16k', '512k to 1024k')
    """
    if n_tokens < SMALLEST_BIN:
        return "below 4k"
    low = SMALLEST_BIN
    while n_tokens > 2 * low and low < LARGEST_BIN:
        low *= 2
    return f"{low // 1024}k to {low // 512}k" if low < LARGEST_BIN else "above 8192k"


def _google_problem(row: Mapping[str, Any]) -> str | None:
    marker = GOOGLE_MARKER.match(row["answer"])
    if marker is None:
        return "has an answer that does not begin with a marker of 12 letters and digits"
    return None if marker[0] in row["queries"] else "has a marker that its queries do not name"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleV2(_Published):
    """Google's MRCR v2."""

    columns: ClassVar[Types] = {"queries": str, "answer": str}
    optional: ClassVar[Types] = {"num_relevant": (int, float), "context_len": (int, float)}
    check: ClassVar[Check | None] = staticmethod(_google_problem)

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="mrcr.google_v2",
            version=1,
            capability="reasoning",
            family="coreference",
            reserve=self.reserve,
            chance=1 / self.needles,
            has_depth=False,
            summary="Google MRCR v2: the i-th of 2, 4 or 8 replies, word for word (data is loaded, not shipped)",
            source="MRCR v2 (Michelangelo, arXiv 2409.12640; google-deepmind/eval_hub 67b7fd2)",
            license="as its bucket says (the data, which is not shipped); its code is Apache-2.0",
            data_revision=self.data or None,
            departures=(
                "Reasoning is taken off the answer first; Google's rule on the answer as it came is the published score.",
                "Decoding is greedy unless --temperature says otherwise; Google's script samples at 1.0.",
                "Rows that share a transcript are not independent; intervals here treat them as if they were.",
                "Strings that a tokenizer would take for control tokens are spaced apart.",
            ),
        )

    def keeps(self, row: Row) -> bool:
        return bool(row.data.get("num_relevant", self.needles) == self.needles)

    def ask(self, row: Row, part: int) -> Asked:
        size = row.data.get("context_len")
        queries: str = row.data["queries"]
        return Asked(
            messages=(Message(role="user", content=queries),),
            target=(row.data["answer"],),
            groups={"needles": f"{self.needles} needles", "bin": bin_of(size) if size else "not stated"},
            extra={"question": queries[-600:], "marker": row.data["answer"][:12]},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """The ratio behind the marker's last place, reasoning taken off. `published`: the same on the answer as it came."""
        marker, gold = sample.extra["marker"], sample.target[0]
        given = without_reasoning(response.text)
        published, value = google_ratio(response.text, gold, marker), google_ratio(given, gold, marker)
        floor = GOOGLE_FLOORS[self.needles]
        return Score(
            value=value,
            published=published,
            parts={
                "exact": float(value == 1.0),
                "marker_missing": float(marker not in given),
                "corrected": (published - floor) / (1 - floor),
            },
            extracted=given.rpartition(marker)[2].strip()[:200] or None,
        )

    def notes(self) -> Iterator[str]:
        yield from self._too_long()


def google_ratio(answer: str, gold: str, marker: str) -> float:
    """Google's rule: what follows the marker's last place, stripped; `gold` (with its marker) is the first argument."""
    _, mark, text = answer.rpartition(marker)
    return sequence_ratio(gold.removeprefix(marker).strip(), text.strip()) if mark else 0.0


TASKS = (OpenAi(), GoogleV2())
