"""The contract of every registered task, and of its parameters that change the prompt."""

import itertools
import json
import re
from collections.abc import Callable

import pytest

from longreach.harness.errors import InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task, task_origin, tasks
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.task import Solvable, Task, task_id
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WithProof, WordsTokenizer
from tests.suites.test_mrcr_synth import Templated


def _offline(task: Task) -> dict[str, str]:
    """Parameters that put text made here in the place of published texts, which no test downloads."""
    if hasattr(task, "documents"):
        return {"documents": "generated"}
    return {"haystack": "mixed"} if getattr(task, "haystack", "") == "ruler-essays" else {}


VARIANTS = (
    *((name, _offline(task)) for name, task in tasks().items() if not hasattr(task, "data")),  # see tests of loaders
    *(("niah.single", {"kind": kind}) for kind in ("fact", "code", "instruction")),
    *(("niah.multi", {"needles": needles}) for needles in (2, 3, 8, 16)),
    *(("niah.distractor", {"distractors": distractors}) for distractors in (1, 16)),
    ("niah.multihop", {"hops": 3}),
    ("niah.multihop", {"decoys": 8}),
    *(("trace.arith", {"hops": hops}) for hops in (1, 8)),
    ("niah.distractor", {"style": "instruction"}),
    ("niah.single", {"language": "zh"}),
    ("niah.multihop", {"language": "ru", "structure": "log"}),
    ("trace.arith", {"language": "mixed", "structure": "csv"}),
    ("ruler.vt", {"prefill": True}),
    ("ruler.vt", {"hops": 1, "reserve": 30}),
    ("ruler.vt", {"variant": "2024"}),
    ("ruler.niah_single_1", {"prefill": True}),
    ("ruler.niah_multikey_3", {"prefill": True, "reserve": 40}),
    ("ruler.cwe", {"variant": "2024", "prefill": True}),
    ("ruler.fwe", {"prefill": True}),
    ("ruler.qa_1", {"documents": "generated", "prefill": True}),
    ("graphwalks.bfs", {"hops": 1, "shuffled": True}),
    *(("nolima.twohop", {"variant": variant}) for variant in ("multiple_choice", "cot", "distractor")),
    ("nolima.onehop", {"order": "inverted"}),
    ("helmet.icl", {"labels": 6}),
    ("babi.qa2", {"examples": False, "filter_background": "names"}),
)
WORDS, BYTES = WordsTokenizer(), BytesTokenizer()
CELLS: tuple[tuple[Tokenizer, int], ...] = ((WORDS, 1024), (WORDS, 1500), (WORDS, 4096), (BYTES, 4000), (BYTES, 16384))
DEPTHS = (0.0, 0.31, 0.5, 1.0)


@pytest.fixture(params=VARIANTS, ids=lambda variant: "-".join([variant[0], *map(str, variant[1].values())]))
def task(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Task:
    name, params = request.param
    record_property("contract", name)
    return get_task(name, **params)


def _points(task: Task, length: int, depths: tuple[float, ...] = DEPTHS, n: int = 1) -> list[Point]:
    return list(task.points(Grid(lengths=(length,), depths=depths, n=n)))


class _Noting(WordsTokenizer):
    """Keeps the texts that were counted."""

    def __init__(self) -> None:
        self.counted: set[str] = set()

    def count(self, text: str) -> int:
        self.counted.add(text)
        return super().count(text)


def _samples(task: Task) -> list[Sample]:
    return [task.sample(point, WORDS) for point in _points(task, 2048, n=3)]


def _value(task: Task, sample: Sample, text: str) -> float:
    return task.score(sample, Response(text=text)).value


def _without_needles(sample: Sample) -> tuple[Message, ...]:
    offered = sample.extra.get("offered") or "\0"  # choices name the target too
    contents = [message.content.replace(offered, "") for message in sample.messages]
    if not sample.extra["needles"]:  # what is asked is said by the whole text
        targets = rf"(?<!\w)(?:{'|'.join(map(re.escape, sample.target))})(?!\w)"
        contents = [re.sub(targets, "other", content) for content in contents]
    for needle in sample.extra["needles"]:
        assert sum(content.count(needle) for content in contents) == 1
        contents = [content.replace(needle, "") for content in contents]
    return tuple(
        Message(role=message.role, content=content) for message, content in zip(sample.messages, contents, strict=True)
    )


def _text(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(message.content for message in messages)


def test_a_prompt_that_was_not_encoded_as_a_whole_says_so(task: Task) -> None:
    noting = _Noting()
    for point in _points(task, 2048):
        for prove in ("always", "never"):
            noting.counted.clear()
            sample = task.sample(point, WithProof(noting, prove))  # type: ignore[arg-type]
            proven = noting.render(sample.messages, sample.answer_prefix) in noting.counted
            assert proven == (prove == "always")
            assert ("proof" not in sample.extra) == proven


def test_the_same_point_gives_the_same_bytes(task: Task) -> None:
    for point in _points(task, 2048):
        first, second = task.sample(point, WORDS), task.sample(point, WordsTokenizer())
        assert first == second
        assert first.prompt_sha256 == second.prompt_sha256


def test_other_indexes_seeds_and_depths_ask_something_else(task: Task) -> None:
    grids = (Grid(lengths=(2048,), depths=(0.2, 0.6), n=4, seed=seed) for seed in (1, 2))
    prompts = [task.sample(point, WORDS).prompt_sha256 for grid in grids for point in task.points(grid)]
    assert len(set(prompts)) == len(prompts) == 16


def test_length_is_met_within_eight_tokens(task: Task) -> None:
    for tokenizer, length in CELLS:
        for point in _points(task, length):
            sample = task.sample(point, tokenizer)
            shortfall = length - task.info.reserve - sample.n_tokens
            assert 0 <= shortfall <= 8, (tokenizer.name, point, shortfall)
            assert sample.n_tokens == tokenizer.count(tokenizer.render(sample.messages, sample.answer_prefix))


@pytest.mark.parametrize("tokenizer", [WORDS, BYTES, Templated(WORDS)], ids=["words", "bytes", "template"])
def test_a_prompt_that_is_not_proven_keeps_its_length_all_the_same(task: Task, tokenizer: Tokenizer) -> None:
    for point in _points(task, 4000):
        sample = task.sample(point, WithProof(tokenizer, "never"))
        count = tokenizer.count(tokenizer.render(sample.messages, sample.answer_prefix))
        assert 0 <= 4000 - task.info.reserve - count <= 8, point
        assert abs(sample.n_tokens - count) <= 2, point


def test_an_impossible_length_is_refused_and_the_minimum_is_true(task: Task) -> None:
    with pytest.raises(InfeasibleCell) as refusal:
        task.sample(_points(task, 64)[0], WORDS)
    minimum = refusal.value.minimum
    assert minimum is not None
    assert 64 < minimum < 2048
    spread = 128 if task.info.family in ("qa", "story") else 24  # documents differ in size from question to question
    for length in (128, 256, 512, minimum + spread):
        for point in _points(task, length):
            try:
                assert task.sample(point, WORDS).n_tokens + task.info.reserve <= length
            except InfeasibleCell:
                assert length < minimum + spread


def test_the_needle_stands_at_its_depth(task: Task) -> None:
    for point in _points(task, 4096, n=3):
        sample = task.sample(point, WORDS)
        if not task.info.has_depth:
            assert point.depth is None
            continue
        assert point.depth is not None
        assert abs(sample.placed[0] - point.depth) <= 0.01


def test_needles_are_whole_and_inside_the_haystack(task: Task) -> None:
    for tokenizer, length in CELLS[:1] + CELLS[-1:]:
        for point in _points(task, length):
            sample = task.sample(point, tokenizer)
            assert bool(sample.extra["needles"]) == (task.info.family not in ("aggregation", "graph", "many-shot"))
            assert all(sample.haystack_text.count(needle) == 1 for needle in sample.extra["needles"])


def test_smaller_runs_are_subsets_of_larger_ones(task: Task) -> None:
    few, many = _points(task, 2048, (0.0, 0.5), n=2), _points(task, 2048, (0.0, 0.5), n=5)
    assert set(few) < set(many)
    assert many[: len(few)] == few
    assert {point.task for point in many} == {task_id(task)}


def test_the_perfect_answer_scores_one_and_the_empty_one_zero(task: Task) -> None:
    for sample in _samples(task):
        assert _value(task, sample, ", ".join(sample.target)) == 1.0
        assert _value(task, sample, "") == 0.0
        assert _value(task, sample, "I cannot find that in the text.") == 0.0


def test_every_choice_is_wrong_and_naming_all_candidates_earns_nothing(task: Task) -> None:
    for sample in _samples(task):
        assert sample.choices
        assert len(set(sample.choices)) == len(sample.choices)
        assert not set(sample.choices) & {*sample.target, ", ".join(sample.target)}
        assert all(_value(task, sample, choice) == 0.0 for choice in sample.choices)
        if sample.choices[0] in sample.messages[-1].content:
            assert _value(task, sample, ", ".join((*sample.choices, *sample.target))) == 0.0


def test_a_copy_of_the_prompt_earns_nothing(task: Task) -> None:
    for sample in _samples(task):
        assert _value(task, sample, _text(sample.messages)) == 0.0


def test_targets_are_unique_and_stand_nowhere_but_in_needles(task: Task) -> None:
    for sample in _samples(task):
        assert len(set(sample.target)) == len(sample.target)
        rest = _text(_without_needles(sample))
        for target in () if sample.extra.get("verdict") else sample.target:  # yes, no, a count: words of any text
            assert not re.search(rf"(?<!\w){re.escape(target)}(?!\w)", rest, re.IGNORECASE)


def test_the_question_and_all_extra_facts_are_json(task: Task) -> None:
    for sample in _samples(task):
        assert json.loads(json.dumps(dict(sample.extra))) == dict(sample.extra)
        assert sample.extra["question"] in sample.messages[-1].content
        assert not any(target in sample.extra["question"] for target in sample.target)


def test_the_reference_solver_reads_the_answer(task: Task) -> None:
    assert isinstance(task, Solvable)
    for tokenizer, length in CELLS:
        for point in _points(task, length, n=2):
            sample = task.sample(point, tokenizer)
            answer = task.solve(sample.messages)
            assert answer is not None
            assert _value(task, sample, answer) == 1.0, (point, answer, sample.target)


def test_without_its_needles_the_solver_fails(task: Task) -> None:
    assert isinstance(task, Solvable)
    for sample in _samples(task):
        if sample.target == ("[]",):  # that there is no such node needs no needle
            continue
        answer = task.solve(_without_needles(sample))
        assert answer is not None
        assert _value(task, sample, answer) == 0.0


def test_a_solver_survives_a_prompt_whose_beginning_is_lost(task: Task) -> None:
    assert isinstance(task, Solvable)
    sample = _samples(task)[0]
    content = sample.messages[-1].content
    for kept in (0, 1, 10, 40, 150, 400, 1000, len(content) // 2, len(content) - 30):
        answer = task.solve((Message(role="user", content=content[len(content) - kept :]),))
        assert answer is None or isinstance(answer, str)
        assert answer is not None or kept < 1000
    assert task.solve(()) is None


def test_only_its_own_task_takes_a_question(task: Task) -> None:
    for sample in _samples(task):
        assert isinstance(task, Solvable)
        others = [other for name, other in tasks().items() if name != task.info.name and isinstance(other, Solvable)]
        answers = {other.solve(sample.messages) for other in others} - {None}
        # RULER asks several of its tasks in the same words: whichever of them answers, it is the same answer.
        assert answers <= ({task.solve(sample.messages)} if task.info.name.startswith("ruler.") else set())


def test_items_ask_the_same_question_at_every_length(task: Task) -> None:
    for short, long in zip(_points(task, 1024), _points(task, 4096), strict=True):
        first, second = task.sample(short, WORDS), task.sample(long, WORDS)
        assert (first.target, first.extra["question"]) == (second.target, second.extra["question"])


def test_all_haystacks_serve(task: Task) -> None:
    if not hasattr(task, "haystack"):
        assert task.info.name.startswith(("ruler.", "mrcr.", "graphwalks.", "helmet.", "litm."))
        return
    name = task.info.name
    for haystack in ("repeat", "noise", "stdlib"):
        other = get_task(name, haystack=haystack)
        for point in _points(other, 2048, (0.0, 0.7)):
            sample = other.sample(point, WORDS)
            assert isinstance(other, Solvable)
            assert _value(other, sample, other.solve(sample.messages) or "") == 1.0


def test_every_task_says_where_it_comes_from() -> None:
    assert len(tasks()) >= 7
    for name, task in tasks().items():
        assert task_origin(name).startswith("longreach ")
        assert task.info.source
        assert task.info.summary
        assert task.info.name == name


def test_no_two_tasks_share_a_task_id() -> None:
    ids = [task_id(get_task(name, **params)) for name, params in VARIANTS]
    assert all(first != second for first, second in itertools.combinations(ids, 2))
