"""Folders of searches in company: united with others, warned about, stopped by budgets and taken up again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import ConfigError
from longreach.harness.running.unite import read_folder, united
from longreach.harness.stats.estimates import Estimates, estimate

Go = Callable[..., Any]
SEARCH: dict[str, Any] = {"model": "sim:cliff@1k", "max_length": "2k"}


def together(tmp_path: Path, order: str) -> Estimates:
    config, records = united([read_folder(tmp_path / name) for name in order])
    return estimate(records, config)


def test_two_searches_of_one_model_become_one_card_with_both_verdicts(tmp_path: Path, search: Go) -> None:
    search(tmp_path / "a", capability="retrieval", **SEARCH)
    search(tmp_path / "b", capability="reasoning", **SEARCH)
    found = together(tmp_path, "ab").effective
    assert [(found[name].method, found[name].value) for name in ("retrieval", "reasoning")] == [("ascend", 1024)] * 2


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_search_and_a_grid_of_other_tasks_keep_their_own_intervals(
    tmp_path: Path, order: str, search: Go, grid: Go
) -> None:
    search(tmp_path / "a", capability="retrieval", **SEARCH)
    options = {
        "tasks": "trace.arith",
        "lengths": "1k,2k",
        "depths": "0.1,0.5,0.9",
        "samples": 5,
        "model": "sim:cliff@1k",
    }
    grid(tmp_path / "b", **options)
    found = together(tmp_path, order)
    assert found.effective["retrieval"].method == "ascend"
    assert found.effective["reasoning"].method != "ascend"
    assert {cell.task: cell.counts is not None for cell in found.cells} == {"niah.single": True, "trace.arith": False}
    assert {zone.task for zone in found.zones} == {"trace.arith"}
    assert found.length["tasks"] == ["trace.arith"]


def test_a_search_and_other_samples_of_its_task_cannot_be_pooled(tmp_path: Path, search: Go, grid: Go) -> None:
    search(tmp_path / "a", capability="retrieval", **SEARCH)
    grid(tmp_path / "b", tasks="niah.single", model="sim:cliff@1k", lengths="1k", depths="0,0.5,1", samples=2)
    search(tmp_path / "c", capability="retrieval", seed=7, **SEARCH)
    for order in ("ab", "ba", "ac", "ca"):
        with pytest.raises(ConfigError, match="chose its own sample sizes"):
            united([read_folder(tmp_path / name) for name in order])
    united([read_folder(tmp_path / "a"), read_folder(tmp_path / "a")])


def test_a_program_is_told_that_it_cannot_answer_own_needles(tmp_path: Path, search: Go) -> None:
    needles = tmp_path / "mine.csv"
    needles.write_text("needle,question,answer\nThe mill at Orla grinds oats.,What does the mill at Orla grind?,oats\n")
    options = {"tasks": "niah.single", "needles": str(needles), "max_length": "1k", "force": True}
    found = search(tmp_path / "a", model="reader:window=8k", **options)
    assert "will score 0 on niah.single" in found.said


def test_limits_on_cost_and_time_stop_a_search_that_goes_on_later(tmp_path: Path, search: Go) -> None:
    options = SEARCH | {"capability": "retrieval", "price_in": 1.0, "price_out": 1.0}
    stopped = search(tmp_path / "a", max_cost=0.02, **options)
    assert (stopped.exit_code, stopped.stopped) == (3, "--max-cost 0.02 USD")
    assert 0.0 < sum(record.cost_usd or 0.0 for record in stopped.records) <= 0.02
    late = search(tmp_path / "b", max_time=0.00001, **options)
    assert late.exit_code == 3
    assert "--max-time" in (late.stopped or "")
    done = search(tmp_path / "a", **options)
    assert (done.exit_code, done.estimates.effective["retrieval"].value) == (0, 1024)
