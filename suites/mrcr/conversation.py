"""A conversation of an exact length: given turns, as many others as fit, and one whose reply grows word by word.

Turns are counted apart; what a turn costs beyond its two texts (template, joins) is measured once in place. The whole
prompt is rendered and counted at the end, and the growing reply takes what that count lacks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longreach.harness.errors import DataError, InfeasibleCell
from longreach.harness.sample import Message, Point
from longreach.harness.tokenizer import Tokenizer, proves
from longreach.suites.cuts import Ints
from longreach.suites.haystack import AIM, BUILDS, TOLERANCE
from longreach.suites.joins import count

SHARE = 0.5
"""Of the length that the needles may take."""


class Turn(NamedTuple):
    """A request and its reply."""

    request: str
    reply: str

    def messages(self) -> tuple[Message, Message]:
        return Message(role="user", content=self.request), Message(role="assistant", content=self.reply)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """The turn whose reply lists as many words as there is room for."""

    request: str
    reply: str
    """With `{words}`."""
    words: Sequence[str]

    def turn(self, n: int) -> Turn:
        """The turn with `n` words."""
        return Turn(self.request, self.reply.format(words=", ".join(self.words[:n])))

    def costs(self, tokenizer: Tokenizer) -> Ints:
        """Tokens of the turn's two texts with 1, 2, ... words, shape (n_words,); good to a token or two."""
        whole = self.turn(len(self.words)).reply
        _, ends = tokenizer.spans(whole)
        start = self.reply.index("{words}")
        stops = start + np.cumsum([len(word) + 2 for word in self.words]) - 2
        tail = count(tokenizer, self.reply.partition("{words}")[2])
        found: Ints = np.searchsorted(ends, stops, side="right") + tail + count(tokenizer, self.request)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A prompt that has been proven."""

    messages: tuple[Message, ...]
    """Opening, turns, closing."""
    turns: tuple[int, int]
    """First and end of the messages that are the turns."""
    n_tokens: int
    offsets: tuple[int, ...]
    """Tokens before the reply of each needle, counted from the first turn; predicted."""
    n_context: int
    """Tokens of all turns, predicted."""


def converse(
    point: Point,
    tokenizer: Tokenizer,
    *,
    opening: Turn,
    needles: Sequence[Turn],
    filler: Callable[[int], Turn],
    growing: Growing,
    arrange: Callable[[int], Sequence[int]],
    closing: str,
    reserve: int,
) -> Conversation:
    """`opening`, the turns and `closing` (a user's message), `point.length` - `reserve` tokens less 0 to 8.

    Args:
        filler: the turn with a number, from 0.
        arrange: ascending places of the needles among so many turns.

    Raises:
        InfeasibleCell: the length cannot hold the needles, or they take more than SHARE of it.
        DataError: the tokenizer's counts do not settle.
    """
    last = Message(role="user", content=closing)
    frame = (*opening.messages(), last)
    n_frame = _n_rendered(tokenizer, frame)
    texts = [count(tokenizer, turn.request) + tokenizer.count(turn.reply) for turn in needles]
    extra = _n_rendered(tokenizer, (*frame[:2], *needles[0].messages(), last)) - n_frame - texts[0]
    costs = growing.costs(tokenizer) + extra
    fixed = n_frame + sum(texts) + len(needles) * extra
    budget = point.length - reserve
    _check_room(point, reserve, n_frame, n_needles=sum(texts) + len(needles) * extra, n_growing=int(costs[0]))

    others: list[tuple[Turn, int]] = []
    room = budget - AIM - fixed
    while True:
        turn = filler(len(others))
        cost = count(tokenizer, turn.request) + tokenizer.count(turn.reply) + extra
        if cost + int(costs[0]) > room:
            break
        others.append((turn, cost))
        room -= cost

    places = arrange(len(needles) + len(others) + 1)
    among = point.rng().randrange(len(others) + 1)
    error = 0  # tokens by which the last proof disagreed with the prediction
    for _ in range(BUILDS):
        n_words = 1 + int(np.abs(costs - (room - error)).argmin())
        free = [*others[:among], (growing.turn(n_words), int(costs[n_words - 1])), *others[among:]]
        ordered = _merged([(turn, text + extra) for turn, text in zip(needles, texts, strict=True)], free, places)
        messages = (*frame[:2], *(message for turn, _ in ordered for message in turn.messages()), last)
        predicted = n_frame + sum(cost for _, cost in ordered)
        n_tokens = _n_rendered(tokenizer, messages) if proves(tokenizer, point) else predicted
        if 0 <= budget - n_tokens <= TOLERANCE:
            break
        error = n_tokens - predicted
    else:
        raise DataError(
            f"no prompt of {point.length:,} tokens could be made for task {point.task!r} with tokenizer "
            f"{tokenizer.name!r}: {BUILDS} tries ended {budget - n_tokens:,} tokens short; choose another length"
        )
    before = np.cumsum([0, *(cost for _, cost in ordered)])
    return Conversation(
        messages=messages,
        turns=(2, len(messages) - 1),
        n_tokens=n_tokens,
        offsets=tuple(int(before[at]) + count(tokenizer, ordered[at][0].request) for at in places),
        n_context=int(before[-1]),
    )


def _n_rendered(tokenizer: Tokenizer, messages: Sequence[Message]) -> int:
    return tokenizer.count(tokenizer.render(messages))


def _merged(
    needles: Sequence[tuple[Turn, int]], others: Sequence[tuple[Turn, int]], places: Sequence[int]
) -> list[tuple[Turn, int]]:
    """All turns in order, the needles at their places."""
    mine, rest, taken = iter(needles), iter(others), set(places)
    return [next(mine) if at in taken else next(rest) for at in range(len(needles) + len(others))]


def _check_room(point: Point, reserve: int, n_frame: int, n_needles: int, n_growing: int) -> None:
    minimum = max(n_frame + n_needles + n_growing + reserve + AIM, int(n_needles / SHARE))
    if point.length < minimum:
        raise InfeasibleCell(
            f"length {point.length:,} of task {point.task!r} cannot hold {n_frame:,} tokens of question, example and "
            f"template, {n_needles:,} of needles (at most {SHARE:.0%} of the length) and {reserve:,} reserved for the "
            f"answer",
            minimum=minimum,
        )
