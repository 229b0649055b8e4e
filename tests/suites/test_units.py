"""Prompts of counted units: permutations, tables, and the fitting loop."""

import random

import numpy as np
import pytest

from longreach.harness.sample import Point
from longreach.harness.tokenizer import BytesTokenizer, WithProof, WordsTokenizer, proves
from longreach.suites.tables import BULK, distinct, draws, joined, measure, permutation, shuffled, strings, written
from longreach.suites.units import Composed, cut_off, fill, trimmed

WORDS, BYTES = WordsTokenizer(), BytesTokenizer()


def test_a_permutation_holds_each_number_once_and_is_the_same_everywhere() -> None:
    for n in (0, 1, 2, 1000, 70_000):
        assert sorted(permutation(random.Random(3), n).tolist()) == list(range(n))
    assert permutation(random.Random(3), 8).tolist() == permutation(random.Random(3), 8).tolist()
    assert permutation(random.Random(1), 6).tolist() != permutation(random.Random(2), 6).tolist()


@pytest.mark.parametrize("most", [0, 1, 7, 499, 500, 501, 1000, 2000])
def test_a_part_of_a_permutation_is_the_first_of_it_and_leaves_the_generator_where_the_whole_would(most: int) -> None:
    part, whole = random.Random(4), random.Random(4)
    assert permutation(part, 1000, most).tolist() == permutation(whole, 1000).tolist()[:most]
    assert part.getstate() == whole.getstate()


def test_permutations_are_fair() -> None:
    rng = random.Random(5)
    firsts = [int(permutation(rng, 4)[0]) for _ in range(2000)]
    assert all(420 < firsts.count(number) < 580 for number in range(4))


def test_draws_stay_below_their_bound() -> None:
    found = draws(random.Random(1), 5000, 7)
    assert set(found.tolist()) == set(range(7))


def test_fewer_draws_are_the_first_of_more() -> None:
    assert draws(random.Random(1), 7, 100).tolist() == draws(random.Random(1), 9, 100)[:7].tolist()


@pytest.mark.parametrize("before", [0, 1, 623, 624, 625])
def test_many_draws_are_those_of_few_and_leave_the_generator_where_they_would(before: int) -> None:
    many, few = random.Random(9), random.Random(9)
    for rng in (many, few):
        rng.randbytes(4 * before)
    found = draws(many, 2 * BULK, 1 << 31)
    assert found.tolist() == [number for _ in range(4) for number in draws(few, BULK // 2, 1 << 31).tolist()]
    assert many.getstate() == few.getstate()


def test_units_of_two_columns_are_written_without_what_fills_them_up() -> None:
    short, long = strings(["a", "", "abc"]), strings(["-d", "-é", ""])
    assert joined(short, long).shape == (3,)
    assert written(joined(short, long), short).decode() == "a-da-éabcabc"


def test_shuffled_numbers_are_the_same_numbers() -> None:
    numbers = np.array([5, 5, 0, 4_294_967_295, 7], dtype=np.int64)
    assert sorted(shuffled(random.Random(2), numbers).tolist()) == sorted(numbers.tolist())
    narrow = numbers.astype(np.uint32)  # numpy's own int is narrow on some machines
    assert shuffled(random.Random(2), narrow).tolist() == shuffled(random.Random(2), numbers).tolist()


def test_what_comes_again_is_left_out_and_the_order_kept() -> None:
    assert distinct(np.array([9, 3, 9, 0, 3, 3, 8], dtype=np.int64)).tolist() == [9, 3, 0, 8]
    assert distinct(np.zeros(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("tokenizer", [WORDS, BYTES])
def test_measured_entries_add_up_to_the_whole(tokenizer: WordsTokenizer | BytesTokenizer) -> None:
    first, second = measure(tokenizer, [" one", " seventeen", " 12"], ["-otter.\n", "-Straßenbahn.\n"])
    text = written(first.entries[permutation(random.Random(1), 3)], second.entries[[0, 1, 0]]).decode()
    assert tokenizer.count(text) == int(first.counts.sum() + 2 * second.counts[0] + second.counts[1])


def test_a_line_is_cut_to_what_is_left() -> None:
    assert cut_off(WORDS, "One two three. Four", 4) == ("One two three.", 4)
    assert cut_off(WORDS, "One two", 0) == ("", 0)


def test_what_is_trimmed_is_not_counted() -> None:
    assert trimmed(BYTES, " one\n\n", 6, start=1, end=2) == ("one", 3)


def test_a_prediction_that_is_off_is_corrected_by_the_proof() -> None:
    """The composer believes that a word costs two tokens; it costs one."""
    point = Point(task="t", length=500, depth=None, index=0, seed=1)
    sample = fill(
        point,
        WORDS,
        head="Read:\n",
        tail="\nWhat?",
        reserve=10,
        compose=lambda n: Composed(text=" ".join(["word"] * (n // 2)), n_tokens=n // 2 * 2),
        target=("x",),
    )
    assert 0 <= 490 - sample.n_tokens <= 8


def test_proofs_can_be_left_out_or_thinned() -> None:
    points = [Point(task="t", length=64, depth=None, index=index, seed=1) for index in range(1600)]
    assert all(proves(WORDS, point) for point in points)
    proven = [point for point in points if proves(WithProof(WORDS, "sample"), point)]
    assert proven == [point for point in points if point.key.endswith("0")]
    assert 80 < len(proven) < 120
    assert not any(proves(WithProof(WORDS, "never"), point) for point in points)
    with pytest.raises(ValueError, match="always, sample, never"):
        WithProof(WORDS, "perhaps")  # type: ignore[arg-type]
