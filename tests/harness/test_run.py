"""run(): from options to a folder, and back into it."""

import asyncio
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import longreach
from longreach.harness.errors import ConfigError, RunFolderError
from longreach.harness.record import Record
from longreach.harness.running.frame import COLUMNS, FRAME_COLUMNS, ordered, write_csv
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare
from longreach.harness.running.progress import Progress
from longreach.harness.running.revisit import rescore, verify
from longreach.harness.running.run import caps_of, collect
from longreach.harness.running.store import RECORDS, open_store, read_config, read_records, write_config

TIMING = ("ttft_s", "latency_s")


@dataclass(frozen=True)
class Result:
    """What the tests look at."""

    records: list[Record]
    stopped: str | None
    exit_code: int


def wanted(folder: Path, **options: Any) -> Options:
    """A small run; options replace its defaults."""
    defaults: dict[str, Any] = {"tasks": "niah.single", "model": "sim:perfect", "lengths": "512,1k"}
    defaults |= {"depths": "0,0.5,1", "samples": 2, "out": folder}
    return Options.of(**(defaults | options))


def go(folder: Path, **options: Any) -> Result:
    """The run up to results.csv; drawing a card takes longer than all the rest."""
    prepared = prepare(wanted(folder, **options))
    caps = caps_of(prepared)
    with open_store(prepared.folder) as store:
        collected = collect(prepared, store, caps, Progress(stream=io.StringIO()))
        rows = ordered(store.records.values(), list(prepared.plan.tasks))
        write_csv(prepared.folder, rows)
    if collected.error is not None:
        raise collected.error
    return Result(rows, collected.stopped, collected.exit_code)


def profile(folder: Path, text: str) -> str:
    path = folder / "profile.yaml"
    path.write_text("retrieval: {512: 1.0}\n" + text)
    return f"sim:{path}"


def outcomes(run: Result) -> Counter[str]:
    return Counter(record.outcome for record in run.records)


def n_lines(folder: Path) -> int:
    return (folder / RECORDS).read_bytes().count(b"\n")


def test_a_run_leaves_config_records_results_and_card(tmp_path: Path) -> None:
    run = longreach.run(
        tasks="niah.single", model="sim:perfect", lengths=["512", 1024], samples=2, depths="0,0.5,1", out=tmp_path / "a"
    )
    assert (run.exit_code, run.stopped) == (0, None)
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert {"config.yaml", "records.jsonl", "results.csv", "card.md", "card.json", "card.html", "figures"} <= names
    with (tmp_path / "a" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(run.records) == 12
    assert {row["correct"] for row in rows} == {"True"}
    assert [(row["length"], row["depth"], row["iteration"]) for row in rows[:3]] == [
        ("512", "0.0", "0"),
        ("512", "0.0", "1"),
        ("512", "0.5", "0"),
    ]
    assert tuple(run.frame.columns) == FRAME_COLUMNS
    assert set(run.frame["capability"]) == {"retrieval"}
    assert run.card.to_dict()["effective_reasoning"]["state"] == "not_measured"


def test_repeating_a_run_sends_nothing(tmp_path: Path) -> None:
    first = go(tmp_path / "a")
    before = (tmp_path / "a" / RECORDS).read_bytes()
    again = go(tmp_path / "a")
    assert (tmp_path / "a" / RECORDS).read_bytes() == before
    assert again.records == first.records


def test_more_samples_lengths_and_tasks_reuse_what_is_there(tmp_path: Path) -> None:
    go(tmp_path / "a")
    before = (tmp_path / "a" / RECORDS).read_bytes()
    more = go(tmp_path / "a", tasks="niah.single,trace.arith", lengths="512,1k,2k", samples=3)
    after = (tmp_path / "a" / RECORDS).read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == len(more.records) == 2 * 3 * 3 * 3


def test_fewer_samples_are_a_subset_and_undo_nothing(tmp_path: Path) -> None:
    go(tmp_path / "a")
    fewer = go(tmp_path / "a", samples=1, lengths="512")
    assert n_lines(tmp_path / "a") == len(fewer.records) == 12
    config = read_config(tmp_path / "a")
    assert config["lengths"] == [512, 1024]
    assert {cell["n"] for cell in config["planned"]} == {2}


def test_what_a_probe_found_out_survives_a_repeat_that_sends_nothing(tmp_path: Path) -> None:
    go(tmp_path / "a")
    config = read_config(tmp_path / "a")
    config["model"]["facts"]["server"] = "vLLM 1.2"
    write_config(tmp_path / "a", config)
    go(tmp_path / "a")
    assert read_config(tmp_path / "a")["model"]["facts"]["server"] == "vLLM 1.2"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"temperature": 0.7}, "sampling.temperature: 0.0 -> 0.7"),
        ({"system": "Be brief."}, "sampling.system: None -> Be brief."),
        ({"seed": 7}, "seed: 42 -> 7"),
        ({"model": "sim:cliff@1k"}, "model: sim:perfect -> sim:cliff@1k"),
        ({"tokenizer": "bytes", "lengths": "2k"}, "tokenizer: words -> bytes"),
        ({"corpus": "repeat"}, "tasks.niah.single: niah.single@"),
    ],
)
def test_a_changed_setting_is_refused_by_name_and_changes_nothing(
    tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    go(tmp_path / "a", samples=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir() if path.is_file()}
    with pytest.raises(RunFolderError, match="another --out") as caught:
        go(tmp_path / "a", samples=1, **changes)
    assert named in str(caught.value)
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir() if path.is_file()} == before


def test_the_config_can_be_given_back_as_the_battery(tmp_path: Path) -> None:
    first = go(tmp_path / "a", tasks="niah.multi,trace.arith", set=["niah.multi.needles=2"], temperature=0.5)
    file = tmp_path / "a" / "config.yaml"
    blank = dict.fromkeys(("tasks", "model", "lengths", "depths", "samples"))
    again = go(tmp_path / "b", battery=file, **blank)
    assert [record.key for record in again.records] == [record.key for record in first.records]
    assert [record.text for record in again.records] == [record.text for record in first.records]


def test_seven_outcomes_are_kept_apart(tmp_path: Path) -> None:
    faults = "faults: {no_answer: 0.12, refused: 0.12, overflow: 0.12, failed: 0.12, truncated: 0.12, flaky: 0.2}\n"
    run = go(tmp_path / "a", model=profile(tmp_path, faults), samples=30, tokenizer="bytes", lengths="1k,2k")
    counts = outcomes(run)
    assert set(counts) == {"scored", "no_answer", "refused", "overflow", "truncated", "failed"}
    for record in run.records:
        assert record.score == {"scored": 1.0, "no_answer": 0.0, "refused": 0.0}.get(record.outcome)
    tries = {record.outcome: len(record.attempts) for record in run.records}
    assert (tries["overflow"], tries["refused"], tries["failed"]) == (1, 1, 8)
    assert any([attempt.status for attempt in record.attempts] == ["broken_stream", "ok"] for record in run.records)
    assert run.exit_code == 3  # an overflow makes its cell untested


def test_what_failed_is_tried_again_and_what_is_final_is_not(tmp_path: Path) -> None:
    model = profile(tmp_path, "faults: {failed: 0.3, overflow: 0.1}\n")
    first = outcomes(go(tmp_path / "a", model=model, samples=10))
    lines = n_lines(tmp_path / "a")
    again = go(tmp_path / "a", model=model, samples=10)
    assert outcomes(again) == first
    assert n_lines(tmp_path / "a") == lines + first["failed"]


def test_a_token_cap_stops_below_it_and_the_rest_is_not_run(tmp_path: Path) -> None:
    run = go(tmp_path / "a", max_tokens=4000, samples=4)
    counts = outcomes(run)
    used = sum((r.n_prompt_tokens or 0) + (r.n_output_tokens or 0) for r in run.records)
    assert 2000 < used <= 4000
    assert counts["scored"] + counts["not_run"] == 24
    assert (run.exit_code, run.stopped) == (3, "--max-tokens 4000")
    assert outcomes(go(tmp_path / "a", samples=4)) == {"scored": 24}


def test_a_cost_cap_counts_requests_in_flight(tmp_path: Path) -> None:
    run = go(tmp_path / "a", price_in=2.0, price_out=8.0, max_cost=0.01, concurrency=16)
    spent = sum(record.cost_usd or 0.0 for record in run.records)
    assert 0.003 < spent <= 0.01
    assert run.exit_code == 3


def test_a_cost_cap_without_a_price_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--price-in"):
        go(tmp_path / "a", max_cost=1.0)
    assert not (tmp_path / "a").exists()


def test_a_broken_shortest_length_stops_the_run_with_advice(tmp_path: Path) -> None:
    run = go(tmp_path / "a", model="sim:cliff@256")
    assert run.exit_code == 3
    assert "retrieval scores 0.00 at 512" in str(run.stopped)
    assert {record.length for record in run.records} == {512}
    forced = go(tmp_path / "a", model="sim:cliff@256", force=True)
    assert (forced.exit_code, {record.length for record in forced.records}) == (0, {512, 1024})


def test_reasoning_at_zero_does_not_stop_a_battery_whose_retrieval_works(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("retrieval: {512: 1.0}\nreasoning: {512: 0.0}\n")
    run = go(tmp_path / "a", model=f"sim:{path}", tasks="niah.single,trace.arith")
    assert (run.stopped, run.exit_code) == (None, 0)


def test_an_explicit_length_that_is_too_short_names_the_minimum_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"shortest length that can is about \d+"):
        go(tmp_path / "a", lengths="32,1k")
    assert not (tmp_path / "a").exists()


def test_a_battery_skips_what_is_too_short_and_lists_it(tmp_path: Path) -> None:
    battery = {"name": "b", "lengths": [32, 1024], "depths": [0.5], "samples": 1, "tasks": ["niah.single"]}
    run = go(tmp_path / "a", battery=battery, **dict.fromkeys(("tasks", "lengths", "depths", "samples")))
    assert run.exit_code == 0
    (cell,) = read_config(tmp_path / "a")["infeasible"]
    assert (cell["task"], cell["length"]) == ("niah.single", 32)
    assert cell["minimum"] > 32


def test_every_prompt_can_be_rebuilt_and_a_changed_hash_is_found(tmp_path: Path) -> None:
    go(tmp_path / "a", system="Answer briefly.")
    assert verify(tmp_path / "a") == (12, [])
    text = (tmp_path / "a" / RECORDS).read_text()
    sha = next(iter(read_records(tmp_path / "a").values())).prompt_sha256
    assert sha is not None
    (tmp_path / "a" / RECORDS).write_text(text.replace(sha, "0" * 64))
    n, wrong = verify(tmp_path / "a")
    assert (n, len(wrong)) == (12, 1)


def test_rescoring_changes_nothing_unless_the_scorer_did(tmp_path: Path) -> None:
    go(tmp_path / "a")
    lines = (tmp_path / "a" / RECORDS).read_text().splitlines()
    damaged = json.loads(lines[0]) | {"score": 0.0}
    (tmp_path / "a" / RECORDS).write_text("\n".join([json.dumps(damaged), *lines[1:]]) + "\n")
    assert rescore(tmp_path / "a") == (12, 1)
    assert rescore(tmp_path / "a") == (12, 0)
    assert all(record.score == 1.0 for record in read_records(tmp_path / "a").values())


def test_secrets_are_in_no_file(tmp_path: Path) -> None:
    command = Options.of(header=["Authorization=Bearer s3cret"], model_args="api_key=s3cret,n_ctx=8").command("run")
    assert "s3cret" not in command
    assert "n_ctx=8" in command
    go(tmp_path / "a", samples=1)
    config = yaml.safe_load((tmp_path / "a" / "config.yaml").read_text())
    assert config["command"].startswith("longreach run --lengths 512,1k")


def test_it_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def notebook() -> Result:
        return go(tmp_path / "a", samples=1)

    assert len(asyncio.run(notebook()).records) == 6


def test_a_hand_made_command_is_reproduced(tmp_path: Path) -> None:
    go(tmp_path / "a", set=["niah.single.haystack=repeat"], samples=1)
    command = read_config(tmp_path / "a")["command"]
    assert "--tasks niah.single" in command
    assert "--set niah.single.haystack=repeat" in command


def test_results_do_not_depend_on_concurrency(tmp_path: Path) -> None:
    one = go(tmp_path / "a", model="sim:logistic@1k", concurrency=1, force=True)
    many = go(tmp_path / "b", model="sim:logistic@1k", concurrency=32, force=True)
    assert [(r.key, r.text, r.score) for r in one.records] == [(r.key, r.text, r.score) for r in many.records]


# --- in a child process


def child(folder: Path, model: str) -> "subprocess.Popen[bytes]":
    words = ["run", "--tasks", "niah.single", "--model", model, "--lengths", "512,1k", "--depths", "0,0.5,1"]
    words += ["--samples", "10", "--concurrency", "3", "--out", str(folder)]
    return subprocess.Popen([sys.executable, "-m", "longreach", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(folder: Path, n: int, process: "subprocess.Popen[bytes]") -> None:
    """Until the folder holds n records."""
    path = folder / RECORDS
    while not path.exists() or path.read_bytes().count(b"\n") < n:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def without_timing(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return [{name: value for name, value in row.items() if name not in TIMING} for row in csv.DictReader(file)]


def slow(folder: Path) -> str:
    """About 15 ms for a prompt."""
    return profile(folder, "latency: {prefill_tokens_per_s: 60000, decode_tokens_per_s: 1000, sleep: true}\n")


def test_three_kills_and_a_resume_give_the_results_of_an_unbroken_run(tmp_path: Path) -> None:
    model = slow(tmp_path)
    for n in (7, 19, 33):
        process = child(tmp_path / "killed", model)
        wait_for(tmp_path / "killed", n, process)
        acknowledged = read_records(tmp_path / "killed")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert acknowledged.items() <= read_records(tmp_path / "killed").items()
    process = child(tmp_path / "killed", model)
    process.communicate()
    assert process.returncode == 0
    go(tmp_path / "whole", model=model, samples=10, concurrency=3)
    assert without_timing(tmp_path / "killed") == without_timing(tmp_path / "whole")
    assert n_lines(tmp_path / "killed") == 60


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_drains_keeps_everything_and_exits_3(tmp_path: Path, kind: signal.Signals) -> None:
    process = child(tmp_path / "a", slow(tmp_path))
    wait_for(tmp_path / "a", 5, process)
    process.send_signal(kind)
    _, errors = process.communicate()
    assert process.returncode == 3
    assert b"stopped: Ctrl-C" in errors
    n = n_lines(tmp_path / "a")
    assert 5 <= n < 60
    assert len(without_timing(tmp_path / "a")) == n
    assert not (tmp_path / "a" / "run.lock").exists()


def test_a_second_ctrl_c_ends_at_once_with_130(tmp_path: Path) -> None:
    model = profile(tmp_path, "latency: {prefill_tokens_per_s: 400, decode_tokens_per_s: 400, sleep: true}\n")
    process = child(tmp_path / "a", model)
    wait_for(tmp_path / "a", 1, process)  # an answer is stored: Ctrl-C is heard from now on
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    while b"Ctrl-C again" not in (line := process.stderr.readline()):
        assert line, "the run ended by itself"
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    process = child(tmp_path / "a", slow(tmp_path))
    wait_for(tmp_path / "a", 1, process)
    with pytest.raises(RunFolderError, match=f"process {process.pid}"):
        go(tmp_path / "a")
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_records_name_their_sample_completely(tmp_path: Path) -> None:
    record: Record = go(tmp_path / "a", samples=1).records[0]
    assert record.attempts[0].status == "ok"
    assert record.prompt_sha256 is not None
    assert (record.capability, record.family, record.origin) == ("retrieval", "needle", "run")
    assert os.fspath(tmp_path) not in record.to_json()
