"""Refusal phrases label an answer; only a short answer that does nothing but refuse has the outcome `refused`."""

from pathlib import Path
from typing import Any

import pytest

import longreach
from longreach.harness.running.refusals import is_refusal, refusal_phrase
from longreach.harness.running.revisit import rescore


@pytest.mark.parametrize(
    "text",
    [
        "I cannot access that document.",
        "I\u2019m sorry, but I can't help with that.",
        "As an AI language model, I have no files.",
        "I am unable to read the text.",
        "抱歉，我无法回答。",
        "I must decline.",
    ],
)
def test_a_refusal_is_known_by_its_phrase(text: str) -> None:
    assert refusal_phrase(text) is not None


@pytest.mark.parametrize(
    "text",
    ["4817", "The code is 4817.", "She said: I cannot see him.", "I can answer: 12", "x" * 300 + "I'm sorry, but I"],
)
def test_an_answer_is_no_refusal(text: str) -> None:
    assert refusal_phrase(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, but I can\u2019t assist with that request.",
        "Sorry, I can't assist with that",
        "I cannot assist you with this request.",
        "I can't help with that. Is there anything else you would like to know?",
        "I apologize, but I am unable to fulfill your request.",
        "I cannot access that document.",
        "I'm unable to open the file you shared. Please paste its text here.",
        "As an AI language model, I cannot access external files.",
        "As an AI assistant, I don't have access to the document.",
        "**I cannot comply with that.**",
        "I must decline.",
        "I won't do that.",
        "I will not continue with this conversation.",
        "抱歉，我无法协助。",
        "对不起，我不能满足这个请求。",
        "Извините, но я не могу с этим помочь.",
        "Desculpe, mas não posso ajudar com isso.",
    ],
)
def test_an_answer_that_only_refuses_is_refused(text: str) -> None:
    assert is_refusal(text, ("4817", "Lisbon"))


@pytest.mark.parametrize(
    "text",
    [
        "I cannot find that in the text.",
        "I'm sorry, but I cannot find the code in the text.",
        "I cannot answer that question based on the text.",
        "I can't answer that.",
        "I'm sorry, but the passage does not mention it.",
        "Unfortunately, I cannot see the number anywhere.",
        "I'm unable to determine the code.",
        "I cannot provide the code because it is not in the document.",
        "I am unable to locate the value of X1.",
        "I can't see the answer in the text.",
        "I cannot access that document. The code is 9921.",
        "I can't help with that, but the number may be 12.",
        "I can't help with that number: it is 12.",
        "I can't help but notice the code 12.",
        "I cannot read the text without seeing 12.",
        "I cannot help you with this code 12",
        "As an AI language model, I think it is 12.",
        "I must decline the noun: 12",
        "The clerk said: I can't help with that.",
        "I can't help with that. It is 12.",
        "抱歉，我无法在文中找到答案。",
        "抱歉，我无法回答这个问题。",
        "Извините, я не могу найти ответ.",
        "Desculpe, não posso encontrar o código.",
        "I can't assist with that. " + "It is a long story. " * 20,
        "",
        "None",
    ],
)
def test_what_may_be_an_answer_is_not_refused(text: str) -> None:
    assert not is_refusal(text, ("4817", "Lisbon"))


def test_a_refusal_that_names_the_target_is_an_answer() -> None:
    assert is_refusal("I can't help with that request.", ("4817",))
    assert not is_refusal("I can't help with that request.", ("request",))
    assert not is_refusal("I cannot open the file Lisbon.", ("lisbon",))


def test_in_a_run_refusals_are_told_apart_from_wrong_answers(server: Any, fault_server: Any, tmp_path: Path) -> None:
    said = iter(["I'm sorry, but I can't help with that.", "I cannot find that in the text."] * 3)
    server.oracle = fault_server.Oracle(
        solve=lambda text: next(said) if "What is the code of the" not in text else None
    )
    run = longreach.run(
        tasks=["niah.single"],
        lengths="512",
        depths="0,1",
        samples=3,
        model="openai:m",
        base_url=server.url,
        concurrency=1,
        force=True,
        out=tmp_path,
    )
    found = sorted((record.outcome, record.text[:5], record.score, record.finish) for record in run.records)
    assert found == [("refused", "I'm s", 0.0, "stop")] * 3 + [("scored", "I can", 0.0, "stop")] * 3
    assert all("refusal_phrase" in record.extra for record in run.records if record.outcome == "refused")
    assert rescore(tmp_path) == (6, 0)
