"""`longreach card` beyond one run: united runs, several models, README, metadata, own templates."""

import json
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.cli import run_command
from longreach.harness.errors import ConfigError
from longreach.harness.report.own_template import MAX_S, output_name, render_own
from longreach.harness.running.store import read_records, write_config
from longreach.harness.running.unite import read_folder, united

K = 1024


@pytest.fixture
def folder(make: Any, tmp_path: Path) -> Any:
    def write(name: str, records: Any, **changes: Any) -> Path:
        path = tmp_path / name
        path.mkdir()
        write_config(path, make.config(records, **changes))
        (path / "records.jsonl").write_text("".join(r.to_json() + "\n" for r in records), encoding="utf-8")
        return path

    return write


def test_runs_of_one_model_become_one_card(make: Any, folder: Any, tmp_path: Path) -> None:
    first = folder("a", make.row("niah.single", {4 * K: 5}, 5), command="longreach run niah --model m --out /x/a")
    second = folder("b", make.row("ruler.vt", {4 * K: 4}, 5), command="longreach run reasoning --model m")
    assert run_command(["card", str(first), str(second), "--out", str(tmp_path / "both")]) == 0
    text = (tmp_path / "both" / "card.md").read_text(encoding="utf-8")
    assert "**Samples:** scored 10 " in text
    assert "```sh\nlongreach run niah --model m\nlongreach run reasoning --model m\n```" in text
    assert (
        "| run | `b: niah, started 2026-11-30T09:59:00+00:00, 5 samples, 5 of them counted, longreach 0.1.0` |" in text
    )
    assert "not measured" not in text[: text.index("## Scores")]


def test_a_sample_of_two_runs_counts_once_an_answer_beats_a_failure_and_the_later_the_earlier(
    make: Any, folder: Any, tmp_path: Path
) -> None:
    old = [make.record("niah.single", 4 * K, None, 0, score=0.0, at="2026-11-30T09:00:00+00:00")]
    old += [make.record("niah.single", 4 * K, None, 1, score=1.0), make.record("niah.single", 4 * K, None, 2)]
    new = [make.record("niah.single", 4 * K, None, 0, score=1.0, key="other")]
    new += [make.record("niah.single", 4 * K, None, 1, outcome="failed", at="2026-12-01T10:00:00+00:00")]
    both = tmp_path / "both"
    assert run_command(["card", str(folder("a", old)), str(folder("b", new)), "--out", str(both)]) == 0
    found = read_records(both)
    assert sorted((r.index, r.outcome, r.score) for r in found.values()) == [(i, "scored", 1.0) for i in range(3)]
    assert "2 samples were in more than one of the runs and count once" in (both / "card.md").read_text(
        encoding="utf-8"
    )


def test_order_of_runs_does_not_change_what_counts(make: Any, folder: Any) -> None:
    a = read_folder(folder("a", make.row("niah.single", {4 * K: 0}, 2, at="2026-11-30T09:00:00+00:00")))
    b = read_folder(folder("b", make.row("niah.single", {4 * K: 2}, 2)))
    assert {r.score for r in united([a, b])[1]} == {r.score for r in united([b, a])[1]} == {1.0}
    assert united([a, b])[0]["planned"] == [{"task": "niah.single", "length": 4 * K, "depth": None, "n": 2}]


def test_other_settings_and_other_tokenizers_are_named(make: Any, folder: Any, tmp_path: Path) -> None:
    first = folder("a", make.row("niah.single", {4 * K: 5}, 5))
    records = make.row("niah.single", {8 * K: 5}, 5, tokenizer="bytes")
    second = folder("b", records, sampling={"temperature": 0.7}, tokenizer={"name": "bytes"})
    assert run_command(["card", str(first), str(second), "--out", str(tmp_path / "both")]) == 0
    text = (tmp_path / "both" / "card.md").read_text(encoding="utf-8")
    assert "Run b is counted together with a, but was made with other settings: sampling.temperature: 0 -" in text
    assert "Lengths are in different units: counted by bytes (5 samples) and words (5 samples)." in text


def test_one_label_for_two_tasks_is_refused(make: Any, folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    records = make.row("niah.single", {4 * K: 5}, 5)
    one = {"task": "niah.single", "label": "niah.single", "params": {}, "id": "niah.single@1"}
    first = folder("a", records, tasks=[one])
    second = folder("b", records, tasks=[one | {"id": "niah.single@2"}])
    assert run_command(["card", str(first), str(second)]) == 2
    assert "'niah.single' is niah.single@1 in" in capsys.readouterr().err


def test_a_run_is_not_overwritten_by_a_union(make: Any, folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    records = make.row("niah.single", {4 * K: 5}, 5)
    a, b, c = (folder(name, records) for name in "abc")
    assert run_command(["card", str(a), str(b), "--out", str(c)]) == 2
    assert "is a run of its own and is not overwritten" in capsys.readouterr().err


def test_several_models_become_small_multiples_and_a_table(make: Any, folder: Any, tmp_path: Path) -> None:
    records = make.row("niah.single", {4 * K: 40, 8 * K: 2}, 40)
    first, second = folder("a", records), folder("b", records, model={"name": "openai:<b>", "simulated": True})
    out = tmp_path / "both"
    assert run_command(["card", str(first), str(second), "--out", str(out)]) == 0
    text, page = (out / "card.md").read_text(encoding="utf-8"), (out / "card.html").read_text(encoding="utf-8")
    assert "| `sim:test` | **100 \u00b14** | *5 \u00b18* |" in text
    assert "| `SIMULATED: openai:<b>` | not stated | 4,096 | 4,096 | not measured | - |" in text
    assert "](figures/models.png)" in text
    assert (out / "figures" / "models.png").exists()
    assert "<b>openai" not in page
    assert "openai:&lt;b&gt;" in page
    assert [model["model"] for model in json.loads((out / "card.json").read_text("utf-8"))["models"]] == [
        "sim:test",
        "openai:<b>",
    ]


def test_readme_metadata_and_benchmark_results(make: Any, folder: Any, tmp_path: Path) -> None:
    run = folder("a", make.row("ruler.vt", {4 * K: 5}, 5), model={"name": "org/m"})
    readme = tmp_path / "hub" / "README.md"
    readme.parent.mkdir()
    readme.write_text("---\nlicense: mit  # mine\n---\n# M\n", encoding="utf-8")
    arguments = ["card", str(run), "--readme", str(readme), "--metadata", "--benchmark", "ruler.vt=org/ruler"]
    assert run_command(arguments) == 0
    once = readme.read_bytes()
    assert b"license: mit  # mine\n" in once
    assert b"model-index:" in once
    assert b"](../a/figures/accuracy-by-length.png)" in once
    assert (readme.parent / ".eval_results" / "ruler.yaml").exists()
    assert run_command(arguments) == 0
    assert readme.read_bytes() == once


@pytest.mark.parametrize("option", [["--metadata"], ["--benchmark", "ruler.vt=org/ruler"]])
def test_what_belongs_into_a_repository_needs_its_readme(
    make: Any, folder: Any, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder("a", make.row("ruler.vt", {4 * K: 5}, 5))
    assert run_command(["card", str(run), *option]) == 2
    assert "needs --readme PATH" in capsys.readouterr().err


def test_an_own_template_reads_what_the_card_reads(make: Any, folder: Any, tmp_path: Path) -> None:
    run = folder("a", make.row("niah.single", {4 * K: 5}, 5))
    template = tmp_path / "short.md.j2"
    template.write_text("{{ model | code }}: {% for row in scores %}{{ row.cells[0].text }}{% endfor %}\n", "utf-8")
    assert run_command(["card", str(run), "--template", str(template)]) == 0
    assert (run / "short.md").read_text(encoding="utf-8") == "`sim:test`: 100 \u00b122\n"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("{% include '/etc/passwd' %}", "may not include other files"),
        ("{{ ''.__class__.__mro__ }}", "not allowed in a template"),
        ("{{ 'a' * 10**12 }}", "not allowed in a template"),
        ("{{ '{:>9999999999}'.format(1) }}", "not allowed in a template"),
        ("{{ 'a'.ljust(9999999999) }}", "not allowed in a template"),
        ("{{ items.append(1) }}", "not allowed in a template"),
        ("{% for a in range(99999) %}{{ long }}{% endfor %}", "makes more than 10,000,000 characters"),
        ("{{ nothing }}", "'nothing' is undefined"),
        ("ok\n{% if %}", "line 2: Expected an expression"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
    ],
)
def test_a_template_can_do_no_harm(tmp_path: Path, source: str, complaint: str) -> None:
    template = tmp_path / "own.md.j2"
    template.write_text(source, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        render_own(template, {"items": [1], "long": "x" * 200})
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_template_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longreach.harness.report.own_template.MAX_S", 0.05)
    template = tmp_path / "own.md.j2"
    template.write_text("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "utf-8")
    with pytest.raises(ConfigError, match="takes longer than 0.05 s"):
        render_own(template, {})
    assert MAX_S == 5.0


@pytest.mark.parametrize("name", ["config.yaml.j2", "records.jsonl.j2", "notes.md", ".j2"])
def test_a_template_overwrites_nothing_that_a_run_needs(name: str) -> None:
    with pytest.raises(ConfigError, match="would write"):
        output_name(Path(name))
