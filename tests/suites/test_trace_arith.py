"""Arithmetic traced over scattered statements."""

import random

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.task import Score
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.trace_arith import LIMIT, Arith, draw_chain, run_chain, slips

TASK = Arith()


@pytest.fixture(scope="module")
def sample() -> Sample:
    (point,) = TASK.points(Grid(lengths=(2048,), depths=(0.25,), n=1))
    return TASK.sample(point, WordsTokenizer())


def _score(sample: Sample, text: str) -> Score:
    return TASK.score(sample, Response(text=text))


def test_the_issue_s_example() -> None:
    assert run_chain(42, [("+", 10), ("*", 2)]) == [42, 52, 104]
    assert slips(42, [("+", 10), ("*", 2)]) == [52, 84]


@pytest.mark.parametrize("hops", [1, 2, 3, 8, 16])
def test_chains_stay_in_range_and_computed_values_are_not_written(hops: int) -> None:
    for seed in range(100):
        given, steps = draw_chain(hops, random.Random(seed))
        values = run_chain(given, steps)
        assert len(values) == hops + 1 == len(set(values))
        assert all(0 < value < LIMIT for value in values)
        assert not set(values[1:]) & {given, *(operand for _, operand in steps)}
        assert values[-1] >= (1000 if hops >= 3 else 100)
        wrong = slips(given, steps)
        assert wrong
        assert values[-1] not in wrong


def test_all_operators_occur() -> None:
    chains = [draw_chain(3, random.Random(seed))[1] for seed in range(50)]
    assert {operator for steps in chains for operator, _ in steps} == set("+-*")


def test_statements_stand_in_random_order_from_the_depth_to_the_end(sample: Sample) -> None:
    assert sample.placed == pytest.approx((0.25, 0.5, 0.75, 1.0), abs=0.02)
    orders = set()
    for point in TASK.points(Grid(lengths=(1024,), depths=(0.0,), n=12)):
        needles = TASK.sample(point, WordsTokenizer()).extra["needles"]
        orders.add(tuple(needle.split()[0] for needle in needles))
    assert len(orders) > 6


def test_shown_work_is_right_if_it_settles_on_the_value(sample: Sample) -> None:
    value = sample.target[0]
    assert _score(sample, f"X1 = 5, X2 = 10, so X4 = {value}").value == 1.0
    assert _score(sample, f"{int(value):,}").value == 1.0
    assert _score(sample, f"{value}, {sample.choices[0]}").value == 0.0


def test_a_slipped_hop_is_told_apart(sample: Sample) -> None:
    score = _score(sample, sample.choices[0])
    assert (score.value, score.parts["distractor"], score.extracted) == (0.0, 1.0, sample.choices[0])
    assert _score(sample, "7").parts["distractor"] == 0.0


def test_hops_are_bounded() -> None:
    with pytest.raises(ConfigError, match="hops 0 is not a whole number from 1 to 16"):
        get_task("trace.arith", hops=0)
