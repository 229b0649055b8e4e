"""Numbers on cards, and strings that were given by a model or a user."""

import pytest

from longreach.harness.report.wording import code, depth_text, join_words, markdown, percent, plain, seconds, usd


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1.0, 0, "100%"),
        (0.9999, 0, "99%"),
        (0.0001, 0, "1%"),
        (0.0, 0, "0%"),
        (0.125, 0, "13%"),
        (0.9999, 1, "99.9%"),
        (0.016, 1, "1.6%"),
        (1 - 1e-16, 0, "100%"),  # a mean of floats
        (1e-16, 1, "0.0%"),
        (1 - 1e-9, 0, "99%"),
    ],
)
def test_percentages_never_round_a_miss_away(value: float, digits: int, text: str) -> None:
    assert percent(value, digits) == text


def test_unknown_is_a_word() -> None:
    assert (usd(None), seconds(None)) == ("unknown", "unknown")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "$0.00"), (12.3456, "$12.35"), (0.0123, "$0.0123"), (0.0000123, "$1.2e-05")]
)
def test_money(value: float, text: str) -> None:
    assert usd(value) == text


def test_small_words() -> None:
    assert depth_text(1 / 9) == "11.1%"
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b", "c"]) == "a, b and c"
    assert join_words([]) == ""
    assert [seconds(value) for value in (0.123, 12.34, 123.4)] == ["0.12 s", "12.3 s", "123 s"]


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("a | b", "a &#124; b"),
        ("`x`", "\\`x\\`"),
        ("[click](javascript:x)", "\\[click\\](javascript:x)"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("two\nlines\r\n# title", "two lines \\# title"),
        ("\x1b[31mred\x1b[0m\x07", "red"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("@team see https://x.example and www.x.example", "&#64;team see https&#58;//x.example and www&#46;x.example"),
        ("1. list", "1\\. list"),
        ("- list", "\\- list"),
        ("> quote", "\\> quote"),
        ("0.97 s", "0.97 s"),
        ("n < 5 & m >= 3", "n < 5 & m >= 3"),
        ("left\u202eright\u200b", "leftright"),
    ],
)
def test_hostile_strings_are_harmless_in_markdown(hostile: str, harmless: str) -> None:
    assert markdown(hostile) == harmless


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("sim:test", "`sim:test`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a|b", "`a\u2502b`"),
        ("a\nb", "`a b`"),
        ("", "`  `"),
    ],
)
def test_code_spans_cannot_be_ended_from_within(text: str, span: str) -> None:
    assert code(text) == span


def test_long_text_is_cut() -> None:
    assert plain("abcdefghij", 8) == "abcde..."
