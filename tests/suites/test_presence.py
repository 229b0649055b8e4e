"""Strings that must not stand in a haystack: looked up by their words, found as whole words."""

from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.corpus import Corpus
from longreach.suites.cuts import find_cuts
from longreach.suites.presence import first_present


def _corpus(text: str) -> Corpus:
    cuts = find_cuts(text, WordsTokenizer())
    return Corpus(spec="t", text=text, cuts=cuts, period=cuts.n_tokens, notes=(), copy=cuts.n_tokens)


def test_whole_words_are_found_whatever_their_case() -> None:
    corpus = _corpus("The Brave otter swam. Concatenate 14182 now.")
    everything = (0, len(corpus.text))
    assert first_present(corpus, *everything, ["brave OTTER"]) == "brave OTTER"
    assert first_present(corpus, *everything, ["cat", "4182", "otter brave"]) == ""
    assert first_present(corpus, *everything, ["swam."]) == "swam."


def test_only_the_window_counts() -> None:
    corpus = _corpus("One fox here. Two owls there.")
    assert first_present(corpus, 14, len(corpus.text), ["fox"]) == ""
    assert first_present(corpus, 0, 13, ["fox", "owls"]) == "fox"
    assert first_present(corpus, 0, 6, ["fox"]) == ""


def test_scripts_without_blanks_and_letters_that_grow_are_searched() -> None:
    corpus = _corpus("我在北京市工作。İstanbul is far, and the straße is long.")
    everything = (0, len(corpus.text))
    assert first_present(corpus, *everything, ["北京"]) == "北京"
    assert first_present(corpus, *everything, ["straße"]) == "straße"
    assert first_present(corpus, *everything, ["上海"]) == ""


def test_words_that_a_hyphen_joins_are_looked_up_as_pairs() -> None:
    corpus = _corpus("A well-to-do brave-otter met an otter and a brave well.")
    everything = (0, len(corpus.text))
    assert first_present(corpus, *everything, ["otter-brave", "do-well", "well-do"]) == ""
    assert first_present(corpus, *everything, ["Brave-Otter"]) == "Brave-Otter"
    assert first_present(corpus, *everything, ["well-to-do"]) == "well-to-do"
    assert first_present(corpus, *everything, ["to-do"]) == "to-do"
