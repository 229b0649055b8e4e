"""niah.shared: one context, five questions."""

import pytest

from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Point, Sample
from longreach.harness.task import place_in_context, task_id
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WordsTokenizer

TOKENIZERS: tuple[Tokenizer, ...] = (WordsTokenizer(), BytesTokenizer())


def five(tokenizer: Tokenizer, length: int = 4096, offset: float = 0.3, index: int = 0, **params: str) -> list[Sample]:
    task = get_task("niah.shared", **params)
    points = (
        Point(task=task_id(task), length=length, depth=(place + offset) / 5, index=index, seed=1) for place in range(5)
    )
    return [task.sample(point, tokenizer) for point in points]


def context(sample: Sample) -> str:
    return sample.messages[-1].content[: sample.extra["context"][1]]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda tokenizer: tokenizer.name)
@pytest.mark.parametrize("language", ["en", "zh", "ru", "pt"])
def test_five_questions_share_every_byte_before_the_question(tokenizer: Tokenizer, language: str) -> None:
    for index in range(6):
        samples = five(tokenizer, index=index, language=language)
        assert len({context(sample) for sample in samples}) == 1
        assert len({sample.target for sample in samples}) == len({s.extra["question"] for s in samples}) == 5
        assert len({sample.n_tokens for sample in samples}) == 1


def test_instructions_that_do_not_depend_on_the_question_stand_first() -> None:
    first, *others = (sample.messages[-1].content for sample in five(TOKENIZERS[0]))
    for other in others:
        same = next(i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b)
        assert same > 0.98 * len(first)


@pytest.mark.parametrize("offset", [0.0, 0.37, 0.99])
def test_each_of_the_five_needles_stands_within_a_point_of_its_depth(offset: float) -> None:
    for length in (1024, 8192):
        for sample in five(TOKENIZERS[0], length, offset):
            place = place_in_context(sample.point.depth or 0.0)[0]
            assert sample.extra["needles"][place] == sample.extra["sought"][0]
            assert sample.target[0] in sample.extra["sought"][0]
            wanted = sorted((rank + offset) / 5 for rank in range(5))
            assert sorted(sample.placed) == pytest.approx(wanted, abs=0.01)


def test_another_index_or_place_within_the_strata_is_another_context() -> None:
    words = TOKENIZERS[0]
    contexts = [context(five(words, offset=offset, index=index)[0]) for offset in (0.3, 0.4) for index in (0, 1)]
    assert len(set(contexts)) == 4


def test_naming_the_number_of_another_key_earns_nothing() -> None:
    task, samples = get_task("niah.shared"), five(TOKENIZERS[0])
    targets = {sample.target[0] for sample in samples}
    for sample in samples:
        assert {*sample.choices, *sample.target} == targets
        assert task.score(sample, Response(text=f"{sample.choices[0]}, {sample.target[0]}")).value == 0.0
