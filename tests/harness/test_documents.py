"""Files of all kinds as texts: PDF, HTML, rows, chat logs, folders of source code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from longreach.harness.data import pin, read_corpus
from longreach.harness.documents import read_document
from longreach.harness.errors import DataError
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid
from longreach.harness.tokenizer import WordsTokenizer

Pdf = Callable[[list[list[str]]], Path]


@pytest.fixture
def pdf(tmp_path: Path) -> Pdf:
    """Writes a PDF of several pages by hand: one list of lines a page, Helvetica, no compression."""

    def write(pages: list[list[str]]) -> Path:
        objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
        kids = []
        for lines in pages:
            shown = "".join(f"({line.replace('(', '[').replace(')', ']')}) Tj T* " for line in lines)
            stream = f"BT /F1 11 Tf 14 TL 60 780 Td {shown}ET"
            objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
            objects.append(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(objects)} 0 R "
                f"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
            )
            kids.append(f"{len(objects)} 0 R")
        objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
        body = "%PDF-1.4\n"
        offsets = []
        for number, content in enumerate(objects, 1):
            offsets.append(len(body))
            body += f"{number} 0 obj\n{content}\nendobj\n"
        table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
        size = len(objects) + 1
        end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
        path = tmp_path / "book.pdf"
        path.write_bytes((body + end).encode("latin-1"))
        return path

    return write


def test_a_pdf_is_read_page_by_page_with_its_lines_joined(pdf: Pdf) -> None:
    path = pdf(
        [["The harbour master waited for the mail", "boat. It came late and was un-", "loaded at once."], ["Page two."]]
    )
    document = read_document(path)
    assert document.text == (
        "The harbour master waited for the mail boat. It came late and was unloaded at once.\n\nPage two."
    )
    assert document.notes == ("2 PDF pages, lines joined to paragraphs",)


def test_a_pdf_is_a_haystack_end_to_end(pdf: Pdf) -> None:
    lines = [
        f"In chapter {page} the keeper wrote line {line} of the log before the lamp."
        for page in range(40)
        for line in range(30)
    ]
    path = pdf([lines[start : start + 40] for start in range(0, len(lines), 40)])
    spec = pin(str(path))
    task = get_task("niah.single", haystack=spec)
    for point in task.points(Grid(lengths=(4096,), depths=(0.2, 0.8), n=1)):
        sample = task.sample(point, WordsTokenizer())
        assert 0 <= 4096 - task.info.reserve - sample.n_tokens <= 8
        assert "30 PDF pages, lines joined to paragraphs" in sample.extra["notes"]
        assert point.depth is not None
        assert abs(sample.placed[0] - point.depth) <= 0.01


def test_a_pdf_without_text_and_a_broken_one_say_what_to_do(pdf: Pdf, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no text on its 2 pages"):
        pin(str(pdf([[], []])))
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing else")
    with pytest.raises(DataError, match="cannot be read as PDF"):
        pin(str(broken))


def test_of_html_only_what_a_reader_sees_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        "<!doctype html><html><head><title>No</title><style>p {color: red}</style></head><body><nav>Menu</nav>"
        "<h1>Tides &amp; winds</h1><p>The <b>first</b>\n  tide came <i>early</i>.<br>Then rain.</p>"
        "<script>alert('no')</script><noscript>no</noscript><ul><li>One</li><li>Two</li></ul></body></html>",
        encoding="utf-8",
    )
    document = read_document(path)
    assert document.text.split("\n\n") == [
        "Menu", "Tides & winds", "The first tide came early.", "Then rain.", "One", "Two",
    ]  # fmt: skip
    assert document.notes == ("visible text of an HTML page",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.jsonl", '{"text": "First.", "n": 1}\n\n{"text": " Second. "}\n'),
        ("rows.json", '[{"text": "First."}, {"text": "Second."}]'),
        ("rows.csv", "n,text\n1,First.\n2,Second.\n"),
        ("rows.tsv", "n\ttext\n1\tFirst.\n2\tSecond.\n"),
    ],
)
def test_a_column_of_rows_is_a_text_and_its_name_is_pinned(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    spec = pin(f"{path}::text")
    assert spec.startswith(f"file:{path}::text#")
    assert pin(spec) == spec
    found = read_corpus(spec)
    assert found.text == "First.\n\nSecond."
    assert found.notes == ("column 'text' of 2 rows",)
    path.write_text(content.replace("Second", "Third"), encoding="utf-8")
    read_corpus.cache_clear()
    with pytest.raises(DataError, match="has changed since it was pinned"):
        read_corpus(spec)


@pytest.mark.parametrize(
    ("name", "content", "column", "complaint"),
    [
        ("a.jsonl", '{"body": "x"}', "text", "row 1 of .* has no 'text'; it has: body"),
        ("a.jsonl", '{"text": 3}', "text", "'text' in row 1 .* is no text"),
        ("a.jsonl", '{"text": "x"}\n{oops', "text", "line 2 of .* is not JSON"),
        ("a.jsonl", "[1]", "text", "line 1 of .* is no object"),
        ("a.json", '{"text": "x"}', "text", "is no list of objects"),
        ("a.json", "[", "text", "is not JSON"),
        ("a.txt", "plain", "text", "has no columns to take 'text' from"),
    ],
)
def test_rows_that_cannot_be_read_are_named(
    tmp_path: Path, name: str, content: str, column: str, complaint: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=complaint):
        pin(f"{path}::{column}")


def test_a_table_without_a_column_asks_for_one(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="name the column of its texts"):
        pin(str(tmp_path / "a.parquet"))


def test_chat_logs_become_transcripts(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "When does it sail?"}, {"role": "assistant", "content": "At dusk."}]
    parts = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "And"}, {"type": "image"}, {"type": "text", "text": "now?"}],
        }
    ]
    shared = [{"from": "human", "value": "Hello."}]
    logs = {
        "turns.jsonl": ("\n".join(map(json.dumps, turns)), "User: When does it sail?\nAssistant: At dusk."),
        "turns.json": (json.dumps(turns), "User: When does it sail?\nAssistant: At dusk."),
        "talks.jsonl": (
            "\n".join(json.dumps({"messages": talk}) for talk in (turns, parts)),
            "User: When does it sail?\nAssistant: At dusk.\n\nUser: And\n\nnow?",
        ),
        "shared.jsonl": (json.dumps({"conversations": shared}), "Human: Hello."),
    }
    for name, (content, text) in logs.items():
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        document = read_document(path)
        assert document.text == text, name
        assert document.notes[0].startswith("chat log of ")


def test_other_json_stays_the_text_that_it_is(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"depth": [1, 2]}', encoding="utf-8")
    assert read_document(path).text == '{"depth": [1, 2]}'


def test_a_folder_of_source_code_leaves_out_what_is_generated(tmp_path: Path) -> None:
    for name, content in {
        "pkg/a.py": "def f():\n    return 1",
        "pkg/b.rs": "fn main() {}",
        "README.md": "# Title",
        "node_modules/x.js": "no",
        "pkg/__pycache__/a.py": "no",
        ".git/config": "no",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_corpus(pin(str(tmp_path))).text == "# Title\n\ndef f():\n    return 1\n\nfn main() {}"


def test_documents_inside_a_folder_are_read_by_their_kind(tmp_path: Path, pdf: Pdf) -> None:
    pdf([["Written on paper."]])
    (tmp_path / "a.html").write_text("<p>Seen.</p><script>x</script>", encoding="utf-8")
    assert read_corpus(pin(str(tmp_path))).text == "Seen.\n\nWritten on paper."
