"""Needles among what misleads: near misses, outdated values, decoy chains."""

import itertools
import re

import pytest

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Sample
from longreach.harness.task import Score, Task
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.niah_conflict import Conflict
from longreach.suites.niah_distractor import Distractor
from longreach.suites.niah_multihop import Multihop


def _samples(task: Task, n: int = 8, depths: tuple[float, ...] = (0.0, 0.5, 1.0)) -> list[Sample]:
    return [task.sample(point, WordsTokenizer()) for point in task.points(Grid(lengths=(4096,), depths=depths, n=n))]


def _score(task: Task, sample: Sample, text: str) -> Score:
    return task.score(sample, Response(text=text))


@pytest.mark.parametrize("task", [Distractor(), Conflict(), Multihop()], ids=lambda task: task.info.name)
def test_a_wrong_candidate_is_told_apart_from_silence_and_both_earn_nothing(task: Task) -> None:
    for sample in _samples(task, n=2):
        misled, both = sample.choices[0], f"{sample.target[0]} or {sample.choices[-1]}"
        assert _score(task, sample, misled).parts == {"found": 0.0, "distractor": 1.0, "both": 0.0}
        assert _score(task, sample, "none").parts == {"found": 0.0, "distractor": 0.0, "both": 0.0}
        assert (_score(task, sample, both).value, _score(task, sample, both).parts["both"]) == (0.0, 1.0)


@pytest.mark.parametrize("task", [Distractor(), Conflict(), Multihop()], ids=lambda task: task.info.name)
def test_every_candidate_stands_in_the_text_once(task: Task) -> None:
    for sample in _samples(task, n=3):
        for value in (*sample.target, *sample.choices):
            assert sample.messages[-1].content.count(value) == 1


def test_the_sought_needle_is_at_the_depth_and_near_misses_on_both_sides() -> None:
    for sample in _samples(Distractor(), depths=(0.5,)):
        assert abs(sample.placed[0] - 0.5) <= 0.01
        assert min(sample.placed[1:]) < 0.5 < max(sample.placed[1:])
        assert len(sample.extra["needles"]) == 5
        assert sample.extra["sought"] == [needle for needle in sample.extra["needles"] if sample.target[0] in needle]


def test_near_misses_differ_from_the_needle_in_one_thing() -> None:
    for sample in _samples(Distractor(distractors=6)):
        keys = [re.sub(r"\d+", "", needle).split() for needle in sample.extra["needles"]]
        (sought,) = (re.sub(r"\d+", "", needle).split() for needle in sample.extra["sought"])
        assert len({tuple(key) for key in keys}) == 7
        for key in keys:
            assert len(set(sought) - set(key)) <= 2


def test_the_order_of_outdated_and_current_is_random() -> None:
    orders = [sample.placed[0] < sample.placed[1] for sample in _samples(Conflict(), n=60, depths=(0.5,))]
    assert 15 < sum(orders) < 45


def test_a_later_year_is_the_current_one() -> None:
    dated = [
        sample for sample in _samples(Conflict(), n=20) if re.search(r"\b(19|20)\d\d\b", sample.extra["sought"][0])
    ]
    assert dated
    for sample in dated:
        years = {needle: int(re.findall(r"\b(?:19|20)\d\d\b", needle)[0]) for needle in sample.extra["needles"]}
        assert max(years, key=lambda needle: years[needle]) == sample.extra["sought"][0]


@pytest.mark.parametrize("hops", [2, 3])
def test_every_link_of_a_chain_is_needed(hops: int) -> None:
    task = Multihop(hops=hops)
    for sample in _samples(task, n=4):
        assert len(sample.extra["sought"]) == hops
        for link in sample.extra["sought"]:
            content = sample.messages[-1].content.replace(link, "")
            assert task.solve((Message(role="user", content=content),)) == ""


def test_the_question_of_a_chain_names_neither_bridge_nor_value() -> None:
    for sample in _samples(Multihop(hops=3), n=4):
        for one, other in itertools.pairwise(sorted(sample.extra["sought"], key=lambda link: sample.target[0] in link)):
            assert one != other
        with_value = next(link for link in sample.extra["sought"] if sample.target[0] in link)
        names = re.findall(r"(?<!^)\b[A-Z][a-z]+ [A-Z][a-z]+", with_value)
        assert names
        assert not any(name in sample.extra["question"] for name in names)


def test_decoys_have_the_form_of_the_true_chain() -> None:
    for sample in _samples(Multihop(decoys=3), n=2):
        assert len(sample.extra["needles"]) == 8
        assert len(sample.choices) == 3


def test_chance_is_that_of_a_guess_among_the_candidates() -> None:
    assert Distractor().info.chance == 0.2
    assert Conflict().info.chance == 0.5
    assert Multihop(decoys=3).info.chance == 0.25


@pytest.mark.parametrize("task", [Distractor(), Conflict(), Multihop(hops=3)], ids=lambda task: task.info.name)
def test_the_sought_needle_keeps_its_depth_in_short_prompts(task: Task) -> None:
    for length in (384, 512, 1024):
        for point in task.points(Grid(lengths=(length,), depths=(0.0, 0.1, 0.4, 0.75, 0.97, 1.0), n=4)):
            sample = task.sample(point, WordsTokenizer())
            assert point.depth is not None
            assert abs(sample.placed[0] - point.depth) <= 0.01
