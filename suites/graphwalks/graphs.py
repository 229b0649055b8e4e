"""Graphs with a known answer: a core that decides it, the same at every length, and free edges that cannot change it.

Nodes are numbers of a pool of names, ten hexadecimal digits each. The core is drawn from the pool's beginning.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

CORE_NAMES = 4096
"""Names that cores are drawn from; the free nodes are the names after them."""
SEEN_AGAIN = 0.25
"""Share of edges of a walk that lead back to a node which it has seen."""
Edge = tuple[int, int]


@cache
def names(n: int) -> tuple[str, ...]:
    """The first `n` names of the pool, all different."""
    found: dict[str, None] = {}
    index = 0
    while len(found) < n:
        found[hashlib.sha256(f"node {index}".encode()).hexdigest()[:10]] = None
        index += 1
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The part of a graph that decides the answer."""

    start: int
    """The node that the question names."""
    gold: tuple[int, ...]
    """Nodes of the answer; none for items that ask for what is not there."""
    edges: tuple[Edge, ...]
    wrong: tuple[int, ...]
    """Nodes that a reader who goes the wrong way, or one step too few, would name."""
    free: tuple[tuple[int, int], ...]
    """Nodes of the core that get free edges, and how many."""
    shunned: frozenset[int] = frozenset()
    """Nodes that no free edge may lead to."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes of the core, the start first."""
        ends = (node for edge in self.edges for node in edge)
        return tuple(dict.fromkeys((self.start, *ends, *self.gold, *self.wrong)))


def walk_core(hops: int, degree: int, is_empty: bool, rng: random.Random) -> Core:
    """Nodes exactly `hops` steps from the start: all edges of nearer nodes are drawn here, those of the answer are free."""
    fresh = _fresh(rng)
    start = next(fresh)
    seen, level, before = [start], [start], [start]
    edges: list[Edge] = []
    for step in range(1, hops + 1):
        found: list[int] = []
        for node in level:
            old = [other for other in seen if other != node]
            n_old = min(degree, len(old))
            if not (is_empty and step == hops):
                drawn = sum(rng.random() < SEEN_AGAIN for _ in range(degree))
                n_old = min(n_old, drawn if found or node != level[-1] else min(drawn, degree - 1))
                new = [next(fresh) for _ in range(degree - n_old)]
                found += new
            else:
                new = []
            edges += ((node, other) for other in (*rng.sample(old, n_old), *new))
        before, level = level, found
        seen += found
    return Core(
        start=start,
        gold=tuple(level),
        edges=tuple(edges),
        wrong=tuple(before) if len(before) > 1 else (*before, next(fresh)),
        free=tuple((node, degree) for node in level),
    )


def parents_core(most: int, degree: int, is_empty: bool, rng: random.Random) -> Core:
    """Nodes with an edge to the start, 2 to `most` of them; its own edges lead elsewhere."""
    fresh = _fresh(rng)
    start = next(fresh)
    gold = [next(fresh) for _ in range(0 if is_empty else rng.randint(2, most))]
    children = [next(fresh) for _ in range(degree)]
    return Core(
        start=start,
        gold=tuple(gold),
        edges=(*((start, child) for child in children), *((parent, start) for parent in gold)),
        wrong=tuple(children),
        free=(*((parent, degree - 1) for parent in gold), *((child, degree) for child in children)),
        shunned=frozenset({start}),
    )


def _fresh(rng: random.Random) -> Iterator[int]:
    """Nodes of the core, each once."""
    return iter(rng.sample(range(CORE_NAMES), CORE_NAMES))


def free_edges(core: Core, others: list[int], degree: int, rng: random.Random) -> Iterator[Edge]:
    """Edges of the core's open nodes and then of `others`: to any nodes but themselves and the shunned, none twice."""
    ends = [node for node in (*core.nodes, *others) if node not in core.shunned]
    for node, n in (*core.free, *((other, degree) for other in others)):
        drawn = rng.sample(ends, min(n + 1, len(ends)))
        yield from ((node, end) for end in [end for end in drawn if end != node][:n])


def distance_set(edges: dict[str, list[str]], start: str, hops: int) -> list[str]:
    """Nodes whose shortest way from `start` has `hops` edges, in the order of a breadth-first search."""
    seen, level = {start}, [start]
    for _ in range(hops):
        found: dict[str, None] = {}
        for node in level:
            found |= {end: None for end in edges.get(node, ()) if end not in seen}
        seen |= found.keys()
        level = list(found)
    return level
