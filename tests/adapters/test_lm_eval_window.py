"""What a backend of lm-eval takes before it cuts."""

from types import SimpleNamespace
from typing import Any

import pytest

from longreach.adapters.lm_eval_window import check_fits, window_of
from longreach.harness.errors import ConfigError


@pytest.mark.parametrize(
    ("args", "window"),
    [
        ({"base_url": "http://x/v1/completions"}, 2047),
        ({"base_url": "http://x/v1/completions", "max_length": 8193}, 8192),
        ({"base_url": "http://x/v1/completions", "tokenized_requests": False}, None),
        ({"base_url": "http://x/v1/completions", "tokenizer_backend": None}, None),
        ({"max_model_len": "4096"}, 4096),
        ({"context_length": 4096}, 4096),
        ({}, None),
    ],
)
def test_model_arguments_tell_the_window(args: dict[str, Any], window: int | None) -> None:
    assert window_of(None, args) == window


def test_a_backend_that_can_be_asked_knows_better() -> None:
    tokens = SimpleNamespace(tokenized_requests=True, max_length=2047)
    turns = SimpleNamespace(tokenized_requests=None, max_length=2047)
    assert window_of(tokens, {"base_url": "x"}) == 2047
    assert window_of(turns, {"base_url": "x"}) is None
    assert window_of(turns, {"base_url": "x", "max_length": 4096}) == 4096
    assert window_of(SimpleNamespace(max_length=512), {"max_length": 1024}) == 512
    assert window_of(SimpleNamespace(), {}) is None


def test_a_window_that_is_no_number_is_named() -> None:
    with pytest.raises(ConfigError, match="max_length: 'long' is not a number"):
        window_of(None, {"max_length": "long"})


def doc(n_tokens: int, *, is_estimate: bool = False) -> dict[str, Any]:
    return {"label": "niah.single", "length": 4096, "n_tokens": n_tokens, "is_estimate": is_estimate}


def test_a_prompt_that_would_be_cut_stops_the_run() -> None:
    check_fits(doc(3000), 96, 3096)
    check_fits(doc(3000), 96, None)
    with pytest.raises(ConfigError, match=r"needs 3,000 prompt tokens and 97 .* takes 3,096 and would cut"):
        check_fits(doc(3000), 97, 3096)


def test_an_estimate_has_to_leave_room() -> None:
    check_fits(doc(3000, is_estimate=True), 100, 4600)
    with pytest.raises(ConfigError, match="fallback tokenizer"):
        check_fits(doc(3000, is_estimate=True), 100, 4599)
