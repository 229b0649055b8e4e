"""A server that reads less than was sent is found out, and an honest one is not accused."""

from typing import Any

import pytest

from longreach.harness.report.card import make_card
from longreach.harness.running.truncation import TruncationGuard


def guard(*, template: bool = False, estimate: bool = False) -> TruncationGuard:
    return TruncationGuard(knows_template=template, is_estimate=estimate)


def test_with_the_models_own_template_one_token_less_is_too_few() -> None:
    found = guard(template=True)
    for n in range(5):
        assert found.check("t", length=1024, ours=1000 + n, server=1001 + n) is None
    assert found.check("t", length=4096, ours=4000, server=4001) is None
    assert "cuts prompts" in str(found.check("t", length=4096, ours=4000, server=4000))


def test_a_large_shortfall_is_never_learnt_as_a_constant() -> None:
    found = guard(template=True)
    assert found.check("t", length=4096, ours=4000, server=2048) is not None
    assert found.check("t", length=4096, ours=4000, server=4000) is None


def test_an_answer_prefix_that_the_server_leaves_out_is_no_truncation() -> None:
    found = guard(template=True)
    assert found.check("t", length=1024, ours=1000, server=1000) is None
    assert found.check("t", length=1024, ours=1000, server=991, prefix=9) is None


@pytest.mark.parametrize(("server", "is_cut"), [(4030, False), (4000, False), (3981, False), (3979, True)])
def test_with_an_unknown_template_half_a_percent_may_be_missing(server: int, is_cut: bool) -> None:
    assert (guard().check("t", length=4096, ours=4000, server=server) is not None) == is_cut


def test_with_a_fallback_counter_the_ratio_is_learnt_and_two_percent_may_be_missing() -> None:
    found = guard(estimate=True)
    for _ in range(5):
        assert found.check("t", length=4096, ours=4000, server=5240) is None  # 1.3 tokens a word, template of 40
    for ours in (8000, 16000, 32000, 64000):
        assert found.check("t", length=ours, ours=ours, server=int(1.3 * ours) + 40) is None
    assert "about" in str(found.check("t", length=128000, ours=128000, server=131072))


def test_a_ratio_learnt_from_short_prompts_does_not_accuse_long_ones() -> None:
    found = guard(estimate=True)
    for ours in (200, 500, 1000, 2000, 4000, 8000, 100_000):
        assert found.check("t", length=ours, ours=ours, server=int(1.1 * ours) + 60) is None


def test_a_first_short_reply_that_was_cut_does_not_hide_the_next() -> None:
    found = guard(estimate=True)
    found.check("t", length=4096, ours=4000, server=2000)
    assert found.check("t", length=4096, ours=4000, server=4000) is None
    assert found.check("t", length=4096, ours=4000, server=2000) is not None


def test_a_server_that_cuts_from_the_first_reply_on_is_caught_with_a_fallback_counter() -> None:
    found = guard(estimate=True)
    assert "read 100 prompt tokens" in (found.check("t", length=1024, ours=971, server=100) or "")
    assert found.check("t", length=1024, ours=971, server=700) is None


def test_tasks_are_learnt_apart() -> None:
    found = guard(estimate=True)
    assert found.check("prose", length=4096, ours=4000, server=5200) is None
    assert found.check("digits", length=4096, ours=4000, server=4000) is None


@pytest.mark.parametrize(("server", "is_told"), [(3000, False), (8848, False), (8849, True), (50_000_000, True)])
def test_a_count_that_is_far_too_high_is_told_on_the_card(make: Any, server: int, is_told: bool) -> None:
    """981 tokens: 8 times as many and 1,000 more are what tokenizers and templates may do."""
    records = make.row("niah.single", {1024: 1}, 2, n_tokens=981, n_prompt_tokens=server)
    text = make_card(records, make.config(records)).to_markdown()
    assert ("Token counts of the server cannot be right: 2 prompts, such as one of 981 tokens" in text) == is_told
