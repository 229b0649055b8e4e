"""Logs that lm-eval 0.4.13 wrote: sentinels are no scores, our own tasks come home, what is not understood is named."""

import json
import shutil
from pathlib import Path

import pytest

from longreach.adapters.results.lm_eval import read
from longreach.harness.errors import DataError

K = 1024
LOGS = Path(__file__).resolve().parent.parent / "fixtures" / "lm_eval"


def _without_samples(name: str, folder: Path) -> Path:
    shutil.copytree(LOGS / name, folder)
    for path in folder.glob("samples_*.jsonl"):
        path.unlink()
    return folder


def test_rulers_lengths_are_metric_names_and_minus_one_is_no_score() -> None:
    run = read([LOGS / "ruler"])
    found = [(sample.task, sample.length, sample.score, sample.outcome) for sample in run.samples]
    single = [("lm-eval:niah_single_1", 4 * K, 1.0, "scored")] * 3 + [
        ("lm-eval:niah_single_1", 8 * K, 0.0, "scored")
    ] * 3
    assert [item for item in found if "niah" in item[0]] == single
    assert len(found) == 10
    assert run.rows == []
    assert [(task.label, task.capability, task.family) for task in run.tasks] == [
        ("lm-eval:niah_single_1", "retrieval", "needle"),
        ("lm-eval:vt", "reasoning", "tracing"),
    ]
    assert run.model == "made-up/small-reader"


def test_without_sample_logs_there_are_means_of_the_lengths_that_ran(tmp_path: Path) -> None:
    run = read([_without_samples("ruler", tmp_path / "r")])
    assert not run.samples
    assert sorted((row.task, row.length, row.mean) for row in run.rows) == [
        ("lm-eval:niah_single_1", 4 * K, 1.0),
        ("lm-eval:niah_single_1", 8 * K, 0.0),
        ("lm-eval:vt", 4 * K, 1.0),
        ("lm-eval:vt", 8 * K, 0.0),
    ]


def test_longbench2_keeps_its_groups_and_is_never_a_length_of_tokens() -> None:
    run = read([LOGS / "longbench2"])
    assert [(sample.length, sample.score) for sample in run.samples] == [
        (32 * K, 0.0),
        (32 * K, 1.0),
        (128 * K, 1.0),
        (128 * K, 0.0),
        (2048 * K, 1.0),
        (2048 * K, 1.0),
    ]
    assert {sample.outcome for sample in run.samples} == {"scored"}
    assert {sample.text for sample in run.samples} == {""}
    assert run.samples[0].groups == {
        "difficulty": "easy",
        "length": "short",
        "domain": "Single-Document QA",
        "sub_domain": "Manuals",
    }
    assert (run.tasks[0].capability, run.tasks[0].chance) == ("documents", 0.25)


def test_our_own_tasks_come_home_under_their_labels() -> None:
    run = read([LOGS / "ours"])
    assert {(task.label, task.own["id"] if task.own else None) for task in run.tasks} == {
        ("niah.single", "niah.single@1"),
        ("ruler.vt", "ruler.vt@1"),
    }
    assert [(sample.length, sample.outcome, sample.score) for sample in run.samples[:2]] == [
        (K, "scored", 1.0),
        (2 * K, "no_answer", 0.0),
    ]
    assert all(sample.prompt_sha256 and sample.n_tokens for sample in run.samples)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("label", "two\nlines"),
        ("label", "a|b"),
        ("label", "a\u2028b"),
        ("label", " "),
        ("target", "42"),
        ("params", None),
        ("chance", "high"),
        ("chance", float("nan")),
        ("capability", "magic"),
        ("length", 4.5),
        ("length", None),
        ("depth", 2),
        ("index", -1),
        ("groups", [1]),
        ("placed", "x"),
        ("is_beside", "yes"),
    ],
)
def test_a_damaged_sample_of_our_own_is_named_and_left_out(name: str, value: object, tmp_path: Path) -> None:
    folder = _without_samples("ours", tmp_path / "r")
    for path in (LOGS / "ours").glob("samples_*"):
        first, *others = (json.loads(line) for line in path.read_text().splitlines())
        first["doc"][name] = value
        (folder / path.name).write_text("".join(json.dumps(line) + "\n" for line in (first, *others)))
    run = read([folder])
    assert len(run.samples) == len(read([LOGS / "ours"]).samples) - len(list(folder.glob("samples_*")))
    assert [f"damaged sample of a longreach task: {name}" in text for text in run.not_understood] == [True, True]


@pytest.mark.parametrize("value", [-1, "N/A", None, float("nan")])
def test_a_sample_without_a_score_is_a_failure(value: object, tmp_path: Path) -> None:
    folder = _without_samples("ruler", tmp_path / "r")
    for path in (LOGS / "ruler").glob("samples_niah*"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        text = "".join(json.dumps(line | {str(line["doc"]["max_length"]): value}) + "\n" for line in lines)
        (folder / path.name).write_text(text)
    run = read([folder])
    assert [(sample.outcome, sample.score) for sample in run.samples] == [("failed", None)] * 6


def test_one_filter_counts_and_a_null_answer_is_no_answer(tmp_path: Path) -> None:
    folder = _without_samples("ruler", tmp_path / "r")
    for path in (LOGS / "ruler").glob("samples_niah*"):
        line = json.loads(path.read_text().splitlines()[0])
        lines = [line | {"filter": name, "filtered_resps": [None]} for name in ("first", "second")]
        (folder / path.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = read([folder])
    assert [(sample.outcome, sample.score) for sample in run.samples] == [("no_answer", 0.0)]
    assert run.notes == ("niah_single_1: the filter 'first' counts; 1 lines of other filters are left out.",)


def test_tasks_without_a_length_are_named_and_damage_is_one_line(tmp_path: Path) -> None:
    folder = _without_samples("ruler", tmp_path / "r")
    (results,) = folder.glob("results_*.json")
    data = json.loads(results.read_text())
    data["results"]["hellaswag"] = {"alias": "hellaswag", "acc,none": 0.4}
    data["configs"]["hellaswag"] = {"task": "hellaswag"}
    results.write_text(json.dumps(data))
    assert read([folder]).not_understood == (
        f"{results.name}: hellaswag: its samples were not logged and its row names no length",
    )
    results.write_text('{"results": ')
    with pytest.raises(DataError, match="cannot be read as JSON"):
        read([folder])
