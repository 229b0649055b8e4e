import struct
from pathlib import Path

import pytest

from longreach.adapters.gguf_metadata import read_metadata
from longreach.harness.errors import ConfigError


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def write(path: Path, *pairs: bytes) -> Path:
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs)) + b"".join(pairs))
    return path


def test_keys_of_every_kind_are_read_and_long_arrays_passed_over(tmp_path: Path) -> None:
    words = b"".join(text(f"w{number}") for number in range(1000))
    path = write(
        tmp_path / "m.gguf",
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("vocabulary") + struct.pack("<IIQ", 9, 8, 1000) + words,
        text("scores") + struct.pack("<IIQ", 9, 6, 1000) + b"\0" * 4000,
        text("short") + struct.pack("<IIQ", 9, 5, 2) + struct.pack("<ii", -1, 2),
        text("llama.context_length") + struct.pack("<I", 4) + struct.pack("<I", 8192),
        text("on") + struct.pack("<I", 7) + b"\1",
    )
    assert read_metadata(path) == {
        "general.architecture": "llama",
        "short": [-1, 2],
        "llama.context_length": 8192,
        "on": True,
    }


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"PK\3\4" + b"\0" * 40, struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + b"\xff" * 30]
)
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"m\.gguf"):
        read_metadata(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_metadata(tmp_path / "none.gguf")
