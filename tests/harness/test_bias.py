"""Position against length: the controlled design from its prompts to the words on the card."""

import random
from typing import Any

import numpy as np
import pytest

from longreach.harness.errors import BatteryError
from longreach.harness.registry import get_task
from longreach.harness.report.bias_text import bias_sentences
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare
from longreach.harness.running.scan_plan import plan_find
from longreach.harness.sample import Point
from longreach.harness.stats.bias import Bias, bias_of
from longreach.harness.stats.cells import build_cells, task_facts
from longreach.harness.stats.estimates import estimate
from longreach.harness.stats.firth import average_difference, average_slope, fit_logistic
from longreach.harness.task import task_id
from longreach.harness.tokenizer import WordsTokenizer

DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
STUDY = {4096: (10, 10, 10, 10, 10), 8192: (10, 9, 8, 10, 10), 16384: (9, 7, 5, 8, 10)}


def found(make: Any, passes: dict[int, tuple[int, ...]], n: int = 10) -> Bias:
    """Effects of a task that shares its items; the last ones of a cell are wrong."""
    records = [
        record
        for length, row in passes.items()
        for depth, right in zip(DEPTHS, row, strict=True)
        for record in make.cell("niah.single", length, depth, right, n)
    ]
    config = make.config(records)
    config["tasks"][0]["params"] = {"shared": True}
    facts = task_facts(config, records)
    (bias,) = bias_of(build_cells(records, config, facts), records, facts)
    assert "retrieval" not in estimate(records, config).headline
    return bias


def test_effects_match_the_study(make: Any) -> None:
    bias = found(make, STUDY)
    assert (bias.slope.value, bias.slope.low, bias.slope.high) == pytest.approx((-0.11, -0.176208, -0.051606), abs=1e-6)
    assert bias.position.value == pytest.approx(0.216667, abs=1e-6)
    assert (bias.position.low, bias.position.high) == pytest.approx((0.080701, 0.393151), abs=1e-6)
    assert bias.interaction.value == pytest.approx(0.225, abs=1e-6)
    assert (bias.interaction.low, bias.interaction.high) == pytest.approx((0.012249, 0.380752), abs=1e-6)
    assert (bias.reference, bias.level.value) == (8192, pytest.approx(0.94))


def test_the_card_says_it_in_plain_words(make: Any) -> None:
    text = " ".join(bias_sentences([found(make, STUDY)]))
    assert "loses 11 points (5 to 18) per doubling" in text
    assert "the middle is 22 points (8 to 39) below the edges" in text
    assert "this gap grows by 22 points" in text or "this gap grows by 23 points" in text
    assert "11 lost and 0 won of 50" in text
    assert "screening" in text


def test_where_everything_passes_limits_are_finite_and_no_effect_is_claimed(make: Any) -> None:
    bias = found(make, dict.fromkeys(STUDY, (30,) * 5), n=30)
    text = " ".join(bias_sentences([bias]))
    assert "shows no effect of length (less than" in text
    assert "no effect of position is detectable (less than" in text
    assert "screening" not in text
    assert bias.shape is not None
    assert bias.shape.method == "Firth"
    assert all(abs(entry["value"]) < 10 for entry in bias.shape.coefficients.values())
    assert abs(bias.shape.doubling.value) < 0.01 > abs(bias.shape.position.value)


def test_the_penalty_adds_half_a_success_and_half_a_failure_to_a_lone_rate() -> None:
    for right, n in ((7, 10), (10, 10), (0, 10)):
        scores = np.array([1.0] * right + [0.0] * (n - right))
        fit = fit_logistic(np.ones((n, 1)), scores, range(n), penalised=True)
        assert fit.converged
        assert float(fit.beta[0]) == pytest.approx(np.log((right + 0.5) / (n - right + 0.5)), abs=1e-8)


def test_a_known_curve_is_found_again_with_honest_errors() -> None:
    rng = random.Random(5)
    x = np.array([rng.uniform(-2, 2) for _ in range(2000)])
    scores = np.array([float(rng.random() < 1 / (1 + np.exp(-(0.5 - 1.0 * value)))) for value in x])
    fit = fit_logistic(np.column_stack([np.ones_like(x), x]), scores, range(2000), penalised=True)
    error = np.sqrt(np.diag(fit.covariance))
    assert abs(fit.beta[0] - 0.5) < 3 * error[0] < 0.25
    assert abs(fit.beta[1] + 1.0) < 3 * error[1] < 0.3
    assert fit.p_value(1) < 1e-6


def test_clusters_that_answer_alike_widen_the_errors() -> None:
    scores = np.array([1.0, 0.0] * 10)
    x = np.repeat([0.0, 1.0], 10)
    design = np.column_stack([np.ones(20), x])
    together = fit_logistic(design, np.repeat([1.0, 0.0, 1.0, 1.0], 5), np.repeat(range(4), 5).tolist(), penalised=True)
    alone = fit_logistic(design, np.repeat([1.0, 0.0, 1.0, 1.0], 5), range(20), penalised=True)
    assert together.covariance[0, 0] > 2 * alone.covariance[0, 0]
    assert fit_logistic(design, scores, [0] * 20, penalised=True).p_value(1) == 1.0


def test_an_item_is_the_same_at_every_length_and_depth() -> None:
    task, tokenizer = get_task("niah.single", shared=True), WordsTokenizer()
    items = {
        index: {
            (sample.extra["question"], sample.target)
            for length in (512, 1024)
            for depth in (0.1, 0.9)
            for sample in [
                task.sample(Point(task=task_id(task), length=length, depth=depth, index=index, seed=1), tokenizer)
            ]
        }
        for index in range(3)
    }
    assert [len(found) for found in items.values()] == [1, 1, 1]
    assert len(set().union(*items.values())) == 3


def test_the_battery_is_five_by_five_and_a_search_refuses_it() -> None:
    plan = prepare(Options.of(battery="bias", model="sim:perfect", lengths="512,1k")).plan
    assert len(plan.items) == 2 * 5 * 10
    with pytest.raises(BatteryError, match="shares its items"):
        plan_find(Options.of(battery="bias", model="sim:perfect", max_length="1k"))


def test_average_effects_of_a_known_curve_are_found_with_honest_limits() -> None:
    """Truth: rate 0.8 - 0.1 per doubling at the edges, 0.2 less in the middle, drawn in 30 families of templates."""
    rng, hits = np.random.default_rng(4), {"slope": 0, "gap": 0}
    x, u = np.repeat([-1.0, 0.0, 1.0], 5 * 30), np.tile(np.repeat([-0.8, -0.4, 0.0, 0.4, 0.8], 30), 3)
    family = np.tile(np.arange(30), 15)
    design = np.column_stack([np.ones_like(x), x, u, u**2, x * u**2])
    truth = np.array([0.4, -0.5, 0.0, 1.6, 0.0])
    rate = 1 / (1 + np.exp(-design @ truth))
    slope = float((rate * (1 - rate) * (truth[1] + truth[4] * u**2)).mean())
    gap = float(rate[np.abs(u) == 0.8].mean() - rate[u == 0.0].mean())
    for _ in range(200):
        shift = rng.normal(0, 0.4, 30)[family]
        scores = (rng.random(len(x)) < 1 / (1 + np.exp(-(design @ truth + shift)))).astype(float)
        fit = fit_logistic(design, scores, family.tolist(), penalised=False)
        zero, one = np.zeros_like(x), np.ones_like(x)
        found = average_slope(fit, design, np.column_stack([zero, one, zero, zero, u**2]))
        hits["slope"] += found.low <= slope <= found.high
        found = average_difference(fit, design[np.abs(u) == 0.8], design[u == 0.0])
        hits["gap"] += found.low <= gap <= found.high
    assert all(0.90 <= n / 200 <= 0.99 for n in hits.values()), hits


def test_a_plain_fit_that_runs_away_says_so() -> None:
    x = np.repeat([0.0, 1.0], 20)
    design = np.column_stack([np.ones_like(x), x])
    assert not fit_logistic(design, x, range(40), penalised=False).converged
    assert fit_logistic(design, x, range(40), penalised=True).converged
    mixed = np.array([1.0, 0.0, 0.0, 0.0] * 5 + [1.0, 1.0, 1.0, 0.0] * 5)
    fit = fit_logistic(design, mixed, range(40), penalised=False)
    assert fit.beta == pytest.approx([-np.log(3), 2 * np.log(3)], abs=1e-8)


def test_the_curve_is_plain_where_every_cell_is_mixed_and_clusters_are_template_families(make: Any) -> None:
    bias = found(make, {4096: (9, 9, 8, 9, 9), 8192: (8, 7, 6, 8, 9), 16384: (7, 5, 3, 6, 7)})
    assert bias.shape is not None
    assert bias.shape.method == "logistic"
    assert bias.shape.doubling.value == pytest.approx(bias.slope.value, abs=0.02)
    assert bias.shape.position.value == pytest.approx(bias.position.value, abs=0.06)
    text = " ".join(bias_sentences([bias]))
    assert "The same as a logistic curve, averaged over the samples, errors by 10 template families: -" in text
    assert "the filler of a shorter length being the beginning of that of a longer one" in text
