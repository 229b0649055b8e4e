"""card.json against its published schema: every card that can happen, and no key that the schema does not name."""

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from longreach.harness.report.card import make_card
from longreach.harness.report.card_data import SCHEMA

K = 1024
DEPTHS = (0.0, 0.5, 1.0)


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(files("longreach.templates").joinpath("card.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _cards(make: Any) -> dict[str, Any]:
    plain = make.row("niah.single", {4 * K: 20, 8 * K: 3}, 20, DEPTHS) + make.row("ruler.vt", {4 * K: 5}, 5)
    timed = make.row("niah.single", {4 * K: 5}, 5, ttft_s=1.0, latency_s=2.0, cost_usd=0.1, n_cached_tokens=0)
    wrong = make.row("niah.distractor", {4 * K: 2}, 5, parts={"distractor": 1.0})
    bad = [
        record
        for outcome in ("no_answer", "refused", "overflow", "truncated", "failed")
        for record in make.outcome("niah.single", 4 * K, 0.5, outcome, 2, len(outcome) * 10)
    ]
    vendor = make.row("niah.single", {8 * K: 1}, 1, origin="vendor")
    every = {
        "plain": plain,
        "timed": timed,
        "wrong": wrong,
        "bad": bad,
        "vendor": vendor,
        "documents": make.row("lb", {4 * K: 3}, 3),
    }
    return {name: make_card(records, make.config(records)) for name, records in every.items()} | {
        "empty": make_card([], {})
    }


@pytest.mark.parametrize("name", ["plain", "timed", "wrong", "bad", "vendor", "documents", "empty"])
def test_every_card_keeps_to_the_schema(make: Any, validator: Draft202012Validator, name: str) -> None:
    data = json.loads(_cards(make)[name].to_json())
    assert [f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(data)] == []


def test_the_schema_names_every_key_of_a_card(make: Any, validator: Draft202012Validator) -> None:
    known = validator.schema["properties"]
    assert set(_cards(make)["plain"].to_dict()) <= set(known)
    assert known["schema"]["const"] == SCHEMA


def test_a_card_with_a_wrong_state_is_told(make: Any, validator: Draft202012Validator) -> None:
    data = _cards(make)["plain"].to_dict()
    data["cells"][0]["state"] = "good"
    assert [error.json_path for error in validator.iter_errors(data)] == ["$.cells[0].state"]
