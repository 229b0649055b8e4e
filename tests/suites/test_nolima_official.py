"""NoLiMa's own sets: the real schema with rows of our own, books from files, its length, its score, and what is refused."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from longreach.harness.cli import run_command
from longreach.harness.data import pin
from longreach.harness.errors import DataError, InfeasibleCell, MissingExtra
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.rows import pin_rows
from longreach.harness.sample import Grid, Sample
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.filler import mixed
from longreach.suites.nolima.needle_sets import MAIN, read_books, read_set
from longreach.suites.nolima.official import Official

SET = Path(__file__).resolve().parent.parent / "fixtures" / "nolima_official.json"
WORDS = WordsTokenizer()


def _books(folder: Path, n_characters: int = 60_000) -> str:
    folder.mkdir(exist_ok=True)
    for number in (2, 1):
        (folder / f"rand_book_{number}.txt").write_text(mixed(n_characters, number).replace("\n\n", " \n"))
    return pin(str(folder))


def _task(tmp_path: Path, data: Path = SET, **params: Any) -> Official:
    task = get_task("nolima.official", data=pin_rows(str(data)), haystack=_books(tmp_path / "books"), **params)
    assert isinstance(task, Official)
    return task


def _samples(task: Official, n: int = 16, length: int = 2000, depth: float = 0.4) -> list[Sample]:
    return [task.sample(point, WORDS) for point in task.points(Grid(lengths=(length,), depths=(depth,), n=n))]


def _with(tmp_path: Path, number: int, **changes: Any) -> Path:
    data = json.loads(SET.read_text(encoding="utf-8"))
    data[number] |= changes
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_set_is_its_experiments_times_tests_times_questions() -> None:
    pairs = read_set(str(SET))
    assert len(pairs) == 2 * 2 + 2 + 2
    first = pairs[0]
    assert first.id == "0901/T01_C01/onehop"
    assert first.needle == "Truth be told, {CHAR} rents a room right behind the Atomium."
    assert first.question == "Which character sleeps in Brussels?"
    assert pairs[1].question == "Which character sleeps in Belgium?"
    assert pairs[4].distractor == "A postcard showed Brussels in the rain."
    assert (pairs[-1].gold, pairs[-1].names) == (("fruit", "Fruit"), ())


def test_every_pair_is_asked_in_one_book_and_then_in_the_next(tmp_path: Path) -> None:
    groups = [sample.extra["groups"] for sample in _samples(_task(tmp_path))]
    assert {group["pair"] for group in groups[:8]} == {pair.id for pair in read_set(str(SET))}
    assert [group["pair"] for group in groups[:8]] == [group["pair"] for group in groups[8:]]
    assert [group["book"] for group in groups] == ["1"] * 8 + ["2"] * 8
    grid = Grid(lengths=(2000,), depths=tuple(index / 25 for index in range(26)), n=1)
    task = _task(tmp_path)
    assert len({task.sample(point, WORDS).extra["groups"]["pair"] for point in task.points(grid)}) == 8


def test_the_length_is_that_of_the_haystack_and_the_needle_stands_at_its_depth(tmp_path: Path) -> None:
    for length in (250, 500, 2000):
        for sample in _samples(_task(tmp_path), n=8, length=length):
            assert sample.point.length == length
            text = sample.haystack_text
            for needle in sample.extra["needles"]:
                assert text.count(needle) == 1
                text = text.replace(needle, "")
            assert abs(WORDS.count(text) - length) <= 8
            assert abs(sample.placed[0] - 0.4) <= 0.01
            assert sample.n_tokens == WORDS.count(WORDS.render(sample.messages, sample.answer_prefix))
            assert "the length is tokens of the haystack alone, as NoLiMa counts it" in sample.extra["notes"]


def test_names_are_drawn_and_gold_answers_are_taken(tmp_path: Path) -> None:
    drawn = set()
    for sample in _samples(_task(tmp_path)):
        (needle,) = sample.extra["sought"]
        if sample.choices:
            (name,) = sample.target
            drawn.add(name)
            assert name in needle
            assert "{" not in needle + sample.extra["question"]
            assert len(sample.choices) == 3
        else:
            assert sample.target[0] in ("tool", "fruit")
            assert sample.messages[-1].content.startswith("Snippets follow.\n")
            assert sample.messages[-1].content.endswith(f"\nNow: {sample.extra['question']}\nName one word.")
    assert len(drawn) > 1


def test_a_distractor_stands_apart_or_where_the_table_puts_it(tmp_path: Path) -> None:
    for length, depth in ((2000, 0.0), (2000, 1.0), (250, 0.4), (250, 0.7), (250, 0.9)):
        for sample in _samples(_task(tmp_path), length=length, depth=depth, n=8):
            if len(sample.placed) == 1:
                continue
            assert "A postcard showed" in sample.haystack_text
            assert abs(sample.placed[0] - depth) <= 0.01
            if length == 250:
                assert abs(sample.placed[1] - {0.4: 0.7, 0.7: 0.5, 0.9: 0.6}[depth]) <= 0.06
            else:
                assert abs(sample.placed[1] - depth) >= 0.17


def test_the_published_rule_and_the_strict_score(tmp_path: Path) -> None:
    task = _task(tmp_path, kinds=("onehop",))
    sample = next(sample for sample in _samples(task) if sample.choices)
    name = sample.target[0]

    def values(text: str, of: Official = task) -> tuple[float, float | None]:
        score = of.score(sample, Response(text=text))
        return score.value, score.published

    assert values(f"{name}.") == (1.0, 1.0)
    assert values(name.upper()) == (1.0, 0.0)
    assert values(", ".join((name, *sample.choices))) == (0.0, 1.0)
    assert values(sample.choices[0]) == (0.0, 0.0)
    cot = _task(tmp_path, cot=True)
    assert values(f"{sample.choices[0]} or {name}?\n{name}", cot) == (1.0, 1.0)
    assert values(f"{name}\nI cannot tell.", cot) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "x1"}, "row 1 .*has the id 'x1', which does not begin with four digits"),
        ({"needle": "Nobody is here, {CHAR}, behind {4}."}, r"row 1 .*leaves \{4\} open in test 'T01_C01'"),
        ({"character_set": ["Edwina"]}, "fewer than two names in character_set"),
        ({"character_set": [1, 2]}, "character_set with something else than names"),
        ({"task_template": "{haystack}"}, "task_template that does not hold"),
        ({"tests": {}}, "has no questions or no tests"),
        ({"tests": {"T": {"input_args": "no list"}}}, "no list of texts as input_args in test 'T'"),
        ({"needle": "No name stands here, {1}."}, "nor gold_answers in test 'T01_C01'"),
        ({"questions": {"onehop": 7}}, "a needle, question or distractor that is no text"),
        ({"questions": "none"}, "row 1 .*questions"),
    ],
)
def test_a_bad_experiment_is_named_by_file_and_row(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_set(str(_with(tmp_path, 0, **changes)))


def test_the_main_set_must_be_whole(tmp_path: Path) -> None:
    path = tmp_path / MAIN
    path.write_text(SET.read_text(encoding="utf-8"))
    with pytest.raises(
        DataError, match="has 3 experiments and 8 question-needle pairs, but NoLiMa's main set has 10 and 58"
    ):
        read_set(str(path))


def test_kinds_that_are_not_there_and_books_that_are_too_short_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no questions of kind direct; it has onehop, twohop"):
        _task(tmp_path, kinds=("direct",)).pairs()
    with pytest.raises(InfeasibleCell, match="book 1 .* holds fewer than 64,000 tokens; .*rand_shuffle_long"):
        _samples(_task(tmp_path), n=1, length=64_000)


def test_books_that_changed_are_noticed(tmp_path: Path) -> None:
    spec = _books(tmp_path / "other")
    assert [Path(book.partition("#")[0]).name for book in read_books(spec)] == ["rand_book_1.txt", "rand_book_2.txt"]
    changed = spec[:-1] + ("0" if spec[-1] != "0" else "1")
    with pytest.raises(DataError, match="has changed since it was pinned"):
        read_books(changed)


def test_the_hub_is_asked_for_files_at_one_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def download(name: str, path: str, *, repo_type: str, revision: str) -> str:
        asked.append((name, path, repo_type, revision))
        if path.startswith("needlesets"):
            raise OSError("no network")
        target = tmp_path / Path(path).name
        target.write_text(mixed(20_000, len(asked)))
        return str(target)

    hub = ModuleType("huggingface_hub")
    hub.hf_hub_download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    read_books.cache_clear()
    assert len(read_books("")) == 5
    assert asked[0] == ("amodaresi/NoLiMa", "haystack/rand_shuffle/rand_book_1.txt", "dataset", "378115b1")
    with pytest.raises(
        DataError, match=r"needlesets/needle_set.json of amodaresi/NoLiMa .* cannot be had \(OSError: no"
    ):
        read_set("")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"pip install 'longreach\[data\]'"):
        read_set("")
    read_books.cache_clear()


def test_the_battery_can_be_planned_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _books(tmp_path / "books", n_characters=400_000)
    given = ["--set", f"nolima.official.data={SET}", "--corpus", str(tmp_path / "books")]
    lengths = ["--lengths", "250,500,1000,2000"]
    assert run_command(["plan", "nolima-official", "--model", "sim:perfect", *given, *lengths]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines()[2:6]] == [[n, "104"] for n in ("250", "500", "1000", "2000")]
