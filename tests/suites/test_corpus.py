"""Cuts and corpora: where a text may be cut, what a cut costs, tiling."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from longreach.harness.data import pin
from longreach.harness.errors import DataError
from longreach.harness.tokenizer import BytesTokenizer, WordsTokenizer
from longreach.suites.corpus import get_corpus, tier
from longreach.suites.cuts import GRAPHEME, LINE, SENTENCE, WORD, find_cuts


def _cut_texts(text: str, level: int) -> list[str]:
    cuts = find_cuts(text, BytesTokenizer())
    edges = cuts.positions[cuts.by_level[level]]
    return [text[a:b].strip() for a, b in pairwise(edges)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("Dr. Smith met Mr. J. Brown. They talked.", ["Dr. Smith met Mr. J. Brown.", "They talked."]),
        ("It cost 3.5 euros, e.g. in town. Fine.", ["It cost 3.5 euros, e.g. in town.", "Fine."]),
        ("今天下雨。我们回家。", ["今天下雨。", "我们回家。"]),
        ("「行こう。」彼は言った。", ["「行こう。」", "彼は言った。"]),
        ("def f():\n    return {\n", ["def f():", "return {"]),
    ],
)
def test_sentences_end_after_their_stops_and_quotes(text: str, sentences: list[str]) -> None:
    assert [piece for piece in _cut_texts(text, SENTENCE) if piece] == sentences


def test_lines_and_words_are_finer_cuts() -> None:
    assert _cut_texts("one two\nthree", LINE) == ["one two", "three"]
    assert _cut_texts("one two\nthree", WORD) == ["one", "two", "three"]


@pytest.mark.parametrize("cluster", ["👨‍👩‍👧‍👦", "👩🏽‍🚀", "🇵🇹", "é".replace("é", "e\u0301"), "กำ", "한", "\r\n"])
def test_no_cut_splits_a_grapheme(cluster: str) -> None:
    text = cluster * 6
    cuts = find_cuts(text, BytesTokenizer())
    assert set(cuts.positions % len(cluster)) == {0}
    assert cuts.by_level[GRAPHEME].size == 7


@pytest.mark.parametrize("tokenizer", [BytesTokenizer(), WordsTokenizer()])
def test_a_slice_between_cuts_costs_the_difference_of_their_counts(tokenizer: BytesTokenizer | WordsTokenizer) -> None:
    corpus = get_corpus("mixed", 4096, 5, tokenizer)
    cuts = corpus.cuts
    rng = random.Random(3)
    for _ in range(50):
        a, b = sorted(rng.sample(list(cuts.by_level[SENTENCE]), 2))
        piece = corpus.text[cuts.positions[a] : cuts.positions[b]]
        assert tokenizer.count(piece) == cuts.counts[b] - cuts.counts[a]


def test_the_size_of_a_generated_text_depends_on_the_length_only() -> None:
    assert (tier(512), tier(4096), tier(4097), tier(1 << 20)) == (4096, 4096, 8192, 1 << 20)
    tokenizer = WordsTokenizer()
    before = get_corpus("mixed", 5000, 42, tokenizer).text
    get_corpus("mixed", 30_000, 42, tokenizer)
    assert get_corpus("mixed", 8000, 42, tokenizer).text == before


def test_a_short_text_is_tiled_with_exact_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One small sentence. Another one, a bit longer.", encoding="utf-8")
    tokenizer = WordsTokenizer()
    corpus = get_corpus(pin(str(path)), 4096, 1, tokenizer)
    assert corpus.is_tiled
    assert corpus.cuts.n_tokens >= 4096 + corpus.period
    assert tokenizer.count(corpus.text) == corpus.cuts.n_tokens


def test_a_long_text_is_used_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 5000, encoding="utf-8")
    corpus = get_corpus(pin(str(path)), 4096, 1, WordsTokenizer())
    assert not corpus.is_tiled
    assert len(corpus.text) == 24_999


def test_a_blank_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(" " * 1_000_000, encoding="utf-8")
    with pytest.raises(DataError, match="holds no text"):
        pin(str(path))


def test_threads_get_one_corpus() -> None:
    tokenizer = WordsTokenizer()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: get_corpus("mixed", 9000, 77, tokenizer), range(16)))
    assert len({id(corpus) for corpus in found}) == 1
