"""LongBench v1, LongBench-E and L-Eval: metrics against worked values, buckets, folders, several questions to a document."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import BatteryError, DataError, MissingExtra
from longreach.harness.model import Response
from longreach.harness.registry import get_task, tasks
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import Prepared, prepare
from longreach.harness.sample import Grid
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.longbench import text_metrics as metrics
from longreach.suites.longbench.leval import letters, published_gsm, truths
from longreach.suites.longbench.v1_sets import E_SETS, SETS

FIXTURES = Path(__file__).parent.parent / "fixtures" / "loaded"
WORDS = WordsTokenizer()
WHOLE = Grid(lengths=(1 << 20,), depths=(0.5,), n=10**6)


def _samples(name: str, data: object, **params: Any) -> list[Any]:
    task = get_task(name, data=str(data), **params)
    points = sorted(task.measured_points(WHOLE, WORDS), key=lambda point: point.index)  # type: ignore[attr-defined]
    return [task.sample(point, WORDS) for point in points]


def _score(name: str, sample: Any, text: str) -> tuple[float, float | None]:
    score = get_task(name).score(sample, Response(text=text))
    return round(score.value, 6), None if score.published is None else round(score.published, 6)


def test_there_are_21_sets_13_of_them_by_length_and_20_of_l_eval() -> None:
    names = [name.split(".")[0] for name in tasks()]
    assert (names.count("longbench"), names.count("longbench_e"), names.count("leval")) == (21, 13, 20)
    assert set(E_SETS) < set(SETS)
    assert {name: SETS[name].reserve for name in ("narrativeqa", "musique", "qmsum", "trec", "lcc")} == {
        "narrativeqa": 128,
        "musique": 32,
        "qmsum": 512,
        "trec": 64,
        "lcc": 64,
    }


@pytest.mark.parametrize(
    ("answer", "references", "value"),
    [
        ("The oak.", ["oak"], 1.0),
        ("an old oak", ["oak"], 2 / 3),  # 1 of 2 words right, 1 of 1 found
        ("an old oak", ["elm", "old oak"], 1.0),  # the best reference counts
        ("a b b", ["b b c"], 0.8),  # `a` is an article: 2 of 2, 2 of 3
        ("elm", ["oak"], 0.0),
        ("", ["oak"], 0.0),
    ],
)
def test_f1_is_squads(answer: str, references: list[str], value: float) -> None:
    assert metrics.f1(answer, references) == pytest.approx(value)


def test_f1_of_chinese_counts_words_of_jieba() -> None:
    pytest.importorskip("jieba")
    assert metrics.chinese_words("我来到北京，清华大学！") == ["我", "来到", "北京", "清华大学"]
    assert metrics.f1("北京清华大学", ["我来到北京清华大学"], metrics.chinese_words) == pytest.approx(2 * 2 / (2 + 4))


def test_rouge_of_both_packages() -> None:
    pytest.importorskip("rouge")
    pytest.importorskip("rouge_score")
    # Longest common subsequence `the cat`: 2 of 3 words given, 2 of 2 wanted.
    assert metrics.published_rouge("the cat sat", ["the cat"], chinese=False) == pytest.approx(0.8, abs=1e-6)
    assert metrics.published_rouge("", ["the cat"], chinese=False) == 0.0
    found = metrics.rouge("the cat sat", ["dog", "the cat"], ("rouge1", "rouge2", "rougeL"))
    assert found == pytest.approx({"rouge1": 0.8, "rouge2": 2 / 3, "rougeL": 0.8})
    long = "word " * 40_000
    assert metrics.published_rouge(long, ["word word"], chinese=False) > 0.0  # bounded, whatever a model writes


@pytest.mark.parametrize(
    ("answer", "gold", "published", "ours"),
    [
        ("Number of something", "Number of something", 1.0, 1.0),  # `Number` stands inside the gold class
        ("Number of something", "Number", 0.5, 0.0),
        ("City or Person", "City", 0.5, 0.0),
        ("the city", "City", 0.0, 1.0),  # published: case counts
        ("Velocity City", "City", 1.0, 1.0),
        ("Velocity", "City", 0.0, 0.0),
    ],
)
def test_classes(answer: str, gold: str, published: float, ours: float) -> None:
    classes = ["Number of something", "Number", "City", "Person"]
    assert metrics.published_class(answer, gold, classes) == published
    assert metrics.one_class(answer, gold, classes) == ours


def test_the_published_loop_skips_a_class_after_one_that_it_removes() -> None:
    assert metrics.published_class("abc", "abc", ["a", "b", "abc"]) == 0.5  # `b` is skipped and stays
    assert metrics.one_class("abc", "abc", ["a", "b", "abc"]) == 1.0


@pytest.mark.parametrize(
    ("answer", "published", "ours"),
    [
        ("Paragraph 3", 1.0, 1.0),
        ("Paragraph 3, not 11", 0.5, 0.0),
        ("I compared 11 and 7. The answer is Paragraph 3.", 1 / 3, 1.0),
        ("Paragraph 30", 0.0, 0.0),
        ("none", 0.0, 0.0),
    ],
)
def test_numbers_of_paragraphs(answer: str, published: float, ours: float) -> None:
    assert metrics.published_number(answer, "Paragraph 3") == pytest.approx(published)
    assert metrics.settled_number(answer, "Paragraph 3") == ours


@pytest.mark.parametrize(
    ("answer", "published", "ours"),
    [
        ("total += 1", 1.0, 1.0),
        ("```python\ntotal += 1\n```", 1.0, 1.0),
        ("# the next line\ntotal += 1", 1.0, 1.0),
        ("  \ntotal += 1", 0.33, 1.0),  # published: the line of two blanks, both in the reference: 2 x 2 / (2 + 10)
        ("\n\ntotal += 1\nreturn", 1.0, 1.0),
        ("", 0.0, 0.0),
    ],
)
def test_edit_similarity_of_the_first_line_of_code(answer: str, published: float, ours: float) -> None:
    assert metrics.published_code(answer, ["total += 1"]) == published
    assert metrics.code_line(answer, ["total += 1"]) == ours


def test_only_the_first_line_of_few_shot_answers_counts() -> None:
    sample = _samples("longbench.trec", FIXTURES / "longbench_trec.jsonl")[1]
    assert _score("longbench.trec", sample, "\nCity\nPerson: the question asks who.") == (1.0, 1.0)
    assert _score("longbench.trec", sample, "Type: city") == (1.0, 0.0)
    qa = _samples("longbench.hotpotqa", FIXTURES / "longbench_qa.jsonl")[0]
    assert _score("longbench.hotpotqa", qa, "oak\nelm") == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_rows_of_longbench_e_belong_to_buckets_of_words() -> None:
    found = _samples("longbench_e.hotpotqa", FIXTURES / "longbench_qa.jsonl")
    assert [sample.extra["groups"]["words"] for sample in found] == [
        *("0-4k words", "0-4k words", "4k-8k words", "4k-8k words", "8k+ words", "8k+ words")
    ]
    assert "words" not in _samples("longbench.hotpotqa", FIXTURES / "longbench_qa.jsonl")[0].extra["groups"]


def test_a_row_of_the_mirror_calls_its_input_question(tmp_path: Path) -> None:
    lines = (FIXTURES / "longbench_qa.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[0])
    row["question"] = row.pop("input")
    (tmp_path / "mirror.jsonl").write_text(json.dumps(row), encoding="utf-8")
    other = _samples("longbench.hotpotqa", tmp_path / "mirror.jsonl")[0]
    assert other.messages == _samples("longbench.hotpotqa", FIXTURES / "longbench_qa.jsonl")[0].messages


def _plan(names: str, *settings: str) -> Prepared:
    return prepare(Options.of(tasks=names, model="sim:perfect", tokenizer="words", samples=9, set=list(settings)))


def test_one_folder_serves_all_sets(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, rows in (("hotpotqa", "qa"), ("hotpotqa_e", "qa"), ("lcc", "code")):
        (folder / f"{name}.jsonl").write_bytes((FIXTURES / f"longbench_{rows}.jsonl").read_bytes())
    names = "longbench.hotpotqa,longbench.lcc,longbench_e.hotpotqa"
    plan = _plan(names, f"longbench.data={folder}", f"longbench_e.data={folder}").plan
    assert {label: sum(item.label == label for item in plan.items) for label in plan.tasks} == {
        "longbench.hotpotqa": 6,
        "longbench.lcc": 3,
        "longbench_e.hotpotqa": 6,
    }
    with pytest.raises(DataError, match=r"the folder .* has no musique \(\.jsonl"):
        _plan("longbench.musique", f"longbench.data={folder}")
    with pytest.raises(BatteryError, match="task 'longbenc' is not in this battery"):
        _plan("longbench.lcc", f"longbenc.data={folder}")


def test_a_missing_library_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    with pytest.raises(MissingExtra, match=r"scored by rouge-score; run: pip install 'longreach\[longbench\]'"):
        _plan("leval.news_summ", f"leval.data={FIXTURES / 'leval_qa.jsonl'}")


def test_the_published_prompts_replace_ours(tmp_path: Path) -> None:
    (tmp_path / "prompts.json").write_text(json.dumps({"hotpotqa": "T {context} Q {input} {x}"}), encoding="utf-8")
    data = f"longbench.data={FIXTURES / 'longbench_qa.jsonl'}"
    prepared = _plan("longbench.hotpotqa", data, f"longbench.prompts={tmp_path / 'prompts.json'}")
    sample = prepared.plan.tasks["longbench.hotpotqa"].task.sample(prepared.items[0].point, prepared.tokenizer)
    text = sample.messages[0].content
    assert (text[:2], text[-4:]) == ("T ", " {x}")
    assert sample.haystack_text in text
    (tmp_path / "prompts.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"has no template for 'hotpotqa'"):
        _plan("longbench.hotpotqa", data, f"longbench.prompts={tmp_path / 'prompts.json'}")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("A", "A"),
        ("(B)", "B"),
        ("C) because the text says so", "C"),
        ("The answer is: A, C", "AC"),
        ("CA", "AC"),
        ("A and D", "AD"),
        ("Because of the rain", ""),
        ("none of them", ""),
        ("", ""),
    ],
)
def test_letters_of_an_exam(answer: str, found: str) -> None:
    assert letters(answer) == found


def test_the_published_letter_falls_into_its_traps_and_ours_does_not() -> None:
    sample = _samples("leval.quality", FIXTURES / "leval_quality.jsonl")[0]
    assert sample.target == ("A",)
    assert _score("leval.quality", sample, "none of them") == (0.0, 1.0)  # no letter becomes A
    assert _score("leval.quality", sample, "Because of that, A") == (0.0, 0.0)  # B of Because
    assert _score("leval.quality", sample, "(A)") == (1.0, 1.0)


def test_numbers_of_gsm() -> None:
    assert published_gsm("First 3 boxes.\nThe answer is 1,234.") == "1234"
    assert published_gsm("So there are 12 pears\n\nor 13") == "12"
    assert published_gsm("no number") == ""
    sample = _samples("leval.gsm100", FIXTURES / "leval_gsm100.jsonl")[0]
    assert _score("leval.gsm100", sample, "2 x 3 = 6. The answer is 6") == (1.0, 1.0)
    assert _score("leval.gsm100", sample, "The answer is 7") == (0.0, 0.0)


def test_science_fiction_has_two_truths() -> None:
    assert truths("True [fact: False]") == (True, False)
    assert truths("false") == (False, None)
    sample = _samples("leval.sci_fi", FIXTURES / "leval_sci_fi.jsonl")[0]
    score = get_task("leval.sci_fi").score(sample, Response(text="True [fact: True]"))
    assert (score.value, score.parts) == (0.0, {"loyalty": 1.0, "fact": 0.0})


def test_each_question_of_a_document_is_a_sample_of_its_own(tmp_path: Path) -> None:
    row = {"instructions": ["Which?", "Who?"], "outputs": ["the oak", "the miller of the old mill"], "input": "A text."}
    (tmp_path / "two.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row)}\n", encoding="utf-8")
    found = _samples("leval.scientific_qa", tmp_path / "two.jsonl", tell_length=True)
    assert [sample.point.index for sample in found] == [0, 1, 1000, 1001]
    assert [sample.extra["question"] for sample in found] == ["Which?", "Who?"] * 2
    assert "Write about 6 words." in found[1].messages[0].content
    assert found[0].haystack_text == "A text."
    assert found[0].extra["groups"] == {"kind": "open question", "source": "not stated"}


def test_the_score_of_summaries_is_rouge_l_and_the_published_one_a_geometric_mean() -> None:
    pytest.importorskip("rouge_score")
    sample = _samples("leval.news_summ", FIXTURES / "leval_qa.jsonl")[0]
    assert sample.target == ("An old oak.",)
    # `an old`: 2 of 2 and 2 of 3 words, 1 of 1 and 1 of 2 pairs.
    assert _score("leval.news_summ", sample, "an old") == (0.8, round((0.8 * 2 / 3 * 0.8) ** (1 / 3), 6))
