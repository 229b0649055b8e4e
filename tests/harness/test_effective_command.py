"""`longreach effective`: a table in, effective lengths out, agreement with what is printed."""

import json
from pathlib import Path

import pytest

from longreach.harness.cli import run_command

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def test_rows_that_do_not_follow_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["effective", str(FIXTURES / "ruler_published.csv"), "--definition", "ruler"]) == 0
    out = capsys.readouterr().out
    assert "18 of 22 printed effective lengths follow from the scores (ruler)" in out
    assert "21 of 22 rows of printed averages follow from the scores" in out
    assert "  Qwen2.5-14B-Instruct-1M: avg is printed 95.7, and is 95.2" in out
    assert "Qwen3-14B                 64K     the table prints >128K (needs 85.6; 128K 85.1)" in out


def test_json_holds_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    table = str(FIXTURES / "nolima_published.csv")
    assert run_command(["effective", table, "--definition", "nolima", "--base-column", "base_score", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 34
    assert rows[0]["model"] == "GPT-4o"
    assert rows[0]["text"] == rows[0]["printed"] == "8K"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "missing.csv cannot be read"),
        ([str(FIXTURES / "ruler_published.csv"), "--definition", "rouler"], "there is no definition 'rouler'"),
        ([str(FIXTURES / "ruler_published.csv"), "--definition", "absolute"], "needs a threshold"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["effective", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
