"""report.ipynb: executed in this interpreter, the card's own numbers, hostile answers harmless, same bytes twice."""

import asyncio
import base64
import json
import os
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from longreach.harness.errors import RunFolderError
from longreach.harness.record import COUNTED, Record
from longreach.harness.report.notebook import notebook_cells, write_notebook
from longreach.harness.running.frame import row, write_csv
from longreach.harness.stats.conclusion import conclude, headline_curve, samples_to_decide, verdict_table

HOSTILE = (
    "<script>alert(1)</script>",
    "![x](http://evil.example/x.png)",
    "\x1b[31mred\x1b[0m",
    "{{ 7*7 }}",
    '=HYPERLINK("http://evil.example")',
    "$\\href{javascript:alert(1)}{x}$",
    "NA",
    'a\r\nb"c,d\x00',
)
HEADLINE = {"retrieval": ["niah.single"], "reasoning": ["ruler.vt"]}


def record(task: str, length: int, depth: float | None, index: int, score: float | None, **changes: Any) -> Record:
    fields: dict[str, Any] = {
        "key": f"{task} {length} {depth} {index}",
        "task": task,
        "task_id": f"{task}@1",
        "version": 1,
        "capability": "reasoning" if task == "ruler.vt" else "retrieval",
        "family": "needle",
        "length": length,
        "depth": depth,
        "index": index,
        "seed": 42,
        "model": "m",
        "tokenizer": "t",
        "outcome": "failed" if score is None else "scored",
        "score": score,
        "text": "42" if score else HOSTILE[index % len(HOSTILE)],
        "target": ("42",),
        "placed": () if depth is None else (depth,),
        "ttft_s": length / 5000,
        "n_cached_tokens": None if index % 2 else 0,
        "at": "2026-01-01T00:00:00Z",
    }
    return Record(**fields | changes)


def records(tasks: Sequence[str] = ("niah.single", "ruler.vt", "检索 $x_1$ <b>")) -> Iterator[Record]:
    rng = random.Random(7)
    for task in tasks:
        for length, rate in ((4096, 1.0), (8192, 0.97), (16384, 0.5)):
            for depth in (None,) if task == "ruler.vt" else (0.0, 0.5, 1.0):
                for index in range(60 if depth is None else 20):
                    yield record(task, length, depth, index, float(rng.random() < rate))


def write(folder: Path, rows: Sequence[Record], **changes: Any) -> tuple[dict[str, Any], str | None]:
    folder.mkdir(exist_ok=True)
    write_csv(folder, rows)
    options: dict[str, Any] = {"title": "Report: acme_7b", "simulated": False, "thresholds": {}, "headline": HEADLINE}
    path, note = write_notebook(folder, **options | changes)
    assert [item.name for item in folder.iterdir() if item.name.startswith(".")] == []
    book: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return book, note


def outputs(book: dict[str, Any], cell_id: str) -> str:
    """All text of one cell's outputs."""
    cell = next(cell for cell in book["cells"] if cell["id"] == cell_id)
    found = []
    for output in cell["outputs"]:
        found += ["".join(output.get("text", "")), *("".join(output.get("data", {}).get("text/html", "")),)]
    return "\n".join(found)


def images(book: dict[str, Any], cell_id: str) -> list[bytes]:
    cell = next(cell for cell in book["cells"] if cell["id"] == cell_id)
    found = [output["data"]["image/png"] for output in cell["outputs"] if "image/png" in output.get("data", {})]
    return [base64.b64decode(image) for image in found]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("full run")
    book, note = write(folder, list(records()), simulated=True, title="Report: <acme_7b> *x*")
    assert note is None
    return book, folder


def test_every_cell_ran_in_order_and_drew_its_figures(full: tuple[dict[str, Any], Path]) -> None:
    book, _ = full
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell["outputs"] if output.get("name") == "stderr"]
    counts = {name: len(images(book, name)) for name in ("curve", "depth", "time")}
    assert counts == {"curve": 1, "depth": 2, "time": 1}
    assert all(image.startswith(b"\x89PNG") and len(image) > 5000 for image in images(book, "depth"))


def test_answers_and_names_are_shown_as_escaped_text_only(full: tuple[dict[str, Any], Path]) -> None:
    book, _ = full
    text = json.dumps([cell["outputs"] for cell in book["cells"] if cell["cell_type"] == "code"], ensure_ascii=False)
    shown = outputs(book, "answers")
    assert "&lt;script&gt;" in shown and "<script" not in shown.replace("<style scoped>", "")
    assert "<b>" not in outputs(book, "by-length") and "检索 $x_1$ &lt;b&gt;" in outputs(book, "by-length")
    assert "\\u001b" not in text and "\x1b" not in text and "text/markdown" not in text and "text/latex" not in text
    assert "49" not in re.sub(r"<td>\d+</td>|<th>\d+</th>", "", shown), "no template ran"
    assert "tex2jax_ignore" in shown, "no formula is typeset"


def test_a_hostile_title_is_text_and_simulated_stands_in_title_and_conclusion(
    full: tuple[dict[str, Any], Path],
) -> None:
    book, _ = full
    title = "".join(book["cells"][0]["source"])
    assert title.startswith("# SIMULATED: Report: &lt;acme\\_7b> \\*x\\*\n")
    assert "<acme" not in title and "**SIMULATED**" in title
    assert outputs(book, "conclusion").startswith("SIMULATED")


def test_the_same_results_give_the_same_bytes_without_a_trace_of_the_machine(
    full: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    _, folder = full
    other = tmp_path / "elsewhere"
    write(other, list(records()), simulated=True, title="Report: <acme_7b> *x*")
    data = (folder / "report.ipynb").read_bytes()
    assert data == (other / "report.ipynb").read_bytes()
    for trace in (str(folder), str(Path.home()), os.sep + "site-packages", "ipykernel", " at 0x"):
        assert trace.encode() not in re.sub(rb'"image/png": "[^"]*"', b"", data), trace
    metadata = json.loads(data)["metadata"]
    assert metadata["language_info"] == {"name": "python"} and metadata["kernelspec"]["name"] == "python3"


def test_columns_have_the_types_that_a_user_expects(full: tuple[dict[str, Any], Path]) -> None:
    types = dict(re.findall(r"<th>(\w+)</th>\s*<td>(\w+)</td>", outputs(full[0], "load")))
    assert (types["task"], types["outcome"]) == ("category", "category")
    assert (types["score"], types["correct"], types["cached_tokens"]) == ("float64", "boolean", "Int64")


def test_the_verdict_asks_for_095_and_the_headlines_own_thresholds(full: tuple[dict[str, Any], Path]) -> None:
    verdict = outputs(full[0], "verdict")
    assert {"&gt; 0.90", "&gt; 0.95", "&gt; 0.70"} == set(re.findall(r"&gt; 0\.\d\d(?=</th>)", verdict))
    assert "4k with 60 samples cannot show &gt; 0.95" in verdict and "Needs 73/73" in verdict
    conclusion = outputs(full[0], "conclusion")
    assert "Retrieval (niah.single) is reliable at 90% up to" in conclusion
    assert "Recall > 0.95 is refuted at 16k" in conclusion


@pytest.mark.parametrize(
    ("rows", "cell_id", "words"),
    [
        ([], "conclusion", "nothing can be concluded"),
        ([record("niah.single", 4096, 0.5, 0, 1.0)], "conclusion", "100% (21% to 100%, n 1)"),
        ([record("niah.single", 4096, 0.5, i, None) for i in range(3)], "curve", "Nothing was scored"),
        ([record("ruler.vt", 4096, None, i, 1.0) for i in range(3)], "depth", "No task of this run"),
    ],
)
def test_small_and_empty_runs_have_a_notebook_too(tmp_path: Path, rows: list[Record], cell_id: str, words: str) -> None:
    book, note = write(tmp_path / "run", rows)
    assert note is None and words in outputs(book, cell_id)


def test_it_runs_inside_a_running_event_loop_and_reads_the_plan_from_the_folder(tmp_path: Path) -> None:
    planned = [{"task": "niah.single", "length": length, "depth": 0.5, "n": 1} for length in (4096, 8192)]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"planned": planned}))

    async def inside() -> tuple[dict[str, Any], str | None]:
        return write(tmp_path, [record("niah.single", 4096, 0.5, 0, 1.0)])

    book, note = asyncio.run(inside())
    assert note is None and "not tested: not run" in outputs(book, "verdict")


def test_without_the_extra_it_says_so_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nbclient", None)
    book, note = write(tmp_path, [])
    assert note == (
        "report.ipynb was written but not executed: the package nbclient is not installed; "
        "pip install 'longreach[report]'"
    )
    assert book["cells"][0]["id"] == "unexecuted" and "pip install" in "".join(book["cells"][0]["source"])


def test_a_cell_that_fails_is_one_line_and_the_notebook_is_there_unexecuted(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("task,length\na,b\n")
    path, note = write_notebook(tmp_path, title="t", simulated=False, thresholds={}, headline=HEADLINE)
    assert note is not None and note.startswith(
        "report.ipynb was written but not executed: a cell failed with ValueError"
    )
    assert "\n" not in note
    book = json.loads(path.read_text())
    first = "".join(book["cells"][0]["source"])
    assert "was not executed" in first and "pip install 'longreach[report]'" in first and str(tmp_path) not in first
    assert not any(cell.get("outputs") for cell in book["cells"])


def test_a_notebook_that_never_ends_is_stopped_at_the_limit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")  # reading it waits for ever
    write_csv(tmp_path, [])
    _, note = write_notebook(tmp_path, title="t", simulated=False, thresholds={}, headline={}, limit_s=1)
    assert note is not None and note.endswith("it took longer than 1 s")


def test_without_results_there_is_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"holds no results\.csv"):
        write_notebook(tmp_path, title="t", simulated=False, thresholds={}, headline={})


def test_cells_have_fixed_ids_and_stay_short() -> None:
    cells = notebook_cells(title="t", simulated=False, thresholds={"retrieval": 0.8}, headline=HEADLINE)
    names = [name for _, name, _ in cells]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[a-z-]+", name) for name in names)
    assert max(source.count("\n") for _, _, source in cells) < 40
    setup = next(source for _, name, source in cells if name == "setup")
    assert "('retrieval', 0.8), ('retrieval', 0.95), ('reasoning', 0.7)" in setup


# The conclusion's numbers


def frame(rows: Sequence[Record]) -> pd.DataFrame:
    return pd.DataFrame([row(item) for item in rows])


def test_a_planned_cell_that_never_ran_blocks_its_length_as_on_the_card() -> None:
    rows = [record("niah.single", 4096, 0.0, index, 1.0) for index in range(50)]
    planned = [{"task": "niah.single", "length": 4096, "depth": depth, "n": 50} for depth in (0.0, 1.0)]
    curve = headline_curve(frame(rows), "retrieval", ["niah.single"], {"planned": planned}, 0.9)
    assert [point.state for point in curve.points] == ["not_tested"]
    assert headline_curve(frame(rows), "retrieval", ["niah.single"], {}, 0.9).points[0].state == "pass"


def test_an_overflow_is_never_averaged_away() -> None:
    rows = [record("niah.single", 4096, 0.0, index, 1.0) for index in range(50)]
    rows.append(record("niah.single", 4096, 0.0, 50, None, outcome="overflow"))
    curve = headline_curve(frame(rows), "retrieval", ["niah.single"], {}, 0.9)
    assert curve.points[0].mean is None
    assert "not tested: overflow" in verdict_table([curve])["what would decide"].tolist()
    assert "1 sample at 4k did not fit the model" in conclude(frame(rows), [curve], simulated=False)


def test_a_headline_of_two_tasks_is_the_mean_of_their_means() -> None:
    rows = [record("niah.single", 4096, 0.0, index, 1.0) for index in range(30)]
    rows += [record("niah.multi", 4096, 0.0, index, 0.0) for index in range(10)]
    curve = headline_curve(frame(rows), "retrieval", ["niah.single", "niah.multi"], {}, 0.9)
    assert curve.points[0].mean == 0.5
    assert {item.outcome for item in rows} <= COUNTED


def test_an_undecided_length_says_how_many_samples_would_decide() -> None:
    rows = [record("niah.single", 4096, 0.0, index, float(index > 0)) for index in range(50)]
    curve = headline_curve(frame(rows), "retrieval", ["niah.single"], {}, 0.9)
    text = verdict_table([curve])["what would decide"][0]
    assert text == (
        "4 more samples without a miss would show > 0.90; if the mean stays 0.980, 56 samples in all would decide."
    )
    assert (samples_to_decide(0.5, 0.9), samples_to_decide(0.9, 0.9)) == (6, None)
