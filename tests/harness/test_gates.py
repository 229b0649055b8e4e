"""Gates: the grammar with its errors, verdicts from intervals, exit codes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from longreach.harness.errors import ConfigError, UnknownName
from longreach.harness.stats.gate_values import check_gates, order_statistics
from longreach.harness.stats.gates import GateResult, exit_code, parse_gate


@pytest.mark.parametrize(
    ("text", "metric", "length", "op", "bound"),
    [
        ("recall@64k > 0.95", "recall", 65536, ">", 0.95),
        ("recall@64k>95%", "recall", 65536, ">", 0.95),
        ("effective_reasoning >= 32k", "effective_reasoning", None, ">=", 32768),
        ("effective_retrieval ≥ 1M", "effective_retrieval", None, ">=", 1048576),
        ("effective_retrieval >= 100,000", "effective_retrieval", None, ">=", 100000),
        ("ruler.vt@128k >= 0.7", "ruler.vt", 131072, ">=", 0.7),
        ("niah.multi[needles=4,kind=code]@4k >= .7", "niah.multi[needles=4,kind=code]", 4096, ">=", 0.7),
        ("ttft_p95@64k < 30s", "ttft_p95", 65536, "<", 30),
        ("ttft_p50 <= 500 ms", "ttft_p50", None, "<=", 0.5),
        ("ttft_p50 < 2", "ttft_p50", None, "<", 2),
        ("cost_per_query@128k < $0.5", "cost_per_query", 131072, "<", 0.5),
        ("cost_per_query < 0.5 USD", "cost_per_query", None, "<", 0.5),
        ("cost_per_query < 5e-3$", "cost_per_query", None, "<", 0.005),
        ("  no_answer_rate<2% ", "no_answer_rate", None, "<", 0.02),
        ("recall @ 4000 > 0", "recall", 4000, ">", 0),
    ],
)
def test_gates_are_read(text: str, metric: str, length: int | None, op: str, bound: float) -> None:
    gate = parse_gate(text)
    assert (gate.metric, gate.length, gate.op) == (metric, length, op)
    assert gate.bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "a metric is needed"),
        ("> 0.9", 1, "a metric is needed"),
        ("recall", 7, "one of > >= < <="),
        ("recall == 0.9", 8, "one of > >= < <="),
        ("recall >> 0.9", 8, "one of > >= < <="),
        ("recall@ > 0.9", 9, "a length such as 64k"),
        ("recall@64q > 0.9", 8, "'64q' is not a length"),
        ("recall@64k >", 13, "a number is needed"),
        ("recall@64k > high", 14, "such as 0.95 or 95%"),
        ("recall@64k > 95", 14, "a rate lies between 0 and 1"),
        ("recall@64k > -0.5", 14, "a number is needed"),
        ("recall@64k > 0.9s", 17, "'s' is no unit of a rate"),
        ("recall@64k > $0.9", 14, "'$' is no unit of a rate"),
        ("ttft_p95 < 3k", 13, "'k' is no unit of a time"),
        ("effective_retrieval@4k > 3", 20, "takes no @LENGTH"),
        ("effective_retrieval > 90%", 25, "write 32k or 32768"),
        ("recall > 0.9, reasoning > 0.5", 13, "left over"),
        ("recall > 0.9 0.5", 14, "left over"),
        ("recall > 0.9 and more", 14, "'and' is no unit"),
    ],
)
def test_errors_name_the_column_and_what_belongs_there(text: str, column: int, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_gate(text)
    assert f"column {column}:" in str(error.value)
    assert words in str(error.value)
    assert "METRIC[@LENGTH] OP NUMBER[UNIT]" in str(error.value)


@pytest.mark.parametrize(
    ("op", "low", "high", "verdict"),
    [
        (">", 0.91, 1.0, "pass"),
        (">", 0.90, 1.0, "undecided"),
        (">", 0.5, 0.90, "fail"),
        (">=", 0.90, 1.0, "pass"),
        (">=", 0.5, 0.90, "undecided"),
        ("<", 0.0, 0.89, "pass"),
        ("<", 0.90, 1.0, "fail"),
        ("<=", 0.0, 0.90, "pass"),
        ("<=", 0.90, 1.0, "undecided"),
        ("<=", 0.91, 1.0, "fail"),
    ],
)
def test_the_whole_interval_must_be_on_one_side(op: str, low: float, high: float, verdict: str) -> None:
    assert parse_gate(f"recall {op} 0.9").decide(low, high) == verdict


def test_a_failure_outweighs_an_undecided_gate() -> None:
    assert exit_code(["pass", "pass"]) == 0
    assert exit_code(["pass", "undecided"]) == 3
    assert exit_code(["undecided", "fail", "pass"]) == 1


Check = Callable[..., GateResult]


@pytest.fixture
def check(make: Any) -> Check:
    """One gate against records, under the configuration that planned exactly them."""

    def run(text: str, records: Sequence[Any], **changes: Any) -> GateResult:
        return check_gates([text], records, make.config(records, **changes))[0]

    return run


DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


def test_thirty_of_thirty_is_undecided_and_says_how_many_would_do(make: Any, check: Check) -> None:
    result = check("recall@64k > 0.95", make.row("niah.single", {65536: 30}, 30))
    assert result.verdict == "undecided"
    assert "64k with 30 samples cannot show > 0.95: even 30/30 gives a lower bound of 0.886" in result.missing


@pytest.mark.parametrize(("right", "n", "verdict"), [(73, 73, "pass"), (72, 72, "undecided"), (80, 100, "fail")])
def test_a_rate_is_decided_by_both_intervals(make: Any, check: Check, right: int, n: int, verdict: str) -> None:
    result = check("recall@4k > 0.95", make.row("niah.single", {4096: right}, n))
    assert result.verdict == verdict
    assert (result.value, result.n) == (right / n, n)
    assert (verdict == "undecided") == bool(result.missing)


def test_recall_is_the_equal_task_mean_of_the_headline(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 100}, 100) + make.row("niah.distractor", {4096: 100}, 200)
    assert check("recall@4k > 0.5", records).value == pytest.approx(0.75)
    assert check("recall@4k > 0.5", records, headline={"retrieval": ["niah.single"]}).value == 1.0


def test_without_a_length_a_rate_is_the_mean_over_all_lengths(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 50, 8192: 40}, 50)
    result = check("recall > 0.8", records)
    assert (result.value, result.n) == (pytest.approx(0.9), 100)


def test_a_task_name_with_brackets_is_a_metric(make: Any, check: Check) -> None:
    records = make.row("niah.multi[needles=4]", {4096: 60}, 60)
    assert check("niah.multi[needles=4]@4k > 0.9", records).verdict == "pass"


def test_an_unknown_metric_names_the_nearest(make: Any, check: Check) -> None:
    with pytest.raises(UnknownName, match="column 1: there is no metric 'recal'; did you mean 'recall'"):
        check("recal@4k > 0.9", make.row("niah.single", {4096: 60}, 60))


def test_a_misspelt_metric_is_the_first_complaint(make: Any, check: Check) -> None:
    with pytest.raises(UnknownName, match="did you mean 'ttft_p95'"):
        check("ttft_p59@4k < 30s", make.row("niah.single", {4096: 60}, 60))


def test_a_task_name_without_its_brackets_lists_the_variants(make: Any, check: Check) -> None:
    records = make.row("niah.multi[needles=4]", {4096: 60}, 60)
    with pytest.raises(UnknownName, match=r"niah\.multi\[needles=4\]"):
        check("niah.multi > 0.9", records)


def test_a_capability_or_length_that_was_not_run_is_undecided_and_not_wrong_usage(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 60}, 60)
    reasoning = check("reasoning@4k > 0.5", records)
    assert reasoning.verdict == "undecided"
    assert "longreach run reasoning" in reasoning.missing
    elsewhere = check("recall@64k > 0.5", records)
    assert elsewhere.verdict == "undecided"
    assert "the run holds 4k" in elsewhere.missing


def test_an_overflow_is_never_a_failure(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 60}, 60) + make.outcome("niah.single", 8192, None, "overflow", 60)
    for text in ("recall@8k > 0.5", "recall > 0.5", "effective_retrieval >= 8k"):
        result = check(text, records)
        assert result.verdict == "undecided", text
        assert result.missing, text


def test_many_empty_answers_support_no_claim(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 90}, 90) + make.outcome("niah.single", 4096, None, "no_answer", 10, 90)
    result = check("recall@4k > 0.5", records)
    assert result.verdict == "undecided"
    assert "--reasoning-budget" in result.missing
    assert check("no_answer_rate@4k < 2%", records).verdict == "fail"
    assert check("refused_rate < 5%", records).verdict == "pass"


def test_a_small_rate_says_how_many_clean_samples_it_needs(make: Any, check: Check) -> None:
    result = check("no_answer_rate < 2%", make.row("niah.single", {4096: 60}, 60))
    assert result.verdict == "undecided"
    assert "Needs 0/189" in result.missing
    assert check("no_answer_rate < 2%", make.row("niah.single", {4096: 189}, 189)).verdict == "pass"


def test_an_undecided_rate_says_how_many_samples_decide_it_if_it_stays(make: Any, check: Check) -> None:
    result = check("recall@4k > 0.90", make.row("niah.single", {4096: 94}, 100))
    assert "If it stays at 0.940, about" in result.missing
    assert "Needs 36/36" in result.missing


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("effective_retrieval >= 8k", "pass"),
        ("effective_retrieval > 8k", "fail"),
        ("effective_retrieval >= 16k", "fail"),
        ("effective_retrieval <= 8k", "pass"),
        ("effective_retrieval < 8k", "fail"),
        ("effective_reasoning >= 4k", "undecided"),
    ],
)
def test_an_effective_length_is_decided_by_its_bracket(make: Any, check: Check, text: str, verdict: str) -> None:
    records = make.row("niah.single", {4096: 20, 8192: 20, 16384: 2}, 20, DEPTHS)
    assert check(text, records).verdict == verdict


def test_nothing_above_the_largest_tested_length_is_decided(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 20, 8192: 20}, 20, DEPTHS)
    assert check("effective_retrieval >= 8k", records).verdict == "pass"
    assert check("effective_retrieval >= 16k", records).verdict == "undecided"
    assert check("effective_retrieval < 16k", records).verdict == "undecided"


def test_failing_at_the_first_length_is_below_it(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 2, 8192: 2}, 20, DEPTHS)
    assert check("effective_retrieval >= 4k", records).verdict == "fail"
    assert check("effective_retrieval < 4k", records).verdict == "pass"


def _timed(make: Any, seconds: Sequence[float], **fields: Any) -> list[Any]:
    return [make.record("niah.single", 4096, None, i, ttft_s=t, **fields) for i, t in enumerate(seconds)]


def test_order_statistics_bound_a_quantile_without_a_distribution() -> None:
    values = [float(i) for i in range(1, 101)]
    assert (order_statistics(values, 0.5).low, order_statistics(values, 0.5).high) == (40, 61)
    tail = order_statistics(values[:50], 0.95)
    assert tail.high == math.inf
    assert order_statistics([3.0] * 72, 0.95).high == 3.0


def test_a_time_passes_by_its_upper_bound(make: Any, check: Check) -> None:
    records = _timed(make, [1 + i / 100 for i in range(100)])
    assert check("ttft_p95@4k < 2s", records).verdict == "pass"
    assert check("ttft_p95@4k < 1500ms", records).verdict == "fail"
    assert check("ttft_p95@4k < 1.95", records).verdict == "undecided"


def test_a_high_quantile_of_few_samples_has_no_upper_bound(make: Any, check: Check) -> None:
    result = check("ttft_p95@4k < 100s", _timed(make, [1.0] * 50))
    assert result.verdict == "undecided"
    assert result.high is None
    assert "An upper bound needs 72 samples" in result.missing


def test_cold_and_cached_times_are_never_mixed(make: Any, check: Check) -> None:
    cold = _timed(make, [10.0] * 10, n_cached_tokens=0)
    warm = [make.record("niah.single", 4096, None, 10 + i, ttft_s=0.1, n_cached_tokens=4000) for i in range(30)]
    result = check("ttft_p50 < 5s", cold + warm)
    assert (result.verdict, result.n, result.value) == ("fail", 10, 10.0)
    assert "cold prompts" in result.shown


def test_a_time_that_nobody_measured_is_undecided(make: Any, check: Check) -> None:
    assert "no time to first token" in check("ttft_p50 < 5s", make.row("niah.single", {4096: 9}, 9)).missing


def test_cost_needs_a_known_price(make: Any, check: Check) -> None:
    records = make.row("niah.single", {4096: 9}, 9)
    assert "--price-in" in check("cost_per_query < 1", records).missing
    priced = [make.record("niah.single", 4096, None, i, cost_usd=0.4 + i / 1000) for i in range(20)]
    assert check("cost_per_query@4k < $0.5", priced).verdict == "pass"
    assert check("cost_per_query@4k < $0.4", priced).verdict == "fail"
    assert check("cost_per_query@4k < 0.41", priced).verdict == "undecided"


def test_a_result_reads_as_one_line(make: Any, check: Check) -> None:
    line = check("recall@4k > 0.9", make.row("niah.single", {4096: 100}, 100)).line
    assert line == "pass       recall@4k > 0.9: 1.000 (95%: 0.963 to 1.000, n 100)"
