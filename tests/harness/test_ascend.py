"""The adaptive scan: decisions at complete blocks, any order of arrival, any stop."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from longreach.harness.stats.ascend import Block, Rule, Scan
from longreach.harness.stats.blocks import BlockTask, block_of, block_points, jittered, replay, stratum
from longreach.harness.stats.evalues import ZONES
from longreach.harness.stats.scan_cost import assumed_curves, expected_cost, run_scan
from longreach.harness.stats.scan_report import read_scan

LENGTHS = tuple(1024 << i for i in range(8))
RULE = Rule(lengths=LENGTHS, zone=ZONES["retrieval"], size=5)
GOOD, BAD = (1.0,) * 5, (0.0,) * 5


def _flip(p: float, block: Block, seed: int = 0) -> tuple[float, ...]:
    """Scores that belong to the block alone, so that the order of asking cannot matter."""
    rng = random.Random(f"{seed}/{block.length}/{block.number}")
    return tuple(float(rng.random() < p) for _ in range(5))


def _run(rule: Rule, answer: Callable[[Block], tuple[float, ...]], ahead: int, rng: random.Random) -> Scan:
    """A scan with several blocks on their way, coming back in random order."""
    scan, flying = Scan(rule), list[Block]()
    while not scan.finished:
        flying += scan.wanted(flying, ahead)
        block = flying.pop(rng.randrange(len(flying)))
        scan.put(*block, answer(block))
    return scan


def _steps(scan: Scan) -> dict[int, tuple[str, int]]:
    return {stream.length: (stream.step, stream.n) for stream in scan.tested()}


def test_everything_right_takes_thirty_five_samples_at_each_length() -> None:
    scan = run_scan(RULE, lambda length: 1.0, random.Random(0))
    assert _steps(scan) == dict.fromkeys(LENGTHS, ("pass", 35))
    report = read_scan(scan)
    assert (report.value, report.censored, report.finished) == (131072, "above grid", True)


def test_everything_wrong_stops_after_one_block_at_the_first_length() -> None:
    scan = run_scan(RULE, lambda length: 0.0, random.Random(0))
    assert _steps(scan) == {1024: ("fail", 5)}
    assert (read_scan(scan).value, read_scan(scan).censored) == (None, "below grid")


def test_the_bars_of_evidence_are_those_of_the_study() -> None:
    assert (RULE.to_pass, RULE.to_fail) == pytest.approx((3.688879, 5.768321), abs=1e-6)


@pytest.mark.parametrize(("failures", "n"), [(0, 35), (1, 45), (2, 55), (3, 70)])
def test_a_length_passes_at_the_sample_counts_of_the_study(failures: int, n: int) -> None:
    scan = Scan(RULE)
    scores = [0.0] * failures + [1.0] * 300
    for number in range(n // 5):
        assert scan.current == 1024
        block = scores[number * 5 : number * 5 + 5]
        scan.put(1024, number, block)
    assert scan.streams[1024].step == "pass"


@pytest.mark.parametrize("p", [0.99, 0.93, 0.90, 0.80])
def test_the_order_of_arrival_does_not_matter(p: float) -> None:
    def answer(block: Block) -> tuple[float, ...]:
        return _flip(p if block.length <= 8192 else 0.5, block)

    for rule in (RULE, replace(RULE, certify=True, refine=True)):
        alone = _run(rule, answer, 1, random.Random(0))
        for seed in range(3):
            crowd = _run(rule, answer, 2 + 3 * seed, random.Random(seed))
            assert _steps(crowd) == _steps(alone)
            assert read_scan(crowd).sentence == read_scan(alone).sentence


def test_blocks_in_flight_are_wasted_only_where_something_fails() -> None:
    scan = _run(RULE, lambda block: GOOD if block.length <= 4096 else BAD, 4, random.Random(1))
    logged = {item.length: item.logged for item in read_scan(scan).lengths}
    assert logged[1024] == logged[2048] == logged[4096] == 0
    assert 0 <= logged[8192] <= 15


def test_a_block_ahead_of_its_turn_waits() -> None:
    scan = Scan(RULE)
    scan.put(1024, 1, BAD)
    assert scan.current == 1024
    assert scan.streams[1024].n == 0
    scan.put(1024, 0, GOOD)
    assert scan.streams[1024].n == 10


def test_a_block_is_counted_once() -> None:
    scan = Scan(RULE)
    scan.put(1024, 0, GOOD)
    scan.put(1024, 0, BAD)
    assert scan.streams[1024].n == 5
    assert scan.streams[1024].s == 5


def test_blocks_in_flight_are_not_asked_for_again() -> None:
    scan = Scan(RULE)
    first = scan.wanted(ahead=3)
    assert first == [Block(1024, 0), Block(1024, 1), Block(1024, 2)]
    assert scan.wanted(first, ahead=3) == []
    scan.put(1024, 1, GOOD)
    assert scan.wanted([first[0], first[2]], ahead=3) == []
    assert scan.wanted(ahead=50)[-1] == Block(1024, 6)  # seven blocks can decide


def test_a_failed_block_is_replaced_by_a_fresh_one() -> None:
    scan = Scan(RULE)
    scan.drop(1024, 0, "failed")
    assert scan.wanted() == [Block(1024, 1)]
    for number in range(1, 8):
        scan.put(1024, number, GOOD)
    assert scan.streams[1024].step == "pass"
    assert scan.streams[1024].n == 35


def test_a_length_whose_blocks_keep_failing_is_untestable_and_ends_the_scan() -> None:
    scan = Scan(RULE)
    while wanted := scan.wanted():
        scan.drop(*wanted[0], "failed")
    report = read_scan(scan)
    assert scan.streams[1024].step == "untestable"
    assert (report.value, report.censored) == (None, None)
    assert "could not be tested" in report.sentence


def test_an_overflow_caps_the_claim_and_is_no_failure() -> None:
    scan = Scan(RULE)
    for number in range(7):
        scan.put(1024, number, GOOD)
    scan.drop(2048, 0, "overflow")
    report = read_scan(scan)
    assert scan.finished
    assert (report.value, report.high, report.censored) == (1024, 1024, "above grid")
    assert "2k is not supported" in report.sentence


def test_the_cap_decides_by_the_mean_and_flags_the_length() -> None:
    scan = Scan(replace(RULE, cap=20))
    for number, passes in enumerate((5, 4, 5, 4)):
        scan.put(1024, number, [1.0] * passes + [0.0] * (5 - passes))
    assert scan.streams[1024].step == "borderline pass"
    assert any("Borderline: 1k" in note for note in read_scan(scan).notes)
    assert scan.current == 2048


def test_a_budget_stop_leaves_a_valid_statement() -> None:
    scan = Scan(RULE)
    for number in range(7):
        scan.put(1024, number, GOOD)
    scan.put(2048, 0, GOOD)
    report = read_scan(scan, stopped="the token budget ended")
    assert not report.finished
    assert report.sentence == (
        "1k passes (> 0.85 with 97.5% confidence, 35/35); 2k is undecided so far (5/5); "
        "stopped because the token budget ended."
    )
    assert report.estimate("", 0.9, 1024).state == "undecided"


def test_the_sentence_names_zone_confidence_and_counts() -> None:
    scan = run_scan(RULE, lambda length: 1.0 if length <= 65536 else 0.0, random.Random(0))
    assert read_scan(scan).sentence == (
        "64k passes (> 0.85 with 97.5% confidence, 35/35); 128k fails (< 0.95 with 97.5% confidence, 0/5)."
    )


def test_certifying_goes_on_until_the_threshold_itself_is_shown() -> None:
    scan = run_scan(replace(RULE, certify=True), lambda n: 1.0 if n <= 32768 else 0.0, random.Random(0))
    report = read_scan(scan)
    assert (report.value, report.low, report.high) == (32768, 32768, 32768)
    assert {item.n for item in report.lengths if item.certified} == {55}
    assert report.estimate("rule", 0.9, 1024).state == "measured"


def test_certifying_stops_at_the_first_length_that_stays_open() -> None:
    scan = run_scan(replace(RULE, certify=True), lambda n: 0.90 if n == 2048 else 1.0, random.Random(3))
    report = read_scan(scan)
    assert report.low == 1024
    assert [item.n for item in report.lengths][:2] == [55, 1000]
    assert all(item.n == 35 for item in report.lengths[2:])


def test_without_certifying_the_strict_bracket_stays_wide() -> None:
    report = read_scan(run_scan(RULE, lambda n: 1.0 if n <= 32768 else 0.0, random.Random(0)))
    assert (report.value, report.low, report.high) == (32768, None, 32768)


def test_refining_tests_the_length_between_pass_and_failure() -> None:
    rule = replace(RULE, refine=True)
    scan = run_scan(rule, lambda n: 1.0 if n <= 40_000 else 0.0, random.Random(0))
    assert read_scan(scan).value == 32768
    assert _steps(scan)[46344][0] == "fail"
    assert rule.to_fail > RULE.to_fail
    finer = run_scan(rule, lambda n: 1.0 if n <= 50_000 else 0.0, random.Random(0))
    assert read_scan(finer).value == 46344


def test_a_false_pass_at_the_low_end_of_the_zone_is_rare() -> None:
    rng = random.Random(7)
    rule = replace(RULE, lengths=(1024,))
    passes = sum(run_scan(rule, lambda n: 0.85, rng).streams[1024].passed for _ in range(2000))
    assert passes / 2000 < 0.035  # 0.024 exactly, borderline lengths included


def test_a_false_failure_at_the_high_end_of_the_zone_is_rare() -> None:
    rng = random.Random(8)
    failed = sum(read_scan(run_scan(RULE, lambda n: 0.95, rng)).value != LENGTHS[-1] for _ in range(500))
    assert failed / 500 < 0.045  # at most 0.025 plus what the cap decides


def test_a_dip_at_a_short_length_is_not_skipped() -> None:
    scan = run_scan(RULE, lambda n: 0.3 if n == 4096 else 1.0, random.Random(2))
    assert read_scan(scan).value == 2048


def test_cache_mode_weighs_answers_on_one_context_less() -> None:
    tempered = run_scan(replace(RULE, icc=0.2), lambda n: 1.0, random.Random(0))
    assert tempered.streams[1024].n == 60  # 34 x 1.8 answers, in whole blocks
    again = run_scan(RULE, lambda n: 1.0, random.Random(0)).with_icc(0.2)
    assert again.current == 1024
    assert again.wanted() == [Block(1024, 7)]


def test_replaying_under_another_correlation_keeps_the_numbers_of_blocks() -> None:
    scan = Scan(RULE)
    scan.drop(1024, 0, "failed")
    for number in range(1, 8):
        scan.put(1024, number, GOOD)
    assert scan.with_icc(0.2).wanted() == [Block(1024, 8)]


def test_fractional_scores_are_taken_as_they_are() -> None:
    scan = Scan(replace(RULE, zone=ZONES["reasoning"]))
    while scan.current == 1024:
        scan.put(*scan.wanted()[0], (0.95, 0.9, 1.0, 0.85, 0.9))
    assert scan.streams[1024].step == "pass"
    assert scan.streams[1024].n < 60


@pytest.mark.parametrize("scores", [(1.0,) * 4, (1.0, 1.0, 1.0, 1.0, 1.2)])
def test_a_block_that_is_not_one_is_refused(scores: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="needs 5 scores"):
        Scan(RULE).put(1024, 0, scores)


TASKS = (
    BlockTask(label="niah.single", task_id="niah.single@1", has_depth=True),
    BlockTask(label="ruler.vt", task_id="ruler.vt@1", has_depth=False),
)


def test_a_block_is_one_sample_per_task_and_stratum_and_is_found_again(make: Any) -> None:
    points = block_points(TASKS, Block(4096, 3), seed=42)
    assert [stratum(point.depth) for _, point in points[:5] if point.depth is not None] == [0, 1, 2, 3, 4]
    assert [point.index for _, point in points] == [3] * 5 + [15, 16, 17, 18, 19]
    for place, (label, point) in enumerate(points):
        record = make.record(label, point.length, point.depth, point.index)
        assert block_of(record) == (Block(4096, 3), place % 5)


def test_depths_stay_in_their_strata_and_spread_over_them() -> None:
    for strata in (5, 7):
        for place in range(strata):
            depths = [jittered("t", number, place, 42, strata) for number in range(200)]
            assert all(stratum(depth, strata) == place for depth in depths)
            assert max(depths) - min(depths) > 0.8 / strata


def _records(make: Any, scan: Scan, answer: Callable[[Block], tuple[float, ...]]) -> list[Any]:
    """Records of every block that `scan` asks for, answered."""
    records = []
    while wanted := scan.wanted(ahead=3):
        for block in wanted:
            scores = answer(block) * 2
            for (label, point), score in zip(block_points(TASKS, block, 42), scores, strict=True):
                records.append(make.record(label, point.length, point.depth, point.index, score=score))
            scan.put(*block, scores)
    return records


def test_stored_records_bring_a_fresh_scan_to_the_same_state(make: Any) -> None:
    rule = replace(RULE, size=10)
    scan = Scan(rule)
    records = _records(make, scan, lambda block: _flip(0.97 if block.length <= 8192 else 0.4, block))
    for seed in range(3):
        random.Random(seed).shuffle(records)
        resumed = Scan(rule)
        replay(resumed, records, TASKS)
        assert read_scan(resumed).to_dict() == read_scan(scan).to_dict()


def test_an_incomplete_block_is_wanted_again(make: Any) -> None:
    rule = replace(RULE, size=10)
    records = [
        make.record(label, point.length, point.depth, point.index)
        for label, point in block_points(TASKS, Block(1024, 0), 42)
    ]
    half = Scan(rule)
    replay(half, records[:7], TASKS)
    assert half.wanted() == [Block(1024, 0)]
    whole = Scan(rule)
    replay(whole, records, TASKS)
    assert whole.wanted() == [Block(1024, 1)]


def test_a_failed_block_is_retried_on_resume_unless_it_was_replaced(make: Any) -> None:
    rule = replace(RULE, size=10)

    def block(number: int, **fields: Any) -> list[Any]:
        points = block_points(TASKS, Block(1024, number), 42)
        return [make.record(label, p.length, p.depth, p.index, **fields) for label, p in points]

    alone, replaced = Scan(rule), Scan(rule)
    replay(alone, block(0, outcome="failed"), TASKS)
    assert alone.wanted() == [Block(1024, 0)]
    replay(replaced, block(0, outcome="failed") + block(1), TASKS)
    assert replaced.wanted() == [Block(1024, 2)]


def test_the_expected_cost_to_a_million_tokens_is_that_of_the_study() -> None:
    rule = replace(RULE, lengths=tuple(1024 << i for i in range(11)))
    cost = expected_cost(rule, lambda n: 0.99, scans=100)
    assert cost.tokens == pytest.approx(82e6, rel=0.03)
    assert cost.low <= cost.tokens <= cost.high
    assert set(cost.verdicts) == {1 << 20}


def test_a_plan_is_priced_for_several_curves_and_twice_the_same() -> None:
    curves = assumed_curves(LENGTHS, 0.9)
    assert len(curves) == 3
    for curve in curves.values():
        assert expected_cost(RULE, curve, scans=20) == expected_cost(RULE, curve, scans=20)
