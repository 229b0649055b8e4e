"""Key-value pairs, documents and many-shot labels: places, the published rules, and what makes an answer unguessable."""

import json
import re

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Point, Sample
from longreach.harness.task import Task, task_id
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer
from longreach.suites.helmet import articles
from longreach.suites.helmet.answers import best_subspan_em, squad_form, substring_em

WORDS = WordsTokenizer()
BY_PLACE = ("helmet.json_kv", "litm.kv", "helmet.multi_doc", "litm.multi_doc")


def _sample(
    task: Task, length: int = 8192, index: int = 0, depth: float | None = 0.5, tokenizer: Tokenizer = WORDS
) -> Sample:
    return task.sample(Point(task=task_id(task), length=length, depth=depth, index=index, seed=9), tokenizer)


@pytest.mark.parametrize("name", ["helmet.json_kv", "litm.kv"])
@pytest.mark.parametrize("depth", [0.0, 0.3, 1.0])
def test_the_object_is_json_and_holds_the_pair_at_its_depth(name: str, depth: float) -> None:
    sample = _sample(get_task(name), depth=depth)
    content = sample.messages[-1].content
    found = json.loads(content[content.index("{") : content.index("}") + 1])
    key = re.search(r"[0-9a-f-]{36}", sample.extra["question"])
    assert key is not None
    assert found[key[0]] == sample.target[0]
    assert len(set(found.values())) == len(found) > 100
    keys = list(found)
    assert abs(keys.index(key[0]) / (len(keys) - 1) - depth) <= 0.02
    others = [value for value in sample.choices if value in found.values()]
    assert len(others) == (2 if name == "helmet.json_kv" else 0)  # the solved keys are pairs of the object


def test_the_form_of_the_published_objects() -> None:
    lines = _sample(get_task("litm.kv")).messages[-1].content.splitlines()
    assert lines[0] == "Extract the value corresponding to the specified key in the JSON object below."
    assert lines[2] == "JSON data:"
    assert re.fullmatch(r'\{"[0-9a-f-]{36}": "[0-9a-f-]{36}",', lines[3])
    assert re.fullmatch(r' "[0-9a-f-]{36}": "[0-9a-f-]{36}",', lines[4])
    assert re.fullmatch(r'Key: "[0-9a-f-]{36}"', lines[-2])
    assert lines[-1] == "Corresponding value:"


@pytest.mark.parametrize("name", BY_PLACE)
@pytest.mark.parametrize("depth", [0.0, 0.07, 0.5, 0.93, 1.0])
def test_depths_are_kept_in_long_prompts(name: str, depth: float) -> None:
    for index in range(2):
        sample = _sample(get_task(name), index=index, depth=depth)
        assert abs(sample.placed[0] - depth) <= 0.01
        before = sample.haystack_text.partition(sample.extra["needles"][0])[0]
        rest = sample.haystack_text.replace(sample.extra["needles"][0], "")
        assert abs(WORDS.count(before) / WORDS.count(rest) - depth) <= 0.015


@pytest.mark.parametrize("name", ["helmet.multi_doc", "litm.multi_doc"])
def test_no_other_document_holds_the_answer_and_three_titles_are_near(name: str) -> None:
    for index in range(3):
        sample = _sample(get_task(name), index=index)
        gold = sample.extra["needles"][0]
        rest = sample.haystack_text.replace(gold, "")
        for alias in sample.extra["aliases"]:
            assert alias in gold
            assert alias not in rest
        place = re.search(r"Title: (\w+)", gold)
        assert place is not None
        assert len(re.findall(rf"\(Title: {place[1]} ", rest)) == 3
        assert all(choice in rest for choice in sample.choices)


def test_documents_of_lost_in_the_middle_are_numbered_from_one() -> None:
    text = _sample(get_task("litm.multi_doc")).haystack_text
    numbers = [int(number) for number in re.findall(r"Document \[(\d+)\]", text)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_titles_and_values_of_the_pool_are_never_asked_about() -> None:
    pool = articles.pool(1000)
    assert len({article.title for article in pool}) == len(pool)
    words = {word for article in pool for word in re.findall(r"\w+", article.text)}
    for index in range(20):
        gold, near = articles.asked(_point(index).rng(), 3)
        for article in (gold, *near):
            values = {value for several in article.answers.values() for value in several if " " not in value}
            assert len(values) == 3
            assert not values & words
            assert article.title.partition(" ")[0] not in words


def _point(index: int) -> Point:
    return Point(task="articles", length=1, depth=None, index=index, seed=1)


def test_the_published_rules() -> None:
    assert squad_form("The  Lamp, a Door!") == "lamp door"
    assert (
        best_subspan_em("\n Frida Corelund.\nOr not", ("frida corelund",)) == 1.0
    )  # blank lines in front do not count
    assert best_subspan_em("I am not sure.\nFrida Corelund", ("Frida Corelund",)) == 0.0  # only the first line does
    assert substring_em("It is led by\nFrida Corelund", ("Frida Corelund",), "answer:") == 1.0
    assert substring_em("Answer: Nanna", ("Frida Corelund",), "answer:") == 0.0
    kv, sample = get_task("litm.kv"), _sample(get_task("litm.kv"))
    both = kv.score(sample, Response(text=f"{sample.target[0].upper()} or {sample.choices[-1]}"))
    assert (both.value, both.published) == (0.0, 1.0)  # Lost in the Middle: any substring, whatever the case


def test_icl_labels_are_numbers_that_only_the_examples_explain() -> None:
    task = get_task("helmet.icl", labels=50)
    first, second = (_sample(task, index=index, depth=None) for index in (0, 1))
    for sample in (first, second):
        labels = [int(label) for label in re.findall(r"\nlabel: (\d+)", sample.haystack_text)]
        assert set(labels) == set(range(50))
        rounds = [labels[at : at + 50] for at in range(0, len(labels) - 49, 50)]
        assert len(rounds) >= 3
        assert all(sorted(numbers) == list(range(50)) for numbers in rounds)  # one of each, in random order
        assert rounds[0] != rounds[1]
        assert sample.extra["question"] not in sample.haystack_text
    assert first.extra["question"] != second.extra["question"]
    assert task.info.chance == 1 / 50
    assert task.score(first, Response(text=f"label: {first.target[0]}")).published == 1.0
    assert task.score(first, Response(text=f"label: {first.target[0]} or {first.choices[0]}")).value == 0.0


def test_icl_takes_no_more_labels_than_the_largest_published_set() -> None:
    with pytest.raises(ConfigError, match="from 2 to 151"):
        get_task("helmet.icl", labels=152)
