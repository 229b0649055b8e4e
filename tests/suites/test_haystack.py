"""The prompt builder: exact length, needles at their depths, whole and on boundaries."""

import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.data import pin
from longreach.harness.errors import DataError, InfeasibleCell
from longreach.harness.sample import Message, Point, Sample
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WithSystem, WordsTokenizer
from longreach.suites.filler import NOISE
from longreach.suites.haystack import TOLERANCE, Needle, build

FACT = "The favourite fruit of Zorbla is the quince."
RESERVE = 32
WORDS, BYTES = WordsTokenizer(), BytesTokenizer()


def _build(
    tokenizer: Tokenizer = WORDS,
    length: int = 2048,
    depths: tuple[float, ...] = (0.5,),
    haystack: str = "mixed",
    index: int = 0,
    needles: tuple[str, ...] | None = None,
    **options: Any,
) -> Sample:
    point = Point(task="t", length=length, depth=depths[0] if depths else None, index=index, seed=42)
    texts = needles or tuple(FACT.replace("Zorbla", f"Zorbl{chr(97 + i)}") for i in range(len(depths)))
    settings: dict[str, Any] = {"head": "Read this text.\n\n", "tail": "\n\nWhich fruit does Zorbla like?"} | options
    return build(
        point,
        tokenizer,
        haystack=haystack,
        needles=[Needle(text=text, depth=depth) for text, depth in zip(texts, depths, strict=True)],
        reserve=RESERVE,
        rng=point.rng(),
        target=("quince",),
        **settings,
    )


def _check(sample: Sample, tokenizer: Tokenizer) -> None:
    n_tokens = tokenizer.count(tokenizer.render(sample.messages, sample.answer_prefix))
    assert n_tokens == sample.n_tokens
    assert 0 <= sample.point.length - RESERVE - n_tokens <= TOLERANCE
    at = [sample.haystack_text.index(needle) for needle in sample.extra["needles"]]
    assert at == sorted(at)
    assert all(sample.messages[-1].content.count(needle) == 1 for needle in sample.extra["needles"])


@pytest.mark.parametrize("tokenizer", [WORDS, BYTES])
@pytest.mark.parametrize("haystack", ["mixed", "repeat", "noise", "stdlib"])
def test_length_is_kept_and_depth_within_a_point(tokenizer: Tokenizer, haystack: str) -> None:
    rng = random.Random(11)
    for index in range(20):
        length = int(512 * 64 ** rng.random())
        depths = tuple(sorted(rng.random() for _ in range(1 + index % 3)))
        sample = _build(tokenizer, length, depths, haystack, index)
        _check(sample, tokenizer)
        line = tokenizer.count(NOISE + "\n") if haystack == "noise" else 0  # needles go between whole lines only
        assert abs(sample.placed[0] - depths[0]) <= max(0.01, 0.5 * line / (0.6 * length))


def test_the_same_point_gives_the_same_bytes_whatever_was_built_before() -> None:
    first = _build(length=3000, index=5)
    _build(length=30_000, index=6)
    _build(BYTES, length=3000)
    again = _build(length=3000, index=5)
    assert again == first
    assert first.prompt_sha256 == "04c6f3bb2c16c39673ae08a06b9979d66159aedbba8adc038a3cdfe45b028089"


def test_another_index_gives_another_window() -> None:
    assert _build(index=1).haystack_text[:100] != _build(index=2).haystack_text[:100]


def test_depth_is_counted_in_tokens_of_haystack_without_needles() -> None:
    sample = _build(BYTES, 4096, (0.25, 0.7))
    text = sample.haystack_text
    without = text
    for needle in sample.extra["needles"]:
        without = without.replace(" " + needle, "")
    before = text[: text.index(sample.extra["needles"][0]) - 1]
    assert abs(sample.placed[0] - len(before) / len(without)) < 0.001


def test_depth_zero_stands_first_and_depth_one_last() -> None:
    sample = _build(depths=(0.0, 1.0))
    first, last = sample.extra["needles"]
    assert sample.haystack_text.startswith(first)
    assert sample.haystack_text.endswith(last)
    assert sample.placed == (0.0, 1.0)


def test_needles_stand_between_whole_sentences() -> None:
    for index in range(20):
        sample = _build(length=4096, depths=(0.1, 0.4, 0.8), index=index)
        for needle in sample.extra["needles"]:
            before, _, after = sample.haystack_text.partition(needle)
            assert before.endswith(". ")
            assert re.match(r"\s+[A-Z]", after)


def test_windows_start_and_end_with_whole_sentences() -> None:
    sample = _build(length=8192, depths=())
    assert sample.haystack_text[0].isupper()
    assert sample.haystack_text.endswith(".")
    assert sample.placed == ()


def test_needles_in_noise_stand_on_lines_of_their_own() -> None:
    for index in range(10):
        sample = _build(length=1024, depths=(0.0, 0.3, 0.6, 1.0), haystack="noise", index=index)
        lines = sample.haystack_text.split("\n")
        assert all(needle in lines for needle in sample.extra["needles"])
        whole = [line for line in lines if line not in sample.extra["needles"]]
        assert all(line == NOISE for line in whole[:-1])
        assert NOISE.startswith(whole[-1])


def test_noise_ends_with_a_whole_sentence_where_eight_tokens_allow_it() -> None:
    for index in range(20):
        assert _build(length=700 + index, depths=(), haystack="noise").haystack_text.endswith(".")


def test_sixteen_needles_keep_their_order_and_a_cut_each() -> None:
    sample = _build(length=4096, depths=tuple(i / 15 for i in range(16)))
    _check(sample, WORDS)
    assert len(set(sample.placed)) == 16
    assert max(abs(got - i / 15) for i, got in enumerate(sample.placed)) < 0.035


def test_needles_at_one_depth_go_to_neighbouring_cuts() -> None:
    for depth in (0.0, 0.5):
        sample = _build(depths=(depth,) * 4)
        _check(sample, WORDS)
        assert len(set(sample.placed)) == 4


def test_needles_at_the_end_share_it_rather_than_push_the_first_away() -> None:
    sample = _build(depths=(1.0,) * 4)
    _check(sample, WORDS)
    assert sample.placed == (1.0,) * 4
    crowded = _build(depths=(0.97, 0.98, 0.99, 1.0), length=600)
    _check(crowded, WORDS)
    assert abs(crowded.placed[0] - 0.97) <= 0.01


@pytest.mark.parametrize("length", [256, 384, 512, 1024])
def test_the_anchor_keeps_its_depth_wherever_it_stands_among_the_needles(length: int) -> None:
    rng = random.Random(length)
    for index in range(30):
        depths = tuple(sorted(rng.random() for _ in range(4)))
        sample = _build(WORDS, length, depths, index=index, anchor=index % 4)
        _check(sample, WORDS)
        assert abs(sample.placed[index % 4] - depths[index % 4]) <= 0.01
        assert sample.placed == tuple(sorted(sample.placed))


def test_an_anchor_at_the_end_stays_there_and_the_others_yield() -> None:
    sample = _build(depths=(0.0, 0.9, 1.0, 1.0, 1.0), anchor=3)
    _check(sample, WORDS)
    assert sample.placed[3] == 1.0
    assert sample.placed[0] == 0.0


def test_a_needle_of_several_lines_stays_whole() -> None:
    needle = "Ledger of the mill:\n  flour, forty sacks\n  oats, nine sacks"
    sample = _build(needles=(needle,))
    _check(sample, WORDS)
    assert f"\n{needle}\n" in sample.haystack_text


def test_the_answer_prefix_and_the_system_prompt_are_counted() -> None:
    tokenizer = WithSystem(WORDS, "You answer in one word. " * 5)
    sample = _build(tokenizer, answer_prefix=" The fruit is")
    _check(sample, tokenizer)
    assert sample.answer_prefix == " The fruit is"


def test_an_unforeseen_join_costs_one_more_build_not_the_length() -> None:
    class Odd(WordsTokenizer):
        """Counts three tokens more than its pieces say whenever the text is a whole prompt."""

        name = "odd"  # type: ignore[assignment]

        def count(self, text: str) -> int:
            return super().count(text) + (30 if len(text) > 2000 else 0)

    _check(_build(Odd(), 2048), Odd())


def test_what_cannot_fit_says_the_shortest_length_that_can() -> None:
    with pytest.raises(InfeasibleCell) as caught:
        _build(length=64)
    minimum = caught.value.minimum
    assert minimum is not None
    _check(_build(length=minimum), WORDS)
    with pytest.raises(InfeasibleCell):
        _build(length=minimum - 8)


def test_unwanted_strings_are_kept_out_of_the_window() -> None:
    for index in range(10):
        sample = _build(length=600, absent=("Harvest", "the harbour master"), index=index)
        assert not re.search(r"(?i)\bharvest\b|the harbour master", sample.haystack_text)


def test_a_string_that_is_everywhere_is_named() -> None:
    with pytest.raises(DataError, match="holds 'valley'"):
        _build(haystack="repeat", absent=("valley",))


def test_part_of_a_word_is_not_the_unwanted_string() -> None:
    assert "valley" in _build(haystack="repeat", absent=("alle",)).haystack_text


def _file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    return pin(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "ฝนตกตลอดทั้งวันในหุบเขาและแม่น้ำก็ค่อยๆสูงขึ้นจนถึงสะพานเก่า" * 2000,
        "👨‍👩‍👧‍👦" * 8000,
        "今天下雨我们回家吃饭看书" * 5000,
        "今天下雨。我们回家吃饭，看书。" * 5000,
        "x = f(1)\n\n\n    return y\n" * 4000,
        "Поезд пришёл рано. На платформе никого! " * 3000,
    ],
    ids=["unbroken", "thai", "families", "han", "han-stops", "code", "russian"],
)
@pytest.mark.parametrize("tokenizer", [WORDS, BYTES])
def test_any_script_is_filled_exactly(tmp_path: Path, text: str, tokenizer: Tokenizer) -> None:
    spec = _file(tmp_path, text)
    for index, length in enumerate((512, 700, 5000)):
        sample = _build(tokenizer, length, (0.3, 0.9), spec, index)
        _check(sample, tokenizer)
        assert abs(sample.placed[0] - 0.3) <= (0.06 if "👨" in text else 0.01)


def test_needles_in_code_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    spec = _file(tmp_path, "x = f(1)\nfor y in x:\n    print(y)\n\n" * 4000)
    for depth in (0.0, 0.3, 0.6, 1.0):
        sample = _build(length=4096, depths=(depth,), haystack=spec)
        assert FACT in sample.haystack_text.split("\n")


def test_needles_follow_chinese_stops_without_a_blank(tmp_path: Path) -> None:
    needle = "老王最喜欢的水果是木瓜。"
    spec = _file(tmp_path, "今天下雨。我们回家吃饭，看书。" * 5000)
    sample = _build(depths=(0.5,), haystack=spec, needles=(needle,))
    assert re.search(f"。{needle}[今我]", sample.haystack_text)


def test_a_text_that_is_too_short_is_used_again_and_says_so(tmp_path: Path) -> None:
    spec = _file(tmp_path, "One small sentence. Another one here, a bit longer. And a third!")
    sample = _build(length=3000, haystack=spec)
    _check(sample, WORDS)
    assert sample.extra["recycled"] is True
    assert _build(length=3000).extra["recycled"] is False


def test_what_cleaning_changed_is_noted(tmp_path: Path) -> None:
    spec = _file(tmp_path, "Tokenisers know <|endoftext|> well. " * 3 + "Plain words follow here. " * 2000)
    sample = _build(haystack=spec)
    assert sample.extra["notes"] == ["3 special-token strings spaced apart"]


def test_two_million_characters_without_a_break_take_seconds(tmp_path: Path) -> None:
    started = time.perf_counter()
    _check(_build(BYTES, 131_072, (0.4,), _file(tmp_path, "a" * 2_000_000)), BYTES)
    assert time.perf_counter() - started < 20


def test_caller_facts_and_messages_are_as_asked() -> None:
    sample = _build(extra={"question": "Which fruit?"})
    assert sample.extra["question"] == "Which fruit?"
    content = sample.messages[0].content
    assert sample.messages == (Message(role="user", content=content),)
    assert content.startswith("Read this text.\n\n")
    assert content.endswith("\n\nWhich fruit does Zorbla like?")
    start, end = sample.extra["context"]
    assert content[:start] == "Read this text.\n\n"
    assert content[end:] == "\n\nWhich fruit does Zorbla like?"
