"""The contract of tasks on published rows: one line per loader, with rows in the real schema that we wrote ourselves."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from longreach.harness import rows
from longreach.harness.errors import ConfigError, DataError, InfeasibleCell, RunFolderError
from longreach.harness.model import Response
from longreach.harness.registry import get_task, tasks
from longreach.harness.running.conduct import Collected
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare
from longreach.harness.running.progress import Progress
from longreach.harness.running.revisit import verify
from longreach.harness.running.run import caps_of, collect
from longreach.harness.running.store import open_store
from longreach.harness.sample import Grid, Point
from longreach.harness.task import Loaded, Task, task_id
from longreach.harness.tokenizer import BytesTokenizer, WordsTokenizer

FIXTURES = Path(__file__).parent / "fixtures" / "loaded"


@dataclass(frozen=True)
class Loader:
    """One loader and its rows."""

    task: str
    rows: str
    """A .jsonl file in fixtures/loaded."""
    spoilt: dict[str, Any]
    """What makes a row bad when it is put into it."""
    params: dict[str, Any] = field(default_factory=dict)
    needs: str = ""
    """Library that scores it; without it the loader is not tested."""

    def indexes(self, n: int) -> list[int]:
        """Sample numbers of `n` rows of one question each."""
        return [row * getattr(get_task(self.task), "per_row", 1) for row in range(n)]


LOADERS = (
    Loader("longbench_v2", "longbench_v2.jsonl", {"answer": "E"}),
    Loader("longbench_v2", "longbench_v2.jsonl", {"context": 7}, {"mode": "cot"}),
    Loader("longbench_v2", "longbench_v2.jsonl", {"difficulty": "?"}, {"mode": "no_context"}),
    Loader("longbench.hotpotqa", "longbench_qa.jsonl", {"answers": []}),
    Loader("longbench_e.2wikimqa", "longbench_qa.jsonl", {"answers": [7]}),
    Loader("longbench.gov_report", "longbench_qa.jsonl", {"context": None}, needs="rouge_score"),
    Loader("longbench.multifieldqa_zh", "longbench_zh.jsonl", {"context": []}, needs="jieba"),
    Loader("longbench.dureader", "longbench_zh.jsonl", {"context": []}, needs="jieba"),
    Loader("longbench.trec", "longbench_trec.jsonl", {"all_classes": []}),
    Loader("longbench.passage_retrieval_en", "longbench_count.jsonl", {"answers": "3"}),
    Loader("longbench.lcc", "longbench_code.jsonl", {"answers": {}}),
    Loader("leval.quality", "leval_quality.jsonl", {"outputs": []}),
    Loader("leval.coursera", "leval_quality.jsonl", {"outputs": [""]}),
    Loader("leval.gsm100", "leval_gsm100.jsonl", {"instructions": []}),
    Loader("leval.sci_fi", "leval_sci_fi.jsonl", {"input": 3}),
    Loader("leval.financial_qa", "leval_qa.jsonl", {"outputs": ["one", "two"]}),
    Loader("leval.news_summ", "leval_qa.jsonl", {"outputs": [3]}, needs="rouge_score"),
    Loader("mrcr.openai", "mrcr_openai.jsonl", {"answer": "no marker"}, {"needles": 2}),
    Loader("mrcr.openai", "mrcr_openai.jsonl", {"prompt": "[1, 2, 3]"}, {"needles": 2, "merge": True}),
    Loader("mrcr.google_v2", "mrcr_google.jsonl", {"answer": "short"}, {"needles": 2}),
    Loader("babilong.qa1", "babilong_qa1.jsonl", {"target": " "}),
    Loader("babilong.qa8", "babilong_qa8.jsonl", {"input": 3}),
    Loader("litm.kv_rows", "litm_kv.jsonl", {"key": "another"}),
    Loader("litm.kv_rows", "litm_kv.jsonl", {"value": "another"}, {"gold_index": 2}),
    Loader("litm.multi_doc_rows", "litm_multi_doc.jsonl", {"answers": []}),
    Loader("helmet.json_kv_rows", "helmet_json_kv.jsonl", {"demos": [["a"]]}),
    Loader("helmet.rag_rows", "helmet_rag.jsonl", {"ctxs": [{"title": "a"}]}),
    Loader("graphwalks.openai", "graphwalks.jsonl", {"problem_type": "dfs"}),
)
WORDS = WordsTokenizer()
WHOLE = Grid(lengths=tuple(1 << n for n in range(8, 24)), depths=(0.5,), n=10**6)
"""Holds every row."""


@pytest.fixture(params=LOADERS, ids=lambda loader: "-".join([loader.task, *map(str, loader.params.values())]))
def loader(request: pytest.FixtureRequest) -> Loader:
    found: Loader = request.param
    if found.needs:
        pytest.importorskip(found.needs)
    return found


def _lines(loader: Loader) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / loader.rows).read_text(encoding="utf-8").splitlines()]


def _write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def _task(loader: Loader, data: object = None, **params: Any) -> Any:
    return get_task(loader.task, data=str(data or FIXTURES / loader.rows), **{**loader.params, **params})


def _points(task: Any, grid: Grid = WHOLE) -> list[Point]:
    return list(task.measured_points(grid, WORDS))


def test_every_loaded_task_is_held_to_this_contract() -> None:
    """By the class that asks and scores: sets of one suite differ in their rows only."""

    def kind(task: object) -> type:
        return next(found for found in type(task).__mro__ if "score" in vars(found))

    known = {kind(task) for task in tasks().values() if isinstance(task, Loaded)}
    assert known == {kind(get_task(loader.task)) for loader in LOADERS}


def test_rows_become_points_and_points_samples(loader: Loader) -> None:
    task = _task(loader)
    assert isinstance(task, Task)
    points = _points(task)
    assert sorted(point.index for point in points) == loader.indexes(len(_lines(loader)))
    for point in points:
        assert (point.task, point.depth) == (task_id(task), None)
        first, second = task.sample(point, WORDS), _task(loader).sample(point, WordsTokenizer())
        assert first == second
        assert first.n_tokens == WORDS.count(WORDS.render(first.messages, first.answer_prefix))
        assert json.loads(json.dumps(dict(first.extra))) == dict(first.extra)
        assert first.target
        assert first.extra["groups"]
        assert all(isinstance(value, str) and value for value in first.extra["groups"].values())


def test_each_row_stands_at_the_smallest_length_that_holds_it(loader: Loader) -> None:
    task = _task(loader)
    for tokenizer in (WORDS, BytesTokenizer()):
        for point in task.measured_points(WHOLE, tokenizer):
            need = task.sample(point, tokenizer).n_tokens + task.info.reserve
            assert point.length == min(length for length in WHOLE.lengths if length >= need)


def test_fewer_samples_are_a_subset_spread_over_the_set(loader: Loader) -> None:
    task = _task(loader)
    one = Grid(lengths=(1 << 20,), depths=(0.5,), n=2)
    few, many = _points(task, one), _points(task, Grid(lengths=(1 << 20,), depths=(0.5,), n=10**6))
    assert len(few) == min(2, len(many))
    assert many[: len(few)] == few
    assert [point.index for point in many] != sorted(point.index for point in many) or len(many) < 4


def test_the_perfect_answer_scores_one_and_the_empty_one_zero(loader: Loader) -> None:
    task = _task(loader)
    for point in _points(task):
        sample = task.sample(point, WORDS)
        assert task.score(sample, Response(text="")).value == 0.0
        answers = {
            task.score(sample, Response(text=text)).value for text in (sample.target[0], ", ".join(sample.target))
        }
        assert max(answers) == pytest.approx(1.0)


def test_rows_that_are_too_long_are_counted_and_named(loader: Loader) -> None:
    small = Grid(lengths=(64,), depths=(0.5,), n=10)
    for policy in ("refuse", "skip"):
        task = _task(loader, over_length=policy)
        assert _points(task, small) == []
        (left,) = task.left_out(small, WORDS)
        assert (left.n, left.is_refused) == (len(_lines(loader)), policy == "refuse")
        assert "line" in left.reason
        assert "tokens" in left.reason
        assert [point.length for point in _points(task, Grid(lengths=(64, left.length), depths=(0.5,), n=99))] == [
            left.length
        ] * left.n
    with pytest.raises(InfeasibleCell, match="needs"):
        task.sample(Point(task=task_id(task), length=64, depth=None, index=0, seed=1), WORDS)
    with pytest.raises(ConfigError, match="over_length 'drop' is not one of refuse, skip"):
        _task(loader, over_length="drop")


def test_a_bad_row_is_named_by_file_and_line(loader: Loader, tmp_path: Path) -> None:
    lines = _lines(loader)
    data = _write(tmp_path / "bad.jsonl", [lines[0], lines[1] | loader.spoilt, *lines[2:]])
    with pytest.raises(DataError, match=r"^line 2 of .*bad\.jsonl has .*; mend the data, or leave bad rows out"):
        _points(_task(loader, data))
    left = _task(loader, data, exclude=(2,))
    assert sorted(point.index for point in _points(left)) == [
        number for number in loader.indexes(len(lines)) if number != loader.indexes(2)[1]
    ]
    assert left.provenance()["excluded"] == [f"line 2 of {data}"]
    with pytest.raises(DataError, match="exclude names 9999, which is no row"):
        _points(_task(loader, exclude=(9999,)))


def test_a_missing_column_is_named(loader: Loader, tmp_path: Path) -> None:
    first = _lines(loader)[0]
    column = next(iter(get_task(loader.task).columns))  # type: ignore[attr-defined]
    data = _write(tmp_path / "short.jsonl", [{name: v for name, v in first.items() if name != column}])
    with pytest.raises(DataError, match=f"line 1 of .*short.jsonl has no column {column!r}; it has: "):
        _points(_task(loader, data))


def test_without_data_one_line_says_what_to_give(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    said = rf"needs its data.*--set {loader.task}\.data=PATH, or --set {loader.task}\.data=hf:"
    with pytest.raises(ConfigError, match=said):
        prepare(Options.of(tasks=loader.task, model="sim:perfect"))


def test_a_run_holds_to_the_rows_that_it_began_with(loader: Loader, tmp_path: Path) -> None:
    lines = _lines(loader)
    data, folder = _write(tmp_path / "rows.jsonl", lines), tmp_path / "run"
    settings = [f"{loader.task}.data={data}", *(f"{loader.task}.{name}={v}" for name, v in loader.params.items())]
    options = Options.of(
        tasks=loader.task,
        model="sim:perfect",
        tokenizer="words",
        lengths=WHOLE.lengths,
        samples=1000,
        set=settings,
        out=str(folder),
    )

    def ask() -> Collected:  # all of `longreach run` but the card
        prepared = prepare(options)
        with open_store(folder, ()) as store:
            return collect(prepared, store, caps_of(prepared), Progress())

    first = ask()
    assert (first.exit_code, len(first.records)) == (0, len(lines))
    assert all(record.extra["groups"] for record in first.records.values())
    assert ask().records == first.records
    assert verify(folder) == (len(lines), [])
    kept = yaml.safe_load((folder / "config.yaml").read_text())["data"]
    assert [(entry["task"], entry["rows"], entry["excluded"]) for entry in kept] == [(loader.task, len(lines), [])]
    assert kept[0]["spec"] == f"file:{data}#{kept[0]['digest']}"
    _write(tmp_path / "rows.jsonl", lines[:-1])
    rows._read.cache_clear()  # as in another process
    with pytest.raises(RunFolderError, match="was made with other settings"):
        ask()
    n, wrong = verify(folder)
    assert n == len(wrong) == len(lines)
    assert "has changed since it was pinned" in wrong[0]
