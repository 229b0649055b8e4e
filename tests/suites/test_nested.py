"""Nested fillers: the same items short and long, at every depth."""

import itertools
from pathlib import Path

import pytest

from longreach.harness.data import pin
from longreach.harness.registry import get_task, open_tokenizer
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare
from longreach.harness.sample import Point, Sample
from longreach.harness.task import Task, task_id
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WordsTokenizer

LENGTHS = (512, 1024, 5000)
DEPTHS = (0.0, 0.3, 0.5, 1.0)


def sample(task: Task, tokenizer: Tokenizer, length: int, depth: float, index: int = 0) -> Sample:
    return task.sample(Point(task=task_id(task), length=length, depth=depth, index=index, seed=7), tokenizer)


def filler(found: Sample) -> str:
    """The haystack without its needle and the blanks around it."""
    return "".join(found.haystack_text.replace(found.extra["needles"][0], "").split())


@pytest.mark.parametrize("tokenizer", [WordsTokenizer(), BytesTokenizer()], ids=lambda tokenizer: tokenizer.name)
@pytest.mark.parametrize("params", [{}, {"language": "zh"}, {"haystack": "repeat"}, {"haystack": "stdlib"}])
def test_a_shorter_filler_is_the_beginning_of_a_longer_one(params: dict[str, str], tokenizer: Tokenizer) -> None:
    task = get_task("niah.single", shared=True, **params)
    for index in range(2):
        fillers = [filler(sample(task, tokenizer, length, depth, index)) for length in LENGTHS for depth in DEPTHS]
        ordered = sorted(fillers, key=len)
        assert all(longer.startswith(shorter) for shorter, longer in itertools.pairwise(ordered))
        assert len(ordered[-1]) > 8 * len(ordered[0])


def test_length_and_depth_stay_exact() -> None:
    task, tokenizer = get_task("niah.single", shared=True), WordsTokenizer()
    for length in LENGTHS:
        for depth in DEPTHS:
            for index in range(5):
                found = sample(task, tokenizer, length, depth, index)
                assert 0 <= length - task.info.reserve - found.n_tokens <= 8
                assert found.placed[0] == pytest.approx(depth, abs=0.01)
                assert found.haystack_text.count(found.extra["needles"][0]) == 1


def test_every_item_has_a_filler_of_its_own() -> None:
    task, tokenizer = get_task("niah.single", shared=True), WordsTokenizer()
    starts = {filler(sample(task, tokenizer, 1024, 0.5, index))[:200] for index in range(8)}
    assert len(starts) == 8


def test_a_short_file_that_is_used_again_nests_too(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text(
        " ".join(f"The {word} stood in room {n} of the old house." for n, word in enumerate("abcdefgh" * 9))
    )
    task, tokenizer = get_task("niah.single", shared=True, haystack=pin(str(path))), WordsTokenizer()
    short, long = (filler(sample(task, tokenizer, length, 0.5)) for length in (512, 8192))
    assert long.startswith(short)


def test_without_shared_items_fillers_are_independent() -> None:
    task, tokenizer = get_task("niah.single"), WordsTokenizer()
    short, long = (filler(sample(task, tokenizer, length, 0.5)) for length in (1024, 4096))
    assert not long.startswith(short[:200])


def test_bias_is_the_battery_of_nested_items() -> None:
    prepared = prepare(Options.of(battery="bias", model="sim:perfect", lengths="1k,2k", samples=1))
    first, *others = (
        filler(task.task.sample(i.point, open_tokenizer("words")))
        for i in prepared.items
        for task in [prepared.plan.tasks[i.label]]
    )
    assert len(others) == 9
    assert all(other.startswith(first[: len(first) - 200]) for other in others)
