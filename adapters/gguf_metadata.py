"""The key-value head of a GGUF file: what a model says about itself, without a library and without reading the weights.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 2 and 3, little endian).
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from longreach.harness.errors import ConfigError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST_ARRAY = 64  # longer ones are vocabularies, which nobody asks for here
# general.file_type -> name; llama.cpp, include/llama.h: llama_ftype
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}  # fmt: skip


def read_metadata(path: Path) -> Mapping[str, Any]:
    """Keys and values, long arrays left out.

    Raises:
        ConfigError: the file cannot be read, or is no GGUF file.
    """
    try:
        with path.open("rb") as file:
            magic, version, _, n_keys = struct.unpack("<4sIQQ", file.read(24))
            if magic != b"GGUF" or version not in (2, 3):
                raise ConfigError(f"{path} is not a GGUF file of version 2 or 3")
            return {key: value for key, value in (_pair(file) for _ in range(n_keys)) if value is not None}
    except (OSError, struct.error, UnicodeDecodeError, KeyError, MemoryError) as error:
        raise ConfigError(f"{path} cannot be read as a GGUF file ({type(error).__name__}: {error})") from error


def _pair(file: BinaryIO) -> tuple[str, Any]:
    key = _string(file)
    return key, _value(file, _number(file, "I"))


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _number(file, _SCALARS[kind])
    of, length = _number(file, "I"), _number(file, "Q")
    if length <= _LONGEST_ARRAY or of == _ARRAY:
        return [_value(file, of) for _ in range(length)]
    if of == _STRING:
        for _ in range(length):
            file.seek(_number(file, "Q"), 1)
    else:
        file.seek(length * struct.calcsize("<" + _SCALARS[of]), 1)
    return None


def _string(file: BinaryIO) -> str:
    length = _number(file, "Q")
    if length > 1 << 24:
        raise ConfigError(f"{file.name} is damaged: it claims a text of {length:,} bytes")
    return file.read(length).decode("utf-8")


def _number(file: BinaryIO, code: str) -> Any:
    size = struct.calcsize("<" + code)
    return struct.unpack("<" + code, file.read(size))[0]
