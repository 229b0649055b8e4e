"""graphwalks.openai: rows in the published form, their answers by their own edges, and what is said where they differ."""

import json
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.graphwalks.published import OpenAi, solved

ROWS = Path(__file__).parent.parent / "fixtures" / "loaded" / "graphwalks.jsonl"
WORDS = WordsTokenizer()
PROMPT = """Some instructions.
<begin example>
The graph has the following edges:
abcd -> uvwx
uvwx -> alke
Operation:
Find the parents of node alke.
Final Answer: [uvwx]
<end example>
Here is the graph to operate on:
The graph has the following edges:
cfcd208495 -> c4ca4238a0
cfcd208495 -> cfcd208495
c4ca4238a0 -> c81e728d9d
c4ca4238a0 -> cfcd208495
c81e728d9d -> eccbc87e4b
cfcd208495 -> c81e728d9d

Operation:
{operation}

Write the list last.
"""


def samples(task: OpenAi) -> list[Sample]:
    grid = Grid(lengths=(16384,), depths=(0.5,), n=100)
    return [task.sample(point, WORDS) for point in sorted(task.measured_points(grid, WORDS), key=lambda p: p.index)]


def loaded(data: object = ROWS, **params: Any) -> OpenAi:
    found = get_task("graphwalks.openai", data=str(data), **params)
    assert isinstance(found, OpenAi)
    return found


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("Perform a BFS from node cfcd208495 with depth 1.", {"c4ca4238a0", "c81e728d9d"}),
        ("Perform a BFS from node cfcd208495 with depth 2.", {"eccbc87e4b"}),
        ("Perform a BFS from node cfcd208495 with depth 3.", set()),
        ("Find the parents of node cfcd208495.", {"c4ca4238a0"}),
        ("Find the parents of node alke.", set()),
        ("Count the nodes.", None),
    ],
)
def test_answers_by_the_edges_behind_the_example(operation: str, answer: set[str] | None) -> None:
    """Exactly that depth; a node is no parent of itself; the example's edges are of another graph."""
    assert solved(PROMPT.format(operation=operation)) == answer


def test_rows_are_asked_as_they_are_and_an_empty_answer_is_an_answer() -> None:
    task = loaded()
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    for row, sample in zip(rows, samples(task), strict=True):
        assert sample.messages[0].content == row["prompt"]
        assert "example" not in sample.haystack_text
        right = task.score(
            sample, Response(text=f"I went through it.\nFinal Answer: [{', '.join(row['answer_nodes'])}]")
        )
        assert (right.value, right.parts["marked"], right.parts["format_fail"]) == (1.0, 1.0, 0.0)
        bare = task.score(sample, Response(text=", ".join(sample.target)))
        assert (bare.value, bare.parts["marked"]) == (1.0, 0.0)
    assert samples(task)[-1].target == ("[]",)
    assert samples(task)[-1].extra["groups"]["answer"] == "no node"


def test_the_two_problems_are_never_pooled(tmp_path: Path) -> None:
    node = "cfcd208495"
    prompts = {
        name: PROMPT.format(operation=text)
        for name, text in (
            ("BFS", f"Perform a BFS from node {node} with depth 1."),
            ("parents", f"Find the parents of node {node}."),
        )
    }
    path = tmp_path / "both.jsonl"
    answers = {"BFS": ["c4ca4238a0", "c81e728d9d"], "parents": ["c4ca4238a0", node]}
    path.write_text(
        "".join(
            json.dumps({"prompt": prompts[name], "answer_nodes": answers[name], "problem_type": name}) + "\n"
            for name in prompts
        )
    )
    assert [sample.point.index for sample in samples(loaded(path))] == [0]
    assert [sample.point.index for sample in samples(loaded(path, problem="parents"))] == [1]
    assert list(loaded(path).notes()) == []
    assert list(loaded(path, problem="parents").notes()) == [
        f"1 of 1 rows have an answer that is not what their edges say, the first: line 2 of {path}"
    ]
    with pytest.raises(ValueError, match="problem 'dfs' is not one of bfs, parents"):
        OpenAi(problem="dfs")


def test_answers_that_do_not_fit_the_reserve_are_counted() -> None:
    assert list(loaded(reserve=20).notes()) == ["2 answers are too long for the 20 reserved tokens (8 a node)"]
