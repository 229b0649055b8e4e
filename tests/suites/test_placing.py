"""Where needles go relative to the one that the depth is about."""

import random

import pytest

from longreach.harness.sample import Point
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.facts import bank
from longreach.suites.haystack import Needle
from longreach.suites.placing import around, depth_of, hide, to_the_end, wrong_lists

POINT = Point(task="t@1", length=2048, depth=0.5, index=0, seed=1)


def test_needles_spread_evenly_from_the_depth_to_the_end() -> None:
    assert to_the_end(0.2, 5) == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert to_the_end(0.7, 1) == [0.7]
    assert to_the_end(1.0, 3) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("depth", [0.0, 0.1, 0.5, 0.97, 1.0])
def test_distractors_lie_on_both_sides_and_not_beside_the_needle(depth: float) -> None:
    for seed in range(50):
        spots = around(depth, 4, random.Random(seed))
        assert spots == sorted(spots)
        assert all(0.0 <= spot <= 1.0 and abs(spot - depth) >= 0.079 for spot in spots)


def test_one_distractor_is_on_either_side_by_chance() -> None:
    before = sum(around(0.5, 1, random.Random(seed))[0] < 0.5 for seed in range(400))
    assert 160 < before < 240


def test_a_list_is_wrong_by_one_item() -> None:
    assert wrong_lists(["a", "b", "c"], "x") == ("a, b", "a, b, x")
    assert wrong_lists(["a", "b"], "x") == ("a, x",)


def test_a_point_without_depth_is_a_fault() -> None:
    with pytest.raises(ValueError, match="this point has none"):
        depth_of(Point(task="t@1", length=100, depth=None, index=0, seed=1))


def test_needles_of_equal_depth_stand_side_by_side_and_placed_keeps_the_given_order() -> None:
    sample = hide(
        POINT,
        WordsTokenizer(),
        haystack="mixed",
        sought=[Needle(text="Second comes late.", depth=0.8), Needle(text="First comes early.", depth=0.2)],
        others=[Needle(text="Decoy comes early too.", depth=0.2)],
        bank=bank("en"),
        ask="number",
        question="What?",
        reserve=16,
        target=("x",),
    )
    assert sample.placed == pytest.approx((0.8, 0.2, 0.2), abs=0.02)
    assert sample.extra["needles"] == ["First comes early.", "Decoy comes early too.", "Second comes late."]
    assert sample.extra["sought"] == ["Second comes late.", "First comes early."]
    assert "First comes early. Decoy comes early too." in sample.haystack_text
