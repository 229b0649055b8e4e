"""Conditions against the plain form of a task: differences with intervals, on the card and in card.json."""

from typing import Any

import pytest

from longreach.harness.report.card import make_card

K = 1024
ZH = "niah.single[language=zh]"


def _card(make: Any, records: Any) -> Any:
    config = make.config(records)
    config["tasks"] = [
        entry
        | {"task": entry["label"].partition("[")[0], "params": {"language": "zh"} if "[" in entry["label"] else {}}
        for entry in config["tasks"]
    ]
    return make_card(records, config)


def test_a_condition_is_compared_with_the_plain_form(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 50, 8 * K: 45}, 50) + make.row(ZH, {4 * K: 49, 8 * K: 20}, 50)
    card = _card(make, records)
    (found,) = card.to_dict()["conditions"]
    assert (found["label"], found["plain"]) == (ZH, "niah.single")
    assert found["by_length"][1]["value"] == pytest.approx(-0.5)
    assert found["by_length"][1]["low"] == pytest.approx(-0.638, abs=0.002)
    assert found["overall"]["value"] == pytest.approx(-0.26)
    text = card.to_markdown()
    assert f"| `{ZH}` | -2 (-10 to +5) | *-50 (-64 to -32)* | *-26 (-36 to -16)* |" in text
    assert text.index("## Against the plain condition") > text.index("## Scores by task")
    assert "Against the plain condition" in card.to_html()


def test_a_length_that_one_of_them_lacks_has_no_difference(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 5, 8 * K: 5}, 5) + make.row(ZH, {4 * K: 5}, 5)
    records += make.outcome(ZH, 8 * K, None, "overflow", 5)
    (found,) = _card(make, records).to_dict()["conditions"]
    assert [row["length"] for row in found["by_length"]] == [4 * K]


def test_without_a_plain_form_there_is_no_comparison(make: Any) -> None:
    card = _card(make, make.row(ZH, {4 * K: 5}, 5))
    assert card.to_dict()["conditions"] == []
    assert "Against the plain condition" not in card.to_markdown()
