"""Batteries whose depths are drawn inside strata, and optional tasks on published rows."""

from pathlib import Path

import pytest

from longreach.harness.errors import BatteryError
from longreach.harness.running.battery_load import builtin_names, load_battery
from longreach.harness.running.options import Options
from longreach.harness.running.plan import make_plan
from longreach.harness.running.prepare import prepare
from longreach.harness.running.resolve import resolve_tasks
from longreach.harness.running.run import run
from longreach.harness.stats.blocks import centres, jittered, stratum
from longreach.harness.tokenizer import WordsTokenizer

STRATA = {
    "name": "drawn",
    "lengths": ["1k", "2k"],
    "depths": list(centres()),
    "strata": True,
    "samples": 3,
    "tasks": ["niah.single"],
}


def _plan(data: dict[str, object], **flags: object):  # type: ignore[no-untyped-def]
    battery = load_battery(Options.of(battery=data, **flags))
    return make_plan(battery, resolve_tasks(battery), WordsTokenizer(), window=None)


def test_depths_are_drawn_inside_their_strata_and_cells_name_the_centres() -> None:
    plan = _plan(STRATA)
    depths = [item.point.depth for item in plan.items]
    assert len(set(depths)) == 15  # the same question at both lengths: the same depth
    assert [stratum(depth) for depth in depths[:5]] == [0, 1, 2, 3, 4]
    assert {(cell["depth"], cell["n"]) for cell in plan.cells()} == {(depth, 3) for depth in centres()}
    first = plan.items[0].point
    assert first.depth == jittered(first.task, 0, 0, first.seed)  # as `find` draws them


def test_control_arms_ask_at_the_depths_of_their_task() -> None:
    plan = _plan(STRATA | {"controls": True})
    by_label: dict[str, set[float | None]] = {}
    for item in plan.items:
        by_label.setdefault(item.label, set()).add(item.point.depth)
    assert by_label["niah.single (no context)"] == by_label["niah.single"]


def test_given_depths_are_what_they_say() -> None:
    plan = _plan(STRATA, depths="0,1")
    assert {item.point.depth for item in plan.items} == {0.0, 1.0}
    with pytest.raises(BatteryError, match="centres of five"):
        load_battery(Options.of(battery=STRATA | {"depths": [0, 0.5, 1]}))


def test_a_run_shows_strata_and_keeps_the_depths_and_can_be_given_back(tmp_path: Path) -> None:
    done = run(battery=STRATA | {"model": "sim:perfect"}, out=str(tmp_path / "a"))
    cells = done.card.to_dict()["cells"]
    assert sorted({cell["depth"] for cell in cells}) == list(centres())
    assert {cell["n"] for cell in cells} == {3}
    assert all(cell["state"] != "not_tested" for cell in cells)
    assert len(set(done.frame["depth"])) == 15
    again = load_battery(Options.of(battery=str(tmp_path / "a" / "config.yaml")))
    assert again.strata
    assert not prepare(Options.of(battery=str(tmp_path / "a" / "config.yaml"), out=str(tmp_path / "a"))).plan.infeasible


def test_an_optional_task_without_data_is_left_out_and_listed(tmp_path: Path) -> None:
    entry = {"task": "longbench_v2", "optional": True}
    plan = _plan(STRATA | {"tasks": ["niah.single", entry]})
    assert {item.label for item in plan.items} == {"niah.single"}
    assert [cell.task for cell in plan.infeasible] == ["longbench_v2"]
    assert "--set longbench_v2.data=FILE" in plan.infeasible[0].reason
    rows = Path(__file__).parents[1] / "fixtures" / "loaded" / "longbench_v2.jsonl"
    given = _plan(STRATA | {"lengths": ["64k"], "tasks": ["niah.single", entry]}, set=[f"longbench_v2.data={rows}"])
    assert "longbench_v2" in {item.label for item in given.items}


@pytest.mark.parametrize("name", ["full", "babi", "litm", "helmet", "reasoning"])
def test_batteries_can_be_planned_and_feed_both_headlines(name: str) -> None:
    assert name in builtin_names()
    battery = load_battery(Options.of(battery=name, lengths="4k"))
    plan = make_plan(battery, resolve_tasks(battery), WordsTokenizer(), window=None)
    wanted = {"full": {"retrieval", "reasoning"}, "babi": {"reasoning"}, "litm": {"retrieval"}}
    assert set(plan.headline) == wanted.get(name, set(plan.headline))
    assert {cell.task for cell in plan.infeasible} == ({"longbench_v2"} if name == "full" else set())
