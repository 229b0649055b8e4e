"""results.csv: order, columns, and cells that a spreadsheet must not run."""

import csv
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.record import Record
from longreach.harness.running.frame import COLUMNS, frame, ordered, row, write_csv


def record(**changes: Any) -> Record:
    fields: dict[str, Any] = {
        "key": "k",
        "task": "a",
        "task_id": "a@1",
        "version": 1,
        "capability": "retrieval",
        "family": "needle",
        "length": 512,
        "depth": 0.5,
        "index": 0,
        "seed": 42,
        "model": "m",
        "tokenizer": "words",
        "outcome": "scored",
        "score": 1.0,
        "placed": (0.49,),
        "target": ("x", "y"),
        "at": "2026-01-01T00:00:00+00:00",
    }
    return Record(**(fields | changes))


def written(folder: Path, *records: Record) -> list[dict[str, str]]:
    with write_csv(folder, records).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_cells_that_begin_like_a_formula_are_quoted_as_text(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-5", "@x", "\tx", "\rx", "plain", "5-3"]
    rows = written(tmp_path, *(record(text=text) for text in texts))
    assert [line["predicted"] for line in rows] == ["'=1+1", "'+1", "'-5", "'@x", "'\tx", "'\\x0dx", "plain", "5-3"]


def test_what_a_terminal_would_act_on_is_spelt_out(tmp_path: Path) -> None:
    (line,) = written(tmp_path, record(text="a\x1b[2J\x07b\x9b\u202ec\rd\te\nf", target=("\x1b]0;x",)))
    assert line["predicted"] == "a\\x1b[2J\\x07b\\x9b\\u202ec\\x0dd\te\nf"
    assert line["target"] == "\\x1b]0;x"


def test_answers_with_newlines_and_quotes_stay_one_row(tmp_path: Path) -> None:
    text = 'first\nsecond, "third"\r\n'
    (line,) = written(tmp_path, record(text=text))
    assert line["predicted"] == text


def test_columns_are_those_of_the_contract(tmp_path: Path) -> None:
    (line,) = written(tmp_path, record())
    assert tuple(line) == COLUMNS
    assert (line["target"], line["position_ratio"], line["correct"]) == ("x, y", "0.49", "True")


def test_outcomes_that_are_never_scored_leave_score_and_correct_blank(tmp_path: Path) -> None:
    (line,) = written(tmp_path, record(outcome="overflow", score=None))
    assert (line["score"], line["correct"], line["outcome"]) == ("", "", "overflow")


def test_a_refusal_is_wrong_and_not_blank(tmp_path: Path) -> None:
    (line,) = written(tmp_path, record(outcome="refused", score=0.0))
    assert (line["score"], line["correct"]) == ("0.0", "False")


def test_a_partly_right_answer_is_not_correct() -> None:
    assert row(record(score=0.5))["correct"] is False


def test_a_task_without_depth_has_neither_depth_nor_position() -> None:
    line = row(record(depth=None, placed=()))
    assert (line["depth"], line["position_ratio"]) == (None, None)


def test_rows_go_by_battery_then_length_then_depth_then_index() -> None:
    records = [
        record(task=task, length=length, depth=depth, index=index)
        for index in (1, 0)
        for depth in (1.0, 0.0)
        for length in (1024, 512)
        for task in ("a", "b")
    ]
    places = [(r.task, r.length, r.depth, r.index) for r in ordered(records, ["b", "a"])]
    assert places == sorted(places, key=lambda place: (place[0] != "b", *place[1:]))


def test_the_frame_keeps_texts_as_they_are() -> None:
    assert frame([record(text="=1+1")])["predicted"][0] == "=1+1"


def test_an_empty_frame_has_its_columns() -> None:
    assert "family" in frame([]).columns


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    written(tmp_path, record(text="old"))

    def broken() -> Any:
        yield record(text="new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_csv(tmp_path, broken())
    with (tmp_path / "results.csv").open(newline="") as file:
        assert [line["predicted"] for line in csv.DictReader(file)] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]
