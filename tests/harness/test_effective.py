"""Published definitions on published tables."""

import math
from typing import Any

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.stats.effective import effective_length

LENGTHS = [4096, 8192, 16384, 32768, 65536, 131072]


@pytest.mark.parametrize(
    ("scores", "value", "censored"),
    [
        ([96.6, 96.3, 95.2, 93.2, 87.0, 81.2], 65536, None),  # GPT-4-1106-preview
        ([96.7, 96.6, 96.4, 96.0, 95.4, 95.1], 131072, "above grid"),  # Jamba-1.5-large
        ([98.4, 96.0, 96.2, 94.4, 91.8, 85.6], 131072, "above grid"),  # Qwen3-32B: exactly 85.6 is credited
        ([88.1, 85.5, 84.5, 82.7, 75.5, 68.9], 4096, None),  # InternLM2.5
        ([82.3, 78.4, 73.7, 69.1, 68.1, 65.0], None, "below grid"),  # LWM
        ([94.9, 93.8, 78.0, 67.8, 0.0, 0.0], 8192, None),  # Qwen1.5: a length that cannot be run counts 0 there
    ],
)
def test_ruler_reproduces_published_effective_lengths(
    scores: list[float], value: int | None, censored: str | None
) -> None:
    estimate = effective_length(LENGTHS, scores, "ruler")
    assert (estimate.value, estimate.censored) == (value, censored)


@pytest.mark.parametrize(
    ("base", "scores", "value"),
    [
        (99.3, [98.1, 98.0, 95.7, 89.2, 81.6, 69.7], 8000),  # GPT-4o
        (94.7, [89.0, 85.0, 74.5, 60.1, 48.4, 38.0], 2000),  # Llama 3.1 405B
        (90.9, [77.0, 73.5, 66.2, 39.5, 21.3, 7.4], None),  # Command R+
        (76.7, [65.7, 54.4, 44.1, 31.9, 22.6, 14.2], 1000),  # Llama 3.1 8B
    ],
)
def test_nolima_reproduces_published_effective_lengths(base: float, scores: list[float], value: int | None) -> None:
    lengths = [1000, 2000, 4000, 8000, 16000, 32000]
    assert effective_length(lengths, scores, "nolima", base=base).value == value


def test_censored_values_are_words() -> None:
    assert effective_length(LENGTHS, [90.0] * 6).text == ">= 131,072 (largest tested)"
    assert effective_length(LENGTHS, [10.0] * 6).text == "< 4,096"
    assert effective_length(LENGTHS, [90.0, 10, 10, 10, 10, 10]).text == "4,096"


def test_an_untested_length_blocks_longer_ones() -> None:
    estimate = effective_length(LENGTHS[:4], [90.0, None, 90.0, 90.0])
    assert estimate.value == 4096
    assert effective_length(LENGTHS[:2], [90.0, math.nan]).value == 4096


def test_a_bump_shows_both_readings() -> None:
    scores = [95.0, 80.0, 95.0, 50.0, 40.0, 30.0]
    unbroken = effective_length(LENGTHS, scores)
    assert unbroken.value == 4096
    assert unbroken.notes == ("The table is non-monotone: fails at 8k, passes again at 16k.",)
    assert effective_length(LENGTHS, scores, "largest_passing", threshold=85.6).value == 16384


def test_lengths_may_come_in_any_order() -> None:
    assert effective_length([16384, 4096, 8192], [10.0, 90.0, 90.0]).value == 8192


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"definition": "nolima"}, "needs the base score"),
        ({"definition": "absolute"}, "needs a threshold"),
        ({"definition": "rule of thumb"}, "there is no definition"),
        ({"scores": [1.0]}, "one score per length"),
        ({"lengths": [4096, 4096]}, "given twice"),
        ({"scores": [None, 90.0]}, "no score at the shortest length"),
    ],
)
def test_tables_that_say_nothing_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        effective_length(**({"lengths": [4096, 8192], "scores": [90.0, 90.0]} | arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores", "definition", "options"),
    [
        ([0.961, 0.9], "ruler", {}),
        ([0.961, 0.9], "nolima", {"base": 99.3}),
        ([96.1, 90.0], "absolute", {"threshold": 0.85}),
    ],
)
def test_fractions_held_against_percents_are_refused(
    scores: list[float], definition: Any, options: dict[str, float]
) -> None:
    with pytest.raises(ConfigError, match="0 to 100"):
        effective_length([4096, 8192], scores, definition, **options)


def test_scores_of_zero_are_on_any_scale() -> None:
    assert effective_length([4096], [0.0], "ruler").censored == "below grid"
