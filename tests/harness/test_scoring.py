"""Scoring rules: strict ones grade the fact, published ones are as loose as their sources."""

import time

import pytest

from longreach.harness.numbers import Number
from longreach.harness.scoring import (
    clean,
    contains,
    exact,
    final_number,
    fuzzy,
    fuzzy_ratio,
    grade_one,
    is_copy,
    number,
    recall_precision,
    string_match_all,
    string_match_part,
)


def _settled(answer: str) -> int | None:
    found: Number | None = final_number(answer)
    return int(found.value) if found else None


@pytest.mark.parametrize(
    "answer",
    [
        "**4182**",
        "`4182`",
        "# 4182",
        "> 4182",
        "__4182__",
        "_4182_",
        "\\boxed{4182}",
        "$\\boxed{4,182}$",
        "\\text{4182}",
    ],
)
def test_markdown_and_latex_dress_is_taken_off(answer: str) -> None:
    assert number(answer, ("4182",))
    assert "4182" in clean(answer).replace(",", "")


def test_reasoning_is_not_graded() -> None:
    assert not number("<think>maybe 4182</think>I do not know", ("4182",))
    assert not number("<think>it is 4182 because", ("4182",))
    assert not number("it is 4182 or so</think> 77", ("4182",))
    assert number("<think>77?</think>\n\n4182", ("4182",))


def test_exact_is_the_whole_answer_but_for_outer_punctuation() -> None:
    assert exact(" **Amber Heron**. ", ("amber heron",))
    assert exact("PARIS", ("Paris, France", "Paris"))
    assert not exact("the Amber Heron", ("amber heron",))


@pytest.mark.parametrize(
    "answer",
    [
        "The ferry is the Amber Heron.",
        "amber  heron",
        "AMBER\nHERON",
        "\u201cAmber Heron\u201d",
        "Ａｍｂｅｒ Heron",
        "(Amber Heron)",
    ],
)
def test_contains_levels_case_width_and_blanks(answer: str) -> None:
    assert contains(answer, ("Amber Heron",))


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("concatenate", "cat"), ("not now", "no"), ("1999", "9"), ("QX74-RB2", "QX74-RB"), ("QX74-2", "QX74"), ("4.5", "4"), ("cat_2", "cat"),
     ("cafe\u0301s", "cafe"), ("наука", "ау")],
)  # fmt: skip
def test_contains_does_not_match_inside_words_and_numbers(answer: str, reference: str) -> None:
    assert not contains(answer, (reference,))


def test_contains_finds_a_later_whole_word_behind_a_part() -> None:
    assert contains("concatenate the cat", ("cat",))


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("答案是北京。", "北京"), ("ラジオは東京です", "東京"), ("คำตอบคือกรุงเทพ", "กรุงเทพ"), ("编号4182号", "4182")],
)
def test_scripts_without_blanks_need_no_word_boundary(answer: str, reference: str) -> None:
    assert contains(answer, (reference,))


def test_accents_are_the_same_composed_or_not() -> None:
    assert contains("Caf\u00e9", ("Cafe\u0301",))
    assert contains("STRASSE", ("Straße",))
    assert not contains("Cafe", ("Café",))


def test_fuzzy_allows_a_slip_but_not_another_answer() -> None:
    assert fuzzy("Odalys Ferant", ("Odalys Ferrant",))
    assert not fuzzy("Oskar Ferrant", ("Odalys Ferrant",))
    assert fuzzy("Oskar Ferrant", ("Odalys Ferrant",), threshold=0.6)


def test_fuzzy_is_fast_on_very_long_answers() -> None:
    started = time.perf_counter()
    assert fuzzy_ratio("word " * 12_000, ("word " * 12_000 + "end",)) > 0.99
    assert time.perf_counter() - started < 5.0


def test_any_alias_is_enough() -> None:
    assert grade_one("Paris", ("Paris, France", "Paris")).value == 1.0
    assert string_match_part("Paris", ("Paris, France", "Paris")) == 1.0


@pytest.mark.parametrize("rule", [exact, contains, fuzzy, number, string_match_all, string_match_part])
@pytest.mark.parametrize("accepted", [(), ("",), ("4182", " "), ("4182", "\u200b \n".strip("\u200b"))])
def test_an_empty_reference_is_an_error(rule, accepted) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="empty reference"):
        rule("4182", accepted)


def test_a_number_rule_needs_a_number_as_reference() -> None:
    with pytest.raises(ValueError, match="'heron' is not a number"):
        number("4182", ("heron",))


def test_naming_a_distractor_is_told_apart_from_saying_nothing() -> None:
    wrong = ("53122", "10077")
    right = grade_one("48213", ("48213",), wrong=wrong, rule=number)
    assert (right.value, right.parts, right.extracted) == (1.0, {"found": 1.0, "distractor": 0.0, "both": 0.0}, "48213")
    misled = grade_one("It is 53,122.", ("48213",), wrong=wrong, rule=number)
    assert (misled.value, misled.parts, misled.extracted) == (
        0.0,
        {"found": 0.0, "distractor": 1.0, "both": 0.0},
        "53122",
    )
    silent = grade_one("no idea", ("48213",), wrong=wrong, rule=number)
    assert (silent.value, silent.parts, silent.extracted) == (0.0, {"found": 0.0, "distractor": 0.0, "both": 0.0}, None)


def test_listing_every_candidate_earns_nothing() -> None:
    score = grade_one("48213 or 53122", ("48213",), wrong=("53122",), rule=number)
    assert (score.value, score.parts["both"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("answer", "settled"),
    [("104", 104), ("X1 = 42, X2 = 52, X3 = 104", 104), ("First 42, then 52.\nThe answer is 104, as 52 * 2.", 104), ("\\boxed{104} since 52", 104),
     ("104\n\nX2 is 52 and so on", 104), ("42 + 10 = 52, 52 * 2 = **104**", 104), ("104, 52, 42", 42), ("none", None)],
)  # fmt: skip
def test_the_number_that_an_answer_settles_on(answer: str, settled: int | None) -> None:
    assert _settled(answer) == settled


def test_recall_and_precision_of_sets() -> None:
    assert recall_precision(("a", "b", "x"), ("a", "b", "c")) == (2 / 3, 2 / 3)
    assert recall_precision((), ("a",)) == (0.0, 0.0)
    assert recall_precision(("a", "a"), ("a",)) == (1.0, 1.0)
    with pytest.raises(ValueError, match="empty reference"):
        recall_precision(("a",), ("a", ""))


def test_a_copy_of_the_prompt_is_seen_and_a_long_explanation_is_not() -> None:
    prompt = " ".join(f"Sentence number {index} about nothing in particular." for index in range(200))
    assert is_copy(prompt, prompt)
    assert is_copy("Sure! " + prompt[500:4000], prompt)
    assert not is_copy(prompt[:800], prompt)
    assert not is_copy(
        " ".join(f"I then looked at part {index} and found nothing of use." for index in range(100)), prompt
    )


def test_ruler_rules_are_substrings_whatever_the_case() -> None:
    """RULER's string_match_all and string_match_part: extra text is never punished, parts of words match."""
    assert string_match_all("abcde FGHIJ", ("ABCDE", "fghij", "KLMNO", "PQRST")) == 0.5
    assert string_match_part("I do not know", ("no",)) == 1.0
    assert string_match_all("a\x00b\x1fc", ("a\nb\nc",)) == 1.0
    assert string_match_all("", ("x",)) == 0.0


@pytest.mark.parametrize(
    "answer",
    ["X3 = 52, X4 = 104. Resposta: 104 (de 4 passos)", "Ответ: 104, за 4 шага", "X4为104。答案：104，共4步"],
)
def test_the_settled_number_stands_after_the_word_for_answer_in_any_language(answer: str) -> None:
    settled = final_number(answer)
    assert settled is not None
    assert settled.value == 104
