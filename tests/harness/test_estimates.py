"""Cells, curves and effective lengths from records."""

from typing import Any

import pytest

K = 1024
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
GRID = [K, 2 * K, 4 * K, 8 * K, 16 * K, 32 * K, 64 * K, 128 * K]


def _key(estimate: Any) -> tuple[Any, ...]:
    return estimate.value, estimate.low, estimate.high, estimate.censored, estimate.state


def test_a_cell_has_all_seven_outcomes_and_planned_samples_that_never_ran(make: Any, estimated: Any) -> None:
    records = make.cell("niah.single", 4 * K, 0.5, 8, 10)
    records += make.outcome("niah.single", 4 * K, 0.5, "no_answer", 2, start=10)
    planned = [
        {"task": "niah.single", "length": 4 * K, "depth": 0.5, "n": 15},
        {"task": "niah.single", "length": 8 * K, "depth": 0.5, "n": 5},
    ]
    first, second = estimated(records, planned=planned).cells
    assert first.outcomes == {
        "scored": 10,
        "no_answer": 2,
        "refused": 0,
        "overflow": 0,
        "truncated": 0,
        "failed": 0,
        "not_run": 3,
    }
    assert (first.n, first.mean, first.partial) == (12, 8 / 12, True)
    assert second.to_dict()["state"] == "not_tested"
    assert (second.mean, second.to_dict()["low"], second.outcomes["not_run"]) == (None, None, 5)


@pytest.mark.parametrize("outcome", ["overflow", "truncated"])
def test_one_overflow_or_truncation_makes_a_cell_not_tested(make: Any, estimated: Any, outcome: str) -> None:
    records = make.cell("niah.single", 4 * K, 0.5, 100, 100)
    records += make.outcome("niah.single", 4 * K, 0.5, outcome, 1, start=100)
    assert estimated(records).cells[0].state == "not_tested"


def test_failed_samples_only_lower_n(make: Any, estimated: Any) -> None:
    records = make.cell("niah.single", 4 * K, 0.5, 40, 40)
    records += make.outcome("niah.single", 4 * K, 0.5, "failed", 3, start=40)
    cell = estimated(records).cells[0]
    assert (cell.n, cell.state, cell.partial) == (40, "pass", True)


def test_refusals_and_empty_answers_count_as_zero(make: Any, estimated: Any) -> None:
    records = make.cell("niah.single", 4 * K, 0.5, 8, 8)
    records += make.outcome("niah.single", 4 * K, 0.5, "refused", 1, start=8)
    records += make.outcome("niah.single", 4 * K, 0.5, "no_answer", 1, start=9)
    assert estimated(records).cells[0].mean == pytest.approx(0.8)


def test_the_last_record_of_a_sample_is_the_one_that_counts(make: Any, estimated: Any) -> None:
    failed = make.outcome("niah.single", 4 * K, 0.5, "failed", 1)
    cell = estimated(failed + make.cell("niah.single", 4 * K, 0.5, 1, 1)).cells[0]
    assert (cell.n, cell.outcomes["failed"], cell.mean) == (1, 0, 1.0)


def test_the_example_of_the_study_gives_its_bracket(make: Any, estimated: Any) -> None:
    passes = dict(zip(GRID, (100, 100, 99, 100, 98, 97, 93, 60), strict=True))
    estimate = estimated(make.row("niah.single", passes, 100)).effective["retrieval"]
    assert _key(estimate) == (64 * K, 32 * K, 64 * K, None, "undecided")


def test_a_certain_cliff_is_measured(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20, 8 * K: 20, 16 * K: 20, 32 * K: 20, 64 * K: 0}, 20, DEPTHS)
    assert _key(estimated(records).effective["retrieval"]) == (32 * K, 32 * K, 32 * K, None, "measured")


def test_everything_right_is_censored_above_the_grid(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20, 8 * K: 20}, 20, DEPTHS)
    estimate = estimated(records).effective["retrieval"]
    assert _key(estimate) == (8 * K, 8 * K, 8 * K, "above grid", "measured")
    assert estimate.text == ">= 8,192 (largest tested)"


def test_a_first_length_that_fails_is_censored_below_the_grid(make: Any, estimated: Any) -> None:
    estimate = estimated(make.row("niah.single", {4 * K: 2, 8 * K: 0}, 20, DEPTHS)).effective["retrieval"]
    assert _key(estimate) == (None, None, 4 * K, "below grid", "measured")
    assert estimate.text == "< 4,096"


def test_small_samples_leave_the_bracket_open(make: Any, estimated: Any) -> None:
    estimate = estimated(make.row("niah.single", {4 * K: 2, 8 * K: 2}, 2, DEPTHS)).effective["retrieval"]
    assert _key(estimate) == (8 * K, None, 8 * K, "above grid", "undecided")


def test_a_mean_just_below_at_the_first_length_stays_undecided(make: Any, estimated: Any) -> None:
    estimate = estimated(make.row("niah.single", {4 * K: 8, 8 * K: 0}, 10, DEPTHS)).effective["retrieval"]
    assert _key(estimate) == (None, None, 4 * K, "below grid", "undecided")


def test_overflow_caps_the_claim_and_is_no_failure(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20, 8 * K: 20}, 20, DEPTHS)
    records += [r for depth in DEPTHS for r in make.outcome("niah.single", 16 * K, depth, "overflow", 20)]
    estimate = estimated(records).effective["retrieval"]
    assert _key(estimate) == (8 * K, 8 * K, 8 * K, "above grid", "measured")
    assert estimate.notes == ("Not supported from 16k on: 100 samples at 16k did not fit the model.",)


def test_an_untested_length_blocks_longer_ones(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20, 16 * K: 20}, 20, DEPTHS)
    records += [r for depth in DEPTHS for r in make.outcome("niah.single", 8 * K, depth, "truncated", 20)]
    estimate = estimated(records).effective["retrieval"]
    assert (estimate.value, estimate.low, estimate.high) == (4 * K, 4 * K, 16 * K)
    assert estimate.notes == ("Lengths from 8k on cannot be claimed: 100 samples at 8k reached the model cut short.",)


def test_a_failure_above_an_untested_length_still_bounds_the_bracket(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20, 16 * K: 0}, 20, DEPTHS)
    records += [r for depth in DEPTHS for r in make.outcome("niah.single", 8 * K, depth, "failed", 20)]
    assert _key(estimated(records).effective["retrieval"]) == (4 * K, 4 * K, 8 * K, None, "undecided")


def test_a_depth_that_never_ran_blocks_its_length(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20}, 20, DEPTHS)
    records += make.row("niah.single", {8 * K: 20}, 20, DEPTHS[:-1])
    records += make.outcome("niah.single", 8 * K, 1.0, "failed", 20)
    result = estimated(records)
    assert result.headline["retrieval"].points[1].blocked_by == "failed"
    assert result.effective["retrieval"].value == 4 * K


def test_a_missing_task_makes_a_headline_length_not_tested(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20, 8 * K: 20}, 20, DEPTHS)
    records += make.row("niah.distractor", {4 * K: 20}, 20, DEPTHS)
    point = estimated(records).headline["retrieval"].points[1]
    assert (point.state, point.blocked_by, point.blocking) == ("not_tested", "missing", ("niah.distractor",))


def test_a_length_that_one_task_cannot_have_is_left_out_of_the_headline(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {K: 20, 4 * K: 20}, 20, DEPTHS)
    records += make.row("niah.distractor", {4 * K: 20}, 20, DEPTHS)
    infeasible = [{"task": "niah.distractor", "length": K, "reason": "too short", "minimum": 1500}]
    result = estimated(records, infeasible=infeasible)
    assert result.headline["retrieval"].lengths == (4 * K,)
    assert result.effective["retrieval"].low == 4 * K


def test_the_headline_is_the_equal_weight_mean_over_its_tasks(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 40}, 40) + make.row("niah.distractor", {4 * K: 5}, 10)
    point = estimated(records).headline["retrieval"].points[0]
    assert point.mean == pytest.approx(0.75)
    assert (point.n, point.n_effective) == (50, 20)  # no more weight than the smaller task can bear


def test_a_battery_names_its_headline_and_other_tasks_stay_out(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20}, 20, DEPTHS) + make.row("niah.distractor", {4 * K: 0}, 20, DEPTHS)
    result = estimated(records, headline={"retrieval": ["niah.single"], "reasoning": []})
    assert result.effective["retrieval"].value == 4 * K
    assert result.by_task["niah.distractor"].text == "< 4,096"


def test_reasoning_is_never_claimed_from_retrieval_tasks(make: Any, estimated: Any) -> None:
    estimate = estimated(make.row("niah.single", {4 * K: 20}, 20, DEPTHS)).effective["reasoning"]
    assert (estimate.state, estimate.value, estimate.text) == ("not_measured", None, "not measured")
    assert estimate.notes == ("No task of this run measures reasoning: run longreach run reasoning --model sim:test.",)


def test_a_headline_task_that_was_left_out_is_named(make: Any, estimated: Any) -> None:
    records = make.row("niah.distractor", {4 * K: 20}, 20, DEPTHS)
    estimate = estimated(records, headline={"retrieval": ["niah.single"]}).effective["retrieval"]
    assert estimate.state == "not_measured"
    assert estimate.notes == ("The headline needs niah.single, which this run leaves out.",)


def test_documents_get_curves_and_no_effective_length(make: Any, estimated: Any) -> None:
    result = estimated(make.row("lb", {4 * K: 20}, 20))
    assert [curve.name for curve in result.families] == ["documents"]
    assert {estimate.state for estimate in result.effective.values()} == {"not_measured"}
    assert result.by_task == {}


@pytest.mark.parametrize("outcome", ["no_answer", "refused"])
def test_too_many_unanswered_samples_support_no_claim(make: Any, estimated: Any, outcome: str) -> None:
    records = make.row("niah.single", {4 * K: 94}, 94) + make.outcome("niah.single", 4 * K, None, outcome, 6, start=94)
    estimate = estimated(records).effective["retrieval"]
    assert (estimate.state, estimate.value, estimate.low) == ("refused", None, None)
    assert "4k supports no claim: 6% of 100" in estimate.notes[0]


def test_five_percent_unanswered_is_still_a_claim(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 190}, 190)
    records += make.outcome("niah.single", 4 * K, None, "no_answer", 10, start=190)
    assert estimated(records).effective["retrieval"].low == 4 * K


def test_a_length_that_fails_whatever_the_unanswered_samples_were_is_a_failure(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 100}, 100) + make.row("niah.single", {8 * K: 10}, 80)
    records += make.outcome("niah.single", 8 * K, None, "no_answer", 20, start=80)
    assert _key(estimated(records).effective["retrieval"]) == (4 * K, 4 * K, 4 * K, None, "measured")


def test_shorter_lengths_keep_their_claim_below_one_that_supports_none(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 100}, 100) + make.row("niah.single", {8 * K: 80}, 80)
    records += make.outcome("niah.single", 8 * K, None, "no_answer", 20, start=80)
    assert _key(estimated(records).effective["retrieval"]) == (4 * K, 4 * K, 8 * K, None, "refused")


def test_passing_again_above_a_failure_is_said_and_not_claimed(make: Any, estimated: Any) -> None:
    result = estimated(make.row("niah.single", {4 * K: 100, 8 * K: 50, 16 * K: 100}, 100))
    assert _key(result.effective["retrieval"]) == (4 * K, 4 * K, 4 * K, None, "measured")
    assert result.effective["retrieval"].notes == ("Non-monotone: fails at 8k, passes again at 16k.",)
    assert result.rules["retrieval"].largest_passing == 16 * K


def test_undecided_lengths_are_not_said_to_fail_or_to_pass(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {256: 36}, 36) + make.row("niah.single", {512: 8}, 9)
    records += make.row("niah.single", {1024: 6}, 6)
    (note,) = estimated(records).effective["retrieval"].notes
    assert note == (
        "Perhaps non-monotone: the mean is below the threshold at 512 (undecided, n 9) and not below it at 1k "
        "(undecided, n 6)."
    )


def test_other_rules_use_the_same_means(make: Any, estimated: Any) -> None:
    rules = estimated(make.row("niah.single", {K: 100, 4 * K: 90, 8 * K: 86, 16 * K: 80}, 100)).rules["retrieval"]
    assert (rules.ruler, rules.nolima, rules.nolima_base, rules.largest_passing) == (8 * K, 8 * K, 1.0, 4 * K)


def test_rules_that_do_not_apply_are_none(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 100}, 100) + make.outcome("niah.single", 8 * K, None, "overflow", 100)
    rules = estimated(records).rules["retrieval"]
    assert (rules.ruler, rules.nolima, rules.largest_passing, rules.complete) == (4 * K, None, None, False)


def test_reported_rows_never_feed_a_length(make: Any, estimated: Any) -> None:
    result = estimated(make.row("niah.single", {4 * K: 100}, 100, origin="vendor"), planned=[])
    assert result.effective["retrieval"].state == "not_measured"
    assert (len(result.reported), result.cells) == (100, ())


def test_imported_records_count_and_are_named(make: Any, estimated: Any) -> None:
    result = estimated(make.row("niah.single", {4 * K: 100}, 100, origin="imported:lm-eval"))
    assert result.origins == {"imported:lm-eval": 100}
    assert result.effective["retrieval"].low == 4 * K


def test_fractional_scores_use_the_context_as_the_unit(make: Any, estimated: Any) -> None:
    records = [make.record("niah.single", 4 * K, None, i, score=0.75) for i in range(100)]
    cell = estimated(records).cells[0]
    assert (cell.n, cell.mean, cell.state) == (100, 0.75, "fail")


def test_a_dead_zone_is_a_run_of_depths(make: Any, estimated: Any) -> None:
    records = []
    for length in (8 * K, 32 * K, 64 * K):
        for depth in DEPTHS:
            right = 2 if depth in (0.25, 0.5) and length > 8 * K else 10
            records += make.cell("niah.single", length, depth, right, 10)
    zones = estimated(records).zones
    assert [(z.length, z.depth_from, z.depth_to, z.n, z.mean) for z in zones] == [
        (32 * K, 0.25, 0.5, 20, 0.2),
        (64 * K, 0.25, 0.5, 20, 0.2),
    ]
    assert all(zone.high < 0.9 for zone in zones)


def test_dead_zones_read_as_one_sentence(make: Any, estimated: Any) -> None:
    from longreach.harness.stats.zones import zone_sentences

    records = []
    for length in (8 * K, 32 * K, 64 * K):
        for depth in DEPTHS:
            right = 2 if depth in (0.25, 0.5) and length > 8 * K else 10
            records += make.cell("niah.single", length, depth, right, 10)
    grid = {"niah.single": [8 * K, 32 * K, 64 * K]}
    assert zone_sentences(estimated(records).zones, grid) == [
        "Dead zone of niah.single (below 90% at 97.5% confidence): between 25% and 50% depth from 32k on: 20% (n 40)."
    ]


def test_no_dead_zone_without_evidence(make: Any, estimated: Any) -> None:
    assert estimated(make.row("niah.single", {4 * K: 1}, 2, DEPTHS)).zones[0].depth_from == 0.0
    assert estimated(make.row("niah.single", {4 * K: 2}, 2, DEPTHS)).zones == ()


def test_position_and_length_bias_are_the_contrasts_of_the_study(make: Any, estimated: Any) -> None:
    passes = {8 * K: (10, 10, 10, 10, 10), 16 * K: (10, 9, 8, 10, 10), 32 * K: (9, 7, 5, 8, 10)}
    records = [
        record
        for length, row in passes.items()
        for depth, right in zip(DEPTHS, row, strict=True)
        for record in make.cell("niah.single", length, depth, right, 10)
    ]
    result = estimated(records)
    assert (result.position["value"], result.position["low"]) == pytest.approx((0.216667, 0.080701), abs=1e-6)
    assert (result.length["value"], result.length["high"]) == pytest.approx((-0.11, -0.051606), abs=1e-6)


def test_biases_say_why_they_are_missing(make: Any, estimated: Any) -> None:
    result = estimated(make.row("niah.single", {4 * K: 10}, 10, (0.0, 1.0)))
    assert result.position["value"] is None
    assert "three depths" in result.position["reason"]
    assert result.length["reason"] == "needs at least two fully tested lengths"


def test_latency_keeps_cold_cached_and_unknown_apart_and_leaves_retries_out(make: Any, estimated: Any) -> None:
    from longreach.harness.record import Attempt

    retried = (Attempt(status="timeout"), Attempt(status="ok", delay_s=1.0))
    records = [
        make.record("niah.single", 4 * K, None, 0, ttft_s=1.0, latency_s=2.0, n_cached_tokens=0),
        make.record("niah.single", 4 * K, None, 1, ttft_s=3.0, latency_s=4.0, n_cached_tokens=17),
        make.record("niah.single", 4 * K, None, 2, ttft_s=0.1, latency_s=0.2, n_cached_tokens=4000),
        make.record("niah.single", 4 * K, None, 3, ttft_s=5.0, latency_s=6.0),
        make.record("niah.single", 4 * K, None, 4, ttft_s=9.0, latency_s=9.0, attempts=retried),
    ]
    found = estimated(records).latency
    rows = {row["cache"]: (row["n"], row["ttft_p50_s"], row["ttft_p95_s"]) for row in found["by_length"]}
    assert rows == {"cold": (2, 1.0, 3.0), "cached": (1, 0.1, 0.1), "unknown": (1, 5.0, 5.0)}
    assert found["retried_left_out"] == 1


def test_unknown_cost_is_none_and_never_zero(make: Any, estimated: Any) -> None:
    priced = [make.record("niah.single", 4 * K, None, i, cost_usd=0.5, n_output_tokens=8) for i in range(2)]
    assert estimated(priced).cost["total_usd"] == 1.0
    mixed = estimated([*priced, make.record("niah.single", 4 * K, None, 2)]).cost
    assert (mixed["total_usd"], mixed["known_usd"], mixed["n_priced"]) == (None, 1.0, 2)
    assert mixed["tokens"]["output"] is None
    assert mixed["tokens"]["prompt_estimated"] is True


def test_distractor_answers_are_told_apart_from_no_answers(make: Any, estimated: Any) -> None:
    records = make.cell("niah.distractor", 4 * K, 0.5, 2, 2, parts={"distractor": 0.0})
    records += [make.record("niah.distractor", 4 * K, 0.5, 2, score=0.0, parts={"distractor": 1.0})]
    records += [make.record("niah.distractor", 4 * K, 0.5, 3, score=0.0, parts={"distractor": 0.0})]
    records += make.outcome("niah.distractor", 4 * K, 0.5, "no_answer", 1, start=4)
    expected = {"task": "niah.distractor", "length": 4 * K, "n": 5, "right": 2, "distractor": 1, "other": 1}
    assert estimated(records).wrong == [expected | {"no_answer": 1, "refused": 0}]


def test_one_example_per_cell_prefers_a_wrong_answer(make: Any, estimated: Any) -> None:
    found = estimated(make.cell("niah.single", 4 * K, 0.5, 3, 4)).examples["niah.single", 4 * K, 0.5]
    assert found == {"outcome": "scored", "score": 0.0, "target": "7301", "text": "1111"}


def test_one_family_under_two_capabilities_is_two_curves_with_two_names(make: Any, estimated: Any) -> None:
    records = make.row("niah.single", {4 * K: 20}, 20)
    records += make.row("niah.multihop", {4 * K: 20}, 20, capability="reasoning")
    tasks = make.config(records)["tasks"]
    tasks[1]["info"]["capability"] = "reasoning"
    names = [curve.name for curve in estimated(records, tasks=tasks).families]
    assert names == ["needle (retrieval)", "needle (reasoning)"]


@pytest.mark.parametrize(("s", "n", "mean"), [(3, 3, 1.0), (9, 10, 0.9), (7, 10, 0.7), (0, 3, 0.0)])
def test_the_mean_of_equal_cells_is_their_own_to_the_last_bit(
    make: Any, estimated: Any, s: int, n: int, mean: float
) -> None:
    depths = [rank / 10 for rank in range(11)]
    records = [record for depth in depths for record in make.cell("niah.single", 4 * K, depth, s, n)]
    records += [record for depth in depths for record in make.cell("niah.multi", 4 * K, depth, s, n)]
    assert estimated(records).headline["retrieval"].points[0].mean == mean
