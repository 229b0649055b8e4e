"""Position and length bias as contrasts of rates with MOVER limits.

Position effect: mean of the first and last depth minus the mean of the middle one, averaged over lengths; positive
means "lost in the middle". Length effect: least-squares slope per doubling of the length.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from longreach.harness.stats.cells import Cell
from longreach.harness.stats.contrasts import Contrast, Term, mover, slope_weights


def _grid(cells: Sequence[Cell], task: str) -> dict[int, list[Cell]]:
    """Lengths of `task` whose cells were all tested."""
    rows: dict[int, list[Cell]] = {}
    for cell in cells:
        if cell.task == task:
            rows.setdefault(cell.length, []).append(cell)
    return {length: row for length, row in rows.items() if all(cell.blocked_by is None for cell in row)}


def depth_weights(depths: Sequence[float]) -> dict[float, float] | None:
    """Weight of each depth in "edges minus middle"; None without two edges and something well between them."""
    if len(depths) < 3:
        return None
    first, last = min(depths), max(depths)
    centre = (first + last) / 2
    nearest = min(abs(depth - centre) for depth in depths)
    middle = [depth for depth in depths if abs(depth - centre) <= nearest + 1e-9 and depth not in (first, last)]
    if not middle:
        return None
    weights = dict.fromkeys(depths, 0.0)
    weights[first] += 0.5
    weights[last] += 0.5
    for depth in middle:
        weights[depth] -= 1 / len(middle)
    return weights


def _position_terms(rows: Mapping[int, Sequence[Cell]], share: float) -> list[Term]:
    terms = []
    for row in rows.values():
        weights = depth_weights([cell.depth for cell in row if cell.depth is not None])
        if weights:
            terms += [
                Term(weight=weights[cell.depth] * share / len(rows), s=cell.s / cell.sharing, n=cell.n / cell.sharing)
                for cell in row
                if cell.depth is not None
            ]
    return terms


def _length_terms(rows: Mapping[int, Sequence[Cell]], share: float) -> list[Term]:
    weights = slope_weights(sorted(rows))
    return [
        Term(weight=weights[length] * share / len(row), s=cell.s / cell.sharing, n=cell.n / cell.sharing)
        for length, row in rows.items()
        for cell in row
    ]


def _entry(contrast: Contrast | None, reason: str | None, **more: Any) -> dict[str, Any]:
    return {
        "value": contrast.value if contrast else None,
        "low": contrast.low if contrast else None,
        "high": contrast.high if contrast else None,
        "n": contrast.n if contrast else 0,
        "reason": reason,
        **more,
    }


def no_bias() -> dict[str, Any]:
    """The entry of an adaptive run: lengths have chosen their own n, and limits for a fixed n would be wrong."""
    reason = "needs a fixed design, and a scan chooses its own sizes (longreach run bias measures it)"
    return _entry(None, reason, definition="not measured by a scan", tasks=[], by_task=[])


def position_bias(cells: Sequence[Cell], tasks: Sequence[str]) -> dict[str, Any]:
    """Edges minus middle over `tasks` (equal weights), and for each of them. Scores, 0 to 1; `value` is None with a
    `reason` where the grid does not allow it."""
    definition = "mean score at the first and last depth minus the middle depth, averaged over fully tested lengths"
    grids = {task: _usable(cells, task) for task in tasks}
    grids = {task: rows for task, rows in grids.items() if rows}
    by_task = [_entry(mover(_position_terms(rows, 1.0)), None, task=task) for task, rows in grids.items()]
    if not grids:
        reason = "needs a length that was tested at three depths or more: its two ends and its middle"
        return _entry(None, reason, definition=definition, tasks=[], by_task=[])
    terms = [term for rows in grids.values() for term in _position_terms(rows, 1 / len(grids))]
    return _entry(mover(terms), None, definition=definition, tasks=list(grids), by_task=by_task)


def _usable(cells: Sequence[Cell], task: str) -> dict[int, list[Cell]]:
    """Lengths at which edges and middle can be compared."""
    rows = _grid(cells, task)
    return {length: row for length, row in rows.items() if depth_weights([c.depth for c in row if c.depth is not None])}


def length_bias(cells: Sequence[Cell], tasks: Sequence[str]) -> dict[str, Any]:
    """Change of the mean score per doubling of the length, over `tasks` (equal weights), and for each of them."""
    definition = "least-squares slope of the mean score per doubling of the length, over fully tested lengths"
    grids = {task: rows for task in tasks if len(rows := _grid(cells, task)) >= 2}
    by_task = [_entry(mover(_length_terms(rows, 1.0)), None, task=task) for task, rows in grids.items()]
    if not grids:
        return _entry(None, "needs at least two fully tested lengths", definition=definition, tasks=[], by_task=[])
    terms = [term for rows in grids.values() for term in _length_terms(rows, 1 / len(grids))]
    return _entry(mover(terms), None, definition=definition, tasks=list(grids), by_task=by_task)
