"""Lengths and depths as people write them."""

from typing import Any

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.lengths import LONGEST, format_length, parse_depths, parse_length, parse_lengths


@pytest.mark.parametrize(
    ("text", "tokens"), [("4k", 4096), ("4K", 4096), ("1M", 1 << 20), ("0.5k", 512), ("32,768", 32768), (4000, 4000)]
)
def test_lengths(text: Any, tokens: int) -> None:
    assert parse_length(text) == tokens


@pytest.mark.parametrize("text", ["", "k", "4kb", "-4k", "0", "0.3", "1e3", "nan", True, None])
def test_what_is_no_length_is_named(text: Any) -> None:
    with pytest.raises(ConfigError, match="length"):
        parse_length(text)


@pytest.mark.parametrize("text", ["128000k", "17M", str(LONGEST + 1), 10**18, "9" * 400])
def test_a_slip_of_the_unit_is_refused_before_it_fills_the_memory(text: Any) -> None:
    with pytest.raises(ConfigError, match="above 16M tokens"):
        parse_length(text)
    assert parse_length("16M") == LONGEST


def test_lists_are_sorted_without_repeats() -> None:
    assert parse_lengths(["8k", 4096, " 8192 "]) == (4096, 8192)
    assert parse_depths("1, 0,0.5,0.50") == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("text", ["1.01", "-0.1", "half", "nan", "", ","])
def test_what_is_no_depth_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="depth"):
        parse_depths(text)


@pytest.mark.parametrize("tokens", [1, 512, 1023, 1024, 4000, 4096, 1 << 20, 3 << 20])
def test_a_printed_length_reads_back_the_same(tokens: int) -> None:
    assert parse_length(format_length(tokens)) == tokens
