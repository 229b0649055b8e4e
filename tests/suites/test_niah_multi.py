"""Several needles: all must be found."""

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.task import Score
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.niah_multi import Multi

TASK = Multi()


@pytest.fixture(scope="module")
def sample() -> Sample:
    (point,) = TASK.points(Grid(lengths=(4096,), depths=(0.4,), n=1))
    return TASK.sample(point, WordsTokenizer())


def _score(sample: Sample, text: str) -> Score:
    return TASK.score(sample, Response(text=text))


def test_all_in_any_order_and_form_is_right(sample: Sample) -> None:
    one, two, three, four = sample.target
    score = _score(sample, f"1. {four}\n2. {int(two):,}\n3. {one}\n4. **{three}**")
    assert (score.value, score.published) == (1.0, 1.0)
    assert (score.parts["recall"], score.parts["precision"]) == (1.0, 1.0)


def test_three_of_four_is_wrong_and_three_quarters_published(sample: Sample) -> None:
    score = _score(sample, ", ".join(sample.target[:3]))
    assert (score.value, score.published, score.parts["recall"], score.parts["precision"]) == (0.0, 0.75, 0.75, 1.0)
    assert [score.parts[f"needle_{index}"] for index in (1, 2, 3, 4)] == [1.0, 1.0, 1.0, 0.0]


def test_wrong_values_cost_precision_and_in_plenty_the_credit(sample: Sample) -> None:
    assert _score(sample, ", ".join([*sample.target, "10001"])).parts["precision"] == 0.8
    assert _score(sample, ", ".join([*sample.target, "10001"])).value == 1.0
    flood = _score(sample, ", ".join([*sample.target, *(str(number) for number in range(10001, 10006))]))
    assert (flood.value, flood.parts["recall"]) == (0.0, 1.0)


def test_needles_spread_from_the_depth_to_the_end(sample: Sample) -> None:
    assert sample.placed == pytest.approx((0.4, 0.6, 0.8, 1.0), abs=0.01)


def test_the_reserve_grows_with_the_needles() -> None:
    assert Multi(needles=16).info.reserve == Multi(needles=4).info.reserve + 12 * 8


def test_only_the_declared_counts_are_taken() -> None:
    with pytest.raises(ConfigError, match="needles 5 is not one of 2, 3, 4, 8, 16"):
        get_task("niah.multi", needles=5)
