"""Generated filler: variety, no digits, the same bytes everywhere."""

import hashlib
import re

import pytest

from longreach.suites.filler import GENERATORS, NOISE, mixed, noise, repeat

N_128K = 640_000
"""Characters of about 128k tokens of English."""


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.)\s+", text)


def test_under_two_percent_of_sentences_come_twice_at_128k() -> None:
    sentences = _sentences(mixed(N_128K, 42))
    assert len(sentences) > 5_000
    assert 1 - len(set(sentences)) / len(sentences) < 0.02


def test_mixed_text_holds_no_digits_questions_or_blank_oddities() -> None:
    text = mixed(N_128K, 7)
    assert not re.search(r"\d|\?|:|  |\n\n\n| ,| \.|<|\[", text)
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in _sentences(text))


def test_paragraphs_hold_a_few_sentences_and_topics_change() -> None:
    paragraphs = mixed(50_000, 1).split("\n\n")
    assert {len(_sentences(paragraph)) for paragraph in paragraphs} == {3, 4, 5, 6, 7}


def test_mixed_text_is_pinned_to_the_byte() -> None:
    assert hashlib.sha256(mixed(100_000, 42).encode()).hexdigest()[:16] == "e6621cb8dc282df9"


def test_seeds_give_other_texts() -> None:
    assert mixed(10_000, 1)[:200] != mixed(10_000, 2)[:200]


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_every_generator_gives_enough_characters(name: str) -> None:
    for n in (1, 500, 33_000):
        assert n <= len(GENERATORS[name](n, 3)) < n + 2_000


def test_repeat_is_one_sentence_and_noise_one_line() -> None:
    assert len(set(_sentences(repeat(5_000, 0)))) == 1
    assert set(noise(5_000, 0).split("\n")) == {NOISE}
