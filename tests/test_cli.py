"""The command line: what is printed where, and with which exit code."""

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from longreach.harness.cli import run_command

SMALL = ["--tasks", "niah.single", "--lengths", "512", "--depths", "0.5", "--samples", "2"]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    def call(*words: object) -> tuple[int, str, str]:
        code = run_command([str(word) for word in words])
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


def test_a_run_prints_the_verdict_and_the_card_in_ten_lines_at_most(command: Command, tmp_path: Path) -> None:
    code, out, err = command("run", *SMALL, "--model", "sim:perfect")
    lines = out.splitlines()
    assert code == 0
    assert 2 <= len(lines) <= 10
    assert "SIMULATED" in out
    assert lines[-1] == "runs/niah.single-sim-perfect/card.md"
    assert (tmp_path / lines[-1]).exists()
    assert "2/2 samples" in err


def test_spellings_of_other_harnesses_are_understood(command: Command, tmp_path: Path) -> None:
    words = ["--tasks", "niah.single", "--lengths", "512", "--depths", "0.5", "--limit", "1"]
    code, _, _ = command("plan", *words, "--model", "sim:perfect", "--reasoning_budget=8", "--output_path", "a_b")
    assert code == 0


def test_plan_shows_requests_tokens_price_and_what_cannot_be_decided(command: Command, tmp_path: Path) -> None:
    code, out, _ = command("plan", *SMALL, "--model", "sim:perfect", "--price-in", 2, "--price-out", 8)
    assert code == 0
    assert "cannot show > 0.90: even 2/2 gives a lower bound of 0.342; it needs 36/36" in out
    assert "unknown" in out  # time: nothing was measured
    assert not list(tmp_path.iterdir())


def test_plan_says_that_a_price_is_unknown(command: Command) -> None:
    _, out, _ = command("plan", *SMALL, "--model", "sim:perfect")
    assert "price unknown" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--bogus"], "No such option: --bogus"),
        (["frobnicate"], "No such command"),
        (["run", "--seed", "x"], "--seed"),
        (["run", "qick", "--model", "sim:perfect"], "did you mean 'quick'"),
        (["run", "--tasks", "niah.singel", "--model", "sim:perfect"], "did you mean 'niah.single'"),
        (["run", *SMALL, "--model", "smi:perfect"], "did you mean 'sim'"),
        (["run", *SMALL, "--model", "nope:x"], "its scheme 'nope' is unknown; one of: hf"),
        (["run", *SMALL, "--model", "sim:prefect"], "did you mean 'sim:perfect'?"),
        (
            ["run", *SMALL, "--model", "openai:x", "--model-args", "timeout=3"],
            "no option 'timeout'; did you mean 'timeout_s'",
        ),
        (["run", *SMALL, "--model", "openai:x", "--model-args", "api_key=k"], "did you mean 'api_key_env'"),
        (["run", *SMALL, "--model", "sim:perfect", "--needles", "."], "is a folder; name the one file"),
        (
            ["run", *SMALL, "--model", "sim:perfect", "--needles", "no.csv"],
            "there is no needle file 'no.csv'; give a .csv",
        ),
        (["run", *SMALL, "--model", "sim:perfect", "--out", ""], "--out is empty"),
        (["run", *SMALL, "--model", "sim:perfect", "--lengths", "32"], "shortest length"),
        (
            ["run", *SMALL, "--model", "sim:perfect", "--tokenizer", "foo"],
            "one of: bytes, gguf, hf, server, tiktoken, words",
        ),
        (["plan", "--tasks", "", "--model", "sim:perfect"], "--tasks is empty; give it a value, or leave it out"),
        (["plan", "--tasks", ",", "--model", "sim:perfect"], "--tasks is empty"),
        (["plan", "--model", ""], "--model is empty"),
        (["plan", "--model", "openai:x", "--base-url", " "], "--base-url is empty"),
        (["plan", "--needles", "", "--model", "sim:perfect"], "--needles is empty"),
        (["show", "niah"], "'niah' is a battery and no task; run it with: longreach run niah"),
        (["run", *SMALL, "--model", "sim:perfect", "--max-cost", "1"], "--price-in"),
        (["run", "quick", "-C", "niah"], "two batteries"),
        (["generate", "recall"], "needs --out"),
        (["generate", "recall", "--out", "x.csv"], "must end in"),
        (["verify", "nowhere"], "not a run folder"),
        (["batteries", "qick"], "did you mean 'quick'"),
        (["show", "niah.single", "--depth", "2"], "not a depth"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(command: Command, words: list[str], message: str) -> None:
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith("longreach: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("judge", ["nope:x", "sim:perfect"])
def test_a_judge_that_cannot_grade_leaves_no_folder(command: Command, tmp_path: Path, judge: str) -> None:
    code, _, err = command("run", *SMALL, "--model", "sim:perfect", "--judge", judge, "--out", "a")
    assert (code, judge in err) == (2, True)
    assert not (tmp_path / "a").exists()


def test_an_empty_needle_file_speaks_of_needles_and_not_of_corpora(command: Command, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("\n")
    code, _, err = command("run", *SMALL, "--model", "sim:perfect", "--needles", "n.csv")
    assert (code, "needle file n.csv is empty" in err, "corpus" in err) == (2, True, False)


def test_own_needles_are_said_to_be_beyond_the_reader_and_not_to_be_english(command: Command, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("needle,question,answer\n密码是四十二。,密码是什么?,四十二\n", encoding="utf-8")
    words = ["--needles", "n.csv", "--out", "a", "--force"]
    _, _, err = command("run", *SMALL, "--model", "reader:window=8k", *words)
    assert "cannot answer those of your needle file and will score 0 on niah.single" in err
    card = (tmp_path / "a" / "card.md").read_text(encoding="utf-8")
    assert "are the ones in the user's file" in card
    assert "needles and questions are in English" not in card


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--bogus", "No such option: --bogus (see `longreach run --help`)"),
        ("--lenghts", "No such option: --lenghts; did you mean '--lengths'? (see `longreach run --help`)"),
    ],
)
def test_an_unknown_option_is_answered_with_a_near_one_only(command: Command, option: str, says: str) -> None:
    assert command("run", option) == (2, "", f"longreach: {says}\n")


def test_a_reader_that_leaves_early_is_neither_a_pass_nor_a_failed_gate() -> None:
    command = [sys.executable, "-m", "longreach", "show", "niah.single", "--length", "64k"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_an_output_that_takes_no_more_is_one_line_and_exit_2() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "longreach", "tasks"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"output cannot be written" in done.stderr


def test_an_incomplete_run_exits_3_and_says_so(command: Command) -> None:
    code, out, err = command("run", *SMALL, "--model", "sim:perfect", "--max-tokens", 700)
    assert code == 3
    assert "stopped: --max-tokens 700" in err
    assert out


def test_an_unreachable_server_exits_4_in_one_line_without_the_key(command: Command, tmp_path: Path) -> None:
    code, _, err = command("run", *SMALL, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--out", "a")
    assert code == 4
    last = err.splitlines()[-1]
    assert last.startswith("longreach: ")
    assert "127.0.0.1:9" in last
    written = err + "".join(
        path.read_text() for path in (tmp_path / "a").rglob("*.*") if path.suffix in (".yaml", ".md")
    )
    assert "sk-very-secret" not in written


def test_secret_headers_are_in_no_file(command: Command, tmp_path: Path) -> None:
    secret = ["--header", "Authorization=Bearer s3cret", "--header", "X-Team=blue"]
    url = ["--base-url", "http://127.0.0.1:9/v1?api_key=s3cret"]
    command("run", *SMALL, "--model", "openai:m", *url, "--out", "a", *secret)
    text = (tmp_path / "a" / "config.yaml").read_text()
    assert "s3cret" not in text
    assert yaml.safe_load(text)["sampling"]["headers"] == {"Authorization": "<redacted>", "X-Team": "blue"}


def _all_text(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def test_secrets_inside_lists_are_in_no_file(command: Command, tmp_path: Path) -> None:
    body = json.dumps({"nested": [{"token": "sk-in-a-list", "depth": [{"api_key": "sk-deeper"}]}]})
    words = ["--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--extra-body", body, "--out", "a"]
    command("run", *SMALL, *words)
    text = _all_text(tmp_path / "a")
    assert "<redacted>" in text
    assert "sk-in-a-list" not in text and "sk-deeper" not in text


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MY_LLM"])
def test_an_api_key_in_a_prompt_is_in_no_file_and_no_message(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "quite-a-secret")
    words = [
        "--system",
        "The password is quite-a-secret.",
        "--extra-body",
        '{"note": ["quite-a-secret"]}',
        "--out",
        "a",
    ]
    args = ["--model-args", f"api_key_env={variable}"]
    _, out, err = command("run", *SMALL, *words, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", *args)
    assert "quite-a-secret" not in out + err + _all_text(tmp_path / "a")
    code, _, err = command("run", "a/config.yaml")
    assert (code, "holds a secret that was taken out" in err) == (2, True)


def test_verify_exits_1_when_a_prompt_differs(command: Command, tmp_path: Path) -> None:
    command("run", *SMALL, "--model", "sim:perfect", "--out", "a")
    assert command("verify", "a")[:2] == (0, "2 prompts rebuilt, 0 differ\n")
    records = tmp_path / "a" / "records.jsonl"
    sha = json.loads(records.read_text().splitlines()[0])["prompt_sha256"]
    records.write_text(records.read_text().replace(sha, "0" * 64))
    code, out, _ = command("verify", "a")
    assert (code, "1 differ" in out) == (1, True)


def test_card_and_rescore_work_on_a_folder(command: Command, tmp_path: Path) -> None:
    command("run", *SMALL, "--model", "sim:perfect", "--out", "a")
    (tmp_path / "a" / "results.csv").unlink()
    code, out, _ = command("card", "a")
    assert (code, out.splitlines()[-1]) == (0, "a/card.md")
    assert (tmp_path / "a" / "results.csv").exists()
    code, _, err = command("rescore", "a")
    assert (code, "2 answers scored again, 0 scores changed" in err) == (0, True)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_generate_writes_cases_with_the_six_keys(command: Command, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"cases.{suffix}"
    words = ["recall", "--lengths", "512,1k", "--samples", 3, "--tokenizer", "words", "--out", path]
    code, out, _ = command("generate", *words)
    text = path.read_text()
    cases = json.loads(text) if suffix == "json" else [json.loads(line) for line in text.splitlines()]
    assert (code, out, len(cases)) == (0, "", 2 * 10 * 3)
    for case in cases:
        keys = ["length", "position_ratio", "haystack_text", "needle", "question", "true_answer"]
        assert list(case) == keys
        assert case["needle"] in case["haystack_text"]
        assert case["true_answer"] in case["needle"]


def test_generate_names_the_task_where_there_are_several(command: Command, tmp_path: Path) -> None:
    words = ["--tasks", "niah.single,niah.multi", "--lengths", "2k", "--depths", "0.5", "--samples", 1]
    command("generate", *words, "--tokenizer", "words", "--out", "cases.json")
    single, multi = json.loads((tmp_path / "cases.json").read_text())
    assert (single["task"], multi["task"]) == ("niah.single", "niah.multi")
    assert len(multi["needle"]) == len(multi["true_answer"]) > 1


def test_show_prints_prompt_target_length_and_depth(command: Command) -> None:
    code, out, _ = command("show", "niah.single", "--length", "512", "--depth", 0.5, "--tokenizer", "words")
    assert code == 0
    assert "--- user" in out
    assert "target: " in out
    assert "of 512, by words (lengths estimated)" in out
    assert "(asked for 0.5)" in out
    assert "\\n" not in out


def test_show_as_json_holds_everything(command: Command) -> None:
    words = ["--length", "512", "--index", 2, "--tokenizer", "words", "--json"]
    data = json.loads(command("show", "niah.single", *words)[1])
    assert data["point"]["index"] == 2
    assert 504 <= data["n_tokens"] + data["reserve"] <= 512


def test_the_version_is_the_one_that_is_installed(command: Command) -> None:
    assert command("--version")[:2] == (0, f"longreach {importlib.metadata.version('longreach')}\n")


@pytest.mark.parametrize("what", ["tasks", "batteries", "models"])
def test_lists_are_for_people_and_for_machines(command: Command, what: str) -> None:
    code, out, _ = command(what)
    rows = json.loads(command(what, "--json")[1])
    assert code == 0
    lines = out.splitlines()
    if what == "tasks":  # its columns have names
        assert lines.pop(0).split() == ["name", "capability", "chance", "source", "summary"]
    assert len(lines) == len(rows) > 3


def test_a_printed_battery_can_be_run_as_a_file(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(command("batteries", "quick")[1])
    assert command("plan", "mine.yaml", "--model", "sim:perfect")[0] == 0


def test_help_loads_nothing_heavy() -> None:
    # typer itself loads pydantic where it is installed
    heavy = ["numpy", "pandas", "openai", "matplotlib", "scipy", "yaml", "tiktoken", "jinja2"]
    code = (
        "import sys, longreach, longreach.harness.cli as cli; code = cli.run_command(['run', '--help']);"
        f"print([name for name in {heavy} if name in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[] 0"
    assert "--max-cost" in done.stdout
