"""Canaries: an endpoint that reads less than it is sent is found out before a run, whatever it reports."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import longreach
from longreach.harness.cli import run_command
from longreach.harness.registry import open_tokenizer
from longreach.harness.running.canaries import make_canary
from longreach.harness.running.store import read_config, read_records

Oracle = Callable[..., Any]


def canary_codes(text: str) -> str | None:
    """What a model would answer that finds codes in what is left of the prompt."""
    which = "first" if "of the first door?" in text else "last"
    _, found, rest = text.partition(f"The code of the {which} door is ")
    return rest[:5] if found else None


@pytest.fixture
def solve() -> Callable[[str], str | None]:
    """Answers canaries, and single needles as the reader does."""
    from longreach.harness.registry import get_task
    from longreach.harness.sample import Message

    task = get_task("niah.single")

    def answer(text: str) -> str | None:
        if "door" in text[-200:]:
            return canary_codes(text)
        return task.solve((Message(role="user", content=text),))  # type: ignore[attr-defined]

    return answer


@pytest.fixture
def oracle(server: Any, fault_server: Any, solve: Callable[[str], str | None]) -> Oracle:
    def make(**options: Any) -> Any:
        server.oracle = fault_server.Oracle(solve=solve, **options)
        return server.oracle

    return make


def check(server: Any, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    code = run_command(["check", "--model", "openai:m", "--base-url", server.url, *more])
    told = capsys.readouterr()
    return code, told.out + told.err


@pytest.mark.parametrize("n_tokens", [300, 4000, 100_000])
def test_a_canary_has_nearly_the_asked_length(n_tokens: int) -> None:
    tokenizer = open_tokenizer("words")
    canary = make_canary(n_tokens, tokenizer)
    count = tokenizer.count(tokenizer.render(canary.messages("start")))
    assert n_tokens - max(140, 0.02 * n_tokens) <= count <= n_tokens


def test_a_good_endpoint_passes(server: Any, oracle: Oracle, capsys: pytest.CaptureFixture[str]) -> None:
    oracle(cached=True)
    code, told = check(server, capsys, "--max-length", "8k")
    assert code == 0, told
    for line in ("answers: both", "streaming: yes", "template 12 tokens", "cached tokens: reported", "8k: read whole"):
        assert line in told
    assert "bad" not in told


@pytest.mark.parametrize(
    ("count", "told"), [(lambda n: n + 5000, "5,012 tokens on top"), (lambda n: 40 * n, "40.0 of its tokens")]
)
def test_counts_that_cannot_be_right_are_no_template(
    server: Any, oracle: Oracle, capsys: pytest.CaptureFixture[str], count: Callable[[int], int], told: str
) -> None:
    """A tokenizer may count three tokens to one of ours; neither 40 nor a template of thousands is one."""
    good = oracle()
    true_count = good.count
    for rule, is_believed in ((count, False), (lambda n: 3 * n, True)):
        good.count = lambda text, rule=rule: rule(true_count(text))
        code, out = check(server, capsys, "--max-length", "1k")
        assert (code, "usage: reported; template" in out) == (0, is_believed)
        assert is_believed or "usage: not to be believed; " in out and told in out
        _, out = check(server, capsys, "--max-length", "1k", "--json")
        found = json.loads(out)
        assert (found["template_tokens"] is None, found["ratio"] is None) == (not is_believed, not is_believed)


def test_a_cut_is_found_by_the_count_with_the_end_that_is_lost(
    server: Any, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle(window=2048, cuts=True)
    code, told = check(server, capsys, "--max-length", "8k")
    assert code == 4
    assert "cuts prompts in silence" in told
    assert "the start is lost" in told
    assert "num_ctx" in told


def test_a_cut_without_usage_is_found_by_the_answers(
    server: Any, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle(window=2048, cuts=True, usage=False)
    code, told = check(server, capsys, "--max-length", "8k", "--json")
    assert code == 4
    assert [reading["state"] for reading in json.loads(told)["readings"]] == ["truncated"]


def test_an_honest_refusal_is_no_fault(server: Any, oracle: Oracle, capsys: pytest.CaptureFixture[str]) -> None:
    oracle(window=2048)
    code, told = check(server, capsys, "--max-length", "8k")
    assert code == 0
    assert "refused as too long, as it should" in told


def test_a_weak_model_is_not_taken_for_a_cut(
    server: Any, fault_server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server.oracle = fault_server.Oracle(
        solve=lambda text: canary_codes(text) if len(text) < 4000 else "no idea", usage=False
    )
    code, told = check(server, capsys, "--max-length", "8k")
    assert code == 0
    assert "nothing shows that all of it was read" in told


def test_refused_parameters_are_named(server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("no", "no"):
        server.answer(text, prompt_tokens=100, completion_tokens=1)
    server.reply(400, {"error": {"message": "Unsupported parameter: 'seed' is not supported", "param": "seed"}})
    server.answer("no", prompt_tokens=100000, completion_tokens=1)
    code, told = check(server, capsys, "--max-length", "5k")
    assert code == 0
    assert "parameters: seed left out" in told


def run(server: Any, folder: Path, **options: Any) -> longreach.Run:
    wanted = {"tasks": ["niah.single"], "lengths": "512,4k", "depths": "0,1", "samples": 2, "model": "openai:m"}
    return longreach.run(**(wanted | options), base_url=server.url, out=folder)


def test_a_run_on_a_good_endpoint_checks_it_once(server: Any, oracle: Oracle, tmp_path: Path) -> None:
    oracle()
    first = run(server, tmp_path / "a")
    assert {record.score for record in first.records} == {1.0}
    sent = server.n_requests
    assert sent == 8 + 3
    facts = yaml.safe_load((tmp_path / "a" / "config.yaml").read_text())["model"]["facts"]["check"]
    assert (facts["usage"], facts["length"], facts["template_tokens"]) == (True, 4096, 12)
    run(server, tmp_path / "a", samples=3)
    assert server.n_requests == sent + 4


@pytest.mark.parametrize("usage", [True, False])
def test_a_run_on_a_cutting_server_stops_with_exit_4_before_the_grid(
    server: Any, oracle: Oracle, tmp_path: Path, capsys: pytest.CaptureFixture[str], usage: bool
) -> None:
    oracle(window=2048, cuts=True, usage=usage)
    words = ["run", "--tasks", "niah.single", "--lengths", "512,4k", "--samples", "2", "--model", "openai:m"]
    code = run_command([*words, "--base-url", server.url, "--out", str(tmp_path / "a")])
    assert code == 4
    assert "num_ctx" in capsys.readouterr().err
    assert server.n_requests <= 8
    assert (tmp_path / "a" / "records.jsonl").read_text() == ""


def test_a_server_that_is_back_on_another_port_is_asked_only_what_is_missing(
    server: Any, fault_server: Any, oracle: Oracle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = fault_server.FaultServer()
    other.oracle = oracle()
    grid = ["--tasks", "niah.single", "--lengths", "2k", "--depths", "0.5", "--out", str(tmp_path), "--force"]
    try:
        for n, url, moved in (("1", server.url, False), ("2", other.url, True), ("2", server.url, True)):
            assert run_command(["run", *grid, "--samples", n, "--model", "openai:m", "--base-url", url]) == 0
            assert ("model.args.base_url has changed" in capsys.readouterr().err) == moved
    finally:
        other.close()
    assert len(read_records(tmp_path)) == 2
    model = read_config(tmp_path)["model"]
    assert (model["args"]["base_url"], model["addresses"]) == (server.url, [server.url, other.url])
