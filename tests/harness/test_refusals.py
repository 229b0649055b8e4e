"""Refusal phrases label an answer; they give no credit and take none."""

import pytest

from longreach.harness.running.refusals import refusal_phrase


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
