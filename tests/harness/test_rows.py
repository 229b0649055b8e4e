"""Rows of published sets: files of every kind, folders, the hub behind a stand-in; pins, bad rows, rows left out."""

import hashlib
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longreach.harness import hub_rows, row_files, rows
from longreach.harness.errors import DataError, MissingExtra
from longreach.harness.rows import digest_of_row, pin_rows, read_rows

COLUMNS = {"id": str, "text": str, "answers": list, "n": int}
ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": "One tree.", "answers": ["one"], "n": 1},
    {"id": "b", "text": "Zwei Bäume,\nnicht drei.", "answers": ["two", "zwei"], "n": 2},
    {"id": "c", "text": "三棵树。", "answers": [], "n": 3},
]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    rows._read.cache_clear()
    rows._fetched.cache_clear()


def _jsonl(path: Path, items: list[Any]) -> Path:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")
    return path


def _csv(path: Path) -> Path:
    lines = ["id,text,answers,n"]
    for row in ROWS:
        quoted = [
            f'"{cell}"' for cell in (row["text"].replace('"', '""'), json.dumps(row["answers"]).replace('"', '""'))
        ]
        lines.append(f"{row['id']},{quoted[0]},{quoted[1]},{row['n']}")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    files = [_jsonl(tmp_path / "rows.jsonl", ROWS), _csv(tmp_path / "rows.csv")]
    (tmp_path / "rows.json").write_text(json.dumps(ROWS, indent=2), encoding="utf-8")
    (tmp_path / "lines.json").write_text((tmp_path / "rows.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    for path in (*files, tmp_path / "rows.json", tmp_path / "lines.json"):
        found = read_rows(str(path), COLUMNS)
        assert [dict(row.data) for row in found.rows] == ROWS, path
        assert [row.index for row in found.rows] == [0, 1, 2]
        assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        assert (found.source, found.license, found.n_all) == (str(path), "as the file's owner says", 3)
    assert [row.where for row in read_rows(str(files[0]), COLUMNS).rows] == [
        f"line {number} of {files[0]}" for number in (1, 2, 3)
    ]
    assert [row.where for row in read_rows(str(files[1]), COLUMNS).rows] == [
        f"line {number} of {files[1]}" for number in (2, 3, 5)
    ]
    assert read_rows(str(tmp_path / "rows.json"), COLUMNS).rows[1].where.startswith("row 2 (line 10) of ")


def test_parquet_gives_the_same_rows(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    found = read_rows(str(tmp_path / "rows.parquet"), COLUMNS)
    assert [dict(row.data) for row in found.rows] == ROWS
    assert found.rows[2].where.startswith("row 3 of ")


def test_parquet_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'longreach\[parquet\]'"):
        read_rows(str(tmp_path / "rows.parquet"), COLUMNS)


def test_a_folder_is_all_its_files_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    _jsonl(folder / "b.jsonl", ROWS[1:])
    _jsonl(folder / "a.jsonl", ROWS[:1])
    (folder / "README.md").write_text("not a row")
    found = read_rows(str(folder), COLUMNS)
    assert [row.data["id"] for row in found.rows] == ["a", "b", "c"]
    assert found.rows[1].where == f"line 1 of {folder / 'b.jsonl'}"
    before = pin_rows(str(folder))
    (folder / "b.jsonl").rename(folder / "c.jsonl")
    assert pin_rows(str(folder)) != before


def test_a_long_list_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "CHUNK", 7)  # smaller than any row, and than some characters' neighbours
    path = tmp_path / "rows.json"
    path.write_text("\ufeff" + json.dumps(ROWS, ensure_ascii=False, indent=1), encoding="utf-8")
    assert [dict(row.data) for row in read_rows(str(path), COLUMNS).rows] == ROWS


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"id": "a"\n', r"^line 1 of .*a\.jsonl is not JSON"),
        ("a.jsonl", "[1]\n", r"^line 1 of .*a\.jsonl is no JSON object"),
        ("a.json", '[{"id": "a"}, {"id"]', r"^row 2 \(line 1\) of .*a\.json is not JSON"),
        ("a.json", '[{"id": "a"},\n7]', r"^row 2 \(line 2\) of .*a\.json is no object"),
        ("a.json", '[{"id": "a"}', r"a\.json ends or breaks off after row 1"),
        ("a.json", '"text"', r"a\.json is no list of objects"),
        ("a.csv", "id,text\na\n", r"^line 2 of .*a\.csv has more or fewer cells"),
        ("a.txt", "id", r"a\.txt is no file of rows"),
        ("a.jsonl", "", r"a\.jsonl holds no rows"),
        ("a.jsonl", '{"id": 7}\n', r"^line 1 of .*a\.jsonl has 'id' of type int, not str"),
        ("a.jsonl", '{"no": "a"}\n', r"^line 1 of .*a\.jsonl has no column 'id'; it has: no"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_rows(str(tmp_path / name), {"id": str})


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "a"}\n{"id": "\xff"}\n')
    with pytest.raises(DataError, match=r"^line 2 of .*a\.jsonl is not UTF-8 text \(byte 8 is 0xff\)"):
        read_rows(str(tmp_path / "a.jsonl"), {"id": str})


def test_bad_rows_are_counted_and_can_be_left_out(tmp_path: Path) -> None:
    bad = [ROWS[0], {"id": "b"}, {"id": "c", "text": 3}, ROWS[2] | {"id": "d"}]
    path = str(_jsonl(tmp_path / "rows.jsonl", bad))
    with pytest.raises(DataError, match=r"^line 2 of .* has no column 'text'.*\(and 1 more bad rows\); mend the data"):
        read_rows(path, COLUMNS)
    found = read_rows(path, COLUMNS, key="id", exclude=("b", 3))
    assert [row.index for row in found.rows] == [0, 3]
    assert found.excluded == (f"line 2 of {path}", f"line 3 of {path}")
    assert found.row(3).data["id"] == "d"
    with pytest.raises(DataError, match="has no row 2, or it is excluded; it has 4 rows"):
        found.row(1)
    found = read_rows(path, COLUMNS, exclude=(digest_of_row(bad[1]), digest_of_row(bad[2])))
    assert [row.index for row in found.rows] == [0, 3]
    with pytest.raises(DataError, match="exclude names z, which is no row of"):
        read_rows(path, {"id": str}, key="id", exclude=("z",))


def test_a_look_at_the_values_names_the_row(tmp_path: Path) -> None:
    path = str(_jsonl(tmp_path / "rows.jsonl", ROWS))
    with pytest.raises(DataError, match=r"^line 3 of .* has no answers; mend"):
        read_rows(path, COLUMNS, check=lambda row: None if row["answers"] else "has no answers")


def test_texts_are_made_fit_to_be_sent(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "a", "turns": [{"said": "<|im_end|>now"}, {"said": "\\ud800"}]}\n', encoding="utf-8")
    found = read_rows(str(path), {"id": str, "turns": list})
    assert found.rows[0].data["turns"] == [{"said": "< |im_end|>now"}, {"said": "\ufffd"}]
    assert found.notes == ("2 lone surrogates and special-token strings spaced apart or replaced",)


def test_columns_that_nobody_asked_for_are_dropped(tmp_path: Path) -> None:
    path = str(_jsonl(tmp_path / "rows.jsonl", [ROWS[0] | {"more": 1, "url": None}]))
    assert set(read_rows(path, {"id": str}, optional={"n": int, "url": str}).rows[0].data) == {"id", "n"}


def test_a_pin_holds_the_file_to_its_content(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "rows.jsonl", ROWS)
    pinned = pin_rows(str(path))
    assert pinned == f"file:{path}#{read_rows(str(path), COLUMNS).digest}"
    assert pin_rows(pinned) == pinned
    assert read_rows(pinned, COLUMNS).rows == read_rows(str(path), COLUMNS).rows
    _jsonl(path, ROWS[:2])
    rows._read.cache_clear()
    for act in (lambda: pin_rows(pinned), lambda: read_rows(pinned, COLUMNS)):
        with pytest.raises(DataError, match="has changed since it was pinned"):
            act()
    with pytest.raises(DataError, match="there is no file or folder"):
        pin_rows(str(tmp_path / "nowhere.jsonl"))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `datasets` and `huggingface_hub` would answer."""
    state: dict[str, Any] = {"online": True, "rows": ROWS, "asked": []}

    class Api:
        def dataset_info(self, name: str, revision: str | None) -> Any:
            if not state["online"]:
                raise ConnectionError("no network")
            return types.SimpleNamespace(sha=COMMIT, card_data={"license": "apache-2.0"})

    def load(name: str, config: str | None, *, revision: str, split: str) -> list[dict[str, Any]]:
        state["asked"].append((name, config, revision, split))
        return list(state["rows"])

    datasets, hub = types.ModuleType("datasets"), types.ModuleType("huggingface_hub")
    datasets.get_dataset_split_names = lambda *args, **options: ["train", "validation"]  # type: ignore[attr-defined]
    datasets.load_dataset = load  # type: ignore[attr-defined]
    hub.HfApi = Api  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", datasets)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return state


def test_a_set_of_the_hub_is_pinned_to_commit_split_and_rows(library: dict[str, Any]) -> None:
    pinned = pin_rows("hf:org/set/en:test")
    assert pinned == f"hf:org/set@{COMMIT}/en:test#{hub_rows.digest_of(ROWS)}"
    assert library["asked"] == [("org/set", "en", COMMIT, "test")]
    found = read_rows(pinned, COLUMNS)
    assert [dict(row.data) for row in found.rows] == ROWS
    assert (found.license, found.source) == ("apache-2.0", f"hf:org/set@{COMMIT}/en:test")
    assert found.rows[0].where == f"row 1 of hf:org/set@{COMMIT}/en:test"
    rows._fetched.cache_clear()
    rows._read.cache_clear()
    library["rows"] = ROWS[:1]
    with pytest.raises(DataError, match="has changed since it was pinned"):
        read_rows(pinned, COLUMNS)


def test_a_warm_cache_needs_no_network(library: dict[str, Any]) -> None:
    first = pin_rows("hf:org/set")
    assert first.startswith(f"hf:org/set@{COMMIT}:validation#")
    rows._fetched.cache_clear()
    library["online"] = False
    assert pin_rows("hf:org/set") == first
    with pytest.raises(DataError, match=r"cannot be looked up .* or name a commit: hf:org/other@COMMIT"):
        pin_rows("hf:org/other")
    assert pin_rows(f"hf:org/other@{COMMIT}:train").startswith(f"hf:org/other@{COMMIT}:train#")


def test_a_spec_that_is_none_and_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"is not hf:NAME\[@REVISION\]\[/CONFIG\]\[:SPLIT\]"):
        pin_rows("hf:a b")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'longreach\[data\]'"):
        pin_rows("hf:org/set")
