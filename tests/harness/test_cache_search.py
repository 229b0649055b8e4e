"""Prefix-cache mode of a search: blocks are contexts, evidence is tempered, and the card says so."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import BatteryError
from longreach.harness.record import Record
from longreach.harness.report.card import make_card
from longreach.harness.running.find_forecast import find_forecast
from longreach.harness.running.options import Options
from longreach.harness.running.scan_plan import plan_find
from longreach.harness.stats.ascend import Rule, Scan
from longreach.harness.stats.compare import compare
from longreach.harness.stats.evalues import ZONES
from longreach.harness.stats.pairs import read_run
from longreach.harness.stats.scan_cost import shared_rate
from longreach.harness.stats.scans import measured_icc, tempered

RULE = Rule(lengths=(1024, 2048), zone=ZONES["retrieval"], size=5, icc=0.2)


Go = Callable[..., Any]
CACHED: dict[str, Any] = {"model": "sim:cliff@1k", "max_length": "2k", "cache_mode": True, "concurrency": 4}


def test_a_block_is_one_context_asked_deepest_first_and_finished_before_the_next(tmp_path: Path, search: Go) -> None:
    stored: list[Record] = search(tmp_path / "a", **CACHED).records
    blocks = [list(group) for _, group in itertools.groupby(stored, key=lambda r: (r.length, r.index))]
    assert [len(block) for block in blocks] == [5] * len(blocks)
    assert len({(block[0].length, block[0].index) for block in blocks}) == len(blocks) > 12
    for block in blocks:
        depths = [record.depth or 0.0 for record in block]
        assert depths[0] == max(depths)
        assert {round(depth * 10_000) % 2000 for depth in depths} == {round(depths[0] * 10_000) % 2000}
    assert len({round((block[0].depth or 0.0) * 10_000) for block in blocks}) > 6


def test_evidence_is_divided_by_1_8_and_the_card_names_mode_and_correlation(tmp_path: Path, search: Go) -> None:
    found = search(tmp_path / "a", **CACHED)
    (first, second) = found.estimates.scans["retrieval"].lengths
    assert (first.step, second.step) == ("pass", "fail")
    assert first.up == pytest.approx(first.n * 0.111224 / 1.8, abs=1e-3)  # 35 x 0.1112 would have been enough alone
    assert first.n == 60
    text = make_card(found.records, found.config).to_markdown()
    assert "prefix-cache mode, 5 questions on one context, assumed correlation 0.2" in text
    assert "every log e-value is divided by 1.8 (rho 0.2;" in text
    assert "a calibrated approximation, not a theorem" in text
    assert "multi-key" in text


def test_a_larger_correlation_is_taken_into_account_and_the_scan_goes_on() -> None:
    rng, scan = random.Random(3), Scan(RULE)
    for number in range(200):
        if scan.finished:
            break
        for block in scan.wanted():
            scan.put(*block, [float(number != 1 and (block.length < 2048 or rng.random() < 0.1))] * 5)
    found = measured_icc(scan)
    assert scan.finished
    assert found is not None and found > 0.9
    again = tempered(scan)
    assert again.rule.icc == pytest.approx(found)
    assert again.rule.cap > RULE.cap
    assert not again.finished
    assert next(stream.n for stream in again.tested()) == scan.streams[1024].n  # nothing that was measured is lost


def test_a_small_correlation_changes_nothing() -> None:
    scan = Scan(RULE)
    while not scan.finished:
        for block in scan.wanted():
            wrong = block.number % 5 if block.number in (1, 4) else -1
            scan.put(*block, [float(place != wrong) for place in range(5)])
    assert (measured_icc(scan) or 0.0) < 0.2
    assert tempered(scan) is scan


def test_correlated_coins_have_the_correlation_that_was_asked_for() -> None:
    from longreach.harness.stats.cache_mode import anova_icc

    rng = random.Random(1)
    contexts = []
    for _ in range(4000):
        rate = shared_rate(0.9, 0.3, rng)
        contexts.append([float(rng.random() < rate) for _ in range(5)])
    assert anova_icc(contexts) == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tasks": "niah.single"}, "niah.single has a context for each question"),
        ({"cold": True}, "--cold keeps every prompt out of the cache"),
        ({"capability": "reasoning"}, "no task here measures reasoning"),
    ],
)
def test_what_cannot_share_contexts_is_refused(tmp_path: Path, more: dict[str, Any], words: str, search: Go) -> None:
    with pytest.raises(BatteryError, match=words):
        search(tmp_path / "a", **(CACHED | more))


def test_the_plan_tells_saving_power_and_when_it_is_not_worth_it(tmp_path: Path) -> None:
    def lines(**more: Any) -> str:
        options = Options.of(model="sim:perfect", max_length="4k", cache_mode=True, out=tmp_path / "a", **more)
        return "\n".join(find_forecast(plan_find(options)))

    own = lines()
    assert "cost 0.28 times as much per effective sample" in own
    assert "worth it; 100 answers are worth 71" in own
    assert "1.8 times as many answers are needed" in own
    dear = lines(price_in=1.0, price_cached=0.5)
    assert "not worth it: leave out --cache-mode" in dear
    assert "0.84 times" in dear
    assert "(10%)" in lines(price_in=1.0)


def test_a_fixed_grid_counts_contexts_where_five_questions_share_one(tmp_path: Path, grid: Go) -> None:
    common: dict[str, Any] = {"model": "sim:logistic@2k", "lengths": "1k,2k", "force": True, "samples": 6}
    (curve,) = grid(tmp_path / "a", battery="shared", **common).estimates.tasks
    assert [(point.n, point.n_effective) for point in curve.points] == [(30, 6.0), (30, 6.0)]
    own = grid(tmp_path / "b", tasks="niah.shared", depths="0.1,0.32,0.54,0.76,0.98", **common)
    assert [point.n_effective for point in own.estimates.tasks[0].points] == [30.0, 30.0]
    changed = compare(read_run(tmp_path / "a"), read_run(tmp_path / "a"))
    assert [cell.change.n for cell in changed.cells] == [6, 6]


def test_a_repeated_search_finds_the_same_and_sends_nothing(tmp_path: Path, search: Go) -> None:
    options = CACHED | {"model": "sim:logistic@2k"}
    first = search(tmp_path / "a", **options)
    again = search(tmp_path / "a", **options)
    assert [record.at for record in first.records] == [record.at for record in again.records]
    assert first.estimates.scans == again.estimates.scans
