"""BABILong-style stories: the rule of BABILong with its faults, the strict rule, and what the generator promises."""

import random
from collections import Counter

import pytest

from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Point
from longreach.harness.task import task_id
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.babi.questions import LABELS, answer
from longreach.suites.babi.scoring import official, strict
from longreach.suites.babi.stories import KINDS, Story, supporting, tell
from longreach.suites.babi.world import ACTORS, OBJECTS, PLACES, read_facts

YES_NO = ("no", "yes")
COUNTS = ("none", "one", "three", "two")
ROOMS = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
THINGS = ("apple", "football", "milk", "nothing")


@pytest.mark.parametrize(
    ("output", "question", "target", "labels", "by_rule", "by_words"),
    [
        # BABILong, metrics.compare_answers: `one` stands in `none`, so that this target is never right there
        ("none", "How many objects is Mary carrying?", "none", COUNTS, False, True),
        ("None.", "How many objects is Mary carrying?", "none", COUNTS, False, True),
        ("0", "How many objects is Mary carrying?", "none", COUNTS, False, True),
        ("two", "How many objects is Mary carrying?", "two", COUNTS, True, True),
        ("Mary carries 2 objects.", "How many objects is Mary carrying?", "two", COUNTS, False, True),
        ("one", "How many objects is Mary carrying?", "none", COUNTS, False, False),
        # `no` stands in `know` and in `not`
        ("yes, I know", "Is Mary in the office?", "yes", YES_NO, False, True),
        ("yes, and not elsewhere", "Is Mary in the office?", "yes", YES_NO, False, True),
        ("no", "Is Mary in the office?", "no", YES_NO, True, True),
        ("yes or no", "Is Mary in the office?", "no", YES_NO, False, False),
        # what stands after the first full stop is not read by the rule
        ("Let me see. The kitchen.", "Where is Mary?", "kitchen", ROOMS, False, True),
        ("The kitchen. Not the garden.", "Where is Mary?", "kitchen", ROOMS, True, False),
        ("in the office and then in the kitchen", "Where is Mary?", "kitchen", ROOMS, False, False),
        # labels of the question are taken off
        ("Before the office the apple was in the garden.", "Where was the apple before the office?", "garden", ROOMS, True, True),
        # lists of qa8: all of them, in any order, and no other
        ("milk and apple", "What is Mary carrying?", "apple,milk", THINGS, True, True),
        ("apple", "What is Mary carrying?", "apple,milk", THINGS, False, False),
        ("apple, milk, football", "What is Mary carrying?", "apple,milk", THINGS, False, False),
        ("nothing", "What is Mary carrying?", "nothing", THINGS, True, True),
        ("", "Where is Mary?", "kitchen", ROOMS, False, False),
    ],
)  # fmt: skip
def test_the_rule_of_babilong_and_the_strict_one(
    output: str, question: str, target: str, labels: tuple[str, ...], by_rule: bool, by_words: bool
) -> None:
    assert official(output, question, target, labels) is by_rule
    labels_in_order = ("none", "one", "two", "three") if labels == COUNTS else labels
    assert strict(output, question, tuple(target.split(",")), labels_in_order).value == float(by_words)


@pytest.fixture(scope="module", params=KINDS)
def told(request: pytest.FixtureRequest) -> tuple[str, list[Story]]:
    rng = random.Random(5)
    return request.param, [tell(request.param, rng) for _ in range(50)]


def test_a_reader_of_the_text_comes_to_the_label_of_the_world(told: tuple[str, list[Story]]) -> None:
    task, stories = told
    for story in stories:
        text = " It rained all day. ".join(fact.text for fact in story.facts)
        assert tuple(read_facts(text)) == story.facts
        assert answer(task, read_facts(text), story.question) == story.answer


def test_every_supporting_fact_is_needed_and_no_sentence_comes_twice(told: tuple[str, list[Story]]) -> None:
    task, stories = told
    for story in stories:
        assert story.support == supporting(task, story.facts, story.question)
        low, high = KINDS[task].n_support
        assert low <= len(story.support) <= high
        assert len({fact.text for fact in story.facts}) == len(story.facts)
        assert KINDS[task].n_facts[0] <= len(story.facts) <= KINDS[task].n_facts[1]


def test_the_best_guess_earns_no_more_than_chance(told: tuple[str, list[Story]]) -> None:
    task, stories = told
    chance = get_task(f"babi.{task}").info.chance
    most = Counter(story.answer for story in stories).most_common(1)[0][1]
    assert most / len(stories) <= chance + 3 * (chance * (1 - chance) / len(stories)) ** 0.5


def test_chance_levels() -> None:
    chances = {name: get_task(f"babi.{name}").info.chance for name in LABELS}
    assert [chances[f"qa{n}"] for n in (1, 2, 3, 4)] == [1 / 6] * 4  # BABILong: one of six rooms
    assert (chances["qa5"], chances["qa6"], chances["qa9"]) == (1 / 7, 1 / 2, 1 / 2)
    assert (chances["qa7"], chances["qa10"]) == (1 / 4, 1 / 3)


@pytest.mark.parametrize("depth", [0.0, 0.37, 1.0])
def test_facts_keep_their_order_and_the_first_supporting_one_its_depth(depth: float) -> None:
    task = get_task("babi.qa3")
    for index in range(8):
        point = Point(task=task_id(task), length=4096, depth=depth, index=index, seed=3)
        sample = task.sample(point, WordsTokenizer())
        support = sample.extra["support"]
        assert [fact.text for fact in read_facts(sample.haystack_text)] == sample.extra["needles"]
        assert abs(sample.placed[0] - depth) <= 0.01
        assert (support["first"], support["last"]) == (sample.placed[0], sample.placed[2])
        assert support["span"] == pytest.approx(sample.placed[2] - sample.placed[0])


def test_the_filler_holds_no_name_and_no_noun_of_the_story() -> None:
    task = get_task("babi.qa2")
    sample = task.sample(Point(task=task_id(task), length=65536, depth=0.5, index=0, seed=1), WordsTokenizer())
    filler = sample.haystack_text
    for needle in sample.extra["needles"]:
        filler = filler.replace(needle, "")
    assert not {*ACTORS, *PLACES, *OBJECTS} & set(filler.replace(".", " ").replace(",", " ").split())


def test_the_published_rule_is_kept_beside_the_strict_score() -> None:
    task = get_task("babi.qa7")
    samples = [
        task.sample(Point(task=task_id(task), length=1024, depth=0.5, index=i, seed=1), WordsTokenizer())
        for i in range(40)
    ]
    none = next(sample for sample in samples if sample.target == ("none",))
    score = task.score(none, Response(text="none"))
    assert (score.value, score.published) == (1.0, 0.0)
    assert task.score(none, Response(text="one")).value == 0.0
