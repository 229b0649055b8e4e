"""Batch files: requests written down, answered elsewhere in any order, and scored as if they had just come."""

import csv
import json
import random
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import longreach
from longreach.harness.cli import run_command
from longreach.harness.errors import ConfigError
from longreach.harness.record import Record
from longreach.harness.registry import get_task
from longreach.harness.running.batch import export_batch
from longreach.harness.running.options import Options
from longreach.harness.sample import Message
from longreach.harness.tokenizer import WordsTokenizer

WORDS = ["--tasks", "niah.single", "--lengths", "512,1k", "--depths", "0,1", "--samples", "3", "--model", "openai:m"]
TIMING = ("ttft_s", "latency_s")


def solve(text: str) -> str | None:
    return get_task("niah.single").solve((Message(role="user", content=text),))  # type: ignore[attr-defined, no-any-return]


def answer_line(line: str) -> dict[str, Any]:
    """What a batch service gives back for one request."""
    request = json.loads(line)
    prompt = request["body"]["messages"][0]["content"]
    text = solve(prompt)
    body = {
        "model": "m-served",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": WordsTokenizer().count(prompt) + 12, "completion_tokens": len(str(text)) // 4 + 1},
    }
    return {
        "id": "b",
        "custom_id": request["custom_id"],
        "response": {"status_code": 200, "body": body},
        "error": None,
    }


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    """An address at which nobody answers: nothing may be sent."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return "http://127.0.0.1:9/v1"


def export(folder: Path, url: str, *more: str) -> list[str]:
    words = ["export", "openai-batch", str(folder / "batch.jsonl"), *WORDS, "--base-url", url]
    assert run_command([*words, "--out", str(folder / "run"), *more]) == 0
    return [line for path in sorted(folder.glob("batch-*.jsonl")) for line in path.read_text().splitlines()]


def bring_back(folder: Path, *files: list[dict[str, Any]]) -> int:
    paths = []
    for number, lines in enumerate(files):
        paths.append(folder / f"answers-{number}.jsonl")
        paths[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run_command(["import", "openai-batch", *map(str, paths), "--out", str(folder / "run")])


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open() as file:
        return [{name: value for name, value in row.items() if name not in TIMING} for row in csv.DictReader(file)]


def records(folder: Path) -> list[Record]:
    return [Record.from_json(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def test_each_line_is_a_request_that_is_not_streamed(tmp_path: Path, url: str) -> None:
    lines = [json.loads(line) for line in export(tmp_path, url)]
    assert len(lines) == len({line["custom_id"] for line in lines}) == 12
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert set(lines[0]["body"]) == {"model", "messages", "max_tokens", "temperature"}


def test_answers_out_of_order_give_the_results_of_a_run(
    tmp_path: Path, server: Any, fault_server: Any, url: str
) -> None:
    server.oracle = fault_server.Oracle(solve=solve)
    wanted = {"tasks": ["niah.single"], "lengths": "512,1k", "depths": "0,1", "samples": 3, "model": "openai:m"}
    longreach.run(**wanted, base_url=server.url, out=tmp_path / "direct")
    answers = [answer_line(line) for line in export(tmp_path, server.url)]
    random.Random(1).shuffle(answers)
    assert bring_back(tmp_path, answers[:5], answers[5:]) == 0
    assert rows(tmp_path / "run") == rows(tmp_path / "direct")


def post(url: str, line: str) -> dict[str, Any]:
    """The reply of the server to one exported request, as a line of a batch's output (200) or error file."""
    request = json.loads(line)
    sent = urllib.request.Request(
        url.removesuffix("/v1") + request["url"],
        data=json.dumps(request["body"]).encode(),
        headers={"content-type": "application/json"},
        method=request["method"],
    )
    try:
        with urllib.request.urlopen(sent, timeout=30) as reply:
            status, body = reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        status, body = error.code, json.load(error)
    return {"custom_id": request["custom_id"], "response": {"status_code": status, "body": body}, "error": None}


def test_a_batch_that_the_server_answered_out_of_order_gives_the_results_of_a_run(
    tmp_path: Path, server: Any, fault_server: Any
) -> None:
    class Picky(fault_server.Oracle):  # type: ignore[name-defined, misc]
        async def reply(self, sent: Any) -> Any:
            if str(solve(sent["messages"][-1]["content"])).endswith(("1", "3", "7")):
                error = {"message": "too long", "code": "context_length_exceeded"}
                return fault_server.Reply(status=400, body={"error": error})
            return await super().reply(sent)

    server.oracle = Picky(solve=solve)
    wanted = {"tasks": ["niah.single"], "lengths": "512,1k", "depths": "0,1", "samples": 3, "model": "openai:m"}
    direct = longreach.run(**wanted, base_url=server.url, out=tmp_path / "direct")
    assert {record.outcome for record in direct.records} == {"scored", "overflow"}
    replies = [post(server.url, line) for line in export(tmp_path, server.url)]
    random.Random(1).shuffle(replies)
    answers, errors = ([r for r in replies if (r["response"]["status_code"] == 200) == good] for good in (True, False))
    assert len(errors) > 0
    sent = server.n_requests
    assert bring_back(tmp_path, answers[:4], errors, answers[4:]) == direct.exit_code == 3
    assert server.n_requests == sent  # nothing is asked again
    assert rows(tmp_path / "run") == rows(tmp_path / "direct")


def test_errors_fail_their_samples_and_may_be_exported_again(tmp_path: Path, url: str) -> None:
    answers = [answer_line(line) for line in export(tmp_path, url)]
    broken = {"id": "b", "custom_id": answers[0]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    too_long = {
        "custom_id": answers[1]["custom_id"],
        "response": {"status_code": 400, "body": {"error": {"code": "context_length_exceeded", "message": "too long"}}},
    }
    assert bring_back(tmp_path, answers[2:], [broken, too_long]) == 3
    outcomes = {record.key: record.outcome for record in records(tmp_path / "run")}
    assert (outcomes[answers[0]["custom_id"]], outcomes[answers[1]["custom_id"]]) == ("failed", "overflow")
    for path in tmp_path.glob("batch-*.jsonl"):
        path.unlink()
    again = [json.loads(line)["custom_id"] for line in export(tmp_path, url)]
    assert again == [answers[0]["custom_id"]]


def test_an_answer_beats_an_error_of_the_same_sample(tmp_path: Path, url: str) -> None:
    answers = [answer_line(line) for line in export(tmp_path, url)]
    error = {"custom_id": answers[0]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    assert bring_back(tmp_path, [error, *answers], [error]) == 0
    assert len(records(tmp_path / "run")) == 12


def test_files_are_split_by_lines_and_by_bytes(tmp_path: Path, url: str) -> None:
    options = Options.of(tasks="niah.single", lengths="512", samples=2, model="openai:m", base_url=url, out=tmp_path)
    by_lines, n, _ = export_batch(options, tmp_path / "a.jsonl", max_lines=9)
    assert (n, [len(path.read_text().splitlines()) for path in by_lines]) == (22, [9, 9, 4])
    by_bytes, n, _ = export_batch(options, tmp_path / "b.jsonl", max_bytes=9000)
    assert n == sum(len(path.read_text().splitlines()) for path in by_bytes)
    assert max(path.stat().st_size for path in by_bytes) <= 9000
    assert [path.name for path in by_bytes[:2]] == ["b-00001.jsonl", "b-00002.jsonl"]
    with pytest.raises(ConfigError, match="one request alone has"):
        export_batch(options, tmp_path / "c.jsonl", max_bytes=500)


def test_lines_of_another_run_are_refused(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    export(tmp_path, url)
    assert bring_back(tmp_path, [{"custom_id": "other", "response": None, "error": {}}]) == 2
    assert "belongs to the run in" in capsys.readouterr().err


def test_a_model_without_batches_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "export",
        "openai-batch",
        str(tmp_path / "b.jsonl"),
        "--model",
        "sim:perfect",
        "--out",
        str(tmp_path / "r"),
    ]
    assert run_command(words) == 2
    assert "has no batch form" in capsys.readouterr().err
