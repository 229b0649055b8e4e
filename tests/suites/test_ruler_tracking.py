"""RULER's variable tracking: its literal text, its one-shot example, strict and published scores."""

import re
from itertools import pairwise

import pytest

from longreach.harness.errors import ConfigError, InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.task import Score
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.filler import NOISE
from longreach.suites.ruler.tracking import OPENING, Tracking, names_in

TASK = Tracking()


def _samples(task: Tracking = TASK, n: int = 6, length: int = 2048) -> list[Sample]:
    return [task.sample(point, WordsTokenizer()) for point in task.points(Grid(lengths=(length,), depths=(0.5,), n=n))]


@pytest.fixture(scope="module")
def sample() -> Sample:
    return _samples(n=1)[0]


def _score(sample: Sample, text: str) -> Score:
    return TASK.score(sample, Response(text=text))


def test_the_text_is_ruler_s(sample: Sample) -> None:
    """Template, prefix and layout of NVIDIA/RULER at c3f5e3b."""
    content = sample.messages[-1].content
    value = re.findall(r"value (\d{5})", content)[-1]
    _, example, task = content.split(
        "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n"
    )
    ending = (
        f"\nQuestion: Find all variables that are assigned the value {value} in the text above. Answer: According to the chain(s) "
        f"of variable assignment in the text above, 5 variables are assigned the value {value}, they are: "
    )
    assert task.endswith(ending)
    lines = task.removesuffix(ending).split("\n")
    statements = [line for line in lines if line.startswith("VAR ")]
    names = sample.target
    assert statements == [
        f"VAR {names[0]} = {value}",
        *(f"VAR {b} = VAR {a} " for a, b in pairwise(names)),
    ]
    noise = [line for line in lines if not line.startswith("VAR ")]
    assert set(noise[:-1]) == {NOISE}
    assert NOISE.startswith(noise[-1])
    assert re.search(r"they are:  [A-Z]{3} [A-Z]{3} [A-Z]{3} [A-Z]{3} [A-Z]{3}\n$", example)
    assert content.count(value) == 3


def test_the_example_is_always_there_with_fresh_names_and_one_layout() -> None:
    examples = [sample.messages[-1].content.split(OPENING)[1] for sample in _samples()]
    shapes = {re.sub(r"\d{5}", "N", re.sub(r"\b(?!VAR)[A-Z]{3}\b", "ABC", example)) for example in examples}
    assert len(shapes) == 1
    assert len(set(examples)) == len(examples)
    assert all(WordsTokenizer().count(OPENING + example) >= 415 for example in examples)


def test_the_example_s_value_is_never_the_asked_one() -> None:
    for sample in _samples(n=20):
        example, task = sample.messages[-1].content.split(OPENING)[1:]
        assert re.findall(r"= (\d{5})", example) != re.findall(r"= (\d{5})", task)


def test_a_prefilled_answer_is_counted_and_not_part_of_the_message() -> None:
    sample = _samples(Tracking(prefill=True), n=1)[0]
    assert sample.messages[-1].content.endswith("in the text above.")
    assert sample.answer_prefix.startswith(" Answer: According to the chain(s)")
    assert sample.answer_prefix.endswith("they are: ")


def test_exactly_the_five_names_in_any_order_and_dress(sample: Sample) -> None:
    one, two, three, four, five = sample.target
    for text in (
        f"{five}, {four}, {three}, {two}, {one}",
        f"VAR **{one}**, VAR {two}; `{three}` {four} and {five}.",
        f"- {one}\n- {two}\n- {three}\n- {four}\n- {five}",
    ):
        assert _score(sample, text).value == 1.0


def test_more_or_fewer_names_are_wrong_but_published_forgives_more(sample: Sample) -> None:
    full = " ".join(sample.target)
    extra = _score(sample, full + " QQQQQ")
    assert (extra.value, extra.published, extra.parts["precision"]) == (0.0, 1.0, 5 / 6)
    fewer = _score(sample, " ".join(sample.target[:4]))
    assert (fewer.value, fewer.published, fewer.parts["recall"]) == (0.0, 0.8, 0.8)


def test_names_of_the_example_count_as_extra_ones(sample: Sample) -> None:
    content = sample.messages[-1].content
    example_name = re.findall(r"VAR ([A-Z]{3}) = ", content)[0]
    assert _score(sample, f"{', '.join(sample.target)}, {example_name}").value == 0.0
    assert names_in("VAR ABCDE, the XYZ; NOISES ABCDEF ABCDE", content) == ["ABCDE"]


def test_published_reads_small_letters_and_strict_does_not(sample: Sample) -> None:
    score = _score(sample, ", ".join(sample.target).lower())
    assert (score.value, score.published) == (0.0, 1.0)


def test_short_lengths_are_infeasible_with_a_minimum() -> None:
    for length in (64, 512):
        (point,) = TASK.points(Grid(lengths=(length,), depths=(0.5,), n=1))
        with pytest.raises(InfeasibleCell) as refusal:
            TASK.sample(point, WordsTokenizer())
        assert refusal.value.minimum is not None
        assert 600 < refusal.value.minimum < 1024


def test_points_have_no_depth_and_are_as_many_as_the_depths_would_give() -> None:
    points = list(TASK.points(Grid(lengths=(2048, 4096), depths=(0.0, 0.5, 1.0), n=2)))
    assert [point.depth for point in points] == [None] * 12
    assert [point.index for point in points[:6]] == list(range(6))


def test_parameters_are_checked() -> None:
    for params in ({"hops": 0}, {"reserve": "30"}, {"prefill": "maybe"}):
        with pytest.raises(ConfigError, match=next(iter(params))):
            get_task("ruler.vt", **params)


def test_the_example_of_2024_stands_as_the_generators_of_that_year_wrote_it() -> None:
    """nvidia-long-context-eval 26.3, variable_tracking.py: a blank before it, twice two newlines behind its answers."""
    task = get_task("ruler.vt", variant="2024")
    point = next(iter(task.points(Grid(lengths=(2048,), depths=(0.5,), n=1))))
    content = task.sample(point, WordsTokenizer()).messages[-1].content
    assert re.match(r" Memorize and track [^\n]*\n\n", content)
    assert re.search(r"they are:  [A-Z]{3}(?: [A-Z]{3}){4}\n\n\n\nMemorize and track ", content)
