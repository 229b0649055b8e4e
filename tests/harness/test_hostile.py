"""One hostile answer through everything that a run folder shows: Markdown, page, notebook, CSV, JSON, terminal."""

import csv
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from longreach.harness.cli import run_command
from longreach.harness.running.store import write_config

K = 1024
ANSWERS = {
    "html": "</code></span><img src=x onerror=alert(1)><b>bold</b>",
    "script": "<script>fetch('http://evil.example/')</script>",
    "image": "![see](http://evil.example/pixel.png) [go](javascript:alert(1))",
    "ansi": "\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "template": "{{ 7*7 }}{% raw %}${7*7}#{7*7}",
    "formula": '=HYPERLINK("http://evil.example","x")',
    "bidi": "a\u202egnp.exe\u202c\u2066\u200b",
    "table": "|---|---|\n| a | `b\n\n# heading\n---\n",
    "front matter": "---\ntags: [owned]\n---",
    "surrogate": "lone \udc80 half",
}
TEXT = " ".join(ANSWERS.values())
FORBIDDEN = ("\x1b", "\x07", "\u202e", "\u2066", "\u200b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from longreach.harness.record import Record

    def record(index: int, text: str) -> Record:
        return Record(
            key=f"k{index}",
            task="niah.single",
            task_id="niah.single@1",
            version=1,
            capability="retrieval",
            family="needle",
            length=4 * K,
            depth=index / 16,
            index=index,
            seed=1,
            model=TEXT,
            tokenizer=TEXT,
            outcome="scored",
            score=0.0,
            text=text,
            target=(TEXT,),
            at="2026-11-30T10:00:00+00:00",
            extra={"notes": [text]},
            error=TEXT,
        )

    records = [record(index, text) for index, text in enumerate([*ANSWERS.values(), TEXT])]
    path = tmp_path_factory.mktemp("hostile") / "run"
    path.mkdir()
    safe = TEXT.encode("utf-8", "replace").decode()
    info = {"version": 1, "capability": "retrieval", "family": "needle", "chance": 0.0, "reserve": 8, "has_depth": True}
    task = {"task": "niah.single", "label": "niah.single", "params": {"note": safe}}
    config = {
        "schema": 1,
        "longreach": "0.1.0",
        "battery": safe,
        "headline": {"retrieval": ["niah.single"]},
        "tasks": [task | {"info": info | {"source": safe, "license": safe}}],
        "planned": [{"task": "niah.single", "length": 4 * K, "depth": r.depth, "n": 1} for r in records],
        "model": {"name": safe, "spec": safe, "facts": {"server": safe, safe: safe}},
        "tokenizer": {"name": safe},
        "command": "longreach run --system " + safe,
    }
    write_config(path, config)
    lines = [record.to_json() for record in records]
    (path / "records.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="replace")
    return path


@pytest.fixture(scope="module")
def printed(folder: Path) -> Iterator[str]:
    import contextlib
    import io

    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(stream):
        patch.delenv("LONGREACH_NOTEBOOK")
        assert run_command(["card", str(folder)]) == 0
    yield stream.getvalue()


def test_the_terminal_gets_no_codes_and_few_lines(printed: str) -> None:
    assert not any(mark in printed for mark in FORBIDDEN)
    assert len(printed.splitlines()) <= 10


def _flat(tokens: Any) -> Iterator[Any]:
    for token in tokens or ():
        yield token
        yield from _flat(token.children)


def test_markdown_shows_it_as_text(folder: Path, printed: str) -> None:
    text = (folder / "card.md").read_text(encoding="utf-8")
    assert not any(mark in text for mark in FORBIDDEN)
    body = text.partition("\n---\n")[2]
    html, images, links = set(), [], []
    for token in _flat(MarkdownIt("commonmark", {"html": True}).enable("table").parse(body)):
        if token.type in ("html_block", "html_inline"):
            html |= set(re.findall(r"</?([a-zA-Z!]+)", token.content))
        elif token.type == "image":
            images.append(str(token.attrs["src"]))
        elif token.type == "link_open":
            links.append(token.attrs["href"])
    assert html == {"details", "summary"}
    assert images
    assert all(path.startswith("figures/") for path in images)
    assert links == []
    assert text.count("\n---\n") == 1
    assert text.startswith("---\ntags:\n- long-context\n- longreach\n---\n")
    assert not re.search(r"(?m)^# heading", text)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_holds_no_tag_of_it_and_asks_for_nothing(folder: Path, printed: str) -> None:
    page = (folder / "card.html").read_text(encoding="utf-8")
    assert not any(mark in page for mark in FORBIDDEN)
    tags = _Tags()
    tags.feed(page)
    assert not {"script", "img", "iframe", "object", "embed", "form", "link", "a"} & {tag for tag, _ in tags.found}
    names = {name for _, attrs in tags.found for name in attrs}
    assert not {name for name in names if name.startswith("on")}
    assert all(
        (attrs.get(name) or "#").startswith("#") for _, attrs in tags.found for name in ("src", "href", "xlink:href")
    )
    assert "&lt;script&gt;fetch(" in page
    assert "url(http" not in page


def test_the_notebook_shows_it_as_plain_text(folder: Path, printed: str) -> None:
    book = json.loads((folder / "report.ipynb").read_text(encoding="utf-8"))
    shown = ""
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            shown += re.sub(r"`[^`]*`", "", "".join(cell["source"]))
        for output in cell.get("outputs", ()):
            shown += "".join(output.get("data", {}).get("text/html", ""))
    tags = _Tags()
    tags.feed(shown)
    assert not {"script", "img", "b", "iframe", "a"} & {tag for tag, _ in tags.found}
    assert not any(mark in shown for mark in FORBIDDEN)
    assert "](http" not in shown.replace("\\](", "")


def test_the_table_starts_no_formula(folder: Path, printed: str) -> None:
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(ANSWERS) + 1
    cells = [value for row in rows for name, value in row.items() if name in ("task", "predicted", "target")]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_card_json_is_json_and_its_sentences_carry_no_codes(folder: Path, printed: str) -> None:
    data = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    shown = json.dumps([data[name] for name in ("verdict", "warnings", "breaks", "not_shown")])
    assert not any(json.dumps(mark)[1:-1] in shown for mark in FORBIDDEN)


def test_figures_draw_it(folder: Path, printed: str) -> None:
    for path in (folder / "figures").glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert "<script" not in text
        assert "evil.example" not in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def test_template_braces_are_not_evaluated(folder: Path, printed: str, make: Any) -> None:
    for name in ("card.md", "card.html"):
        text = (folder / name).read_text(encoding="utf-8")
        assert "7*7" in text.replace("\\", "")
        assert "{{ 49" not in text
