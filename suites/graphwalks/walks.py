"""graphwalks.bfs and graphwalks.parents: nodes at a distance from a node, or with an edge to it, in a list of edges.

Source: own graphs and wording, after OpenAI's GraphWalks (Hugging Face openai/graphwalks). The answer of an item is the
same at every length; edges are added that do not change it. One item in eight asks for what is not there.
Example: "a -> b", "b -> c", "a -> c"; exactly 1 step from a: b, c; exactly 2 steps: none; parents of c: a, b.
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, takewhile

import numpy as np

from longreach.harness.model import Response
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.scoring import without_credit_for_copies
from longreach.harness.task import Score, TaskInfo, task_id
from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import tier
from longreach.suites.graphwalks.answers import NODE, grade_nodes
from longreach.suites.graphwalks.graphs import (
    CORE_NAMES,
    Core,
    Edge,
    distance_set,
    free_edges,
    names,
    parents_core,
    walk_core,
)
from longreach.suites.haystack import AIM, TOLERANCE
from longreach.suites.joins import PAD, count
from longreach.suites.tables import measure, permutation
from longreach.suites.units import Composed, fill, remembered, trimmed

HEAD = 'A directed graph is given below as a list of edges, one a line. "a -> b" is an edge that leads from node a to node b.\n\n'
TAIL = (
    "\n\n{question}\nEnd your answer with one line of this form and nothing after it: Final Answer: [node, node]. Name each "
    "node once, in any order; where there is no such node, leave the brackets empty."
)
WALK = (
    "Start at node {start} and follow the edges in their direction. Which nodes are exactly {hops} steps away: reached in "
    "{hops} steps, but not in fewer?"
)
PARENTS = "Which nodes have an edge that leads to node {start}?"
EMPTY = "[]"
"""The target of an item whose answer is that there is no such node."""
EMPTY_EVERY = 8
"""One item in so many asks for what is not there."""
MOST_PARENTS = 6
MOST_NODES = 256
"""Nodes of the longest answer that may be asked for."""
RESERVE, RESERVE_PER_NODE = 32, 12  # ten digits, a comma and a blank are 12 tokens where each digit is one
RESIZED = 24
"""Free edges whose ends may be chosen by size."""
FEWEST_TOKENS_PER_NODE = 10
"""Tokens that the edges of a free node take at least."""
_EDGE = re.compile(rf"^({NODE}) -> ({NODE})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walks(ABC):
    """What both tasks share."""

    degree: int = 4
    """Edges that start at a node, 2 to 8; GraphWalks: 4."""
    shuffled: bool = False
    """True: edges in random order; False: those of one node together, as in GraphWalks."""

    def __post_init__(self) -> None:
        if not isinstance(self.degree, int) or not 2 <= self.degree <= 8:
            raise ValueError(f"degree {self.degree!r} is not a whole number from 2 to 8")

    @property
    @abstractmethod
    def info(self) -> TaskInfo: ...

    def points(self, grid: Grid) -> Iterator[Point]:
        return grid.points(task_id(self), by_depth=False)

    @abstractmethod
    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample: ...

    def _sample(self, point: Point, tokenizer: Tokenizer, core: Core, question: str) -> Sample:
        named = names(CORE_NAMES)
        gold = tuple(named[node] for node in core.gold)
        return fill(
            point,
            tokenizer,
            head=HEAD,
            tail=TAIL.format(question=question),
            reserve=self.info.reserve,
            compose=lambda n: _compose(n, tokenizer, point, core, self.degree, self.shuffled),
            target=gold or (EMPTY,),
            choices=(", ".join(named[node] for node in core.wrong),),
            extra={"question": question, "nodes": len(gold)},
        )

    def score(self, sample: Sample, response: Response) -> Score:
        """F1 of the nodes on the last line, 0 where that is no list."""
        wanted = () if sample.target == (EMPTY,) else sample.target
        score = grade_nodes(response.text, wanted)
        return without_credit_for_copies(score, response.text, sample.messages[-1].content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bfs(_Walks):
    """Nodes at a distance of exactly `hops`."""

    hops: int = 2
    """Steps, 1 to 8."""

    def __post_init__(self) -> None:
        _Walks.__post_init__(self)
        if not isinstance(self.hops, int) or not 1 <= self.hops <= 8:
            raise ValueError(f"hops {self.hops!r} is not a whole number from 1 to 8")
        if self.degree**self.hops > MOST_NODES:
            raise ValueError(
                f"hops {self.hops} and degree {self.degree} make answers of up to {self.degree**self.hops:,} nodes, more "
                f"than {MOST_NODES}; lower one of them"
            )

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="graphwalks.bfs",
            version=1,
            capability="reasoning",
            family="graph",
            reserve=RESERVE + RESERVE_PER_NODE * self.degree**self.hops,
            chance=1 / EMPTY_EVERY,
            has_depth=False,
            summary="nodes exactly so many steps from a node, in a list of edges (F1)",
            source="own, after OpenAI GraphWalks (Hugging Face openai/graphwalks)",
        )

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        core = walk_core(self.hops, self.degree, _is_empty(point), point.paired_rng())
        return self._sample(point, tokenizer, core, WALK.format(start=names(CORE_NAMES)[core.start], hops=self.hops))

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        found = _read(messages, WALK)
        if found is None:
            return None
        edges: dict[str, list[str]] = {}
        for source, end in found[0]:
            edges.setdefault(source, []).append(end)
        return _written(distance_set(edges, found[1]["start"], int(found[1]["hops"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parents(_Walks):
    """Nodes with an edge to a node."""

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="graphwalks.parents",
            version=1,
            capability="reasoning",
            family="graph",
            reserve=RESERVE + RESERVE_PER_NODE * MOST_PARENTS,
            chance=1 / EMPTY_EVERY,
            has_depth=False,
            summary="nodes with an edge to a node, in a list of edges (F1)",
            source="own, after OpenAI GraphWalks (Hugging Face openai/graphwalks)",
        )

    def sample(self, point: Point, tokenizer: Tokenizer) -> Sample:
        core = parents_core(MOST_PARENTS, self.degree, _is_empty(point), point.paired_rng())
        return self._sample(point, tokenizer, core, PARENTS.format(start=names(CORE_NAMES)[core.start]))

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        found = _read(messages, PARENTS)
        if found is None:
            return None
        return _written([source for source, end in found[0] if end == found[1]["start"] != source])


def _is_empty(point: Point) -> bool:
    return point.index % EMPTY_EVERY == EMPTY_EVERY - 1


def _written(nodes: list[str]) -> str:
    return f"Final Answer: [{', '.join(dict.fromkeys(nodes))}]"


def _read(messages: tuple[Message, ...], question: str) -> tuple[list[tuple[str, str]], re.Match[str]] | None:
    """Edges of a prompt and the question with its slots, or None if it asks another one."""
    content = messages[-1].content if messages else ""
    pattern = re.escape(TAIL.format(question=question)).replace(r"\{start\}", f"(?P<start>{NODE})", 1)
    match = re.search(_counted(pattern) + r"\Z", content)
    return (_EDGE.findall(content[: match.start()]), match) if match else None


def _counted(pattern: str) -> str:
    """The first number of steps is a group, the second must be the same."""
    return pattern.replace(r"\{hops\}", r"(?P<hops>\d+)", 1).replace(r"\{hops\}", "(?P=hops)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """Tokens of the parts of a line, in a list of edges."""

    names: tuple[str, ...]
    sources: tuple[int, ...]
    """Of each name as the node that an edge starts at."""
    ends: tuple[int, ...]
    """Of each name as the node that it leads to, arrow and end of line included."""

    def of(self, edge: Edge) -> int:
        return self.sources[edge[0]] + self.ends[edge[1]]

    @property
    def mean(self) -> float:
        return (sum(self.sources) + sum(self.ends)) / len(self.names)


def _costs(tokenizer: Tokenizer, length: int) -> _Costs:
    """What edges cost, counted once per tokenizer and tier in a list where each name is once either end."""
    pool = names(CORE_NAMES + tier(length) // FEWEST_TOKENS_PER_NODE)

    def make() -> _Costs:
        sources, ends, breaks = measure(tokenizer, pool, [f" -> {name}" for name in (*pool[1:], pool[0])], ["\n"])
        whole = np.roll(ends.counts, 1) + breaks.counts[0]
        return _Costs(names=pool, sources=tuple(sources.counts.tolist()), ends=tuple(whole.tolist()))

    return remembered(tokenizer, ("graph", len(pool)), make)


def _compose(n_tokens: int, tokenizer: Tokenizer, point: Point, core: Core, degree: int, shuffled: bool) -> Composed:
    """A list of edges of about `n_tokens`: the core's, and free ones as many as fit."""
    rng = point.rng()
    costs = _costs(tokenizer, point.length)
    used = sum(map(costs.of, core.edges))
    n_others = max(0, int((n_tokens - used) / costs.mean / degree)) + degree
    pool = CORE_NAMES + permutation(rng, len(costs.names) - CORE_NAMES)
    others = pool[:n_others].tolist()
    free = list(free_edges(core, others, degree, rng))
    totals = accumulate(map(costs.of, free))
    free = free[: sum(1 for _ in takewhile(lambda total: total <= n_tokens - used, totals))]
    used += sum(map(costs.of, free))
    used += _resize(free, others, n_tokens - used, costs.ends)
    edges = _ordered([*core.edges, *free], core, shuffled, rng)
    text = "".join(f"{costs.names[source]} -> {costs.names[end]}\n" for source, end in edges)
    return _padded(tokenizer, *trimmed(tokenizer, text, used, end=1), n_tokens)


def _resize(free: list[Edge], others: list[int], left: int, ends: tuple[int, ...]) -> int:
    """Leads the last free edges to other nodes whose names take more tokens, `left` in all; returns those gained."""
    by_size: dict[int, list[int]] = {}
    for node in others:
        by_size.setdefault(ends[node], []).append(node)
    gained = 0
    taken = set(free)
    for at in range(len(free) - 1, max(-1, len(free) - 1 - RESIZED), -1):
        source, end = free[at]
        for more in range(min(left - gained, 3), 0, -1):
            fit = (node for node in by_size.get(ends[end] + more, ()) if node != source)
            found = next((node for node in fit if (source, node) not in taken), None)
            if found is not None:
                free[at] = (source, found)
                taken.add(free[at])
                gained += more
                break
    return gained


def _ordered(edges: list[Edge], core: Core, shuffled: bool, rng: random.Random) -> list[Edge]:
    """Edges grouped by the node that they start at, nodes in random order; or all of them in random order."""
    if shuffled:
        rng.shuffle(edges)
        return edges
    groups: dict[int, list[Edge]] = {}
    for edge in edges:
        groups.setdefault(edge[0], []).append(edge)
    for node in core.nodes:  # the core's own edges came first
        rng.shuffle(groups.get(node, []))
    order = list(groups)
    rng.shuffle(order)
    return [edge for node in order for edge in groups[node]]


def _padded(tokenizer: Tokenizer, text: str, used: int, n_tokens: int) -> Composed:
    """The list, with a line of dashes at its end where no edge is small enough to fill what is missing."""
    missing = n_tokens - used
    if missing <= TOLERANCE - AIM:
        return Composed(text=text, n_tokens=used)
    edge = text[text.rfind("\n") + 1 :]
    plain = count(tokenizer, edge)
    sizes = {n: count(tokenizer, edge + "\n" + PAD * n) - plain for n in range(1, missing + 1)}
    n_pads = min(sizes, key=lambda n: (abs(sizes[n] - missing), n))
    if sizes[n_pads] > missing + TOLERANCE - AIM:
        return Composed(text=text, n_tokens=used)
    return Composed(
        text=f"{text}\n{PAD * n_pads}",
        n_tokens=used + sizes[n_pads],
        notes=(f"{n_pads} dashes end the list of edges",),
    )


TASKS = (Bfs(), Parents())
