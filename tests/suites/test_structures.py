"""Haystacks that are documents: valid to the standard parser, exact, with each needle as an element."""

import ast
import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from longreach.harness.data import pin
from longreach.harness.errors import ConfigError, InfeasibleCell
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Message, Sample
from longreach.harness.task import Solvable, Task
from longreach.harness.tokenizer import BytesTokenizer, Tokenizer, WordsTokenizer
from longreach.suites.structures import STRUCTURES

WORDS = WordsTokenizer()
VARIANTS = (
    *(("niah.single", {"kind": kind}) for kind in ("number", "code", "fact", "instruction")),
    ("niah.multi", {}),
    ("niah.distractor", {}),
    ("niah.conflict", {}),
    ("niah.multihop", {"hops": 3}),
    ("niah.decay", {}),
    ("trace.arith", {}),
)
LOG_LINE = re.compile(r"\d\d:\d\d:\d\d (?:INFO|DEBUG|WARN|ERROR) \[[a-z]+-\d\d\] (\S.*)")
CHAT_LINE = re.compile(r"\[\d\d:\d\d\] [A-Z][a-z]+: (\S.*)")


def _free_texts(structure: str, document: str) -> list[str]:
    """The free text of every element, by the standard parser of the format."""
    if structure == "json":
        return [record["note"] for record in json.loads(document)["records"]]
    if structure == "xml":
        return [record.findtext("note") or "" for record in ElementTree.fromstring(document)]
    if structure == "csv":
        header, *rows = csv.reader(io.StringIO(document, newline=""), strict=True)
        assert header == ["at", "who", "where", "note"]
        assert {len(row) for row in rows} == {4}
        return [row[3] for row in rows]
    if structure == "yaml":
        return [record["note"] for record in yaml.load(document, Loader=yaml.CSafeLoader)["records"]]
    if structure == "code":
        found = [node.value for node in ast.parse(document).body if isinstance(node, ast.Assign)]
        return [str(value.value) for value in found if isinstance(value, ast.Constant)]
    matches = [(LOG_LINE if structure == "log" else CHAT_LINE).fullmatch(line) for line in document.split("\n")]
    assert all(matches)
    return [match[1] for match in matches if match]


def _samples(task: Task, tokenizer: Tokenizer, lengths: tuple[int, ...], n: int = 1) -> list[Sample]:
    grid = Grid(lengths=lengths, depths=(0.0, 0.31, 0.77, 1.0), n=n)
    return [task.sample(point, tokenizer) for point in task.points(grid)]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_two_hundred_documents_parse_are_exact_and_solved(structure: str) -> None:
    n_documents = 0
    for at, (name, params) in enumerate(VARIANTS):
        for language in ("en", "pt", ("ru", "zh", "mixed")[at % 3]):
            task = get_task(name, structure=structure, language=language, **params)
            assert isinstance(task, Solvable)
            for sample in _samples(task, WORDS, (2048, 3001)):
                n_documents += 1
                assert 0 <= sample.point.length - task.info.reserve - sample.n_tokens <= 8
                assert sample.n_tokens == WORDS.count(WORDS.render(sample.messages))
                texts = _free_texts(structure, sample.haystack_text)
                assert all(texts.count(needle) == 1 for needle in sample.extra["needles"])
                assert task.score(sample, Response(text=task.solve(sample.messages) or "")).value == 1.0
                content = sample.messages[-1].content
                for needle in sample.extra["needles"]:
                    content = content.replace(needle, "")
                control = task.solve((Message(role="user", content=content),))
                assert task.score(sample, Response(text=control or "")).value == 0.0
    assert n_documents >= 200


@pytest.mark.parametrize("structure", STRUCTURES)
def test_documents_hold_under_a_tokenizer_of_bytes_and_at_depths(structure: str) -> None:
    task = get_task("niah.single", structure=structure)
    for sample in _samples(task, BytesTokenizer(), (6000, 20_000), n=2):
        assert 0 <= sample.point.length - task.info.reserve - sample.n_tokens <= 8
        texts = _free_texts(structure, sample.haystack_text)
        at = texts.index(sample.extra["needles"][0])
        assert sample.point.depth is not None
        assert abs(sample.placed[0] - sample.point.depth) <= 0.02
        assert at == {0.0: 0, 1.0: len(texts) - 1}.get(sample.point.depth, at)


def test_the_last_element_alone_may_be_cut() -> None:
    whole = re.compile(r'\{"at": "\d\d:\d\d", "who": "[^"]+", "where": "[^"]+", "note": "[^"]+\."\},')
    for sample in _samples(get_task("niah.single", structure="json"), WORDS, (1500, 4000)):
        first, *records, last, end = sample.haystack_text.split("\n")
        assert (first, end) == ('{"records": [', "]}")
        assert all(whole.fullmatch(record) for record in records)
        assert last.endswith('"}')


def test_a_needle_of_the_user_is_quoted_as_its_format_asks(tmp_path: Path) -> None:
    needle = 'The "Tern" & <Co> said: \\ no, ’tis 100% true.'
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"needle": needle, "question": "Who said it?", "answer": "Tern"}), encoding="utf-8")
    for structure in STRUCTURES:
        task = get_task("niah.single", structure=structure, needles=pin(str(path)))
        for sample in _samples(task, WORDS, (2048,)):
            assert _free_texts(structure, sample.haystack_text).count(needle) == 1
            assert sample.extra["needles"][0] in sample.haystack_text


def test_numbers_of_the_records_have_two_digits_at_most() -> None:
    for structure in STRUCTURES:
        sample = _samples(get_task("niah.single", structure=structure, kind="fact"), WORDS, (8000,))[1]
        assert not re.search(r"\d\d\d", sample.haystack_text)


def test_too_short_for_two_records_is_infeasible_with_a_true_minimum() -> None:
    task = get_task("niah.single", structure="xml")
    (point, *_) = task.points(Grid(lengths=(128,), depths=(0.5,), n=1))
    with pytest.raises(InfeasibleCell) as refusal:
        task.sample(point, WORDS)
    assert refusal.value.minimum is not None
    assert _samples(task, WORDS, (refusal.value.minimum + 8,))


def test_unknown_structures_and_texts_of_ones_own_in_them_are_refused() -> None:
    with pytest.raises(ConfigError, match="structure 'toml' is not one of json, xml, csv, yaml, log, code, chat"):
        get_task("niah.single", structure="toml")
    with pytest.raises(ConfigError, match="takes no haystack 'bible'"):
        get_task("niah.single", structure="json", haystack="bible")
