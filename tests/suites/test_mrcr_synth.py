"""mrcr.synth: balance, gates, exact length with a chat template, and a solver of its own that reads the rendered prompt."""

import re
from collections import Counter

import pytest

from longreach.adapters.chat_template import ChatTemplate
from longreach.harness.errors import InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import sequence_ratio
from longreach.harness.task import task_id
from longreach.harness.tokenizer import Tokenizer, WithProof, WordsTokenizer, Wrapped
from longreach.suites.mrcr.needles import (
    MEAN_ALIKE,
    MOST_ALIKE,
    STRATA,
    Item,
    are_distinct,
    item_of,
    ordinal,
    place_of,
    slots,
)
from longreach.suites.mrcr.synth import COUNTS, Synth
from longreach.suites.mrcr.texts import bank

WORDS = WordsTokenizer()
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
SMALLEST = {2: 1024, 4: 1024, 8: 2048, 24: 5120, 100: 20480}
"""Lengths by `words` that surely hold so many needles."""


class Templated(Wrapped):
    """`words` with a chat template."""

    def render(self, messages: tuple[Message, ...], answer_prefix: str = "") -> str:  # type: ignore[override]
        return ChatTemplate(CHATML, {}).render(messages, answer_prefix)


def points(n: int, length: int, items: int) -> list[Point]:
    return list(Synth(needles=n).points(Grid(lengths=(length,), depths=(0.5,), n=items)))


def sample(n: int, length: int, index: int = 0, tokenizer: Tokenizer = WORDS) -> Sample:
    return Synth(needles=n).sample(points(n, length, index + 1)[index], tokenizer)


def read(sample: Sample) -> tuple[list[tuple[str, str]], re.Match[str]]:
    """Requests with replies, and the question, from the rendered prompt alone."""
    rendered = Templated(WORDS).render(sample.messages)
    turns = re.findall(
        r"<\|im_start\|>user\n(.*?)<\|im_end\|>\n<\|im_start\|>assistant\n(.*?)<\|im_end\|>", rendered, re.DOTALL
    )
    asked = re.search(
        r"user\nWrite (\w+) and, right behind it, the (\d+)(?:st|nd|rd|th) \(counted from 1\) (.+?) about (.+?) of our",
        rendered,
    )
    assert asked is not None
    return turns, asked


@pytest.mark.parametrize("n", COUNTS)
def test_a_solver_that_reads_the_rendered_prompt_finds_the_gold_and_nothing_twice(n: int) -> None:
    task = Synth(needles=n)
    for index in range(6 if n < 100 else 2):
        made = sample(n, SMALLEST[n], index)
        turns, asked = read(made)
        marker, number, form, topic = asked[1], int(asked[2]), asked[3], asked[4]
        replies = [
            reply for request, reply in turns if re.fullmatch(rf"Please write an? {form} about {topic}\.", request)
        ]
        assert len(replies) == n
        assert len({reply for _, reply in turns}) == len(turns)
        assert made.target == (marker + replies[number - 1],)
        rendered = Templated(WORDS).render(made.messages)
        assert rendered.count(marker) == 1
        assert task.score(made, Response(text=marker + replies[number - 1])).value == 1.0
        others = [reply for at, reply in enumerate(replies, 1) if at != number]
        assert all(sequence_ratio(other, replies[number - 1]) < 0.7 for other in others)
        for other in others[:5]:
            wrong = task.score(made, Response(text=marker + other))
            assert (wrong.value, wrong.parts["distractor"]) == (0.0, 1.0)


@pytest.mark.parametrize("n", COUNTS)
def test_needles_are_as_unlike_as_the_gates_say(n: int) -> None:
    item = item_of(points(n, 4096, 1)[0], n)
    texts = item.needles[:24]
    ratios = [sequence_ratio(b, a) for i, a in enumerate(texts) for b in texts[i + 1 :]]
    assert max(ratios) <= MOST_ALIKE
    assert sum(ratios) / len(ratios) <= MEAN_ALIKE
    assert all(250 <= len(text) <= 480 for text in item.needles)
    alike = sum(sequence_ratio(other, item.gold) for other in item.others) / (n - 1)
    assert item.floor == pytest.approx(1 / n + (1 - 1 / n) * alike)


def test_texts_that_are_too_much_alike_are_refused() -> None:
    first, second = item_of(points(2, 4096, 1)[0], 2).needles
    assert are_distinct((first, second))
    assert not are_distinct((first, first))
    assert not are_distinct((first, first[: len(first) * 3 // 4] + second[len(second) * 3 // 4 :]))


def test_numbers_and_strata_are_balanced() -> None:
    grid = Grid(lengths=(4096,), depths=(0.5,), n=40)
    for n in (2, 4, 8):
        places = Counter(place_of(point, n) for point in Synth(needles=n).points(grid))
        assert set(places) == {(number, stratum) for number in range(1, n + 1) for stratum in range(STRATA)}
        assert set(places.values()) == {40 // (n * STRATA)}
    many = Counter(
        place_of(point, 100) for point in Synth(needles=100).points(Grid(lengths=(4096,), depths=(0,), n=500))
    )
    assert len(many) == 500


def test_slots_are_uniform_around_the_one_in_its_stratum() -> None:
    base = item_of(points(8, 4096, 1)[0], 8)
    for asked in (1, 4, 8):
        for stratum in range(STRATA):
            item = Item(
                key=base.key,
                needles=base.needles,
                asked=asked,
                stratum=stratum,
                marker=base.marker,
                floor=base.floor,
            )
            for point in points(8, 4096, 20):
                places = slots(item, 100, point.rng())
                assert places == sorted(set(places))
                assert len(places) == 8
                assert 0 <= places[0] <= places[-1] < 100
                low, high = max(stratum * 20, asked - 1), min(stratum * 20 + 19, 99 - (8 - asked))
                assert low <= places[asked - 1] <= high
    tight = slots(base, 8, points(8, 4096, 1)[0].rng())
    assert tight == list(range(8))


def test_where_the_needles_stand_is_stored() -> None:
    made = sample(8, 8192, 3)
    turns = made.messages[made.extra["turns"][0] : made.extra["turns"][1]]
    text = ""
    for message in turns:
        if message.content in made.extra["needles"]:
            at = made.extra["needles"].index(message.content)
            assert abs(WORDS.count(text) - made.extra["offsets"][at]) <= 2
        text += message.content + "\n\n"
    assert made.placed[0] == pytest.approx(
        made.extra["offsets"][made.extra["asked"] - 1] / WORDS.count(text), abs=0.002
    )


def test_a_chat_template_counts_into_the_length() -> None:
    tokenizer = Templated(WORDS)
    for n, length in ((2, 2048), (4, 3000), (24, 9000)):
        for point in points(n, length, 4):
            made = Synth(needles=n).sample(point, tokenizer)
            count = WORDS.count(ChatTemplate(CHATML, {}).render(made.messages))
            unproven = Synth(needles=n).sample(point, WithProof(tokenizer, "never"))
            assert made.n_tokens == count == unproven.n_tokens
            assert 0 <= length - 256 - count <= 8


def test_turns_alternate_and_no_filler_asks_for_the_needles_text() -> None:
    made = sample(4, 8192)
    assert [m.role for m in made.messages] == ["user", "assistant"] * (len(made.messages) // 2) + ["user"]
    requests = Counter(m.content for m in made.messages if m.role == "user")
    assert requests.most_common(1)[0][1] == 4
    item = item_of(made.point, 4)
    wanted = bank().ask(item.key)
    same_topic = sum(item.key.topic in text and text != wanted for text in requests.elements())
    same_form = sum(bank().articles[item.key.form] in text and text != wanted for text in requests.elements())
    n_fillers = len(made.messages) // 2 - 4
    assert n_fillers / 10 <= same_topic <= n_fillers / 6 + 2
    assert n_fillers / 10 <= same_form <= n_fillers / 6 + 2


def test_forms_and_topics_are_many_and_those_of_needles_and_filler_are_not_the_same() -> None:
    words = bank()
    assert len(words.articles) >= 10
    assert len(words.topics["target"]) + len(words.topics["filler"]) >= 400
    assert not set(words.topics["target"]) & set(words.topics["filler"])
    assert not set(words.forms["target"]) & set(words.forms["filler"])
    assert len(words.topics["target"]) == len(set(words.topics["target"]))


def test_too_many_needles_for_a_length_are_refused_and_never_fewer_taken() -> None:
    for n, length in ((24, 2048), (100, 8192)):
        with pytest.raises(InfeasibleCell, match="at most 50% of the length") as refusal:
            sample(n, length)
        minimum = refusal.value.minimum
        assert minimum is not None
        assert len(sample(n, minimum + 8).extra["needles"]) == n


def test_ordinals_are_english() -> None:
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 100, 101, 111)
    assert [ordinal(number) for number in numbers] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "100th", "101st", "111th"]
    )


def test_other_numbers_of_needles_are_refused() -> None:
    with pytest.raises(ValueError, match="needles 3 is not one of 2, 4, 8, 24, 100"):
        Synth(needles=3)
    assert task_id(get_task("mrcr.synth", needles=24)) == 'mrcr.synth@1?{"needles":24}'
