"""The card in other people's files: a block in a README, `model-index` metadata, `.eval_results`. Nothing is pushed.

What is not ours stays byte-identical: line ends, byte-order mark, front matter, a missing final newline, bytes that are
no UTF-8. A file that cannot be edited for certain is left alone, with the lines to mend.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from longreach.harness.errors import ConfigError
from longreach.harness.files import replacing, sync_folder
from longreach.harness.lengths import format_length, parse_length
from longreach.harness.record import OUTCOMES
from longreach.harness.registry import did_you_mean
from longreach.harness.report.front_matter import OURS, edit_model_index, join_front_matter, split_front_matter
from longreach.harness.report.wording import plain
from longreach.harness.stats.cells import Cell
from longreach.harness.stats.curves import make_point

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TARGET = re.compile(
    r"(?P<code>`+)(?:(?!\n\s*\n)(?s:.))*?(?P=code)(?!`)|(?<!\\)\]\((?P<path><[^<>\n]*>|[^\s()<>]+)(?=[\s)])"
)
_DATASET = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(?:#(?P<task>[^@\s]+))?(?:@(?P<length>\w+))?")
_WRITTEN = "# Written by longreach; written anew by `longreach card --benchmark`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One task at one length, as the card has it."""

    task: str
    length: int
    n: int
    mean: float
    low: float
    high: float
    published: float | None
    """Mean by the benchmark's published rule, where the task has one."""


def insert_block(readme: Path, markdown: str, *, name: str = "longreach", folder: Path | None = None) -> bool:
    """Puts the card between `<!-- name:begin -->` and `<!-- name:end -->`, at the end if there are no such lines.

    Args:
        readme: an existing README or model card.
        markdown: card.md; its own front matter is left out.
        name: of the markers, for several cards in one file.
        folder: where the relative paths in `markdown` start; they are rewritten for the README's folder.

    Returns:
        True if the file was changed.

    Raises:
        ConfigError: no such file, markers without their partner, two blocks, an open code fence before the end.
    """
    if not re.fullmatch(r"\w[\w.]*(-[\w.]+)*", name):
        raise ConfigError(f"{name!r} cannot name a block; use letters, digits, '.' and single '-', such as longreach-b")
    old = _read(readme)
    lines = old.split("\n")
    place = _block(lines, readme, name)
    inner = _inner(markdown, folder, readme, name)
    crlf = old.count("\r\n") * 2 > old.count("\n")
    if place is None:
        end = "" if not old or old.endswith("\n\n") else "\n" if old.endswith("\n") else "\n\n"
        final = "\n" if not old or old.endswith("\n") else ""
        added = f"{end}<!-- {name}:begin -->\n{inner}\n<!-- {name}:end -->{final}"
        new = old + (added.replace("\n", "\r\n") if crlf else added)
    else:
        body = [f"{line}\r" if crlf else line for line in inner.split("\n")]
        new = "\n".join((*lines[: place[0] + 1], *body, *lines[place[1] :]))
    return _save(readme, old, new)


def _inner(markdown: str, folder: Path | None, readme: Path, name: str) -> str:
    """The card between the markers: no front matter, plain newlines, paths moved, no line that looks like a marker."""
    _, _, body = split_front_matter(markdown.replace("\r\n", "\n"))
    if folder is not None:
        body = relocate(body, folder, readme.parent)
    body = re.sub(rf"<!--(?=\s*{re.escape(name)}:)", "&lt;!--", body)
    return "\n" + body.strip("\ufeff\n") + "\n"


def _block(lines: Sequence[str], readme: Path, name: str) -> tuple[int, int] | None:
    """Index of the begin and of the end line; None if there are neither."""
    marker = re.compile(rf" {{0,3}}<!--\s*{re.escape(name)}:(begin|end)\s*-->\s*")
    begin: int | None = None
    fence: tuple[str, int] | None = None
    found: list[tuple[int, int]] = []
    head, middle, _ = split_front_matter("\n".join(lines))
    for number in range((head + middle).count("\n"), len(lines)):
        line = lines[number].rstrip("\r").removeprefix("\ufeff")
        if begin is None and (fence := _fence_after(line, fence, number)):
            continue
        match = marker.fullmatch(line)
        if match is None:
            continue
        if match[1] == "begin":
            if begin is not None:
                raise _damaged(readme, f"lines {begin + 1} and {number + 1} both begin a {name} block", "remove one")
            begin = number
        elif begin is None:
            raise _damaged(readme, f"line {number + 1} ends a {name} block that no line begins", "remove it")
        else:
            found.append((begin, number))
            begin = None
    if begin is not None:
        raise _damaged(readme, f"line {begin + 1} begins a {name} block that no line ends", f"add <!-- {name}:end -->")
    if len(found) > 1:
        places = " and ".join(f"{first + 1} to {last + 1}" for first, last in found)
        raise _damaged(readme, f"there are {len(found)} {name} blocks, in lines {places}", "remove all but one")
    if not found and fence is not None:
        raise _damaged(readme, f"the code fence of line {fence[1] + 1} is never closed", "close it")
    return found[0] if found else None


def _fence_after(line: str, fence: tuple[str, int] | None, number: int) -> tuple[str, int] | None:
    """The code fence that is open after `line`: its marks, and the number of the line that opened it."""
    match = _FENCE.fullmatch(line)
    if match is None:
        return fence
    marks, rest = match[1], match[2]
    if fence is None:
        return None if "`" in marks and "`" in rest else (marks, number)
    closes = marks[0] == fence[0][0] and len(marks) >= len(fence[0]) and not rest.strip()
    return None if closes else fence


def _damaged(readme: Path, what: str, mend: str) -> ConfigError:
    return ConfigError(f"{readme}: {what}; {mend} and try again (nothing was changed)")


def relocate(markdown: str, start: Path, target: Path) -> str:
    """Markdown whose relative link and image paths start in folder `target` instead of in `start`."""
    here, there = start.resolve(), target.resolve()
    if here == there:
        return markdown

    def moved(match: re.Match[str]) -> str:
        path = (match["path"] or "").strip("<>")
        if not path or re.match(r"[a-zA-Z][\w+.-]*:|[/#?]", path):
            return match[0]
        file, mark, rest = re.match(r"([^?#]*)([?#]?)(.*)", path).groups()  # type: ignore[union-attr]
        relative = Path(os.path.relpath(here / unquote(file), there)).as_posix()
        return f"]({quote(relative, safe='/-_.~!$&*+,;=@')}{mark}{rest}"

    parts: list[str] = []
    text: list[str] = []
    fence: tuple[str, int] | None = None
    for number, line in enumerate(markdown.split("\n")):
        before, fence = fence, _fence_after(line, fence, number)
        if before or fence:
            parts += [_TARGET.sub(moved, "\n".join(text))] if text else []
            parts.append(line)
            text = []
        else:
            text.append(line)
    return "\n".join([*parts, *([_TARGET.sub(moved, "\n".join(text))] if text else [])])


def measured(card: Mapping[str, Any]) -> list[Measured]:
    """Task by task and length by length, the means of a card.json; lengths that were not tested are left out."""
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in card.get("cells") or ():
        n = int(cell["n"])
        groups.setdefault((str(cell["task"]), int(cell["length"])), []).append(
            Cell(
                task=str(cell["task"]),
                length=int(cell["length"]),
                depth=cell.get("depth"),
                planned=int(cell.get("planned") or n),
                n=n,
                s=float(cell.get("mean") or 0.0) * n,
                published=cell.get("score_published"),
                outcomes={name: int(cell["outcomes"].get(name, 0)) for name in OUTCOMES},
                threshold=None,
            )
        )
    found = []
    for (task, length), cells in groups.items():
        point = make_point(length, {task: cells}, None)
        if point.mean is None or point.limits is None:
            continue
        published = [cell.published for cell in cells if cell.published is not None]
        found.append(
            Measured(
                task=task,
                length=length,
                n=point.n,
                mean=round(point.mean, 6),
                low=round(point.limits.low, 6),
                high=round(point.limits.high, 6),
                published=round(sum(published) / len(published), 6) if len(published) == len(cells) else None,
            )
        )
    return found


def model_name(card: Mapping[str, Any]) -> str:
    """Name of the model in a card.json."""
    model = card.get("model")
    return plain(model.get("name") if isinstance(model, Mapping) else model) or "model"


def _marks(card: Mapping[str, Any]) -> list[str]:
    """SIMULATED, IMPORTED and the like: what must stand beside every number."""
    found = [plain(mark) for mark in card.get("marks") or ()]
    return ["SIMULATED", *found] if card.get("simulated") and "SIMULATED" not in found else found


def metadata(card: Mapping[str, Any], model: str | None = None) -> dict[str, Any]:
    """Hugging Face `model-index` of a card.json: one entry per task and length, n and interval in the metric's args.

    Args:
        model: name to be listed under; the card's own if None.
    """
    mark = "".join(f"{word} " for word in _marks(card))
    results = [
        {
            "task": {"type": "text-generation"},
            "dataset": {
                "type": OURS + re.sub(r"[^\w.-]+", "-", item.task).strip("-"),
                "name": f"{mark}{plain(item.task)} at {format_length(item.length)} tokens (longreach)",
                "config": str(item.length),
            },
            "metrics": [
                {
                    "type": "accuracy",
                    "name": f"{mark}mean score",
                    "value": item.mean,
                    "args": {"n": item.n, "low": item.low, "high": item.high, "ci": 95},
                }
            ],
        }
        for item in measured(card)
    ]
    return {"model-index": [{"name": model or model_name(card), "results": results}]}


def write_metadata(readme: Path, card: Mapping[str, Any], model: str | None = None) -> bool:
    """Adds our `model-index` results to a README's YAML front matter, or replaces those that are ours.

    Everything else keeps its bytes, comments included. Results go to the entry of the same model, or to a new one.

    Returns:
        True if the file was changed.

    Raises:
        ConfigError: nothing was measured; the front matter is no valid YAML, or cannot be edited as text.
    """
    entry = metadata(card, model)["model-index"][0]
    if not entry["results"]:
        raise ConfigError(f"the card has no measured length, so that {readme} gets no metadata; nothing was changed")
    old = _read(readme)
    head, middle, tail = split_front_matter(old)
    newline = "\r\n" if "\r\n" in (head or old) else "\n"
    middle = edit_model_index(middle, entry["name"], entry["results"], newline=newline, where=str(readme))
    return _save(readme, old, join_front_matter(head, middle, tail, newline))


def eval_results(card: Mapping[str, Any], benchmarks: Mapping[str, str], folder: Path) -> list[Path]:
    """Writes `.eval_results/<suite>.yaml` into a model's folder, only for the benchmarks that the user names.

    Args:
        benchmarks: task label -> `org/dataset`, `org/dataset#task_id` or `org/dataset#task_id@128k`. The task id may
            hold `{length}` (tokens); by default it is `<label>_{length}`. With `@` only that length is written.
        folder: the model's repository.

    Raises:
        ConfigError: simulated, not measured, not a data set's id, two results under one id, a file of somebody else.
    """
    import yaml

    marks = _marks(card)
    if any(mark == "SIMULATED" or "NOT A LANGUAGE MODEL" in mark for mark in marks):
        raise ConfigError(f"this card is marked {marks[0]}; results for a public benchmark come from real models only")
    found = measured(card)
    files: dict[str, list[dict[str, Any]]] = {}
    for task, benchmark in benchmarks.items():
        suite = re.sub(r"[^\w-]+", "-", task.split(".")[0]).strip("-") or "longreach"
        files.setdefault(suite, []).extend(_entries(card, task, benchmark, found))
    paths = []
    for suite, entries in files.items():
        path = folder / ".eval_results" / f"{suite}.yaml"
        if path.exists() and not _read(path).startswith(_WRITTEN):
            raise ConfigError(f"{path} was not written by longreach; move it away, or add the results by hand")
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(f"{_WRITTEN}\n{yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000)}")
        paths.append(path)
    return paths


def _entries(card: Mapping[str, Any], task: str, benchmark: str, found: Sequence[Measured]) -> list[dict[str, Any]]:
    match = _DATASET.fullmatch(benchmark)
    if match is None:
        raise ConfigError(
            f"{benchmark!r} is no data set's id; write --benchmark {task}=org/name, or org/name#task_id@128k"
        )
    own = [item for item in found if item.task == task]
    if not own:
        known = sorted({item.task for item in found})
        hint = did_you_mean(task, known) if known else "nothing was measured"
        raise ConfigError(f"the card has no measured length of task {task!r}; {hint}")
    if match["length"]:
        length = parse_length(match["length"])
        own = [item for item in own if item.length == length]
        if not own:
            raise ConfigError(f"task {task!r} was not measured at {match['length']}; name a length of the card")
    template = match["task"] or f"{task}_{{length}}"
    if len(own) > 1 and "{length}" not in template:
        raise ConfigError(
            f"{benchmark!r} would hold {len(own)} lengths of {task!r} under one task id; "
            f"put {{length}} into it, or end it with one length such as @{format_length(own[-1].length)}"
        )
    provenance = card.get("provenance") or {}
    date = provenance.get("started") or provenance.get("date")
    entries = []
    mark = "".join(f"{word}; " for word in _marks(card))
    for item in own:
        interval = f"mean strict score {item.mean:g} (95% {item.low:g} to {item.high:g}, n {item.n})"
        rule = "value by the published rule; " if item.published is not None else ""
        entries.append(
            {
                "dataset": {"id": match["id"], "task_id": template.replace("{length}", str(item.length))},
                "value": item.mean if item.published is None else item.published,
                **({"date": str(date)} if date else {}),
                "notes": f"{mark}longreach, {plain(task)} at {item.length:,} tokens; {rule}{interval}; scale 0 to 1",
            }
        )
    return entries


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"{path} cannot be read ({reason}); create it first, an empty file will do") from error
    if b"\0" in data:
        raise ConfigError(f"{path} is no UTF-8 text; save it as UTF-8 first")
    return data.decode("utf-8", "surrogateescape")


def _save(path: Path, old: str, new: str) -> bool:
    """Replaces a file as a whole, keeping its permissions; False if there is nothing to change."""
    if new == old:
        return False
    target = path.resolve()  # the file behind a link, not the link
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            file.write(new.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(target.stat().st_mode & 0o7777)
        draft.replace(target)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}); it is unchanged") from error
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(target.parent)
    return True
