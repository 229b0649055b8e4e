"""The NoLiMa-style set: nothing to match by, nothing in the filler that answers, every pair asked in turn, both scores."""

import re
from collections import Counter

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Message, Sample
from longreach.harness.task import Solvable, Task
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites import filler_words
from longreach.suites.filler import mixed
from longreach.suites.nolima.bank import HOPS, ORDERS, Pair, bank
from longreach.suites.nolima.latent import Latent, away_from

PAIRS = [pair for hops in HOPS[1:] for pair in bank().pairs(hops)]
_FUNCTION_WORDS = """
    a about after all an and any are as at be been but by can could do does ever every few for from
    had has have he her his how i if in into is it its just many must no not nothing of on one or other ought
    out over person she should so some somebody somewhere than that the their them there they this to two until
    up was were what when whenever where which who whose why will with would
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
DEPTHS = tuple(index / 25 for index in range(26))


def _content_words(text: str) -> list[str]:
    """Words that carry meaning, in small letters, without the endings -s, -es, -ed, -ing."""
    words = re.findall(r"[^\W\d_]+", text.casefold())
    return [re.sub(r"(?<=\w{3})(?:es|s|ed|ing)$", "", word) for word in words if word not in FUNCTION_WORDS]


def _precision(question: str, text: str) -> float:
    """ROUGE-1 precision on content words: the share of the question's that stand in the text, each as often as there."""
    asked, there = Counter(_content_words(question)), Counter(_content_words(text))
    assert asked
    return sum((asked & there).values()) / sum(asked.values())


def _samples(task: Task, n: int = 3, length: int = 1024, depths: tuple[float, ...] = (0.0, 0.5, 1.0)) -> list[Sample]:
    return [task.sample(point, WordsTokenizer()) for point in task.points(Grid(lengths=(length,), depths=depths, n=n))]


def _score(task: Task, sample: Sample, text: str) -> tuple[float, float | None]:
    score = task.score(sample, Response(text=text))
    return score.value, score.published


def test_there_are_enough_groups_orders_and_pairs() -> None:
    groups = bank().groups
    assert len(groups) >= 12
    assert all(set(group.needles) == set(ORDERS) and set(group.questions) == set(HOPS) for group in groups)
    assert {group.reasoning for group in groups} == {"world knowledge", "commonsense"}
    assert len({pair.id for pair in PAIRS}) == len(PAIRS) == 180


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_no_content_word_of_a_question_stands_in_its_needle(pair: Pair) -> None:
    """NoLiMa reports 0.069 for its own set; 0.10 is the bar, and a question of few words has to share none."""
    assert _precision(pair.question, pair.sentence.replace("{name}", "Greta")) <= 0.10
    assert pair.fact.word.casefold() not in pair.question.casefold()


def test_the_direct_question_and_the_distractor_do_share_words() -> None:
    assert all(_precision(pair.question, pair.sentence) >= 0.5 for pair in bank().pairs("direct"))
    assert all(pair.fact.asked[pair.hops] in pair.distractor for pair in PAIRS)


def test_the_name_stands_before_or_after_what_is_said() -> None:
    for pair in PAIRS:
        first = pair.sentence.index("{name}") < pair.sentence.index(pair.fact.word)
        assert first == (pair.order == "default"), pair.id


def test_the_filler_holds_neither_names_nor_keywords() -> None:
    tables = [getattr(filler_words, name) for name in ("TIMES", "ENDINGS", "OPENINGS", "REMARKS")]
    tables += [getattr(topic, name) for topic in filler_words.TOPICS for name in topic.__slots__]
    text = " / ".join(entry for table in tables for entry in table)
    banned = {text for pair in PAIRS for text in pair.fact.conflicts} | set(bank().names)
    found = [item for item in banned if re.search(rf"(?<!\w){re.escape(item)}(?!\w)", text, re.IGNORECASE)]
    assert found == []
    words = set(re.findall(r"\w+", mixed(200_000, 1).casefold()))
    assert not words & {item.casefold() for item in banned}


def test_a_question_names_its_task() -> None:
    questions = [{pair.question for pair in bank().pairs(hops)} for hops in HOPS]
    assert sum(len(found) for found in questions) == len(set().union(*questions))


def test_pairs_are_asked_about_equally_often() -> None:
    task = get_task("nolima.onehop")
    assert isinstance(task, Latent)
    for n, least, most in ((4, 80, 2), (10, 90, 4)):  # 104 and 260 samples for 90 pairs
        points = list(task.points(Grid(lengths=(1024,), depths=DEPTHS, n=n)))
        counts = Counter(task.pair_of(point).id for point in points)
        assert len(counts) >= least
        assert max(counts.values()) <= most
    every = Counter(task.pair_of(p).id for p in task.points(Grid(lengths=(1024,), depths=(0.0, 0.3), n=90)))
    assert set(every.values()) == {2}


@pytest.mark.parametrize("variant", ["plain", "multiple_choice", "cot", "distractor"])
@pytest.mark.parametrize("hops", ["onehop", "twohop"])
def test_every_variant_is_solved_by_reading_and_not_without_the_needle(hops: str, variant: str) -> None:
    task = get_task(f"nolima.{hops}", variant=variant)
    assert isinstance(task, Solvable)
    for sample in _samples(task):
        answer = task.solve(sample.messages)
        assert answer is not None
        assert _score(task, sample, answer) == (1.0, 1.0)
        assert 0 <= 1024 - task.info.reserve - sample.n_tokens <= 8
        content = sample.messages[-1].content.replace(sample.extra["sought"][0], "")
        assert task.solve((Message(role="user", content=content),)) == ""


def test_choices_hold_the_right_name_once_and_chance_is_a_quarter() -> None:
    task = get_task("nolima.onehop", variant="multiple_choice")
    places = []
    for sample in _samples(task, n=40):
        names = sample.extra["offered"].removeprefix("\nChoices: ").split(", ")
        assert sorted(names) == sorted((*sample.target, *sample.choices))
        assert not any(name in sample.haystack_text for name in sample.choices)
        places.append(names.index(sample.target[0]))
    assert task.info.chance == 0.25
    assert sum((places.count(place) - 30) ** 2 / 30 for place in range(4)) < 16.3  # chi-square, 3 df, 0.999


def test_a_closed_question_has_options_whose_likelihoods_can_be_compared() -> None:
    closed = get_task("nolima.onehop", variant="multiple_choice")
    for sample in _samples(closed):
        options = sample.extra["options"]
        assert sorted(options) == sorted((*sample.target, *sample.choices))
        assert ", ".join(options) in sample.messages[-1].content  # as they are offered
        assert [_score(closed, sample, option)[0] for option in options].count(1.0) == 1
    assert not _samples(get_task("nolima.onehop"))[0].extra["options"]


def test_a_distractor_stands_apart_inside_the_band() -> None:
    task = get_task("nolima.twohop", variant="distractor")
    for sample in _samples(task, n=5, length=4096, depths=DEPTHS[::5]):
        assert sample.point.depth is not None
        assert abs(sample.placed[0] - sample.point.depth) <= 0.01
        assert 0.17 <= sample.placed[1] <= 0.83
        assert abs(sample.placed[0] - sample.placed[1]) >= 0.17
        assert "Which person" not in sample.haystack_text
        (distractor,) = set(sample.extra["needles"]) - set(sample.extra["sought"])
        assert not any(name in distractor for name in bank().names)
    rng = next(iter(task.points(Grid(lengths=(1024,), depths=(0.5,), n=1)))).rng()
    spots = [away_from(depth, rng) for depth in DEPTHS for _ in range(50)]
    assert min(spots) >= 0.2 and max(spots) <= 0.8


def test_published_rule_is_loose_and_the_strict_score_is_not() -> None:
    """NoLiMa's `contains`: case counts, word edges do not, and naming everybody passes."""
    task = get_task("nolima.onehop")
    sample = _samples(task, n=1)[0]
    name = sample.target[0]
    assert _score(task, sample, f"It must be {name}.") == (1.0, 1.0)
    assert _score(task, sample, name.lower()) == (1.0, 0.0)
    assert _score(task, sample, f"Mc{name}son") == (0.0, 1.0)
    assert _score(task, sample, ", ".join(bank().names)) == (0.0, 1.0)
    assert _score(task, sample, sample.choices[0]) == (0.0, 0.0)


def test_reasoning_is_not_graded_only_its_last_line() -> None:
    task = get_task("nolima.onehop", variant="cot")
    sample = _samples(task, n=1)[0]
    name, other = sample.target[0], sample.choices[0]
    assert task.info.reserve == 192
    assert _score(task, sample, f"Both {other} and {name} are named.\n\n{name}\n") == (1.0, 1.0)
    assert _score(task, sample, f"It is {name}.\n{other}") == (0.0, 0.0)
    assert _score(task, sample, f"{other}?\nFinal answer: **{name}**") == (1.0, 1.0)


def test_one_order_can_be_asked_alone() -> None:
    for order in ORDERS:
        task = get_task("nolima.twohop", order=order)
        assert {sample.extra["groups"]["order"] for sample in _samples(task)} == {order}


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("nolima.onehop", {"language": "zh"}, "there are no needles in language 'zh', only in en"),
        (
            "nolima.onehop",
            {"variant": "direct"},
            "variant 'direct' is not one of plain, multiple_choice, cot, distractor",
        ),
        ("nolima.direct", {"variant": "distractor"}, "not one of plain, multiple_choice, cot$"),
        ("nolima.twohop", {"order": "up"}, "order 'up' is not one of both, default, inverted"),
        ("nolima.twohop", {"shuffled": "maybe"}, "shuffled 'maybe' is neither true nor false"),
    ],
)
def test_a_wrong_parameter_is_named(name: str, params: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        get_task(name, **params)
