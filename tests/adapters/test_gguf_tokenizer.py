"""The tokenizer inside a GGUF file."""

import struct
from pathlib import Path
from typing import Any

import pytest

from longreach.adapters.gguf_metadata import gguf_path, read_metadata
from longreach.adapters.gguf_tokenizer import open_tokenizer
from longreach.harness.errors import ConfigError
from longreach.harness.sample import Message, Point
from longreach.suites.haystack import Needle, build


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _pair(key: str, value: Any) -> bytes:
    head = _string(key)
    if isinstance(value, bool):
        return head + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return head + struct.pack("<II", 4, value)
    if isinstance(value, str):
        return head + struct.pack("<I", 8) + _string(value)
    if isinstance(value[0], int):
        return head + struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    return head + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))


def _write(path: Path, **changes: Any) -> Path:
    """A GGUF file of a few tokens: bytes a, b, c, the blank, one merge, two control tokens."""
    values: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": ["<s>", "<|x|>", "a", "b", "c", "Ġ", "ab"],
        "tokenizer.ggml.token_type": [3, 3, 1, 1, 1, 1, 1],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.chat_template": "<|x|>{{ messages[0].content }}<|x|>",
    } | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    pairs = b"".join(_pair(key, value) for key, value in values.items())
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(values)) + pairs)
    return path


def test_the_header_is_read_back(tmp_path: Path) -> None:
    header = read_metadata(_write(tmp_path / "m.gguf"), vocabulary=True)
    assert header["tokenizer.ggml.token_type"] == [3, 3, 1, 1, 1, 1, 1]
    assert header["tokenizer.ggml.add_bos_token"] is True


def test_merges_control_tokens_and_begin_of_text_are_counted(tmp_path: Path) -> None:
    tokenizer = open_tokenizer(str(_write(tmp_path / "m.gguf")))
    assert tokenizer.count("abc ab") == 4
    rendered = tokenizer.render([Message(role="user", content="ab")])
    assert rendered == "<s><|x|>ab<|x|>"
    assert tokenizer.count(rendered) == 4


def test_a_splitting_rule_that_is_not_known_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="by the rule 'strange'.*--tokenizer server:URL"):
        open_tokenizer(str(_write(tmp_path / "m.gguf", pre="strange")))


def test_another_type_of_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="of type 'llama'.*server:URL"):
        open_tokenizer(str(_write(tmp_path / "m.gguf", model="llama")))


@pytest.mark.parametrize("data", [b"GGUF", b"no gguf file at all, surely not", b""])
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"m\.gguf is not a"):
        open_tokenizer(str(path))
    with pytest.raises(ConfigError, match="there is no GGUF file"):
        open_tokenizer(str(tmp_path / "missing.gguf"))


def test_the_embedded_model_has_its_template_and_counts_digits_one_by_one() -> None:
    tokenizer = open_tokenizer("smollm2")
    assert tokenizer.name.startswith(f"gguf:{gguf_path('smollm2').stem}@")
    empty = tokenizer.render([Message(role="user", content="")])
    assert tokenizer.count(empty) == 30
    assert empty.endswith("<|im_start|>assistant\n")
    assert tokenizer.count("12345") == 5
    assert tokenizer.count("<|im_end|>") == 1


@pytest.mark.parametrize(
    ("text", "n_tokens"),
    [
        ("The wind had dropped.", 5),
        ("Price: 1234 — naïve\n\n\tcafé  日本", 20),
    ],
)
def test_counts_are_those_that_llama_cpp_gave(text: str, n_tokens: int) -> None:
    assert open_tokenizer("smollm2").count(text) == n_tokens


def test_prompts_with_the_template_are_exact() -> None:
    tokenizer = open_tokenizer("smollm2")
    for index, length in enumerate((512, 1000, 4096)):
        point = Point(task="t", length=length, depth=0.4, index=index, seed=1)
        sample = build(
            point,
            tokenizer,
            haystack="mixed",
            needles=[Needle(text="Zorbla likes quince.", depth=0.4)],
            head="Text:\n\n",
            tail="\n\nWhat does Zorbla like?",
            reserve=16,
            rng=point.rng(),
            target=("quince",),
            answer_prefix=" Zorbla likes",
        )
        rendered = tokenizer.render(sample.messages, sample.answer_prefix)
        assert 0 <= length - 16 - tokenizer.count(rendered) <= 8
        assert abs(sample.placed[0] - 0.4) <= 0.01
