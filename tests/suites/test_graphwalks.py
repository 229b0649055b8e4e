"""graphwalks.*: answers by another way of counting, and graders' cases of the protocol's notes."""

import itertools
import re

import pytest

from longreach.harness.errors import InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.graphwalks.answers import f1, grade_nodes, marked_nodes, nodes_in
from longreach.suites.graphwalks.graphs import names
from longreach.suites.graphwalks.walks import EMPTY_EVERY, Bfs, Parents

WORDS = WordsTokenizer()
TASKS = (Bfs(), Bfs(hops=1), Bfs(hops=3, degree=3), Bfs(shuffled=True), Parents(), Parents(degree=2, shuffled=True))


def samples(task: Bfs | Parents, length: int = 2048, n: int = 9) -> list[Sample]:
    return [task.sample(point, WORDS) for point in task.points(Grid(lengths=(length,), depths=(0.5,), n=n))]


def edges_of(sample: Sample) -> list[tuple[str, str]]:
    return re.findall(r"([0-9a-f]{10}) -> ([0-9a-f]{10})", sample.haystack_text)


def distances(edges: list[tuple[str, str]], start: str) -> dict[str, int]:
    """Shortest ways from `start`, by relaxing all edges until nothing changes."""
    found = {start: 0}
    changed = True
    while changed:
        changed = False
        for source, end in edges:
            if source in found and found[source] + 1 < found.get(end, 1 << 30):
                found[end] = found[source] + 1
                changed = True
    return found


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_the_target_is_what_the_edges_say(task: Bfs | Parents) -> None:
    for sample in samples(task):
        edges = edges_of(sample)
        start = re.search(r"node ([0-9a-f]{10})", sample.extra["question"])
        assert start is not None
        if isinstance(task, Bfs):
            found = distances(edges, start[1])
            right = {node for node, distance in found.items() if distance == task.hops}
        else:
            right = {source for source, end in edges if end == start[1]}
        assert set(sample.target) == (right or {"[]"})
        assert start[1] not in right


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_graphs_have_no_loops_no_double_edges_and_the_same_degree(task: Bfs | Parents) -> None:
    edges = edges_of(samples(task, 8192, 1)[0])
    assert all(source != end for source, end in edges)
    assert len(set(edges)) == len(edges)
    starts = [source for source, _ in edges]
    n_full = sum(starts.count(node) == task.degree for node in set(starts))
    assert n_full >= len(set(starts)) - 8
    is_grouped = len(list(itertools.groupby(starts))) == len(set(starts))
    assert is_grouped != task.shuffled


def test_one_item_in_eight_asks_for_what_is_not_there() -> None:
    for task in (Bfs(), Parents()):
        found = samples(task, n=2 * EMPTY_EVERY)
        assert [sample.target == ("[]",) for sample in found] == ([False] * 7 + [True]) * 2
        assert task.info.chance == 1 / EMPTY_EVERY
        empty = found[7]
        assert task.score(empty, Response(text="Final Answer: []")).value == 1.0
        assert task.score(empty, Response(text="There is none.")).value == 0.0
        assert task.score(empty, Response(text=f"Final Answer: [{empty.choices[0]}]")).value == 0.0


def test_an_edge_of_the_core_stands_anywhere_in_its_group() -> None:
    places = set()
    for sample in samples(Parents(), n=7):
        start = re.search(r"node ([0-9a-f]{10})", sample.extra["question"])
        assert start is not None
        edges = edges_of(sample)
        for parent in sample.target:
            places.add([end for source, end in edges if source == parent].index(start[1]))
    assert places == {0, 1, 2, 3}


def test_answers_grow_with_hops_and_the_reserve_with_them() -> None:
    assert Bfs(hops=1).info.reserve < Bfs().info.reserve < Bfs(hops=4).info.reserve
    assert Bfs(hops=4).info.reserve == 32 + 12 * 256
    with pytest.raises(ValueError, match=r"answers of up to 1,024 nodes, more than 256"):
        Bfs(hops=5)
    with pytest.raises(ValueError, match="degree 9 is not a whole number from 2 to 8"):
        Parents(degree=9)
    with pytest.raises(InfeasibleCell):
        samples(Bfs(hops=4), 4096, 1)
    assert len(samples(get_task("graphwalks.bfs", hops=4), 16384, 1)[0].target) > 60  # type: ignore[arg-type]


def test_names_are_ten_hexadecimal_digits_and_all_different() -> None:
    pool = names(20_000)
    assert len(set(pool)) == 20_000
    assert all(re.fullmatch("[0-9a-f]{10}", name) for name in pool)
    assert names(100) == pool[:100]


UVWX = "Final Answer: [uvwx, efgh]"


def test_the_first_node_of_a_list_is_not_lost() -> None:
    """The card's code reads `["Final Answer: [uvwx", "efgh"]` out of this."""
    assert nodes_in(UVWX) == marked_nodes(UVWX) == ["uvwx", "efgh"]
    assert grade_nodes(UVWX, ["uvwx", "efgh"]).value == 1.0


def test_a_list_without_overlap_and_an_answer_without_a_list_earn_nothing() -> None:
    """The card's F1 gives 1 to both."""
    assert grade_nodes(UVWX, ["abcd"]).value == 0.0
    failed = grade_nodes("I think it is uvwx.", ["uvwx"])
    assert (failed.value, failed.parts["format_fail"]) == (0.0, 1.0)


def test_the_five_cases_of_the_grader() -> None:
    assert f1(None, []) == f1(None, ["a"]) == 0.0
    assert f1([], []) == 1.0
    assert f1([], ["a"]) == f1(["a"], []) == f1(["b"], ["a"]) == 0.0
    assert f1(["a", "b"], ["a"]) == pytest.approx(2 / 3)
    assert f1(["a", "b", "c"], ["b", "c", "d", "e"]) == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    score = grade_nodes("Final Answer: []", [])
    assert (score.value, score.parts["exact"], score.parts["format_fail"]) == (1.0, 1.0, 0.0)
    part = grade_nodes("Final Answer: [a, b, c]", ["b", "c", "d", "e"])
    assert (part.parts["precision"], part.parts["recall"], part.parts["exact"]) == (pytest.approx(2 / 3), 0.5, 0.0)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("Let me see.\n\n**Final Answer:** [`cfcd208495`, 'd3d9446802']\n\n", ["cfcd208495", "d3d9446802"]),
        ("final answer: [CFCD208495, cfcd208495].", ["cfcd208495"]),
        ("<think>[1679091c5a]</think>[cfcd208495]", ["cfcd208495"]),
        ("cfcd208495, d3d9446802", ["cfcd208495", "d3d9446802"]),
        ("The parents are [cfcd208495]", ["cfcd208495"]),
        ("Final Answer: none", []),
        ("Final Answer: [ ]", []),
        ("Final Answer: [cfcd208495]\nI hope that this helps.", None),
        ("Final Answer: [cfcd208495, d3d94", None),
        ("", None),
        ("none", None),
    ],
)
def test_what_is_read_from_the_last_line(answer: str, named: list[str] | None) -> None:
    assert nodes_in(answer) == named


def test_the_published_form_is_stricter() -> None:
    assert marked_nodes("cfcd208495, d3d9446802") is None
    assert marked_nodes("The parents are [cfcd208495]") is None
    assert marked_nodes("I see.\nFinal Answer: [cfcd208495]\n") == ["cfcd208495"]
