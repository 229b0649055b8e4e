"""LongBench v2: the letter by both rules, prompts, cuts, and a run of twelve rows through a faulty server, in three modes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import longreach
from longreach.harness.errors import ConfigError, DataError
from longreach.harness.model import Response
from longreach.harness.registry import get_task
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare
from longreach.harness.sample import Grid, Message
from longreach.harness.tokenizer import BytesTokenizer, WordsTokenizer
from longreach.suites.loaded import cut_middle
from longreach.suites.longbench.letters import published_letter, stated_letter
from longreach.suites.longbench.v2 import DOMAINS
from longreach.suites.longbench.v2_prompts import filled

WORDS = WordsTokenizer()
WHOLE = Grid(lengths=(1 << 20,), depths=(0.5,), n=10**6)


@pytest.mark.parametrize(
    ("answer", "published", "ours"),
    [
        # The sheet's worked values: asterisks go first, brackets before the bare letter, case counts, first match.
        ("The correct answer is (C)", "C", "C"),
        ("**The correct answer is (C)**", "C", "C"),
        ("The correct answer is **D**.", "D", "D"),
        ("The correct answer is Because of the war", "B", None),
        ("the correct answer is (C)", None, "C"),
        ("The correct answer is A, no: The correct answer is (B)", "B", "B"),
        ("The correct answer is (A). The correct answer is (B).", "A", "B"),
        ('Use the format "The correct answer is (insert answer here)".', None, None),
        ("", None, None),
        # What the published rule cannot read, or reads where nothing is settled.
        ("Answer: (C)", None, "C"),
        ("C.", None, "C"),
        ("B\n\nThe text says so on page two.", None, "B"),
        ("(D) the harbour", None, "D"),
        (r"So it is $\boxed{\text{B}}$.", None, "B"),
        ("The final answer is option (a).", None, "A"),
        ("The correct answer is (A) or (B)", "A", None),
        ("The correct answer is (A), not (B)", "A", "A"),
        ("<think>The correct answer is (A)</think>The correct answer is (B)", "A", "B"),
        ("答案是C", None, "C"),
        ("The harbour.", None, "D"),
        ("A harbour would be good", None, None),
        ("I do not know.", None, None),
    ],
)
def test_the_letter_by_the_published_rule_and_by_ours(answer: str, published: str | None, ours: str | None) -> None:
    assert published_letter(answer) == published
    assert stated_letter(answer, ("the tower", "the mill", "the bridge", "the harbour")) == ours


def test_a_score_holds_both_rules_and_says_what_could_not_be_read() -> None:
    task = _task(_row(0))
    sample = task.sample(next(task.measured_points(WHOLE, WORDS)), WORDS)
    right = sample.target[0]
    wrong = "BCDA"["ABCD".index(right)]
    for text, value, published, parts in (
        (f"The correct answer is ({right})", 1.0, 1.0, (0.0, 0.0)),
        (f"The correct answer is ({wrong})", 0.0, 0.0, (0.0, 0.0)),
        (f"Answer: {right}", 1.0, 0.0, (0.0, 1.0)),
        ("no idea", 0.0, 0.0, (1.0, 1.0)),
    ):
        score = task.score(sample, Response(text=text))
        assert (score.value, score.published, tuple(score.parts.values())) == (value, published, parts), text


def _row(number: int, n_pages: int = 20) -> dict[str, str]:
    """One row in the published schema; the answer stands in the first tenth of the text."""
    domain = DOMAINS[number % len(DOMAINS)]
    towns = ("Ardenholm", "Bristow", "Calderby", "Dunmere", "Eastrop", "Fennick")
    town, hour = towns[number % 6] + ("" if number < 6 else " Quay"), 5 + number
    pages = [f"Page {page} lists the trees along road {page}." for page in range(n_pages)]
    pages.insert(n_pages // 10, f"The ferry to {town} leaves at {hour} in the morning.")
    choices = [f"At {hour + shift} in the morning" for shift in (0, 1, 2, 3)]
    order = [(number + shift) % 4 for shift in range(4)]
    return {
        "_id": f"made-{number}",
        "domain": domain,
        "sub_domain": ("Academic", "Legal")[number // 6],
        "difficulty": ("easy", "hard")[number % 2],
        "length": ("short", "medium", "long")[number % 3],
        "question": f"When does the ferry to {town} leave?",
        **{f"choice_{letter}": choices[place] for letter, place in zip("ABCD", order, strict=True)},
        "answer": "ABCD"[order.index(0)],
        "context": "\n".join(pages),
    }


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve rows, the last of 300,000 tokens."""
    path = tmp_path_factory.mktemp("longbench") / "data.json"
    made = [_row(number, 20 + 40 * number) for number in range(11)] + [_row(11, 31_000)]
    assert WORDS.count(made[-1]["context"]) > 300_000
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


_PATHS: dict[str, str] = {}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    _PATHS["folder"] = str(tmp_path)


def _task(*made: dict[str, str], **params: Any) -> Any:
    path = Path(_PATHS["folder"]) / f"rows-{len(list(Path(_PATHS['folder']).iterdir()))}.json"
    path.write_text(json.dumps(list(made)), encoding="utf-8")
    return get_task("longbench_v2", data=str(path), **params)


def _sample(task: Any) -> Any:
    return task.sample(next(task.measured_points(WHOLE, WORDS)), WORDS)


def test_prompts_hold_text_question_choices_and_the_answer_line() -> None:
    row = _row(3) | {"context": " \nAbout $Q$ and $C_A$.\n "}
    text = _sample(_task(row)).messages[0].content
    assert "<text>\nAbout $Q$ and $C_A$.\n</text>" in text  # slots are filled in one pass
    assert f"(A) {row['choice_A']}\n(B) {row['choice_B']}\n(C) {row['choice_C']}\n(D) {row['choice_D']}" in text
    assert text.endswith('Format your response as follows: "The correct answer is (insert answer here)".')
    sample = _sample(_task(row, mode="no_context"))
    assert "About" not in sample.messages[0].content
    assert row["question"] in sample.messages[0].content
    assert "context" not in sample.extra


def test_with_steps_the_second_call_has_the_steps_and_not_the_text() -> None:
    task = _task(_row(2), mode="cot")
    sample = _sample(task)
    assert task.info.reserve == 1024
    more = task.follow_up(sample, " First, the ferry. ")
    assert more.reserve == 128
    (message,) = more.messages
    assert "First, the ferry." in message.content
    assert "Page 1 " not in message.content
    assert sample.extra["question"] in message.content
    assert _task(_row(2)).follow_up(sample, "x") is None


def test_published_templates_replace_ours_word_for_word(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "0shot.txt").write_text("TEXT $DOC$ ASK $Q$ $C_A$|$C_B$|$C_C$|$C_D$ NOW", encoding="utf-8")
    (tmp_path / "rows.json").write_text(json.dumps([_row(0)]), encoding="utf-8")
    settings = [f"longbench_v2.data={tmp_path / 'rows.json'}", f"longbench_v2.prompts={folder}"]
    prepared = prepare(Options.of(tasks="longbench_v2", model="sim:perfect", tokenizer="words", set=settings))
    task = prepared.plan.tasks["longbench_v2"].task
    (item,) = prepared.items
    assert re.fullmatch(
        r"TEXT Page 0.* ASK When .*\|.* NOW", task.sample(item.point, WORDS).messages[0].content, re.DOTALL
    )
    (folder / "0shot.txt").write_text("TEXT $DOC$", encoding="utf-8")
    with pytest.raises(DataError, match=r"0shot\.txt has no \$C_A\$"):
        prepare(Options.of(tasks="longbench_v2", model="sim:perfect", tokenizer="words", set=settings))


def test_filled_says_where_the_document_stands() -> None:
    text, place = filled("a $DOC$ b $Q$", {"DOC": "$Q$!", "Q": "why"})
    assert text == "a $Q$! b why"
    assert place == (2, 6)
    assert filled("only $Q$", {"Q": "why"}) == ("only why", None)


@pytest.mark.parametrize(("most", "kept"), [(6, "abchij"), (7, "abcghij"), (10, "abcdefghij"), (2, "aj")])
def test_the_middle_is_cut_as_published(most: int, kept: str) -> None:
    text, gone, before = cut_middle("abcdefghij", most, BytesTokenizer())
    assert (text, before) == (kept, 10)
    assert gone == (None if most >= 10 else (most // 2, 10 - (most - most // 2)))


def test_a_cut_row_says_how_much_is_left_and_where_its_text_stands() -> None:
    row = _row(0, 400)
    task = _task(row, over_length="middle", max_tokens=1000)
    sample = _sample(task)
    before = WORDS.count(_sample(_task(row)).messages[0].content)
    assert sample.extra["cut"] == {"before": before, "after": 1000}
    assert sample.extra["groups"]["text"] == "cut in the middle"
    assert sample.haystack_text.startswith("Page 0 ")
    assert sample.haystack_text.endswith("road 399.")
    assert _sample(_task(row, over_length="middle")).extra["groups"]["text"] == "whole"


def test_rows_can_be_chosen() -> None:
    made = [_row(number) for number in range(12)]
    for params, n in (
        ({"domains": ("multi-document qa",)}, 2),
        ({"difficulty": "hard"}, 6),
        ({"words": "long"}, 4),
        ({"domains": DOMAINS[:2], "difficulty": "easy"}, 2),
    ):
        task = _task(*made, **params)
        assert len(list(task.measured_points(WHOLE, WORDS))) == n
        assert task.provenance()["rows"] == n
    assert task.provenance()["notes"] == ["12 rows, not the 503 of the published set"]
    for params, said in (
        ({"mode": "rag"}, "mode 'rag' is not one of zero_shot, cot, no_context"),
        ({"difficulty": "x"}, "difficulty 'x' is not one of easy, hard"),
        ({"domains": ("Poetry",)}, "there is no domain 'Poetry'; one of: Single-Document QA"),
        ({"max_tokens": 1}, "max_tokens 1 is not a number of tokens"),
    ):
        with pytest.raises(ConfigError, match=said):
            get_task("longbench_v2", **params)


def test_one_row_can_be_left_out_by_its_number_or_id(rows: Path) -> None:
    for which in (12, "made-11", '["made-11"]'):
        settings = [f"longbench_v2.data={rows}", f"longbench_v2.exclude={which}"]
        prepared = prepare(Options.of(tasks="longbench_v2", model="sim:perfect", tokenizer="words", set=settings))
        assert sorted(item.point.index for item in prepared.items) == list(range(11))
        assert prepared.plan.infeasible == ()


def _solve(text: str) -> str | None:
    """A reader of our rows: three ways to say the letter, by the town; nothing if the ferry is not in the text."""
    town = re.search(r"When does the ferry to ([\w ]+) leave", text)
    if town is None:
        return None  # the canaries that a run sends first
    hour = re.search(rf"The ferry to {town[1]} leaves at (\d+) in the morning", text)
    if hour is None:
        return "I cannot find it."
    letter = re.search(rf"\(([A-D])\) At {hour[1]} in the morning", text)
    assert letter is not None
    if town[1] == "Calderby":
        return f"Answer: {letter[1]}"  # only ours can read it
    return "The correct answer is Because." if town[1] == "Dunmere" else f"The correct answer is ({letter[1]})."


def _run(rows: Path, out: Path, server: Any, fault_server: Any, **params: Any) -> longreach.Run:
    server.oracle = fault_server.Oracle(solve=_solve, faults=0.3)
    return longreach.run(
        tasks="longbench_v2",
        model="openai:m",
        base_url=server.url,
        tokenizer="words",
        lengths="1k,2k,4k,8k",
        samples=100,
        concurrency=4,
        set=[f"longbench_v2.{name}={value}" for name, value in {"data": rows, **params}.items()],
        out=str(out),
    )


def _scored(run: longreach.Run) -> dict[int, float | None]:
    return {record.index: record.score for record in run.records if record.outcome == "scored"}


def test_twelve_rows_through_a_faulty_server_the_long_one_refused(
    rows: Path, tmp_path: Path, server: Any, fault_server: Any
) -> None:
    run = _run(rows, tmp_path / "run", server, fault_server)
    assert run.exit_code == 3
    assert run.untested == (("longbench_v2", 512 * 1024, None),)
    assert {record.index for record in run.records} == set(range(11))
    lost = {record.index for record in run.records if record.outcome in ("no_answer", "refused")}  # two final faults
    assert _scored(run) == {index: float(index != 3) for index in range(11) if index not in lost}
    (table,) = run.card.to_dict()["groups"]
    assert (table["rows"], table["overall"]["n"], table["human"], table["chance"]) == (12, 11, 0.537, 0.25)
    by_domain = {row["value"]: row["n"] for row in table["groups"]["domain"]}
    assert by_domain == {name: 2 if name != DOMAINS[5] else 1 for name in DOMAINS}
    assert len(table["groups"]["sub_domain"]) == 11
    text = run.card.to_markdown()
    said = r"1 of 12 rows are longer than the largest length 8,192: row 12 \(line 1\) of .*\(3\d\d,\d\d\d tokens with the answer\)"
    assert re.search(said, text.replace("\\", ""))
    assert "| domain | Multi-Document QA |" in text
    assert "people have 53.7%" in text
    assert "11 of the 12 rows are scored: this is the score of those, not of the set." in text
    assert "Scores by group" in run.card.to_html()
    assert run.card.to_dict()["effective_retrieval"]["state"] == "not_measured"
    (entry,) = run.card.to_dict()["provenance"]["data"]
    assert (entry["rows"], entry["license"]) == (12, "as the file's owner says")
    (curve,) = [curve for curve in run.card.to_dict()["curves"] if curve["kind"] == "family"]
    assert (curve["name"], curve["capability"]) == ("documents", "documents")


def test_twelve_rows_through_a_faulty_server_the_long_one_skipped(
    rows: Path, tmp_path: Path, server: Any, fault_server: Any
) -> None:
    run = _run(rows, tmp_path / "run", server, fault_server, over_length="skip")
    assert (run.exit_code, len(run.records), run.untested) == (0, 11, ())
    assert "left out by over_length=skip" in run.card.to_markdown().replace("\\", "")


def test_twelve_rows_through_a_faulty_server_the_long_one_cut(
    rows: Path, tmp_path: Path, server: Any, fault_server: Any
) -> None:
    run = _run(rows, tmp_path / "run", server, fault_server, over_length="middle", max_tokens=6000)
    assert (run.exit_code, len(run.records), run.untested) == (0, 12, ())
    (long,) = [record for record in run.records if record.index == 11]
    assert long.length == 8192
    assert long.extra["cut"]["before"] > 300_000
    assert long.extra["cut"]["after"] == 6000
    if long.outcome == "scored":
        assert (long.score, long.text) == (0.0, "I cannot find it.")  # a tenth into the text is cut out too
    (table,) = run.card.to_dict()["groups"]
    assert {row["value"]: row["n"] for row in table["groups"]["text"]} == {"whole": 11, "cut in the middle": 1}


def test_steps_are_two_calls_in_one_record(rows: Path, tmp_path: Path, server: Any, fault_server: Any) -> None:
    asked: list[str] = []

    def solve(text: str) -> str:
        asked.append(text)
        return "The correct answer is (A)" if "left out here" in text else "Step one: look for the ferry."

    server.oracle = fault_server.Oracle(solve=solve)
    (tmp_path / "two.json").write_text(json.dumps([_row(0), _row(4)]), encoding="utf-8")
    run = longreach.run(
        tasks="longbench_v2",
        model="openai:m",
        base_url=server.url,
        tokenizer="words",
        lengths="2k",
        price_in=1.0,
        price_out=1.0,
        set=[f"longbench_v2.data={tmp_path / 'two.json'}", "longbench_v2.mode=cot"],
        out=str(tmp_path / "run"),
    )
    assert run.exit_code == 0
    own = [text for text in asked if "ferry to" in text]
    assert len(own) == 4
    for record in run.records:
        assert (record.text, record.reasoning) == ("The correct answer is (A)", "Step one: look for the ferry.")
        assert [attempt.status for attempt in record.attempts] == ["ok", "ok"]
        assert record.n_tokens is not None
        assert record.n_prompt_tokens == record.n_tokens + 12
        second = record.extra["backend"]["second_prompt_tokens"]
        assert second > 12
        assert record.cost_usd == pytest.approx((record.n_prompt_tokens + second + record.n_output_tokens) / 1e6)


def test_two_calls_are_no_batch(rows: Path, tmp_path: Path) -> None:
    from longreach.harness.running.batch import export_batch

    settings = [f"longbench_v2.data={rows}", "longbench_v2.mode=cot", "longbench_v2.over_length=skip"]
    options = Options.of(
        tasks="longbench_v2", model="openai:m", tokenizer="words", set=settings, out=str(tmp_path / "r")
    )
    with pytest.raises(ConfigError, match="longbench_v2 asks twice for each sample, which a batch cannot"):
        export_batch(options, tmp_path / "batch.jsonl")


def test_the_control_arm_asks_every_row_without_its_text(rows: Path) -> None:
    settings = [f"longbench_v2.data={rows}", "longbench_v2.over_length=skip"]
    prepared = prepare(Options.of(battery="longbench_v2", model="sim:perfect", tokenizer="words", set=settings))
    label = "longbench_v2 (no context)"
    arm = prepared.plan.tasks[label].task
    points = [item.point for item in prepared.items if item.label == label]
    assert sorted(point.index for point in points) == list(range(12))
    assert {point.length for point in points} == {8192}
    for point in points:
        sample = arm.sample(point, WORDS)
        assert isinstance(sample.messages[0], Message)
        assert "Page" not in sample.messages[0].content
        assert sample.n_tokens < 200
