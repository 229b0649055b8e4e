"""RULER's word tasks: frequencies, layout, where the words stand, what an answer names."""

from collections import Counter

import pytest

from longreach.harness.errors import InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.sample import Grid, Sample
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WordsTokenizer
from longreach.suites.ruler.common_words import OPENING, PREFIX, QUESTION, CommonWords, named_in
from longreach.suites.ruler.frequent_words import FrequentWords, zipf_counts
from longreach.suites.ruler.vocabulary import vocabulary, word_list

CWE, FWE = CommonWords(), FrequentWords()


def _samples(
    task: CommonWords | FrequentWords, length: int, n: int = 3, tokenizer: Tokenizer | None = None
) -> list[Sample]:
    points = task.points(Grid(lengths=(length,), depths=(0.5,), n=n))
    return [task.sample(point, tokenizer or WordsTokenizer()) for point in points]


def _listed(text: str) -> list[str]:
    parts = text.split(" ")
    words: list[str] = []
    for part in parts:
        if part == f"{len(words) + 1}.":
            words.append("")
        else:
            words[-1] = f"{words[-1]} {part}".strip()
    return words


def test_the_words_are_those_that_ruler_counts() -> None:
    """wonderwords 3.0.1, as RULER's readers count it: 8,166 words, 6,171,620 pairs."""
    assert len(vocabulary()) == 8166
    assert len(word_list("noun")) == 6782
    assert len({f"{a}-{b}" for a in word_list("adjective")[:50] for b in word_list("noun")[:50]}) == 2500


@pytest.mark.parametrize(("length", "many", "few"), [(2048, 6, 1), (4096, 30, 3), (16_384, 30, 3)])
def test_common_words_come_as_often_as_ruler_says(length: int, many: int, few: int) -> None:
    for sample in _samples(CWE, length):
        counts = Counter(_listed(sample.haystack_text))
        assert {counts[word] for word in sample.target} == {many}
        assert {n for word, n in counts.items() if word not in sample.target} == {few}


def test_the_example_is_a_short_list_with_its_answer() -> None:
    sample = _samples(CWE, 4096, n=1)[0]
    _, example, task = sample.messages[-1].content.split(OPENING)
    shown, _, answer = example.partition(f"\n{QUESTION}{PREFIX} ")
    counts = Counter(_listed(shown))
    assert sorted(counts.values()) == [3] * 30 + [10] * 10
    assert {counts[word] for word in _listed(answer.strip())} == {10}
    assert not set(counts) & set(_listed(sample.haystack_text))
    assert task == f"{sample.haystack_text}\n{QUESTION}{PREFIX}"


def test_common_words_stand_at_other_places_in_each_sample() -> None:
    first, second = (
        {index for index, word in enumerate(_listed(sample.haystack_text)) if word in sample.target}
        for sample in _samples(CWE, 4096, n=2)
    )
    assert len(first & second) < 0.8 * len(first)


def test_the_list_goes_on_with_pairs_where_the_words_end() -> None:
    sample = _samples(CWE, 262_144, n=1)[0]
    words = set(_listed(sample.haystack_text)) - set(sample.target)
    assert len(words) > len(vocabulary())
    assert all("-" in word for word in words)
    assert sample.extra["notes"] == ["words are adjective-noun pairs: the list needs more than wonderwords has"]
    assert 0 <= 262_144 - CWE.reserve - sample.n_tokens <= 8


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("1. otter 2. brave 3. contact lens", ["otter", "brave", "contact lens"]),
        ("The top words are:\n- Otter\n- brave", ["otter", "brave"]),
        ("otter, brave, and contact lens.", ["otter", "brave", "contact lens"]),
        ("otter brave", ["otter", "brave"]),
        ("otters", []),
    ],
)
def test_an_answer_names_listed_words(answer: str, named: list[str]) -> None:
    assert named_in(answer, {"otter", "brave", "contact lens", "top"}) == named


def test_zipf_s_counts_are_ruler_s() -> None:
    """Shares 60.8, 15.2, 6.75, 3.8 and 2.43 % (RULER, section on FWE)."""
    assert zipf_counts(100_000, 5).tolist() == [60792, 15198, 6754, 3799, 2431]


@pytest.mark.parametrize("tokenizer", [WordsTokenizer(), BytesTokenizer()])
def test_frequent_words_come_in_their_order_and_dots_most(tokenizer: Tokenizer) -> None:
    for sample in _samples(FWE, 16_384, tokenizer=tokenizer):
        counts = Counter(sample.haystack_text.split(" "))
        assert [word for word, _ in counts.most_common(4)] == ["...", *sample.target]
        n_words = sum(counts.values())
        assert counts["..."] / n_words == pytest.approx(0.608, abs=0.02)
        assert 0 <= 16_384 - FWE.reserve - sample.n_tokens <= 8


def test_a_text_too_short_to_rank_four_words_is_refused() -> None:
    with pytest.raises(InfeasibleCell, match="the smallest that asks anything"):
        _samples(FWE, 150)


def test_extra_words_are_free_by_ruler_s_rule_only() -> None:
    for task in (CWE, FWE):
        sample = _samples(task, 4096, n=1)[0]
        stranger = sample.choices[-1].split(", ")[-1]
        score = task.score(sample, Response(text=", ".join((*sample.target, stranger))))
        assert (score.value, score.published) == (0.0, 1.0)
        assert task.score(sample, Response(text=", ".join(sample.target))).value == 1.0
