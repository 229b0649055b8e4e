"""Scores by group of published rows: figures, intervals, what is left out, and hostile names on the card."""

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from longreach.harness.record import Record
from longreach.harness.report.card import make_card
from longreach.harness.report.figure_curve import draw_curve
from longreach.harness.report.figures import style
from longreach.harness.stats.intervals import wilson

K = 1024
HOSTILE = "A | B<script>alert(1)</script>\n# `head` [x](javascript:1)"


def _records(make: Any) -> list[Record]:
    """Eleven rows: 6 of legal (4 right), 4 of news (1 right), and one that failed; the last legal one is no answer."""

    def row(index: int, domain: str, right: bool, **fields: Any) -> Record:
        groups = {"difficulty": "hard" if index % 2 else "easy", "domain": domain}
        values = {"score": float(right), "score_published": float(index < 2)} | fields
        record: Record = make.record("lb", (4, 8)[index % 2] * K, None, index, extra={"groups": groups}, **values)
        return record

    read = {"parts": {"unparsed": 0.0, "unparsed_published": 1.0}}
    found = [row(index, "Legal", index < 4, **read) for index in range(5)]
    found.append(row(5, "Legal", False, outcome="no_answer", score_published=None))
    found += [row(index, "News", index == 6, **read) for index in range(6, 10)]
    found.append(row(10, "News", False, outcome="failed", score=None, score_published=None))
    return found


def _card(make: Any, records: list[Record], **changes: Any) -> Any:
    config = make.config(records, **changes)
    config["tasks"][0]["info"] |= {"chance": 0.25, "human": 0.537}
    return make_card(records, config)


def test_groups_pool_lengths_and_count_what_could_not_be_read(make: Any) -> None:
    data = _card(make, _records(make), data=[{"task": "lb", "rows": 12}]).to_dict()
    (table,) = data["groups"]
    assert (table["task"], table["chance"], table["human"], table["rows"]) == ("lb", 0.25, 0.537, 12)
    overall = table["overall"]
    assert (overall["n"], overall["untested"], overall["mean"]) == (10, 1, 0.5)
    assert overall["score_published"] == pytest.approx(0.2)  # an answer without text is wrong by any rule
    limits = wilson(5, 10)
    assert (overall["low"], overall["high"]) == (pytest.approx(limits.low), pytest.approx(limits.high))
    assert limits.low == pytest.approx(0.2366, abs=1e-4)
    assert [(row["value"], row["n"], row["mean"]) for row in table["groups"]["domain"]] == [
        ("Legal", 6, pytest.approx(4 / 6)),
        ("News", 4, 0.25),
    ]
    assert [row["value"] for row in table["groups"]["difficulty"]] == ["easy", "hard"]
    assert table["unread"] == {"strict": 1, "published": 10}


def test_the_card_prints_them_in_both_forms(make: Any) -> None:
    card = _card(make, _records(make), data=[{"task": "lb", "rows": 12}])
    text, page = card.to_markdown(), card.to_html()
    assert "| overall |  | 50.0% | 23.7% to 76.3% | 20.0% | 10 |" in text
    assert "| domain | News | 25.0% | 4.6% to 69.9% | 0.0% | 4 |" in text
    for said in ("a guess has 25%, people have 53.7%", "10 of the 12 rows are scored", "1 by the strict rule (10.0%)"):
        assert said in text
        assert said in page
    assert '<th scope="row">News</th><td>25.0%</td>' in page
    assert "published rows: lb 50.0% (23.7% to 76.3%, n 10)" in card.verdict_lines()


def test_a_card_without_rows_has_no_such_section(make: Any) -> None:
    card = make_card(make.row("niah.single", {4 * K: 5}, 5), {})
    assert card.to_dict()["groups"] == []
    assert "Scores by group" not in card.to_markdown() + card.to_html()


def test_hostile_names_stay_names(make: Any) -> None:
    groups = {"domain": HOSTILE, HOSTILE: "x"}
    records = [make.record("lb", 4 * K, None, index, extra={"groups": groups}) for index in range(3)]
    card = make_card(records, make.config(records))
    text, page = card.to_markdown(), card.to_html()
    assert "<script>" not in text
    assert "<script>" not in page
    assert not [line for line in text.splitlines() if line.startswith("# `head`")]
    (row,) = [line for line in text.splitlines() if line.startswith("| domain | A ")]
    assert row.replace("\\|", "").count("|") == 6


def test_many_values_are_cut_on_the_card_and_whole_in_json(make: Any) -> None:
    records = [make.record("lb", 4 * K, None, n, extra={"groups": {"bin": f"{n}k"}}) for n in range(1, 31)]
    card = make_card(records, make.config(records))
    (table,) = card.to_dict()["groups"]
    assert [row["value"] for row in table["groups"]["bin"]] == [f"{n}k" for n in range(1, 31)]  # 2k before 10k
    assert "| bin | 25k |" in card.to_markdown()
    assert "| bin | 26k |" not in card.to_markdown()
    assert "5 more values of bin are in card.json." in card.to_markdown()


def test_groups_keep_to_the_schema(make: Any) -> None:
    schema = json.loads(files("longreach.templates").joinpath("card.schema.json").read_text(encoding="utf-8"))
    data = json.loads(_card(make, _records(make)).to_json())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []


def test_chance_and_people_are_lines_on_the_curve(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn: list[str] = []
    plain = Axes.annotate
    monkeypatch.setattr(
        Axes, "annotate", lambda self, text, *a, **o: (drawn.append(text), plain(self, text, *a, **o))[1]
    )
    card = _card(make, _records(make))
    with style():
        assert draw_curve(card.estimates, "title", None) is not None
    assert {"chance 25%", "people 53.7%"} <= {text.replace(".0%", "%") for text in drawn}
