"""What a run folder shows: results.csv and the card, both made from config.yaml and the records alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from longreach.harness.record import Record
from longreach.harness.running.frame import ordered, write_csv
from longreach.harness.running.store import read_config

if TYPE_CHECKING:
    from longreach.harness.report.card import Card


def write_results(folder: Path, records: Mapping[str, Record]) -> "tuple[Card, list[Record]]":
    """Writes both; returns the card, and the records in the order of results.csv."""
    from longreach.harness.report.card import make_card, write_card  # scipy, jinja2 and matplotlib come with it

    config = read_config(folder)
    rows = ordered(records.values(), [task["label"] for task in config["tasks"]])
    write_csv(folder, rows)
    card = make_card(rows, config)
    write_card(card, folder)
    return card, rows
