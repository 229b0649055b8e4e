"""One needle: its kinds, and the user's own."""

from collections import Counter
from pathlib import Path

import pytest

from longreach.harness.data import pin
from longreach.harness.errors import ConfigError, DataError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.task import Score
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.niah_single import KINDS, Single

WORDS = WordsTokenizer()
OWN = (
    "needle,question,answer,kind,distractors\n"
    "The cook of the Tern is Ada.,Who cooks on the Tern?,Ada|Ada Byron,fact,Eva\n"
    "The mast is 31 feet high.,How high is the mast?,31 feet|31,,\n"
    "The mast weighs 4182 pounds.,What does the mast weigh?,4182,,5000\n"
)


def _samples(task: Single, n: int = 3, depths: tuple[float, ...] = (0.3, 0.8), length: int = 1024) -> list[Sample]:
    return [task.sample(point, WORDS) for point in task.points(Grid(lengths=(length,), depths=depths, n=n))]


def _own(tmp_path: Path, text: str = OWN) -> Single:
    path = tmp_path / "needles.csv"
    path.write_text(text, encoding="utf-8")
    return Single(needles=pin(str(path)))


def _score(task: Single, sample: Sample, text: str) -> Score:
    return task.score(sample, Response(text=text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_uses_many_templates_and_places(kind: str) -> None:
    samples = _samples(Single(kind=kind), n=40, length=512)
    assert len({sample.target for sample in samples}) == 80
    closings = Counter(sample.extra["question"].split()[0:6].__str__() for sample in samples)
    assert len(closings) >= 8
    assert max(closings.values()) < 25


def test_a_number_may_be_written_in_any_form() -> None:
    task = Single()
    sample = _samples(task)[0]
    number = int(sample.target[0])
    for text in (f"It is {number:,}.", f"**{number}**", f"{number}.0", f"No. {number} at the ferry office, as of 1994"):
        assert _score(task, sample, text).value == 1.0
    for text in (f"1{number}", f"{number}7", f"{number}-2", str(number + 1), sample.choices[0]):
        assert _score(task, sample, text).value == 0.0


def test_a_code_is_found_in_a_sentence_whatever_the_case() -> None:
    task = Single(kind="code")
    sample = _samples(task)[0]
    assert _score(task, sample, f"The code is `{sample.target[0].lower()}`.").value == 1.0
    assert _score(task, sample, sample.target[0] + "5").value == 0.0
    assert _score(task, sample, sample.target[0][:-1]).value == 0.0


def test_own_needles_take_turns_in_a_seeded_order(tmp_path: Path) -> None:
    task = _own(tmp_path)
    samples = _samples(task, n=6)
    questions = [sample.extra["question"] for sample in samples]
    assert set(Counter(questions).values()) == {4}
    assert questions[0::2] == questions[1::2]
    assert questions[:6] == questions[6:]
    assert [sample.extra["question"] for sample in _samples(task, n=3, length=2048)] == questions[:6]


def test_any_answer_of_an_own_needle_counts_and_its_distractors_do_not(tmp_path: Path) -> None:
    task = _own(tmp_path)
    by_question = {sample.extra["question"]: sample for sample in _samples(task)}
    cook, mast, weight = (
        by_question[q] for q in ("Who cooks on the Tern?", "How high is the mast?", "What does the mast weigh?")
    )
    assert _score(task, cook, "Ada Byron does").value == _score(task, cook, "ada").value == 1.0
    assert _score(task, cook, "Eva").parts["distractor"] == 1.0
    assert _score(task, cook, "Ada or Eva").value == 0.0
    assert _score(task, mast, "31 ft").value == 1.0
    assert _score(task, weight, "four thousand one hundred eighty-two").value == 1.0
    assert _score(task, weight, "5,000").parts["distractor"] == 1.0
    assert all("accepted" in sample.extra and len(sample.target) == 1 for sample in by_question.values())


def test_no_task_claims_to_solve_own_needles(tmp_path: Path) -> None:
    task = _own(tmp_path)
    assert all(task.solve(sample.messages) is None for sample in _samples(task))


def test_a_row_of_kind_number_needs_numbers(tmp_path: Path) -> None:
    task = _own(tmp_path, "needle,question,answer,kind\nAda cooks.,Who cooks?,Ada,number\n")
    with pytest.raises(DataError, match="needle '1' is of kind number"):
        _samples(task)


def test_an_answer_that_stands_in_the_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("Ada went home again and again. " * 500, encoding="utf-8")
    task = _own(tmp_path, "needle,question,answer\nThe cook is Ada.,Who cooks?,Ada\n")
    with pytest.raises(DataError, match="'Ada'"):
        _samples(get_task("niah.single", needles=task.needles, haystack=pin(str(path))))  # type: ignore[arg-type]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="kind 'riddle' is not one of fact, number, code, instruction"):
        get_task("niah.single", kind="riddle")
