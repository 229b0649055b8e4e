"""Position against length in the controlled design: the same items in every cell of lengths x depths.

Effects are contrasts of rates with MOVER limits (primary: finite even where everything passes), the shape is a logistic
curve with average marginal effects and errors by template family, and the same questions short and long are compared pair
by pair.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from longreach.harness.record import COUNTED, Record
from longreach.harness.stats.cells import Cell, TaskFacts
from longreach.harness.stats.contrasts import Contrast, Term, mover, slope_weights
from longreach.harness.stats.paired_tests import Change, change_of
from longreach.harness.stats.position import depth_weights

if TYPE_CHECKING:
    from longreach.harness.stats.firth import Effect, Floats

REFERENCE = 8192
"""Length (tokens) at which the level is read off."""
TERMS = ("intercept", "doubling", "position", "position squared", "doubling x position squared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The design as a logistic curve on doublings (centred), u = 2 x depth - 1, u squared, and doublings x u squared."""

    method: str
    """logistic, or Firth where a cell is all right or all wrong or the plain fit runs away."""
    clusters: int
    """Template families, whose samples are taken to be alike."""
    coefficients: Mapping[str, Mapping[str, float]]
    """By name: value and p."""
    doubling: "Effect"
    """Average change of the rate per doubling."""
    position: "Effect"
    """Rate at the first and last depth less that at the middle, averaged over the lengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """Effects for one task; scores, 0 to 1."""

    task: str
    lengths: tuple[int, ...]
    """Fully tested, ascending."""
    depths: tuple[float, ...]
    items: int
    """Samples per cell."""
    reference: int
    """Length of `level`: 8k, or the nearest tested one."""
    level: Contrast
    """Mean score at the reference; with `slope` the length-normalised accuracy."""
    slope: Contrast
    """Per doubling of the length."""
    position: Contrast
    """Edges minus middle, averaged over lengths; positive is lost in the middle."""
    interaction: Contrast
    """Change of `position` per doubling."""
    paired: Change | None
    """Shortest against longest length, the same questions at the same depths."""
    shape: Shape | None
    """Logistic curve; None where the fit has no solution."""
    nested: bool
    """The filler of a shorter length is the beginning of that of a longer one."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def bias_of(cells: Sequence[Cell], records: Sequence[Record], facts: Mapping[str, TaskFacts]) -> tuple[Bias, ...]:
    """Effects of each task that shares its items over depths, where the grid allows them."""
    labels = [label for label, fact in facts.items() if fact.shared]
    found = (_bias(label, cells, records, nested=not facts[label].params.get("structure")) for label in labels)
    return tuple(bias for bias in found if bias is not None)


def _bias(task: str, cells: Sequence[Cell], records: Sequence[Record], *, nested: bool) -> Bias | None:
    rows: dict[int, list[Cell]] = {}
    for cell in cells:
        if cell.task == task and cell.depth is not None:
            rows.setdefault(cell.length, []).append(cell)
    rows = {length: row for length, row in rows.items() if all(cell.blocked_by is None for cell in row)}
    depths = tuple(cell.depth for cell in next(iter(rows.values()), []) if cell.depth is not None)
    weights = depth_weights(depths)
    if len(rows) < 2 or weights is None or any(tuple(c.depth for c in row) != depths for row in rows.values()):
        return None
    lengths = tuple(sorted(rows))
    even = dict.fromkeys(depths, 1 / len(depths))
    by_length = slope_weights(lengths)
    reference = min(lengths, key=lambda length: abs(math.log2(length / REFERENCE)))
    scored = [r for r in records if r.task == task and r.length in rows and r.outcome in COUNTED]
    return Bias(
        task=task,
        lengths=lengths,
        depths=depths,
        items=min(cell.n for row in rows.values() for cell in row),
        reference=reference,
        level=mover(_terms(rows, {reference: 1.0}, even)),
        slope=mover(_terms(rows, by_length, even)),
        position=mover(_terms(rows, dict.fromkeys(lengths, 1 / len(lengths)), weights)),
        interaction=mover(_terms(rows, by_length, weights)),
        paired=_paired(scored, lengths[0], lengths[-1]),
        shape=_shape(scored, weights, any(cell.s in (0.0, cell.n) for row in rows.values() for cell in row)),
        nested=nested,
    )


def _terms(
    rows: Mapping[int, Sequence[Cell]], by_length: Mapping[int, float], by_depth: Mapping[float, float]
) -> list[Term]:
    return [
        Term(weight=weight * by_depth[cell.depth], s=cell.s, n=cell.n)
        for length, weight in by_length.items()
        for cell in rows[length]
        if cell.depth is not None
    ]


def _paired(records: Sequence[Record], short: int, long: int) -> Change | None:
    scores = {(r.length, r.depth, r.index): r.score or 0.0 for r in records}
    both = [(d, i) for length, d, i in scores if length == short and (long, d, i) in scores]
    if not both:
        return None
    return change_of([scores[short, d, i] for d, i in both], [scores[long, d, i] for d, i in both])


def _shape(records: Sequence[Record], weights: Mapping[float, float], constant: bool) -> Shape | None:
    """The logistic curve over all samples.

    Args:
        weights: of the depths in "edges minus middle".
        constant: some cell is all right or all wrong.
    """
    import numpy as np

    from longreach.harness.stats.firth import average_difference, average_slope, fit_logistic

    doublings = np.array([math.log2(record.length) for record in records])
    u = np.array([2 * (record.depth or 0.0) - 1 for record in records])
    scores = np.array([record.score or 0.0 for record in records])
    x = doublings - doublings.mean()

    def design(x: "Floats", u: "Floats") -> "Floats":
        return np.column_stack([np.ones_like(x), x, u, u**2, x * u**2])

    rows = design(x, u)
    if np.linalg.matrix_rank(rows) < rows.shape[1]:
        return None
    clusters = [str(record.extra.get("template") or record.index) for record in records]
    method, fit = "logistic", None if constant else fit_logistic(rows, scores, clusters, penalised=False)
    if fit is None or not fit.converged:
        method, fit = "Firth", fit_logistic(rows, scores, clusters, penalised=True)
    if not fit.converged:
        return None
    edges, middle = ([2 * d - 1 for d, weight in weights.items() if sign * weight > 0] for sign in (1, -1))
    at = np.unique(x)
    return Shape(
        method=method,
        clusters=fit.n_clusters,
        coefficients={
            name: {"value": float(fit.beta[column]), "p": fit.p_value(column)} for column, name in enumerate(TERMS)
        },
        doubling=average_slope(fit, rows, design(np.ones_like(x), u) * [0, 1, 0, 0, 1]),
        position=average_difference(
            fit,
            design(np.repeat(at, len(edges)), np.tile(edges, len(at))),
            design(np.repeat(at, len(middle)), np.tile(middle, len(at))),
        ),
    )
