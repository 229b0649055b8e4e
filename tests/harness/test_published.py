"""Tables of published scores: averages and effective lengths reckoned again, row by row.

The fixtures hold half of RULER's readme table (NVIDIA/RULER, 2026-07) and of NoLiMa's tables (arXiv:2502.05167 v3).
"""

import csv
from pathlib import Path

import pytest

from longreach.harness.errors import ConfigError, DataError
from longreach.harness.stats.published import average, mean_of_tasks, read_table, weighted_average

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
RULER, NOLIMA = ((FIXTURES / f"{name}_published.csv").read_text(encoding="utf-8") for name in ("ruler", "nolima"))
COLUMNS = [f"score_{length}k" for length in (4, 8, 16, 32, 64, 128)]


def _records() -> list[tuple[dict[str, str], list[float]]]:
    records = list(csv.DictReader(RULER.splitlines()))
    return [(row, [float(row[column]) for column in COLUMNS if row[column]]) for row in records if row["avg"]]


def test_ruler_s_effective_lengths_follow_but_for_four_rows() -> None:
    rows = read_table(RULER, "ruler")
    assert [row.name for row in rows if row.agrees is False] == [
        "Qwen3-14B",
        "Qwen2.5-7B-Instruct-1M",
        "Qwen3-8B",
        "EXAONE-4.0-1.2B",
    ]
    assert sum(row.agrees is True for row in rows) == 18


def test_nolima_s_effective_lengths_all_follow() -> None:
    rows = read_table(NOLIMA, "nolima")
    assert len(rows) == 34
    assert all(row.agrees for row in rows)


def test_ruler_s_averages_follow_but_for_one_row() -> None:
    """Printed with one decimal, from scores with one decimal: 0.1 is what rounding explains."""
    assert [row["model"] for row, scores in _records() if abs(average(scores) - float(row["avg"])) > 0.1] == [
        "Qwen2.5-14B-Instruct-1M"
    ]


@pytest.mark.parametrize("order", ["inc", "dec"])
def test_ruler_s_weighted_averages_all_follow(order: str) -> None:
    checked = [(row, scores) for row, scores in _records() if row[f"wavg_{order}"]]
    assert len(checked) == 16
    for row, scores in checked:
        assert weighted_average(scores, order) == pytest.approx(float(row[f"wavg_{order}"]), abs=0.1), row["model"]


def test_a_mean_of_fewer_tasks_is_not_ruler_s() -> None:
    """Category means of Gemini 1.5 Pro at 4k (RULER, issue 10): the total is the mean over the thirteen."""
    scores = {f"niah {i}": 99.8 for i in range(8)} | {"vt": 100.0, "cwe": 97.7, "fwe": 97.7, "qa_1": 81.9, "qa_2": 81.9}
    assert mean_of_tasks(scores) == pytest.approx(96.7, abs=0.1)
    with pytest.raises(ConfigError, match="mean of 13 tasks, and 12 are here"):
        mean_of_tasks({name: score for name, score in scores.items() if name != "vt"})


def test_a_table_may_be_as_small_as_model_and_lengths() -> None:
    rows = read_table("model, 4k, 8k ,16k\na,90,80,70\nb,10,,\n\nc,,90,90\n", "absolute", threshold=75)
    assert [(row.name, row.text, row.agrees) for row in rows] == [
        ("a", "8K", None),
        ("b", "<4K", None),
        ("c", "", None),
    ]
    assert rows[2].problem == "no score at 4K"


def test_the_longest_length_that_passes_is_printed_with_its_sign() -> None:
    assert read_table("model,4k,8k\na,90,86\n", "ruler")[0].text == ">8K"
    assert read_table("model,4k,8k,16k\na,90,86,\n", "ruler")[0].text == ">8K"


def test_both_readings_of_a_bump() -> None:
    text = "model,4k,8k,16k\na,90,80,90\n"
    assert read_table(text, "absolute", threshold=85)[0].text == "4K"
    assert read_table(text, "largest_passing", threshold=85)[0].text == ">16K"


@pytest.mark.parametrize(
    ("text", "definition", "message"),
    [
        ("", "ruler", "is empty"),
        ("model,score\na,1\n", "ruler", "no column named after a length"),
        ("model,4k\n", "ruler", "no rows"),
        ("model,4k\na,good\n", "ruler", "line 2, column 4k: 'good' is no number"),
        ("model,4k,4096\na,1,1\n", "ruler", "two columns for the length"),
        ("model,4k\na,1\n", "nolima", "--base-column"),
        ("model,4k\na,1\n", "absolute", "needs a threshold"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(text: str, definition: str, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message) as refusal:
        read_table(text, definition)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)
