"""Data sets of the hub: specs, pins, the cache; with local folders and a stand-in for the library."""

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.data import pin, read_corpus
from longreach.harness.errors import DataError, MissingExtra
from longreach.harness.hub import HUB_PRESETS, parse_hub, pin_hub, read_hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "set"
    path.mkdir()
    for name, texts in {"a.jsonl": ["One.", "Two."], "b.jsonl": ["Three."]}.items():
        (path / name).write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What `datasets` and `huggingface_hub` would answer; `calls` counts the reads, `online` false means no network."""
    state: dict[str, Any] = {"calls": 0, "online": True, "rows": [{"text": "Old book."}, {"text": "Older book."}]}

    class Facts:
        def __init__(self) -> None:
            self.sha = COMMIT
            self.card_data = {"license": "apache-2.0"}

    class Api:
        def dataset_info(self, name: str, revision: str | None) -> Facts:
            if not state["online"]:
                raise ConnectionError("no network")
            return Facts()

    def load(name: str, config: str | None, *, revision: str, split: str, streaming: bool) -> list[dict[str, str]]:
        assert (revision, streaming) == (COMMIT, True)
        state["calls"] += 1
        state["split"], state["config"] = split, config
        return list(state["rows"])

    datasets, hub = types.ModuleType("datasets"), types.ModuleType("huggingface_hub")
    datasets.get_dataset_split_names = lambda *args, **options: ["train", "validation"]  # type: ignore[attr-defined]
    datasets.load_dataset = load  # type: ignore[attr-defined]
    hub.HfApi = Api  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", datasets)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield state
    read_corpus.cache_clear()


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("hf:pg19::text", ("pg19", "", "", "text")),
        ("hf:emozilla/pg19::text", ("emozilla/pg19", "", "", "text")),
        ("hf:org/set@main::body", ("org/set", "main", "", "body")),
        (f"hf:org/set@{COMMIT}/zh::text", ("org/set", COMMIT, "zh", "text")),
        ("hf:org/set/zh::text", ("org/set", "", "zh", "text")),
    ],
)
def test_a_spec_is_name_revision_configuration_and_column(spec: str, parts: tuple[str, ...]) -> None:
    found = parse_hub(spec)
    assert (found.name, found.revision, found.config, found.column) == parts
    assert parse_hub(str(found)) == found


@pytest.mark.parametrize("spec", ["hf:", "hf:org/set", "hf:::text", "hf:org/set::"])
def test_a_spec_without_name_or_column_is_refused(spec: str) -> None:
    with pytest.raises(DataError, match=r"is not hf:NAME\[@REVISION\]"):
        pin(spec)


def test_a_local_folder_stands_in_for_a_data_set(folder: Path) -> None:
    spec = pin(f"hf:{folder}::text")
    assert spec.startswith(f"hf:{folder}::text#")
    assert pin(spec) == spec
    found = read_corpus(spec)
    assert found.text == "One.\n\nTwo.\n\nThree."
    assert found.notes == ("column 'text' of 2 files",)
    (folder / "a.jsonl").write_text('{"text": "Other."}', encoding="utf-8")
    with pytest.raises(DataError, match="is not what was pinned"):
        read_hub(spec)


def test_a_folder_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no JSONL, JSON, CSV or Parquet"):
        pin(f"hf:{tmp_path}::text")


def test_a_pin_holds_commit_and_digest_and_is_read_offline(library: dict[str, Any]) -> None:
    spec = pin("hf:org/set/zh::text")
    assert spec.startswith(f"hf:org/set@{COMMIT}/zh::text#")
    assert (library["split"], library["config"], library["calls"]) == ("validation", "zh", 1)
    library["online"] = False
    found = read_corpus(spec)
    assert found.text == "Old book.\n\nOlder book."
    assert (found.license, found.source) == ("apache-2.0", f"hf:org/set@{COMMIT}/zh::text")
    assert library["calls"] == 1


def test_a_named_revision_needs_no_look_up(library: dict[str, Any]) -> None:
    library["online"] = False
    assert pin(f"hf:org/set@{COMMIT}::text").startswith(f"hf:org/set@{COMMIT}::text#")
    with pytest.raises(DataError, match="revision of 'org/set' cannot be looked up"):
        pin("hf:org/set@main::text")


def test_pg_19_is_a_preset_whose_revision_is_recorded(library: dict[str, Any]) -> None:
    assert HUB_PRESETS["pg19"] == "hf:emozilla/pg19::text"
    assert pin("pg19").startswith(f"hf:emozilla/pg19@{COMMIT}::text#")


def test_a_text_that_is_not_what_was_pinned_is_refused(library: dict[str, Any], tmp_path: Path) -> None:
    spec = pin("hf:org/set::text")
    for kept in (tmp_path / "cache").rglob("*.json"):
        kept.unlink()
    library["rows"] = [{"text": "Another book."}]
    with pytest.raises(DataError, match="org/set is not what was pinned"):
        read_hub(spec)


def test_a_spec_that_was_never_pinned_is_refused() -> None:
    with pytest.raises(DataError, match="is not pinned"):
        read_hub("hf:org/set::text")


def test_a_column_that_is_not_there_is_named(library: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="row 1 of org/set has no 'body'; it has: text"):
        pin_hub("hf:org/set::body")


def test_without_the_library_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'longreach\[data\]'"):
        pin("hf:org/set::text")
