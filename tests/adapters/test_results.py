"""Results of other tools, in their own forms written here: what is a score, what is none, what is left out by name."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from longreach.adapters.results import longbench_v2, mrcr, needlehaystack, nolima, ruler, vendor
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedRun, ImportedSample, as_score, deduplicated


def _lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _scores(run: ImportedRun) -> list[tuple[str, int, float | None]]:
    return [(sample.task, sample.length, sample.score) for sample in run.samples]


@pytest.mark.parametrize("value", [None, "N/A", "", "nan", float("nan"), float("inf"), -1, -1.0, "-1", 1.5, [], {}])
def test_what_is_no_score_never_becomes_one(value: object) -> None:
    assert as_score(value) is None


def test_scores_of_other_scales() -> None:
    assert [as_score(value, scale=100.0) for value in (0, 85.6, "95.10", "100%")] == [0.0, 0.856, 0.951, 1.0]
    assert (as_score(True), as_score(0), as_score(1.0)) == (1.0, 0.0, 1.0)


def test_an_answer_beats_a_failure_and_the_later_answer_the_earlier() -> None:
    def at(outcome: Any, score: float | None, index: int = 0) -> ImportedSample:
        return ImportedSample(task="t", length=4096, index=index, outcome=outcome, score=score)

    kept, repeated = deduplicated([at("scored", 1.0), at("failed", None), at("scored", 0.5), at("scored", 0.0, 1)])
    assert ([sample.score for sample in kept], repeated) == ([0.5, 0.0], 2)


RULER = (
    {"index": 0, "pred": "It is 12 and\x0134.", "outputs": ["12", "34"], "length": 4090},
    {"index": 1, "pred": "It is 12.", "outputs": ["12", "34"], "length": 4080},
    {"index": 2, "pred": "", "outputs": ["12", "34"], "length": 4090},
)


def test_ruler_predictions_are_scored_by_its_rules(tmp_path: Path) -> None:
    _lines(tmp_path / "m" / "synthetic" / "4096" / "pred" / "vt.jsonl", RULER)
    _lines(tmp_path / "m" / "synthetic" / "8192" / "pred" / "qa_1-0.jsonl", RULER[:2])
    _lines(tmp_path / "m" / "synthetic" / "8192" / "pred" / "other.jsonl", RULER[:1])
    _lines(tmp_path / "m" / "synthetic" / "8192" / "pred" / "fwe.jsonl", [{"index": 0, "outputs": ["a"]}])
    run = ruler.read([tmp_path])
    assert run.model == "m"
    assert _scores(run) == [
        ("ruler:vt", 4096, 1.0),
        ("ruler:vt", 4096, 0.5),
        ("ruler:vt", 4096, 0.0),
        ("ruler:qa_1", 8192, 1.0),
        ("ruler:qa_1", 8192, 1.0),  # any reference counts
    ]
    assert [sample.outcome for sample in run.samples[:3]] == ["scored", "scored", "no_answer"]
    assert [(task.label, task.capability) for task in run.tasks] == [
        ("ruler:vt", "reasoning"),
        ("ruler:qa_1", "reasoning"),
    ]
    assert run.not_understood == (
        "fwe.jsonl, line 1: no `pred` or no `outputs`",
        "other.jsonl: not one of RULER's tasks",
    )


def test_a_summary_of_ruler_counts_only_where_predictions_are_missing(tmp_path: Path) -> None:
    folder = tmp_path / "4096" / "pred"
    _lines(folder / "vt.jsonl", RULER[:2])
    summary = "0,1,2,3\nTasks,vt,cwe,fwe\nScore,70.0,33.33,-1\nNulls,0/2,1/500,0/500\n"
    (folder / "summary.csv").write_text(summary)
    run = ruler.read([tmp_path])
    assert [(row.task, row.length, row.mean, row.n) for row in run.rows] == [("ruler:cwe", 4096, 0.3333, 500)]
    assert run.notes[0] == (
        "summary.csv says 70.00 for ruler:vt at 4096, its predictions give 75.00; the predictions count."
    )
    assert run.not_understood == ("summary.csv: 'fwe' = '-1'",)


def test_nolima_depths_lengths_and_kinds(tmp_path: Path) -> None:
    grid = {"document_depth_percent_min": 0, "document_depth_percent_max": 100, "document_depth_percent_intervals": 3}
    found = [
        {"metric": 1, "response": "Ada", "selected_character": "Ada", "prompt_tokens": 1210},
        {"metric": 0, "response": "Bo", "selected_character": "Cy"},
        {"metric": 0, "response": "", "selected_character": "Ed"},
    ]
    data = {"context_length": 1000, "test_name": "0401_T1_C2_twohop", "model_args": {"model": "m"}, "results": found}
    (tmp_path / "a.json").write_text(json.dumps(data | grid))
    (tmp_path / "b.json").write_text(json.dumps(data | grid | {"document_depth_percent_intervals": 26}))
    (tmp_path / "c.json").write_text("[]")
    run = nolima.read([tmp_path])
    assert [(s.task, s.length, s.depth, s.score, s.outcome) for s in run.samples] == [
        ("nolima:twohop", 1000, 0.0, 1.0, "scored"),
        ("nolima:twohop", 1000, 0.5, 0.0, "scored"),
        ("nolima:twohop", 1000, 1.0, 0.0, "no_answer"),
    ]
    assert run.model == "m"
    assert [text.partition(":")[0] for text in run.not_understood] == ["b.json", "c.json"]


def test_longbench_v2_rows_keep_their_groups_and_missing_rows_are_told(tmp_path: Path) -> None:
    row = {
        "_id": "1",
        "domain": "Code",
        "sub_domain": "Code repo QA",
        "difficulty": "easy",
        "length": "short",
        "answer": "B",
    }
    rows = [
        row | {"response": "The correct answer is (B)", "pred": "B", "judge": True},
        row | {"_id": "2", "length": "long", "response": "None of them.", "pred": None, "judge": False},
        row | {"_id": "2", "length": "long", "response": "The correct answer is (B)", "pred": "B", "judge": True},
        row | {"_id": "3", "length": "huge", "response": "x", "pred": None, "judge": False},
    ]
    run = longbench_v2.read([_lines(tmp_path / "GLM.jsonl", rows)])
    assert run.model == "GLM"
    assert _scores(run) == [(longbench_v2.LABEL, 32 * 1024, 1.0), (longbench_v2.LABEL, 2 * 1024 * 1024, 1.0)]
    assert run.samples[0].groups == {
        "domain": "Code",
        "sub_domain": "Code / Code repo QA",
        "difficulty": "easy",
        "length": "short",
    }
    assert run.tasks[0].capability == "documents"
    assert any(note.startswith("2 of the benchmark's 503 rows are there") for note in run.notes)
    assert run.not_understood == ("GLM.jsonl, row 4: no known length class",)


def test_mrcr_is_graded_by_the_reference_rule(tmp_path: Path) -> None:
    """Identical texts 1.0, half of the text 2/3 (protocol), no marker in front 0."""
    answer = "aYooSG8CQg" + "abcdefghij" * 10
    half = "aYooSG8CQg" + "abcdefghij" * 5
    base = {"answer": answer, "random_string_to_prepend": "aYooSG8CQg", "n_needles": 4, "n_tokens": 9000}
    rows = [base | {"response": text} for text in (answer, half, " " + answer, "")]
    run = mrcr.read([_lines(tmp_path / "out.jsonl", rows)])
    assert [sample.score for sample in run.samples] == [1.0, pytest.approx(2 / 3), 0.0, 0.0]
    assert [sample.outcome for sample in run.samples] == ["scored", "scored", "scored", "no_answer"]
    assert {(sample.task, sample.length) for sample in run.samples} == {("mrcr:4needle", 16384)}
    assert [sample.parts["marker_missing"] for sample in run.samples] == [0.0, 0.0, 1.0, 1.0]


def test_needlehaystack_grades_are_stretched_over_zero_to_one(tmp_path: Path) -> None:
    base = {"model": "m", "context_length": 1000, "depth_percent": 50.0, "version": 1, "needle": "n"}
    for number, score in enumerate((10, 1, 5.5, -1)):
        cell = base | {"model_response": "text", "score": score, "depth_percent": 25.0 * number}
        (tmp_path / f"m_len_1000_depth_{number}_results.json").write_text(json.dumps(cell))
    run = needlehaystack.read([tmp_path])
    assert [(sample.depth, sample.score) for sample in run.samples] == [(0.0, 1.0), (0.25, 0.0), (0.5, 0.5)]
    assert len(run.not_understood) == 1


def test_vendor_rows_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["Task", "Length", "score_percent", "n"], ["RULER", "128k", "95.1", "500"], ["MRCR", "1M", "N/A", ""]]
        )
    run = vendor.read([path])
    assert (run.vendor, [(row.task, row.length, row.mean, row.n) for row in run.rows]) == (
        True,
        [("RULER", 131072, 0.951, 500)],
    )
    assert run.not_understood == ("v.csv, row 3: MRCR, 1M, N/A, ",)


@pytest.mark.parametrize(
    "read", [ruler.read, nolima.read, longbench_v2.read, mrcr.read, needlehaystack.read, vendor.read]
)
def test_what_is_not_theirs_is_refused_in_one_line(read: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file or folder"):
        read([tmp_path / "missing"])
    with pytest.raises(DataError, match="holds no"):
        read([tmp_path])
    for name, content in (("a.json", "{"), ("b.jsonl", '{"a": 1\n'), ("c.csv", "x,y\n1,2\n")):
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as refusal:
        read([tmp_path])
    assert "\n" not in str(refusal.value)
