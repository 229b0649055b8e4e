"""find(): the adaptive search from options to a folder, and back into it."""

import io
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

import longreach
from longreach.harness.errors import BatteryError, RunFolderError
from longreach.harness.record import Record
from longreach.harness.registry import open_model
from longreach.harness.running.conduct import drive
from longreach.harness.running.find import Finder, ScanProgress
from longreach.harness.running.find_forecast import find_forecast
from longreach.harness.running.options import Options
from longreach.harness.running.revisit import rewrite, verify
from longreach.harness.running.run import caps_of
from longreach.harness.running.scan_plan import plan_find
from longreach.harness.running.store import RECORDS, open_store, read_config, read_records
from longreach.harness.sample import Point
from longreach.harness.stats.compare import compare
from longreach.harness.stats.estimates import Estimates, estimate
from longreach.harness.stats.gate_values import check_gates
from longreach.harness.stats.pairs import read_run


class Found:
    """What a search left in its folder."""

    def __init__(self, folder: Path, exit_code: int, stopped: str | None, said: str) -> None:
        self.folder, self.exit_code, self.stopped, self.said = folder, exit_code, stopped, said
        self.records: list[Record] = list(read_records(folder).values())
        self.config: dict[str, Any] = read_config(folder)
        self.estimates: Estimates = estimate(self.records, self.config)

    @property
    def value(self) -> int | None:
        return self.estimates.effective["retrieval"].value

    @property
    def sentence(self) -> str:
        return self.estimates.effective["retrieval"].notes[0]


def go(folder: Path, **options: Any) -> Found:
    """The search up to its records; drawing a card takes longer than all the rest."""
    defaults: dict[str, Any] = {"tasks": "niah.single", "model": "sim:perfect", "max_length": "4k", "min_length": 512}
    plan = plan_find(Options.of(**(defaults | options), out=folder))
    stream = io.StringIO()
    with open_store(folder) as store:
        progress = ScanProgress(stream=stream)
        collected = drive(Finder(plan.prepared, store, caps_of(plan.prepared), progress, found=plan))
    if collected.error is not None:
        raise collected.error
    return Found(folder, collected.exit_code, collected.stopped, stream.getvalue())


def profile(folder: Path, text: str) -> str:
    path = folder / "profile.yaml"
    path.write_text(text)
    return f"sim:{path}"


def steps(found: Found) -> list[tuple[int, str, int]]:
    return [(item.length, item.step, item.n) for item in found.estimates.scans["retrieval"].lengths]


def test_a_cliff_is_found_and_the_sentence_names_zone_confidence_and_counts(tmp_path: Path) -> None:
    found = go(tmp_path / "a", model="sim:cliff@2k")
    assert steps(found) == [(512, "pass", 35), (1024, "pass", 35), (2048, "pass", 35), (4096, "fail", 5)]
    assert (found.value, found.exit_code) == (2048, 0)
    assert found.sentence == (
        "2k passes (> 0.85 with 97.5% confidence, 35/35); 4k fails (< 0.95 with 97.5% confidence, 0/5)."
    )


def test_a_perfect_model_passes_everywhere_for_a_thirteenth_of_the_tokens_of_a_grid(tmp_path: Path) -> None:
    found = go(tmp_path / "a", concurrency=1)
    assert (found.value, found.estimates.effective["retrieval"].censored, found.exit_code) == (4096, "above grid", 0)
    grid = 500 * (512 + 1024 + 2048 + 4096)
    assert 13 * found.estimates.scans["retrieval"].tokens < grid


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_verdict_on_a_smooth_decline_holds_the_truth(tmp_path: Path, seed: int) -> None:
    found = go(tmp_path / "a", model="sim:logistic@8k", seed=seed)
    model = cast(Any, open_model("sim:logistic@8k"))
    points = {n: Point(task="niah.single@1", length=n, depth=0.5, index=0, seed=0) for n in (512, 1024, 2048, 4096)}
    scores = {length: model.probability(point) for length, point in points.items()}
    covered = [length for length in scores if length <= (found.value or 0)]
    beyond = [length for length in scores if length > (found.value or 0)]
    assert all(scores[length] > 0.85 for length in covered)
    assert not beyond or scores[min(beyond)] < 0.95
    assert found.exit_code == 0


def test_both_capabilities_have_their_own_zone_and_verdict(tmp_path: Path) -> None:
    model = profile(tmp_path, "retrieval: {512: 1.0}\nreasoning: {1k: 1.0, 2k: 0.0}\n")
    found = go(tmp_path / "a", tasks="niah.single,ruler.vt", model=model, min_length="1k")
    assert found.value == 4096
    assert found.estimates.effective["reasoning"].value == 1024
    assert "< 0.80" in found.estimates.effective["reasoning"].notes[0]


def test_a_block_holds_every_task_and_stratum_with_fresh_questions(tmp_path: Path) -> None:
    found = go(tmp_path / "a", tasks="niah.single,niah.distractor", max_length=1024, min_length=1024)
    assert steps(found) == [(1024, "pass", 40)]
    strata = Counter((record.task, int((record.depth or 0.0) * 5)) for record in found.records)
    assert set(strata.values()) == {4}
    assert len({record.depth for record in found.records}) > 30
    assert verify(found.folder) == (len(found.records), [])


def test_repeating_a_search_sends_nothing(tmp_path: Path) -> None:
    first = go(tmp_path / "a", model="sim:cliff@1k")
    before = (tmp_path / "a" / RECORDS).read_bytes()
    again = go(tmp_path / "a", model="sim:cliff@1k")
    assert (tmp_path / "a" / RECORDS).read_bytes() == before
    assert steps(again) == steps(first)
    assert "stored: retrieval 1k: 35/35, pass" in again.said


def test_a_budget_ends_in_a_valid_statement_and_the_next_command_goes_on(tmp_path: Path) -> None:
    stopped = go(tmp_path / "a", max_tokens=100_000, concurrency=2)
    assert (stopped.exit_code, stopped.stopped) == (3, "--max-tokens 100000")
    assert stopped.value == 1024
    assert "2k is undecided so far" in stopped.sentence
    resumed = go(tmp_path / "a", concurrency=2)
    assert steps(resumed) == steps(go(tmp_path / "b", concurrency=2))
    assert (resumed.value, resumed.exit_code) == (4096, 0)


def test_the_verdict_does_not_depend_on_the_order_of_arrival(tmp_path: Path) -> None:
    model = "sim:logistic@8k"
    alone = go(tmp_path / "a", model=model, concurrency=1)
    for concurrency in (4, 32):
        crowd = go(tmp_path / f"b{concurrency}", model=model, concurrency=concurrency)
        assert steps(crowd) == steps(alone)
        assert crowd.sentence == alone.sentence
    assert alone.estimates.unused == 0 < crowd.estimates.unused


def test_an_overflow_ends_the_search_as_not_supported_and_never_as_a_failure(tmp_path: Path) -> None:
    found = go(tmp_path / "a", model_args="window=2k")
    assert steps(found)[-1] == (4096, "not supported", 0)
    reached = found.estimates.effective["retrieval"]
    assert (reached.value, reached.censored, reached.high, found.exit_code) == (2048, "above grid", 2048, 3)
    assert "4k is not supported" in found.sentence


def test_a_server_that_cuts_prompts_supports_no_claim_from_there_on(tmp_path: Path) -> None:
    model = profile(tmp_path, "retrieval: {512: 1.0}\nfaults: {truncated: 0.05}\n")
    found = go(tmp_path / "a", model=model, concurrency=1)
    assert "is not supported (a prompt did not fit, or was cut)" in found.sentence
    assert found.exit_code == 3


def test_blocks_with_samples_that_fail_for_good_are_replaced(tmp_path: Path) -> None:
    model = profile(tmp_path, "retrieval: {512: 1.0}\nfaults: {failed: 0.04}\n")
    found = go(tmp_path / "a", model=model, max_length=1024)
    assert (found.value, found.exit_code) == (1024, 0)
    assert any(record.outcome == "failed" for record in found.records)
    assert {n for _, _, n in steps(found)} == {35}


def test_refusals_and_empty_answers_count_as_wrong(tmp_path: Path) -> None:
    model = profile(tmp_path, "retrieval: {512: 1.0}\nfaults: {no_answer: 0.5}\n")
    assert go(tmp_path / "a", model=model).value is None


@pytest.mark.parametrize("change", [{"max_length": "8k"}, {"refine": True}, {"tasks": "niah.distractor"}])
def test_a_changed_rule_needs_a_folder_of_its_own(tmp_path: Path, change: dict[str, Any]) -> None:
    go(tmp_path / "a", model="sim:cliff@512")
    with pytest.raises(RunFolderError, match=r"scan\.retrieval"):
        go(tmp_path / "a", **({"model": "sim:cliff@512"} | change))


def test_a_grid_and_a_search_do_not_share_a_folder(tmp_path: Path) -> None:
    go(tmp_path / "a", model="sim:cliff@512")
    with pytest.raises(RunFolderError, match=r"scan\.retrieval"):
        longreach.run(tasks="niah.single", model="sim:cliff@512", lengths=512, samples=1, out=tmp_path / "a")


def test_certifying_may_be_asked_for_later_and_gives_the_strict_bracket(tmp_path: Path) -> None:
    first = go(tmp_path / "a", model="sim:cliff@1k", max_length="2k", concurrency=1)
    assert first.estimates.effective["retrieval"].low is None
    later = go(tmp_path / "a", model="sim:cliff@1k", max_length="2k", certify=True)
    bracket = later.estimates.effective["retrieval"]
    assert (bracket.low, bracket.high, bracket.state) == (1024, 1024, "measured")
    assert len(later.records) > len(first.records)
    gates = ["effective_retrieval >= 1k", "effective_retrieval >= 2k", "recall@1k > 0.9", "niah.single@2k < 0.9"]
    verdicts = [result.verdict for result in check_gates(gates, later.records, later.config)]
    assert verdicts == ["pass", "fail", "pass", "pass"]


def test_a_gate_on_the_strict_bracket_is_undecided_until_it_is_certified(tmp_path: Path) -> None:
    found = go(tmp_path / "a", model="sim:cliff@1k", max_length="2k")
    result = check_gates(["effective_retrieval >= 1k"], found.records, found.config)[0]
    assert result.verdict == "undecided"
    assert "--certify" in result.missing
    rate = check_gates(["recall@1k > 0.9"], found.records, found.config)[0]
    assert (rate.verdict, rate.low) == ("undecided", pytest.approx(0.8591, abs=1e-4))


def test_refining_tests_a_length_between_pass_and_failure(tmp_path: Path) -> None:
    found = go(tmp_path / "a", model="sim:cliff@1k", max_length="2k", refine=True)
    assert [length for length, _, _ in steps(found)] == [512, 1024, 1448, 2048]


def test_retrieval_near_zero_at_the_shortest_length_stops_the_other_search_with_advice(tmp_path: Path) -> None:
    options = {"tasks": "niah.single,ruler.vt", "min_length": "1k", "model": "sim:cliff@512"}
    broken = go(tmp_path / "a", **options, concurrency=1)
    assert broken.exit_code == 3
    assert "the set-up is probably wrong" in str(broken.stopped)
    forced = go(tmp_path / "b", **options, concurrency=1, force=True)
    assert (forced.stopped, forced.exit_code) == (None, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_length": 64}, "niah.single"),
        ({"max_length": None}, "--max-length"),
        ({"min_length": "8k"}, "above --max-length"),
        ({"capability": "reasoning"}, "no task here measures reasoning"),
        ({"capability": "both sides"}, "--capability"),
        ({"lengths": "1k,2k"}, "--lengths"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_made(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BatteryError, match=words):
        go(tmp_path / "a", **options)
    assert not (tmp_path / "a").exists()


def test_the_default_grid_starts_where_every_task_fits_and_ends_at_the_longest(tmp_path: Path) -> None:
    plan = plan_find(Options.of(model="sim:perfect", max_length="6k", out=tmp_path / "a"))
    assert plan.prepared.plan.lengths == (1024, 2048, 4096, 6144)
    assert plan.prepared.plan.headline == {"retrieval": ("niah.single",), "reasoning": ("ruler.vt",)}
    named = plan_find(Options.of(model="sim:perfect", lengths="1k,3k", out=tmp_path / "a"))
    assert named.hunts["retrieval"].rule.lengths == (1024, 3072)


def test_the_card_speaks_of_the_zone_and_shows_strata(tmp_path: Path) -> None:
    run = longreach.find(model="sim:cliff@1k", tasks="niah.single", min_length=512, max_length="2k", out=tmp_path / "a")
    text = (tmp_path / "a" / "card.md").read_text()
    assert "retrieves up to **1k** by an adaptive search" in text
    assert "1k passes (> 0.85 with 97.5% confidence, 35/35); 2k fails" in text
    assert "longreach find --tasks niah.single --model sim:cliff@1k --max-length 2k --min-length 512" in text
    data = json.loads((tmp_path / "a" / "card.json").read_text())
    assert {cell["depth"] for cell in data["cells"]} == {0.1, 0.3, 0.5, 0.7, 0.9}
    assert data["effective_retrieval"]["method"] == "ascend"
    assert [item["n"] for item in data["scan"]["retrieval"]["lengths"]] == [35, 35, 5]
    assert run.exit_code == 0
    before = (tmp_path / "a" / "card.json").read_bytes()
    rewrite(tmp_path / "a")
    assert (tmp_path / "a" / "card.json").read_bytes() == before


def test_a_search_is_priced_for_assumed_curves_before_anything_is_sent(tmp_path: Path) -> None:
    options = Options.of(model="sim:perfect", max_length="128k", out=tmp_path / "a", price_in=1.0, price_out=1.0)
    lines = list(find_forecast(plan_find(options)))
    assert "every length passes (0.99): 10," in lines[3]
    assert "13.0 times fewer than the grid, usually 128k" in lines[3]
    assert "USD for prompts" in lines[3]
    assert not (tmp_path / "a").exists()


def test_comparing_searches_says_what_their_pairs_are_worth(tmp_path: Path) -> None:
    for name, model in (("a", "sim:perfect"), ("b", "sim:cliff@512")):
        go(tmp_path / name, model=model, max_length=1024)
    found = compare(read_run(tmp_path / "a"), read_run(tmp_path / "b"))
    assert found.verdict == "worse"
    assert found.lengths[0].claimed
    assert any("The base and the new run chose how many samples" in line for line in found.warnings)


def child(folder: Path, model: str) -> "subprocess.Popen[bytes]":
    line = [
        sys.executable,
        "-m",
        "longreach",
        "find",
        "--model",
        model,
        "--tasks",
        "niah.single",
        "--min-length",
        "512",
    ]
    line += ["--max-length", "1k", "--out", str(folder), "--concurrency", "2"]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(folder: Path, n: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 30
    while not (folder / RECORDS).exists() or (folder / RECORDS).read_bytes().count(b"\n") < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def slow(folder: Path) -> str:
    return profile(
        folder,
        "retrieval: {512: 1.0}\nlatency: {prefill_tokens_per_s: 20000, decode_tokens_per_s: 1000, sleep: true}\n",
    )


def test_a_kill_in_the_middle_of_a_block_loses_nothing(tmp_path: Path) -> None:
    model = slow(tmp_path)
    for n in (8, 41):
        process = child(tmp_path / "a", model)
        wait_for(tmp_path / "a", n, process)
        process.kill()
        process.communicate()
    resumed = go(tmp_path / "a", model=model, max_length="1k", concurrency=2)
    whole = go(tmp_path / "b", model=model, max_length="1k", concurrency=2)
    assert steps(resumed) == steps(whole) == [(512, "pass", 35), (1024, "pass", 35)]
    assert len({record.key for record in resumed.records}) == len(resumed.records)


def test_ctrl_c_keeps_everything_writes_the_card_and_exits_3(tmp_path: Path) -> None:
    process = child(tmp_path / "a", slow(tmp_path))
    wait_for(tmp_path / "a", 12, process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 3, errors
    assert b"stopped: Ctrl-C" in errors
    assert b"512 is undecided so far (10/10)" in output
    assert (tmp_path / "a" / "card.md").exists()
