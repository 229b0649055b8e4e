"""How replies to MRCR are graded; ratios as worked out in the protocol's notes."""

import difflib
import random

import pytest

from longreach.harness.scoring import COMPARED, sequence_ratio
from longreach.suites.mrcr.grading import grade_reply, recites, reference_ratio

MARKER = "aYooSG8CQg"
GOLD = (
    "The tapir came down to the river at noon and drank without a sound. Its young one stayed behind in the reeds. "
    "A heron watched them both, one leg drawn up, until a boat came round the bend and the whole bank was empty again. "
    "Nobody in the boat had seen a thing; they were quarrelling about the price of rope and who had lost the oar."
)
OTHER = (
    "Quiet is the word for a tapir. You may sit two hours by a pool and hear nothing but frogs, then see wet prints of three "
    "toes right next to your bag. My cousin keeps a photograph of such prints and swears that he never slept. I believe him; "
    "he snores, and the recorder that he had left running caught only rain, leaves and, once, a very polite cough."
)


def test_half_of_the_text_gives_two_thirds_and_all_of_it_one() -> None:
    assert reference_ratio(MARKER + GOLD, GOLD, MARKER) == 1.0
    half = GOLD[: len(GOLD) // 2]
    assert reference_ratio(MARKER + half, GOLD, MARKER) == pytest.approx(0.667, abs=0.002)


def test_one_leading_newline_behind_the_marker_costs_next_to_nothing() -> None:
    assert 0.997 < reference_ratio(MARKER + "\n" + GOLD, GOLD, MARKER) < 1.0
    assert grade_reply(MARKER + "\n" + GOLD, marker=MARKER, gold=GOLD).value == 1.0


def test_the_reference_asks_for_the_marker_in_front_and_the_lenient_score_takes_dress_off() -> None:
    for dress in ("\n", " ", "<think>the second one?</think>\n"):
        score = grade_reply(dress + MARKER + GOLD, marker=MARKER, gold=GOLD)
        assert (score.published, score.value, score.parts["lenient"]) == (0.0, 1.0, 1.0)
        assert score.parts["marker_missing"] == 0.0
    bare = grade_reply(GOLD, marker=MARKER, gold=GOLD)
    assert (bare.published, bare.value, bare.parts["marker_missing"]) == (0.0, 0.0, 1.0)


UNRELATED = (
    (
        "A emerald stain showed where roast quince had been spilt. A maroon stain showed where barley porridge had been spilt. "
        "The cousin from Oxdale arrived with a typewriter on each arm. Every blacksmith in Lowstead owns at least 475 keys. The "
        "prize was cabbage rolls, carried in on a grey tray. Never lend a mirror to somebody who is called Yornora. Old Falhild "
        "painted the door olive out of spite. Every ferryman in Quillan owns at least 905 keys. You cannot buy a teapot in "
        "Zellmark; they are given. Rain fell for 339 hours; the glazier blamed Orwick."
    ),
    (
        "There was roast quince on the table, cold, enough for 767. The prize was apricot jam, carried in on a violet tray. It "
        "took a beekeeper, two cousins and cabbage rolls to lift it. My ticket, a emerald one, said ten at night and platform "
        "599. Somebody had hidden a anchor under plank number 920. Nevbert counted 930 amber jars and wrote the sum on a "
        "whistle. Fresh paint, turquoise, still wet, said the cooper. Without a wheel no usher would go near it. Every nurse in "
        "Aldmoor owns at least 137 keys. You cannot buy a bucket in Copperhill; they are given."
    ),
)
"""Passages of about 550 characters, ours, found by search for the two ratios that the protocol's notes give."""


def test_autojunk_stays_on_as_in_the_reference() -> None:
    """0.067 with the library's default, 0.406 without it: a score by another likeness is another score."""
    answer, gold = UNRELATED
    assert all(500 < len(text) < 600 for text in UNRELATED)
    assert round(difflib.SequenceMatcher(None, answer, gold, autojunk=False).ratio(), 3) == 0.406
    assert round(sequence_ratio(answer, gold), 3) == 0.067
    assert round(reference_ratio(MARKER + answer, gold, MARKER), 3) == 0.067
    assert sequence_ratio(gold, answer) != sequence_ratio(answer, gold)


def test_the_ratio_is_that_of_the_library_for_answers_up_to_four_times_the_reference() -> None:
    rng = random.Random(5)
    words = (GOLD + " " + OTHER).split()
    for _ in range(40):
        a = " ".join(rng.choices(words, k=rng.randint(1, 200)))
        b = " ".join(rng.choices(words, k=rng.randint(60, 100)))
        if max(len(a), len(b)) <= COMPARED * min(len(a), len(b)):
            assert sequence_ratio(a, b) == difflib.SequenceMatcher(None, a, b).ratio()
            assert sequence_ratio(b, a) == difflib.SequenceMatcher(None, b, a).ratio()


def test_a_text_of_60k_characters_is_compared_only_up_to_a_multiple_of_the_gold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []
    plain = difflib.SequenceMatcher

    class Counting(plain):  # type: ignore[type-arg, valid-type, misc]
        def __init__(self, junk: None, a: str, b: str) -> None:
            compared.append(len(a) * len(b))
            super().__init__(junk, a, b)

    monkeypatch.setattr(difflib, "SequenceMatcher", Counting)
    answer = (MARKER + GOLD + (OTHER + GOLD) * 200)[:60_000]
    score = grade_reply(answer, marker=MARKER, gold=GOLD, others=[OTHER] * 99)
    assert len(compared) <= 2 + 99
    assert max(compared) <= COMPARED * max(len(GOLD), len(OTHER)) ** 2
    assert score.published is not None
    assert score.published <= 2 * len(GOLD) / 60_000 * 1.01
    assert score.value == 0.0


def test_another_needle_and_a_list_of_all_earn_nothing() -> None:
    wrong = grade_reply(MARKER + OTHER, marker=MARKER, gold=GOLD, others=[OTHER])
    assert (wrong.value, wrong.parts["distractor"], wrong.parts["exact"]) == (0.0, 1.0, 0.0)
    assert wrong.published is not None
    assert 0.0 < wrong.published < 0.2
    both = grade_reply(f"{MARKER}{GOLD}\n\n{OTHER}", marker=MARKER, gold=GOLD, others=[OTHER])
    assert both.value == 0.0
    assert both.parts["both"] + both.parts["distractor"] == 1.0
    assert recites(f"He said: {OTHER}", OTHER)
    assert not recites(GOLD, OTHER)


def test_an_answer_that_is_nothing_is_no_wrong_needle() -> None:
    score = grade_reply(MARKER + "I do not know.", marker=MARKER, gold=GOLD, others=[OTHER])
    assert score.parts["distractor"] == 0.0
    assert score.value < 0.1
    assert grade_reply("", marker=MARKER, gold=GOLD, others=[OTHER]).value == 0.0


def test_the_corrected_score_of_guessing_is_zero_on_average() -> None:
    others = [OTHER, OTHER[::-1], OTHER.upper()]
    alike = sum(sequence_ratio(text, GOLD) for text in others) / 3
    floor = 1 / 4 + 3 / 4 * alike
    guesses = [
        grade_reply(MARKER + text, marker=MARKER, gold=GOLD, others=others, floor=floor).parts["corrected"]
        for text in (GOLD, *others)
    ]
    assert guesses[0] == 1.0
    assert sum(guesses) / 4 == pytest.approx(0.0, abs=1e-9)
