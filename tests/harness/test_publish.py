"""The card in a README, in `model-index` metadata and in `.eval_results`; whatever is not ours keeps its bytes."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from longreach.harness.errors import ConfigError
from longreach.harness.report.publish import eval_results, insert_block, measured, metadata, relocate, write_metadata

CARD = "---\ntags: [longreach]\n---\n\n# Card\n\n![curve](figures/a%20b.png)\n\n| a |\n| --- |\n| 1 |\n"
OUTCOMES = dict.fromkeys(("scored", "no_answer", "refused", "overflow", "truncated", "failed", "not_run"), 0)


def cell(task: str, length: int, depth: float | None, n: int, mean: float | None, **outcomes: int) -> dict[str, Any]:
    counts = OUTCOMES | {"scored": n} | outcomes
    return {"task": task, "length": length, "depth": depth, "n": n, "mean": mean, "outcomes": counts}


def card(**changes: Any) -> dict[str, Any]:
    cells = [
        cell("niah.single", 4096, 0.0, 20, 1.0),
        cell("niah.single", 4096, 1.0, 20, 0.9),
        cell("ruler.vt", 4096, None, 40, 0.75),
        cell("ruler.vt", 8192, None, 40, 0.5),
    ]
    return {"model": "acme-7b", "simulated": False, "cells": cells} | changes


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    path = tmp_path / "README.md"
    path.write_bytes(b"# Acme\n\nA model.\n")
    return path


# The block


@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"# Acme",
        b"# Acme\n",
        b"# Acme\n\n",
        b"\xef\xbb\xbf---\r\nlicense: mit # mine\r\n---\r\n# Acme\r\n",
        b"caf\xe9 in Latin-1\n",
        b"```\n<!-- longreach:begin -->\n```\ntext\n",
        b"---\nwidget:\n- text: |\n  ```py\n---\nThe fence above is in the front matter.\n",
    ],
)
def test_a_file_without_markers_gets_the_block_at_its_end_and_keeps_every_byte(readme: Path, before: bytes) -> None:
    readme.write_bytes(before)
    assert insert_block(readme, CARD)
    after = readme.read_bytes()
    assert after.startswith(before)
    assert after.endswith(b"\n") == (before.endswith(b"\n") or not before)
    assert b"# Card" in after and b"tags: [longreach]" not in after
    assert (b"\r\n" in before) == (b"\r\n" in after) and after.count(b"\n") == (
        after.count(b"\r\n") if b"\r\n" in before else after.count(b"\n")
    )


def test_the_same_card_changes_nothing_the_second_time(readme: Path) -> None:
    insert_block(readme, CARD)
    first, stamp = readme.read_bytes(), readme.stat().st_mtime_ns
    assert not insert_block(readme, CARD)
    assert (readme.read_bytes(), readme.stat().st_mtime_ns) == (first, stamp)


def test_only_what_stands_between_the_markers_is_replaced(readme: Path) -> None:
    above, below = b"# A \t\r\n  <!--longreach:begin-->  \r\n", b"<!-- longreach:end -->\r\nlast line, no end"
    readme.write_bytes(above + b"old\r\nold\r\n" + below)
    assert insert_block(readme, CARD)
    after = readme.read_bytes()
    assert after.startswith(above) and after.endswith(below) and b"old" not in after
    assert after.count(b"\n") == after.count(b"\r\n")
    assert not insert_block(readme, CARD)


def test_two_cards_live_side_by_side_under_their_own_names(readme: Path) -> None:
    insert_block(readme, "one")
    insert_block(readme, "two", name="longreach-b")
    insert_block(readme, "three")
    assert readme.read_text() == (
        "# Acme\n\nA model.\n\n<!-- longreach:begin -->\n\nthree\n\n<!-- longreach:end -->\n\n"
        "<!-- longreach-b:begin -->\n\ntwo\n\n<!-- longreach-b:end -->\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n<!-- longreach:begin -->\nb\n", "line 2 begins a longreach block that no line ends"),
        ("a\n<!-- longreach:end -->\n", "line 2 ends a longreach block that no line begins"),
        ("<!-- longreach:begin -->\n" * 2 + "<!-- longreach:end -->\n", "lines 1 and 2 both begin"),
        ("<!-- longreach:begin -->\n<!-- longreach:end -->\n" * 2, "in lines 1 to 2 and 3 to 4"),
        ("a\n~~~\nb\n", "the code fence of line 2 is never closed"),
    ],
)
def test_damaged_markers_name_their_lines_and_change_nothing(readme: Path, text: str, words: str) -> None:
    readme.write_text(text)
    with pytest.raises(ConfigError, match=words):
        insert_block(readme, CARD)
    assert readme.read_text() == text


def test_a_missing_readme_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"NONE\.md cannot be read \(No such file"):
        insert_block(tmp_path / "NONE.md", CARD)


def test_a_card_that_holds_a_marker_cannot_break_the_block(readme: Path) -> None:
    hostile = "text\n<!-- longreach:end -->\n```\nopen fence\n"
    assert insert_block(readme, hostile)
    assert not insert_block(readme, hostile)
    assert readme.read_text().count("<!-- longreach:end -->") == 1


def test_permissions_and_links_survive(readme: Path, tmp_path: Path) -> None:
    readme.chmod(0o640)
    link = tmp_path / "link.md"
    link.symlink_to(readme)
    assert insert_block(link, CARD)
    assert link.is_symlink() and readme.stat().st_mode & 0o777 == 0o640 and "# Card" in readme.read_text()


def test_image_paths_start_at_the_readme(readme: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a b"
    run.mkdir(parents=True)
    insert_block(readme, CARD, folder=run)
    assert "![curve](runs/a%20b/figures/a%20b.png)" in readme.read_text()


def test_only_relative_targets_outside_code_are_moved(tmp_path: Path) -> None:
    text = (
        "[![x](f/a.png)](card.html#top) [y](https://a.b/c) [z](#here) [r](/root) `![no](f/a.png)`\n"
        '![t](f/b.png "title") \\](f/c.png)\n\n```\n![no](f/a.png)\n```\n![last](<f/d e.png>)\n'
    )
    assert relocate(text, tmp_path / "run", tmp_path / "docs") == (
        "[![x](../run/f/a.png)](../run/card.html#top) [y](https://a.b/c) [z](#here) [r](/root) `![no](f/a.png)`\n"
        '![t](../run/f/b.png "title") \\](f/c.png)\n\n```\n![no](f/a.png)\n```\n![last](../run/f/d%20e.png)\n'
    )


# Metadata


def test_a_task_at_a_length_is_one_result_with_n_and_interval() -> None:
    index = metadata(card())["model-index"]
    assert [entry["name"] for entry in index] == ["acme-7b"]
    first = index[0]["results"][0]
    assert first["dataset"] == {
        "type": "longreach-niah.single",
        "name": "niah.single at 4k tokens (longreach)",
        "config": "4096",
    }
    value = first["metrics"][0]
    assert (value["value"], value["args"]) == (0.95, {"n": 40, "low": 0.834961, "high": 0.986179, "ci": 95})
    assert len(index[0]["results"]) == 3


def test_a_length_with_an_overflow_or_without_samples_is_left_out() -> None:
    cells = [
        cell("niah.single", 4096, 0.0, 20, 1.0),
        cell("niah.single", 8192, 0.0, 20, 1.0),
        cell("niah.single", 8192, 1.0, 19, 1.0, overflow=1),
        cell("niah.single", 16384, 0.0, 0, None, not_run=20),
    ]
    assert [item.length for item in measured(card(cells=cells))] == [4096]


def test_simulated_numbers_say_so() -> None:
    result = metadata(card(simulated=True))["model-index"][0]["results"][0]
    assert result["dataset"]["name"].startswith("SIMULATED") and result["metrics"][0]["name"].startswith("SIMULATED")


FRONT = """\
---
# the licence was checked
license:   mit   # really
date: 2024-01-02
tags: [a,  "b"]
model-index:
# one model only
- name: Acme/Acme-7B
  results:
    # measured by others
    - task: {type: text-generation}
      dataset:
        type: "ai2_arc"
        name: ARC
      metrics:
        - type: accuracy
          value: 50.0   # percent
    # ours go below
extra: yes
---
# Acme
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_our_results_join_those_of_others_and_are_replaced_not_doubled(readme: Path, newline: str) -> None:
    readme.write_bytes(FRONT.replace("\n", newline).encode())
    assert write_metadata(readme, card())
    first = readme.read_bytes().decode()
    added = [line for line in first.split(newline) if line not in FRONT.split("\n")]
    kept = "\n".join(line for line in first.split(newline) if line not in added)
    assert all(line in kept for line in FRONT.splitlines()) and first.count("longreach-ruler.vt") == 2
    results = yaml.safe_load(first.split("---")[1])["model-index"][0]["results"]
    assert [result["dataset"]["type"] for result in results][:2] == ["ai2_arc", "longreach-niah.single"]
    assert not write_metadata(readme, card())
    assert write_metadata(readme, card(cells=[cell("niah.single", 4096, 0.0, 20, 1.0)]))
    second = readme.read_bytes().decode()
    assert len(yaml.safe_load(second.split("---")[1])["model-index"][0]["results"]) == 2
    assert all(line in second for line in FRONT.splitlines())
    assert write_metadata(readme, card()) and readme.read_bytes().decode() == first


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# Acme\n",
        "---\n---\n# Acme\n",
        "---\nlicense: mit\n---\n# Acme\n---\n",
        "---\nlicense: mit\nmodel-index: []  # none yet\nlast: 1\n---\n",
        "---\nlicense: mit\nmodel-index:\nlast: 1\n---\n",
        "---\nmodel-index:\n- name: acme-7b\n---\n",
        "---\nmodel-index:\n- name: acme-7b\n  results: []\nlast: 1\n---\n",
        "---\nmodel-index:\n  - name: other\n    results:\n      - dataset: {type: x}\n        note: |\n          two\n          lines\n\n---\n",
        "\ufeff# Acme\n",
    ],
)
def test_every_usual_layout_of_front_matter_takes_the_results(readme: Path, before: str) -> None:
    readme.write_text(before)
    assert write_metadata(readme, card())
    after = readme.read_text()
    data = yaml.safe_load(after.lstrip("\ufeff").split("---\n")[1])
    own = next(entry for entry in data["model-index"] if entry["name"] == "acme-7b")
    assert own["results"] == metadata(card())["model-index"][0]["results"]
    for line in before.replace(" []", "").splitlines():
        assert line.lstrip("\ufeff") in after
    assert after.startswith("\ufeff") == before.startswith("\ufeff")
    assert not write_metadata(readme, card())


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("---\nmodel-index: [{name: acme-7b, results: [{dataset: {type: x}}]}]\n---\n", "cannot be edited as text"),
        ("---\n{license: mit}\n---\n", "cannot be edited as text"),
        ("---\nmodel-index: 3\n---\n", "cannot be edited as text"),
        ("---\na: b\nc: [\n---\n", r"README.md, line \d is no valid YAML"),
        ("---\njust words\n---\n", "no mapping"),
    ],
)
def test_front_matter_that_cannot_be_edited_for_certain_is_left_alone(readme: Path, before: str, words: str) -> None:
    readme.write_text(before)
    with pytest.raises(ConfigError, match=words):
        write_metadata(readme, card())
    assert readme.read_text() == before


def test_a_card_without_a_measured_length_writes_no_metadata(readme: Path) -> None:
    with pytest.raises(ConfigError, match="no measured length"):
        write_metadata(readme, card(cells=[]))


def test_names_with_marks_of_yaml_stay_names(readme: Path) -> None:
    odd = card(model="a: b # c\x1b[31m\nd", cells=[cell("x[y=1]: <b>", 4096, None, 5, 1.0)])
    assert write_metadata(readme, odd) and not write_metadata(readme, odd)
    entry = yaml.safe_load(readme.read_text().split("---")[1])["model-index"][0]
    assert entry["name"] == "a: b # c d" and entry["results"][0]["dataset"]["type"] == "longreach-x-y-1-b"


# Results for the hub's benchmarks


def test_only_named_benchmarks_are_written(tmp_path: Path) -> None:
    paths = eval_results(card(provenance={"started": "2026-01-02T03:04:05+00:00"}), {"ruler.vt": "org/ruler"}, tmp_path)
    assert paths == [tmp_path / ".eval_results" / "ruler.yaml"] and list(tmp_path.rglob("*.yaml")) == paths
    entries = yaml.safe_load(paths[0].read_text())
    assert [entry["dataset"] for entry in entries] == [
        {"id": "org/ruler", "task_id": "ruler.vt_4096"},
        {"id": "org/ruler", "task_id": "ruler.vt_8192"},
    ]
    assert entries[0]["value"] == 0.75 and entries[0]["date"].startswith("2026-01-02") and "n 40" in entries[0]["notes"]
    again = paths[0].read_bytes()
    eval_results(card(provenance={"started": "2026-01-02T03:04:05+00:00"}), {"ruler.vt": "org/ruler"}, tmp_path)
    assert paths[0].read_bytes() == again


def test_a_task_id_and_one_length_can_be_chosen(tmp_path: Path) -> None:
    path = eval_results(card(), {"ruler.vt": "org/ruler#vt@8k"}, tmp_path)[0]
    assert [entry["dataset"]["task_id"] for entry in yaml.safe_load(path.read_text())] == ["vt"]


def test_the_published_rule_is_the_value_where_a_task_has_one(tmp_path: Path) -> None:
    cells = [cell("ruler.vt", 4096, None, 40, 0.5) | {"score_published": 0.8}]
    entry = yaml.safe_load(eval_results(card(cells=cells), {"ruler.vt": "org/ruler"}, tmp_path)[0].read_text())[0]
    assert entry["value"] == 0.8 and "published rule; mean strict score 0.5" in entry["notes"]


@pytest.mark.parametrize(
    ("changes", "benchmarks", "words"),
    [
        ({"simulated": True}, {"ruler.vt": "org/ruler"}, "marked SIMULATED"),
        ({"marks": ["A PROGRAM, NOT A LANGUAGE MODEL"]}, {"ruler.vt": "org/ruler"}, "real models only"),
        ({}, {"ruler.vt": "ruler"}, "no data set's id"),
        ({}, {"ruler.vt": "org/ruler#vt"}, "2 lengths of 'ruler.vt' under one task id"),
        ({}, {"ruler.vt": "org/ruler@1M"}, "not measured at 1M"),
        ({}, {"ruler.vr": "org/ruler"}, "did you mean 'ruler.vt'"),
    ],
)
def test_results_that_a_leaderboard_must_not_see_are_refused(
    tmp_path: Path, changes: dict[str, Any], benchmarks: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        eval_results(card(**changes), benchmarks, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_results_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / ".eval_results" / "ruler.yaml"
    path.parent.mkdir()
    path.write_text("- mine\n")
    with pytest.raises(ConfigError, match="was not written by longreach"):
        eval_results(card(), {"ruler.vt": "org/ruler"}, tmp_path)
    assert path.read_text() == "- mine\n"


def test_the_card_itself_is_only_read(readme: Path, tmp_path: Path) -> None:
    original = card()
    before = copy.deepcopy(original)
    write_metadata(readme, original)
    eval_results(original, {"ruler.vt": "org/ruler"}, tmp_path)
    assert original == before
