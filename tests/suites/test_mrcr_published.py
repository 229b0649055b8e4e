"""mrcr.openai and mrcr.google_v2: their graders, bins, and what is said of rows that do not add up."""

import difflib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Sample
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.mrcr.published import GOOGLE_FLOORS, GoogleV2, OpenAi, bin_of, google_ratio

FIXTURES = Path(__file__).parent.parent / "fixtures" / "loaded"
WORDS = WordsTokenizer()
WHOLE = Grid(lengths=(4096, 8192), depths=(0.5,), n=100)


def openai_rows() -> list[dict[str, Any]]:
    text = (FIXTURES / "mrcr_openai.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def samples(task: Any) -> list[Sample]:
    points = sorted(task.measured_points(WHOLE, WORDS), key=lambda point: point.index)
    return [task.sample(point, WORDS) for point in points]


def openai(**params: Any) -> OpenAi:
    found = get_task("mrcr.openai", **{"data": str(FIXTURES / "mrcr_openai.jsonl"), "needles": 2, **params})
    assert isinstance(found, OpenAi)
    return found


def test_a_row_is_its_conversation_and_the_other_reply_is_the_wrong_one() -> None:
    task = openai()
    for row, sample in zip(openai_rows(), samples(task), strict=True):
        turns = json.loads(row["prompt"])
        assert [(m.role, m.content) for m in sample.messages] == [(t["role"], t["content"]) for t in turns]
        request = turns[row["desired_msg_index"]]["content"]
        replies = [b["content"] for a, b in itertools.pairwise(turns) if a["content"] == request]
        marker = row["random_string_to_prepend"]
        assert {*sample.choices, *sample.target} == {marker + reply for reply in replies}
        assert len(sample.choices) == 1
        right = task.score(sample, Response(text=sample.target[0]))
        assert (right.value, right.published, right.parts["exact"]) == (1.0, 1.0, 1.0)
        wrong = task.score(sample, Response(text=sample.choices[0]))
        reference = difflib.SequenceMatcher(
            None, sample.choices[0].removeprefix(marker), sample.target[0].removeprefix(marker)
        ).ratio()
        assert (wrong.value, wrong.published, wrong.parts["distractor"]) == (0.0, reference, 1.0)
        guessing = (right.parts["corrected"] + wrong.parts["corrected"]) / 2
        assert guessing == pytest.approx(0.0, abs=1e-9)
        assert sample.haystack_text.startswith(turns[1]["content"])


def test_only_rows_of_one_number_of_needles_are_asked(tmp_path: Path) -> None:
    rows = openai_rows()
    data = write(tmp_path / "mixed.jsonl", [rows[0], rows[1] | {"n_needles": 4}, rows[2]])
    assert [sample.point.index for sample in samples(openai(data=data))] == [0, 2]
    with pytest.raises(ValueError, match="needles 3 is not one of 2, 4, 8"):
        OpenAi(needles=3)


def test_neighbours_of_one_role_are_merged_only_where_asked() -> None:
    plain, merged = samples(openai())[0], samples(openai(merge=True))[0]
    assert [m.role for m in plain.messages[:3]] == ["user", "user", "assistant"]
    roles = [m.role for m in merged.messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert merged.messages[0].content == f"{plain.messages[0].content}\n\n{plain.messages[1].content}"
    assert merged.target == plain.target
    assert '"merge":true' in merged.point.task


def test_rows_that_do_not_add_up_are_counted(tmp_path: Path) -> None:
    """The set's own correction of December 2025: too many needles in some rows, wrong references in others."""
    rows = openai_rows()
    assert list(openai().notes()) == []
    turns = json.loads(rows[0]["prompt"])
    request = turns[rows[0]["desired_msg_index"]]["content"]
    more = [*turns[:-1], {"role": "user", "content": request}, {"role": "assistant", "content": "A third."}, turns[-1]]
    data = write(
        tmp_path / "bad.jsonl",
        [
            rows[0] | {"prompt": json.dumps(more)},
            rows[1] | {"answer": rows[1]["random_string_to_prepend"] + "Made up."},
            rows[2] | {"desired_msg_index": 0},
        ],
    )
    assert list(openai(data=data).notes()) == [
        "1 of 3 rows have a reference that is no reply of the conversation",
        "1 of 3 rows have a request that does not come 2 times",
        "1 of 3 rows have a desired_msg_index that is not that of the request for the reference",
    ]
    assert list(openai(data=data, exclude=(1, 2, 3)[:2]).notes()) == [
        "1 of 1 rows have a desired_msg_index that is not that of the request for the reference"
    ]


def test_bins_are_the_published_ones() -> None:
    """[4096, 8192], then open on the left and closed on the right."""
    edges = {4095: "below 4k", 4096: "4k to 8k", 8192: "4k to 8k", 8193: "8k to 16k", 16384: "8k to 16k"}
    assert {n: bin_of(n) for n in edges} == edges
    assert bin_of(131_073) == "128k to 256k"
    assert bin_of(1 << 20) == "512k to 1024k"
    assert bin_of(8 << 20) == "4096k to 8192k"
    assert bin_of((8 << 20) + 1) == "above 8192k"
    assert samples(openai())[0].extra["groups"]["bin"] == "below 4k by words"


def test_google_takes_the_last_marker_anywhere_and_strips() -> None:
    marker, text = "abcDEF123456", "The barge is late. Two coins were all that it cost, and nobody complained."
    assert google_ratio(f"Sure! {marker}: no. {marker}\n{text}\n", marker + text, marker) == 1.0
    assert google_ratio(text, marker + text, marker) == 0.0
    other = text.replace("barge", "kettle").replace("late", "old")
    expected = difflib.SequenceMatcher(None, text, other).ratio()
    assert google_ratio(marker + other, marker + text, marker) == expected


def test_google_rows_are_one_message_and_guessing_is_worth_what_google_says() -> None:
    task = get_task("mrcr.google_v2", data=str(FIXTURES / "mrcr_google.jsonl"), needles=2)
    assert isinstance(task, GoogleV2)
    assert GOOGLE_FLOORS == {2: 0.51, 4: 0.27, 8: 0.15}
    found = samples(task)
    assert [sample.extra["groups"]["bin"] for sample in found] == ["4k to 8k", "8k to 16k", "64k to 128k"]
    for sample in found:
        assert len(sample.messages) == 1
        score = task.score(sample, Response(text=f"<think>the second?</think>{sample.target[0]}"))
        assert (score.value, score.published, score.parts["exact"]) == (1.0, 1.0, 1.0)
        nothing = task.score(sample, Response(text="I do not know."))
        assert (nothing.value, nothing.parts["marker_missing"]) == (0.0, 1.0)
        assert nothing.parts["corrected"] == pytest.approx(-0.51 / 0.49)
