"""Every task in every language: exact lengths, solvers that read it, text that fits its script."""

import re

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Message, Sample
from longreach.harness.task import Solvable, Task
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.facts import MIXED, bank, languages
from longreach.suites.filler import LANGUAGES, mixed, repeat, words

WORDS = WordsTokenizer()
VARIANTS = (
    *(("niah.single", {"kind": kind}) for kind in ("number", "code", "fact", "instruction")),
    ("niah.multi", {}),
    ("niah.distractor", {}),
    ("niah.distractor", {"style": "instruction"}),
    ("niah.conflict", {}),
    ("niah.multihop", {}),
    ("niah.multihop", {"hops": 3}),
    ("niah.decay", {}),
    ("trace.arith", {}),
)
SCRIPTS = {"en": r"[A-Za-z]", "pt": r"[A-Za-zÀ-ÿ]", "ru": r"[А-Яа-яЁё]", "zh": r"[\u4e00-\u9fff]"}


def _samples(task: Task, n: int, length: int = 1024) -> list[Sample]:
    grid = Grid(lengths=(length,), depths=(0.0, 0.31, 0.5, 1.0), n=n)
    return [task.sample(point, WORDS) for point in task.points(grid)]


def _without_needles(sample: Sample) -> tuple[Message, ...]:
    content = sample.messages[-1].content
    for needle in sample.extra["needles"]:
        assert content.count(needle) == 1
        content = content.replace(needle, "")
    return (Message(role="user", content=content),)


def test_filler_and_banks_speak_the_same_languages() -> None:
    assert languages() == LANGUAGES


@pytest.mark.parametrize("language", [*languages(), MIXED])
def test_two_hundred_samples_are_exact_solved_and_unsolved_without_their_needles(language: str) -> None:
    n_samples = 0
    for name, params in VARIANTS:
        task = get_task(name, language=language, **params)
        assert isinstance(task, Solvable)
        for sample in _samples(task, n=5):
            n_samples += 1
            assert 0 <= 1024 - task.info.reserve - sample.n_tokens <= 8
            assert sample.n_tokens == WORDS.count(WORDS.render(sample.messages))
            if sample.point.depth is not None:
                assert abs(sample.placed[0] - sample.point.depth) <= 0.01
            answer, control = task.solve(sample.messages), task.solve(_without_needles(sample))
            assert answer is not None and control is not None
            assert task.score(sample, Response(text=answer)).value == 1.0, (answer, sample.target)
            assert task.score(sample, Response(text=control)).value == 0.0
    assert n_samples >= 200


@pytest.mark.parametrize("language", languages())
def test_filler_needles_and_questions_are_in_one_script(language: str) -> None:
    for name, params in VARIANTS[:8]:
        sample = _samples(get_task(name, language=language, **params), n=1)[1]
        letters = [sign for sign in sample.messages[-1].content if sign.isalpha()]
        own = [sign for sign in letters if re.match(SCRIPTS[language], sign)]
        assert len(own) / len(letters) > 0.98
    assert sample.messages[-1].content.startswith(bank(language).head)


def test_chinese_has_its_own_stops_and_no_blanks() -> None:
    text = mixed(50_000, 3, "zh")
    assert not re.search(r"[.,;:?! ]", text)
    assert all(paragraph.endswith("。") for paragraph in text.split("\n\n"))
    for name, params in VARIANTS[:10]:
        sample = _samples(get_task(name, language="zh", **params), n=1)[1]
        for needle in sample.extra["needles"]:
            assert needle.endswith(("。", "。”"))
            assert " " not in needle


def test_a_mixed_text_has_paragraphs_of_all_languages_and_asks_in_any() -> None:
    paragraphs = mixed(20_000, 1, MIXED).split("\n\n")
    for script in (SCRIPTS["ru"], SCRIPTS["zh"], "[ãçõé]", r"\bthe\b"):
        assert sum(re.search(script, paragraph) is not None for paragraph in paragraphs) > len(paragraphs) / 6
    asked = {sample.extra["language"] for sample in _samples(get_task("niah.single", language=MIXED), n=8, length=512)}
    assert asked == set(languages())


def test_items_of_a_mixed_run_ask_the_same_at_every_length() -> None:
    task = get_task("niah.single", language=MIXED)
    short, long = _samples(task, n=3), _samples(task, n=3, length=4096)
    assert [sample.extra["question"] for sample in short] == [sample.extra["question"] for sample in long]


@pytest.mark.parametrize("language", languages())
def test_sentences_hardly_ever_come_twice_and_hold_no_digits(language: str) -> None:
    text = mixed(150_000, 42, language)
    sentences = [sentence for sentence in re.split(r"(?<=[.。])\s*", text) if sentence]
    assert 1 - len(set(sentences)) / len(sentences) < 0.02
    assert not re.search(r"\d|\?|  |\n\n\n| ,| \.|，，|[{}]", text)
    assert len(set(re.split(r"(?<=[.。])\s*", repeat(2_000, 0, language))) - {""}) == 1


def test_no_sentence_names_one_thing_twice_outside_the_pinned_english() -> None:
    for language in ("pt", "ru", "zh"):
        things = [thing.lower() for topic in words(language).topics for thing in topic.things]
        for sentence in re.split(r"[.。]", mixed(30_000, 2, language).lower()):
            assert all(sentence.count(thing) < 2 for thing in things), sentence


@pytest.mark.parametrize("language", languages())
def test_no_place_of_a_bank_stands_in_any_filler(language: str) -> None:
    text = mixed(200_000, 1, language).lower()
    places = {"".join(pair).lower() for pair in _pairs(language)}
    assert len(places) >= 1000
    assert not [place for place in places if place in text]


def _pairs(language: str) -> list[tuple[str, str]]:
    first, second = bank(language).pools["place"].parts
    return [(start, end) for start in first for end in second]


@pytest.mark.parametrize("language", languages())
def test_a_lure_is_no_credit_and_told_apart(language: str) -> None:
    task = get_task("niah.distractor", language=language, style="instruction", distractors=12)
    for sample in _samples(task, n=1):
        assert len(set(sample.choices)) == 12
        (target,), lure = sample.target, sample.choices[3]
        assert task.score(sample, Response(text=lure)).parts == {"found": 0.0, "distractor": 1.0, "both": 0.0}
        assert task.score(sample, Response(text=f"{lure} {target}")).value == 0.0
        assert task.score(sample, Response(text=f"= {int(target):,}")).value == 1.0


def test_unknown_languages_are_refused_by_every_task() -> None:
    for name in ("niah.single", "niah.decay", "trace.arith", "niah.distractor"):
        with pytest.raises(ConfigError, match="no wording in language 'fr'; one of: en, pt, ru, zh, mixed"):
            get_task(name, language="fr")


def test_english_prompts_need_no_draw_for_their_language() -> None:
    plain, named = (
        _samples(task, n=1)[0] for task in (get_task("niah.single"), get_task("niah.single", language="en"))
    )
    assert plain.prompt_sha256 == named.prompt_sha256
    assert "language" not in plain.extra
