"""Tables on disk: found again, made anew when they are not to be trusted, kept small."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from longreach.harness import table_cache
from longreach.harness.table_cache import Arrays, cached, fingerprint, folder
from longreach.harness.tokenizer import BytesTokenizer, WithProof, WordsTokenizer
from longreach.suites.corpus import _cuts_of
from longreach.suites.cuts import GRAPHEME
from longreach.suites.tables import sizes

WORDS = WordsTokenizer()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the tables, switched on for this test."""
    monkeypatch.setenv("LONGREACH_CACHE", str(tmp_path))
    return tmp_path / "tables"


class Maker:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self) -> Arrays:
        self.n += 1
        return {"counts": np.arange(5, dtype=np.uint32)}


def _fits(found: Arrays) -> bool:
    return set(found) == {"counts"} and found["counts"].dtype == np.uint32


def _ask(make: Callable[[], Arrays], content: str = "text") -> list[int]:
    return [int(number) for number in cached("units", WORDS, [content], make, _fits)["counts"]]


def test_a_table_is_made_once(place: Path) -> None:
    make = Maker()
    assert _ask(make) == _ask(make) == [0, 1, 2, 3, 4]
    assert make.n == 1
    assert len(list(place.glob("units-*.npz"))) == 1
    _ask(make, "other text")
    assert make.n == 2


def test_pieces_of_content_are_not_run_together(place: Path) -> None:
    make = Maker()
    for content in (["ab", "c"], ["a", "bc"], ["abc"]):
        cached("units", WORDS, content, make, _fits)
    assert make.n == len(list(place.iterdir())) == 3


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text", "pickle", "other table", "other key"])
def test_a_file_that_cannot_be_trusted_is_made_anew(place: Path, damage: str) -> None:
    make = Maker()
    _ask(make)
    (path,) = place.iterdir()
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":  # one bit of a stored number
        at = data.index(np.arange(5, dtype=np.uint32).tobytes()) + 4
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("not a table")
    elif damage == "pickle":
        with path.open("wb") as file:
            np.save(file, np.array([{"a": 1}], dtype=np.object_))
    else:
        key = str(np.load(path)["key"]) if damage == "other table" else "0" * 64
        with path.open("wb") as file:
            np.savez(file, key=np.array(key), **({"sizes": np.zeros(2)} if damage == "other table" else make()))
    make.n = 0
    assert _ask(make) == [0, 1, 2, 3, 4]
    assert make.n == 1
    assert _ask(make) == [0, 1, 2, 3, 4]
    assert make.n == 1


def test_what_is_counted_and_by_whom_tells_tables_apart(place: Path) -> None:
    texts = [" one fine day", " two"]
    assert [array.tolist() for array in sizes(WORDS, texts)] == [[3, 1]]
    assert [array.tolist() for array in sizes(WithProof(WORDS, "never"), texts)] == [[3, 1]]
    assert len(list(place.iterdir())) == 1
    assert [array.tolist() for array in sizes(BytesTokenizer(), texts)] == [[13, 4]]
    assert len(list(place.iterdir())) == 1  # bytes are counted faster than they are looked up
    assert fingerprint(BytesTokenizer()) is None


def test_cuts_from_disk_are_the_cuts_that_were_made(place: Path) -> None:
    text = "One fine day, he said. Две строки\n\nI saw “it” there. " * 40
    first, second = _cuts_of(text, WORDS), _cuts_of(text, WORDS)
    assert len(list(place.glob("cuts-*.npz"))) == 1
    for name in ("positions", "counts", "levels"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
        assert getattr(first, name).dtype == getattr(second, name).dtype


def test_cuts_from_disk_whose_text_ends_nowhere_are_made_anew(place: Path) -> None:
    text = "One fine day, he said. " * 40
    whole = _cuts_of(text, WORDS)
    (path,) = place.glob("cuts-*.npz")
    kept = dict(np.load(path))
    kept["levels"][-1] = GRAPHEME
    np.savez(path, **kept)
    assert np.array_equal(_cuts_of(text, WORDS).levels, whole.levels)


def test_two_writers_do_no_harm(place: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _ask(Maker()), range(64)))
    assert all(answer == [0, 1, 2, 3, 4] for answer in answers)
    assert [path.suffix for path in place.iterdir()] == [".npz"]


def test_the_tables_unused_for_longest_go_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()
    _ask(make, "a")
    (old,) = place.iterdir()
    monkeypatch.setattr(table_cache, "MOST_BYTES", 3 * old.stat().st_size)
    for age, content in ((50, "b"), (40, "c")):
        _ask(make, content)
        newest = max(place.iterdir(), key=lambda path: path.stat().st_mtime)
        os.utime(newest, (1_000_000_000 - age, 1_000_000_000 - age))
    os.utime(old, (1_000_000_000 - 90, 1_000_000_000 - 90))
    _ask(make, "a")  # used again
    _ask(make, "d")
    make.n = 0
    _ask(make, "a")
    _ask(make, "c")
    assert make.n == 0
    _ask(make, "b")
    assert make.n == 1


def test_it_can_be_switched_off_and_a_folder_that_cannot_be_written_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGREACH_CACHE", "off")
    assert folder() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LONGREACH_CACHE", str(tmp_path / "file"))
    make = Maker()
    assert _ask(make) == _ask(make) == [0, 1, 2, 3, 4]
    assert make.n == 2
    monkeypatch.delenv("LONGREACH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "longreach" / "tables"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert folder() == Path.home() / ".cache" / "longreach" / "tables"
