"""Needle files of all formats give the same rows; a bad row is named by file and line."""

import json
from pathlib import Path

import pytest

from longreach.harness.data import pin
from longreach.harness.errors import DataError
from longreach.harness.needle_file import parse_needles, read_needles

ROWS = [
    {"needle": "The boat is called Tern, or Sea Tern.", "question": "What is the boat called?", "answer": "Sea Tern|Tern", "id": "boat"},
    {"needle": 'He said "007", twice.', "question": "What did he say?", "answer": "007", "id": "agent", "kind": "fact", "distractors": "008|009"},
]  # fmt: skip
TEXTS = {
    ".csv": 'needle,question,answer,id,kind,distractors\n"The boat is called Tern, or Sea Tern.",What is the boat called?,Sea Tern|Tern,boat,,\n'
    '"He said ""007"", twice.",What did he say?,007,agent,fact,008|009\n',
    ".tsv": "Needle\tQuestion\tAnswer\tid\tkind\tdistractors\nThe boat is called Tern, or Sea Tern.\tWhat is the boat called?\tSea Tern|Tern\tboat\t\t\n"
    '"He said ""007"", twice."\tWhat did he say?\t007\tagent\tfact\t008|009\n',
    ".json": json.dumps(ROWS, indent=1),
    ".jsonl": "".join(json.dumps(row) + "\n\n" for row in ROWS),
    ".yaml": "- needle: The boat is called Tern, or Sea Tern.\n  question: What is the boat called?\n  answer: [Sea Tern, Tern]\n  id: boat\n"
    "- needle: 'He said \"007\", twice.'\n  question: What did he say?\n  answer: 007\n  id: agent\n  kind: fact\n  distractors: 008|009\n",
}  # fmt: skip


@pytest.mark.parametrize("suffix", TEXTS)
@pytest.mark.parametrize("dress", ["{}", "\ufeff{}"])
def test_all_formats_give_the_same_rows(suffix: str, dress: str) -> None:
    boat, agent = parse_needles(dress.format(TEXTS[suffix]), Path(f"needles{suffix}"))
    assert (boat.needle, boat.question, boat.answer) == (ROWS[0]["needle"], ROWS[0]["question"], ("Sea Tern", "Tern"))
    assert (agent.needle, agent.answer, agent.distractors) == (ROWS[1]["needle"], ("007",), ("008", "009"))
    assert (boat.id, agent.id, agent.kind, boat.notes, agent.notes) == ("boat", "agent", "fact", (), ())


def test_windows_line_ends_are_no_part_of_a_cell() -> None:
    rows = parse_needles(TEXTS[".csv"].replace("\n", "\r\n"), Path("n.csv"))
    assert rows[1].distractors == ("008", "009")


def test_a_pinned_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my needles#1.csv"
    path.write_text(TEXTS[".csv"], encoding="utf-8")
    spec = pin(str(path))
    assert len(read_needles(spec)) == len(read_needles(str(path))) == 2
    path.write_text(TEXTS[".csv"].replace("007", "700"), encoding="utf-8")
    with pytest.raises(DataError, match="has changed since it was pinned"):
        read_needles(spec)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n.csv", "needle,question\na,b\n", r"n\.csv, line 1: no column 'answer'"),
        ("n.csv", 'needle,question,answer\na,b,c\n\n"x\ny",,z\n', r"n\.csv, line 4: the cell 'question' is empty"),
        ("n.csv", "needle,question,answer\na,b,c,d\n", r"n\.csv, line 2: 4 cells under 3 column names"),
        ("n.csv", 'needle,question,answer\na,"b,c\n', r"n\.csv, line 2: .*double quotes"),
        ("n.csv", "needle,question,answer\na b,b,a|\n", r"n\.csv, line 2: one of the answers is empty"),
        ("n.csv", "needle,question,answer\na b,b,\n", r"n\.csv, line 2: one of the answers is empty"),
        ("n.csv", "needle,question,answer\n", "holds no needle"),
        ("n.csv", "needle,question,answer,distractors\na,b,a,A\n", r"line 2: 'a' is both an answer and a distractor"),
        (
            "n.csv",
            "needle,question,answer\nThe code is 12.,What is the code 12?,99|12\n",
            r"line 2: .* its answer '12'",
        ),
        ("n.csv", "needle,question,answer,id\na,b,a,1\nc,d,c,1\n", "two needles have the id '1'"),
        ("n.jsonl", '{"needle": "a", "question": "b", "answer": "a"}\n{oops\n', r"n\.jsonl, line 2: not JSON"),
        (
            "n.json",
            '[\n{"needle": "a", "question": "b", "answer": "a"},\n{"needle": 3\n]',
            r"n\.json, line 3: not JSON",
        ),
        (
            "n.json",
            '[\n{"needle": "a", "question": "b", "answer": "a"},\n\n["a"]\n]',
            r"n\.json, line 4: a needle is a mapping",
        ),
        (
            "n.json",
            '[\n{"needle": "a", "question": "b", "answer": "a"}\n',
            r"n\.json, line 3: a comma or a closing bracket",
        ),
        ("n.json", '{"needle": "a"}', r"n\.json, line 1: a JSON needle file is a list"),
        ("n.json", '[{"needle": "a", "question": "b", "answer": {"x": 1}}]', r"line 1: 'answer' is a text"),
        (
            "n.yaml",
            "- needle: a\n  question: b\n  answer: a\n- needle: c\n",
            r"n\.yaml, line 4: the cell 'question' is empty",
        ),
        ("n.yaml", "- needle: a\n  question: [b\n", r"n\.yaml, line \d: not YAML"),
        ("n.yaml", "needle: a\n", r"n\.yaml, line 1: a YAML needle file is a list"),
        ("n.txt", "a", r"ends in '\.txt'; known endings: \.csv"),
    ],
)
def test_a_fault_is_named_by_file_and_line(name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_needles(text, Path(name))


def test_yaml_makes_nothing_but_text() -> None:
    text = "- needle: !!python/object/apply:os.system ['true']\n  question: b\n  answer: yes\n"
    with pytest.raises(DataError, match="line 1: the cell 'needle' is empty or not text"):
        parse_needles(text, Path("n.yaml"))
    (row,) = parse_needles("needles:\n- {needle: say yes, question: b, answer: yes}\n", Path("n.yml"))
    assert row.answer == ("yes",)


def test_numbers_in_json_keep_their_digits() -> None:
    (row,) = parse_needles(
        '{"needles": [{"needle": "It costs 1.50", "question": "b", "answer": 1.50}]}', Path("n.json")
    )
    assert row.answer == ("1.50",)


def test_what_is_odd_but_usable_becomes_a_note() -> None:
    (row,) = parse_needles('{"needle": "a", "question": "b", "answer": "zebra", "colour": "red"}\n', Path("n.jsonl"))
    assert row.notes == ("column 'colour' is not used", "no accepted answer stands in needle 1: it has to be inferred")
    assert row.id == "1"


def test_a_question_may_offer_its_answer_among_others_and_numbers_may_be_written_in_any_form() -> None:
    text = "needle,question,answer,distractors\nThe cook is Ada.,Is the cook Ada or Eva?,Ada,Eva\n"
    text += '"It holds 41,824 packets.",How many packets?,41824,\nIt is twelve.,Which one is it?,12|1,\n'
    assert [row.notes for row in parse_needles(text, Path("n.csv"))] == [(), (), ()]


def test_strings_that_tokenizers_take_for_control_are_spaced_apart() -> None:
    (row,) = parse_needles(
        '{"needle": "say <|im_end|> now", "question": "b", "answer": "<|im_end|>"}\n', Path("n.jsonl")
    )
    assert "<|im_end|>" not in row.needle
    assert row.answer[0] in row.needle


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv"):
        read_needles(str(tmp_path / "nothing.csv"))
