"""Every exit code of the contract, each shown by a command."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.cli import run_command
from longreach.harness.registry import get_task
from longreach.harness.running.attempts import Policy
from longreach.harness.sample import Message

GRID = ["--tasks", "niah.single", "--lengths", "512", "--depths", "0.5", "--samples"]
Command = Callable[..., tuple[int, str]]


def solve(text: str) -> str | None:
    return get_task("niah.single").solve((Message(role="user", content=text),))  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A command line in an empty folder: exit code, and the last line on standard error."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: object) -> tuple[int, str]:
        code = run_command([str(word) for word in words])
        return code, (capsys.readouterr().err.splitlines() or [""])[-1]

    return call


def test_0_done(command: Command) -> None:
    assert command("run", *GRID, 40, "--model", "sim:perfect", "--out", "a")[0] == 0
    assert command("gate", "a", "recall@512 > 0.9")[0] == 0
    assert command("verify", "a")[0] == 0
    assert command("compare", "a", "a")[0] == 2  # of the same run nothing can be told


def test_1_a_gate_or_comparison_failed(command: Command, tmp_path: Path) -> None:
    command("run", *GRID, 40, "--model", "sim:perfect", "--out", "good")
    command("run", *GRID, 40, "--model", "sim:cliff@64", "--out", "bad", "--force")
    assert command("gate", "bad", "recall@512 > 0.9")[0] == 1
    assert command("compare", "good", "bad")[0] == 1
    assert command("compare", "bad", "good")[0] == 0
    records = tmp_path / "good" / "records.jsonl"
    sha = json.loads(records.read_text().splitlines()[0])["prompt_sha256"]
    records.write_text(records.read_text().replace(sha, "0" * 64))
    assert command("verify", "good")[0] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", *GRID, "1", "--bogus"], "No such option"),
        (["run", *GRID, "none", "--model", "sim:perfect"], "not a number of samples"),
        (["run", "qick", "--model", "sim:perfect"], "did you mean 'quick'"),
        (["merge", "x", "--out", ""], "'--out': it is empty"),
        (["card", "x", "--out", ""], "'--out': it is empty"),
        (["card", "x", "--baseline", " "], "'--baseline': it is empty"),
        (["import", "openai-batch", "x.jsonl", "--out", ""], "'--out': it is empty"),
        (["run", *GRID, "1", "--model", "sim:perfect", "--out", ""], "--out is empty"),
        (["verify", "nowhere"], "is not a run folder"),
    ],
)
def test_2_usage_or_configuration(command: Command, tmp_path: Path, words: list[str], says: str) -> None:
    code, said = command(*words)
    assert (code, says in said) == (2, True), said
    assert not list(tmp_path.iterdir())


def test_2_a_folder_of_other_settings(command: Command) -> None:
    command("run", *GRID, 2, "--model", "sim:perfect", "--out", "a")
    code, said = command("run", *GRID, 2, "--model", "sim:perfect", "--seed", 7, "--out", "a")
    assert (code, "seed: 42 -> 7" in said) == (2, True)


def test_3_incomplete_or_undecided(command: Command, server: Any, fault_server: Any) -> None:
    server.oracle = fault_server.Oracle(solve=solve, window=1500)
    grid = ["--tasks", "niah.single", "--lengths", "512,2k", "--depths", "0.5", "--samples", 2]
    assert command("run", *grid, "--model", "openai:m", "--base-url", server.url, "--out", "a")[0] == 3
    assert command("gate", "a", "recall@512 > 0.9")[0] == 3  # two samples decide nothing
    assert command("gate", "a", "recall@2k > 0.9")[0] == 3  # not tested: the window ends below
    assert command("run", *GRID, 9, "--model", "sim:perfect", "--max-tokens", 1200, "--out", "b")[0] == 3
    command("run", *GRID, 4, "--model", "sim:perfect", "--out", "c", "--shard", "1/2")
    assert command("merge", "c", "--out", "d")[0] == 3


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (401, {"message": "no such key", "code": "invalid_api_key"}, "check the key in OPENAI_API_KEY"),
        (404, {"message": "no such model", "code": "model_not_found"}, "check the model's name"),
        (429, {"message": "pay first", "code": "insufficient_quota"}, "no quota left"),
        (400, {"message": "strange request"}, "the configuration is at fault"),
    ],
)
def test_4_model_or_server_unusable(
    command: Command, server: Any, status: int, error: dict[str, str], says: str
) -> None:
    server.reply(status, {"error": error})
    code, said = command("run", *GRID, 2, "--model", "openai:m", "--base-url", server.url, "--out", "a")
    assert (code, says in said) == (4, True), said
    assert len(server.requests) == 1


def test_4_a_server_that_never_answers_is_given_up_at_its_first_request(
    command: Command, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longreach.harness.running.conduct.Policy", lambda: Policy(base_s=0.01, first_s=0.1))
    server.reply(500, {"error": {"message": "out of order"}})
    code, said = command("run", *GRID, 2, "--model", "openai:m", "--base-url", server.url, "--out", "a")
    assert (code, "answers no request, not even a short one" in said, "out of order" in said) == (4, True, True)
    assert 3 <= len(server.requests) <= 6


def test_0_a_server_that_says_when_it_will_be_ready_is_waited_for(
    command: Command, server: Any, fault_server: Any
) -> None:
    class Loading(fault_server.Oracle):  # type: ignore[name-defined, misc]
        async def reply(self, sent: Any) -> Any:
            if server.n_requests <= 6:
                error = {"error": {"message": "Loading model"}}
                return fault_server.Reply(status=503, body=error, headers={"retry-after-ms": "20"})
            return await super().reply(sent)

    server.oracle = Loading(solve=solve)
    code, _ = command("run", *GRID, 2, "--model", "openai:m", "--base-url", server.url, "--out", "a")
    assert (code, server.n_requests) == (0, 6 + 3 + 2)


def test_4_nobody_answers(command: Command) -> None:
    code, said = command("run", *GRID, 2, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--out", "a")
    assert (code, "cannot be reached" in said) == (4, True)


@pytest.mark.parametrize("usage", [True, False])
def test_4_a_server_that_cuts_prompts_and_force_does_not_help(
    command: Command, server: Any, fault_server: Any, tmp_path: Path, usage: bool
) -> None:
    def codes(text: str) -> str | None:
        door = "first" if "code of the first door?" in text else "last"
        return text.partition(f"The code of the {door} door is ")[2][:5] or solve(text)

    server.oracle = fault_server.Oracle(solve=codes, window=2048, cuts=True, usage=usage)
    grid = ["--tasks", "niah.single", "--lengths", "512,8k", "--depths", "0.5", "--samples", 2, "--force"]
    code, said = command("run", *grid, "--model", "openai:m", "--base-url", server.url, "--out", "a")
    assert (code, "cuts prompts in silence" in said, "--force does not help" in said) == (4, True, True)
    assert not (tmp_path / "a" / "records.jsonl").read_text()
    assert command("check", "--model", "openai:m", "--base-url", server.url, "--max-length", "8k")[0] == 4


def launch(server: Any, folder: Path) -> subprocess.Popen[bytes]:
    """A run as a process of its own."""
    words = [*GRID, "400", "--model", "openai:m", "--base-url", server.url, "--out", str(folder)]
    return subprocess.Popen([sys.executable, "-m", "longreach", "run", *words], stderr=subprocess.PIPE)


def start(server: Any, folder: Path) -> subprocess.Popen[bytes]:
    """The same, with requests in flight."""
    process = launch(server, folder)
    records = folder / "records.jsonl"
    while not (records.exists() and records.stat().st_size):
        assert process.poll() is None
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_3_a_signal_ends_a_run_that_can_be_resumed(
    server: Any, fault_server: Any, tmp_path: Path, kind: signal.Signals
) -> None:
    server.oracle = fault_server.Oracle(solve=solve, prefill_s=0.1 / 512)
    process = start(server, tmp_path / "a")
    process.send_signal(kind)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, b"stopped: Ctrl-C" in said) == (3, True)
    n_records = (tmp_path / "a" / "records.jsonl").read_bytes().count(b"\n")
    assert n_records == server.n_requests - 3  # what was in flight was awaited; three canaries came first
    assert (tmp_path / "a" / "card.md").exists()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_3_a_signal_during_the_canaries_says_so_and_frees_the_folder(
    server: Any, fault_server: Any, tmp_path: Path, kind: signal.Signals
) -> None:
    class Silent(fault_server.Oracle):  # type: ignore[name-defined, misc]
        async def reply(self, sent: Any) -> Any:
            import asyncio

            await asyncio.sleep(3600)

    server.oracle = Silent(solve=solve)
    process = launch(server, tmp_path / "a")
    while not server.n_requests:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(kind)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, b"stopped before the first sample" in said) == (3, True)
    assert not (tmp_path / "a" / "run.lock").exists()


def test_130_a_second_ctrl_c_ends_at_once(server: Any, fault_server: Any, tmp_path: Path) -> None:
    class Stuck(fault_server.Oracle):  # type: ignore[name-defined, misc]
        async def reply(self, sent: Any) -> Any:
            import asyncio

            if server.n_requests > 12:
                await asyncio.sleep(3600)
            return await super().reply(sent)

    server.oracle = Stuck(solve=solve)
    process = start(server, tmp_path / "a")
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None  # it waits for what is in flight
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
