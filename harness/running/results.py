"""What a run folder shows: results.csv, the card and the notebook, all made from config.yaml and the records alone."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach.harness.record import Record
from longreach.harness.running.frame import ordered, write_csv
from longreach.harness.running.store import read_config

if TYPE_CHECKING:
    from longreach.harness.report.card import Card
    from longreach.harness.stats.compare import Comparison

NOTEBOOK = "LONGREACH_NOTEBOOK"
"""Environment variable: `off` leaves report.ipynb out, which takes three seconds of a run's end."""


def write_results(
    folder: Path,
    records: Mapping[str, Record],
    say: Callable[[str], None] | None = None,
    baseline: Path | None = None,
) -> "tuple[Card, list[Record]]":
    """Writes all three; returns the card, and the records in the order of results.csv.

    Args:
        say: is told in one line why the notebook was not executed, if it was not.
        baseline: run folder that the card compares this one with.
    """
    from longreach.harness.report.card import make_card, write_card  # scipy, jinja2 and matplotlib come with it

    config = read_config(folder)
    rows = ordered(records.values(), [task["label"] for task in config["tasks"]])
    write_csv(folder, rows)
    card = make_card(rows, config, _against(baseline, folder, rows, config) if baseline else None)
    write_card(card, folder)
    if rows and os.environ.get(NOTEBOOK) != "off":
        note = _write_notebook(folder, config, {record.task for record in rows})
        if note is not None and say is not None:
            say(note)
    return card, rows


def _against(baseline: Path, folder: Path, rows: Sequence[Record], config: Mapping[str, Any]) -> "Comparison":
    from longreach.harness.stats.compare import compare
    from longreach.harness.stats.pairs import RunData, read_run

    base = dataclasses.replace(read_run(baseline), name=baseline.resolve().name)  # cards are published: no paths
    return compare(base, RunData(name=folder.resolve().name, records=tuple(rows), config=config))


def _write_notebook(folder: Path, config: Mapping[str, Any], labels: set[str]) -> str | None:
    from longreach.harness.report.card_text import model_name
    from longreach.harness.report.notebook import write_notebook

    headline = {
        capability: [label for label in named if label in labels]
        for capability, named in (config.get("headline") or {}).items()
    }
    _, note = write_notebook(
        folder,
        title=f"Long-context report: {model_name(config)}",
        simulated=bool((config.get("model") or {}).get("simulated")),
        thresholds={},
        headline=headline,
    )
    return note
