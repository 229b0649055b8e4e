"""graphwalks.openai: OpenAI's GraphWalks; loaded, never shipped.

Source: Hugging Face openai/graphwalks (MIT), rows of 2026-02-27 and later: files up to 128k and from 256k to 1M. The
two problems are never pooled, as published. Checked against the schema as documented, not against the real files.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Types
from longreach.harness.sample import Message, Sample
from longreach.harness.task import Score, TaskInfo
from longreach.suites.graphwalks.answers import f1, grade_nodes, marked_nodes
from longreach.suites.graphwalks.graphs import distance_set
from longreach.suites.graphwalks.walks import EMPTY
from longreach.suites.loaded import Asked, LoadedTask

PROBLEMS = ("bfs", "parents")
RESERVE = 8192  # openbench; lm-eval allows 16,384
TOKENS_PER_NODE = 8
EXAMPLE_END = "<end example>"
_EDGE = re.compile(r"^(\w+) -> (\w+)\s*$", re.MULTILINE)
_WALK = re.compile(r"Perform a BFS from node (\w+) with depth (\d+)")
_PARENTS = re.compile(r"Find the parents of node (\w+)")


def _problem(row: Mapping[str, Any]) -> str | None:
    if row["problem_type"].strip().lower() not in PROBLEMS:
        return f"has the problem_type {row['problem_type'][:20]!r}, which is none of {', '.join(PROBLEMS)}"
    if not all(isinstance(node, str) and node.strip() for node in row["answer_nodes"]):
        return "has answer_nodes that are not all names"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAi(LoadedTask):
    """OpenAI's graphs with one of their two problems."""

    columns: ClassVar[Types] = {"prompt": str, "answer_nodes": list, "problem_type": str}
    optional: ClassVar[Types] = {"prompt_chars": int, "date_added": str}
    hub: ClassVar[str] = "hf:openai/graphwalks"
    check: ClassVar[Check | None] = staticmethod(_problem)

    problem: str = "bfs"
    """bfs or parents."""
    reserve: int = RESERVE
    """Tokens kept free for the answer, which may be thousands of nodes."""

    def __post_init__(self) -> None:
        LoadedTask.__post_init__(self)
        if self.problem not in PROBLEMS:
            raise ValueError(f"problem {self.problem!r} is not one of {', '.join(PROBLEMS)}")
        if not isinstance(self.reserve, int) or self.reserve < 1:
            raise ValueError(f"reserve {self.reserve!r} is not a whole number from 1 on")

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="graphwalks.openai",
            version=1,
            capability="reasoning",
            family="graph",
            reserve=self.reserve,
            chance=0.0,
            has_depth=False,
            summary="OpenAI GraphWalks: nodes at a distance, or parents, in a list of edges (data is loaded, not shipped)",
            source="OpenAI GraphWalks (Hugging Face openai/graphwalks)",
            license="MIT (the data, which is not shipped)",
            data_revision=self.data or self.hub,
            departures=(
                (
                    "The grader is our own: the one on the data's card loses the first node of a list and gives 1 to any answer "
                    "without overlap."
                ),
                "A list on the last line counts without the words Final Answer too; the share by the published form is `marked`.",
                "Strings that a tokenizer would take for control tokens are spaced apart.",
            ),
        )

    def keeps(self, row: Row) -> bool:
        return bool(row.data["problem_type"].strip().lower() == self.problem)

    def ask(self, row: Row, part: int) -> Asked:
        prompt: str = row.data["prompt"]
        begin, end = _graph(prompt)
        asked = _WALK.search(prompt, end) or _PARENTS.search(prompt, end)
        nodes = tuple(dict.fromkeys(node.strip().lower() for node in row.data["answer_nodes"]))
        return Asked(
            messages=(Message(role="user", content=prompt),),
            target=nodes or (EMPTY,),
            choices=(asked[1],) if asked else (),
            context=(begin, end),
            groups={
                "problem": self.problem,
                "answer": "some nodes" if nodes else "no node",
                "added": row.data.get("date_added") or "not stated",
            },
            extra={"question": asked[0] if asked else "", "nodes": len(nodes)},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """F1 of the nodes on the last line, 0 where that is no list; parts: also `marked`, by the published form."""
        wanted = () if sample.target == (EMPTY,) else sample.target
        score = grade_nodes(response.text, wanted)
        marked = f1(marked_nodes(response.text), wanted)
        return Score(value=score.value, parts={**score.parts, "marked": marked}, extracted=score.extracted)

    def notes(self) -> Iterator[str]:
        rows = [row for row in self.rows().rows if self.keeps(row)]
        n_long = sum(len(row.data["answer_nodes"]) * TOKENS_PER_NODE > self.reserve for row in rows)
        if n_long:
            yield f"{n_long:,} answers are too long for the {self.reserve:,} reserved tokens ({TOKENS_PER_NODE} a node)"
        wrong = [row for row in rows if (right := solved(row.data["prompt"])) is not None and right != _gold(row)]
        if wrong:
            yield (
                f"{len(wrong):,} of {len(rows):,} rows have an answer that is not what their edges say, the first: "
                f"{wrong[0].where}"
            )


def _gold(row: Row) -> set[str]:
    return {node.strip().lower() for node in row.data["answer_nodes"]}


def _graph(prompt: str) -> tuple[int, int]:
    """[start, end) of the edges, behind the example, which has edges of its own."""
    behind = max(0, prompt.rfind(EXAMPLE_END))
    edges = list(_EDGE.finditer(prompt, behind))
    return (edges[0].start(), edges[-1].end(2)) if edges else (behind, behind)


def solved(prompt: str) -> set[str] | None:
    """The right nodes by the prompt's own edges; None if its operation is not one of the two."""
    begin, end = _graph(prompt)
    edges = _EDGE.findall(prompt[begin:end])
    if walk := _WALK.search(prompt, end):
        ends: dict[str, list[str]] = {}
        for source, target in edges:
            ends.setdefault(source, []).append(target)
        return set(distance_set(ends, walk[1], int(walk[2])))
    if parents := _PARENTS.search(prompt, end):
        return {source for source, target in edges if target == parents[1] != source}
    return None


TASKS = (OpenAi(),)
