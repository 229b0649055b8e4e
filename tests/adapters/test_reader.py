import asyncio

import pytest

from longreach.adapters import reader
from longreach.adapters.reader import last_part
from longreach.harness.errors import ConfigError, ModelError, UnknownName
from longreach.harness.model import Model, Request, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message


class Echo:
    """A task that answers with the last word before the question, and with its number of words."""

    def solve(self, messages: tuple[Message, ...]) -> str | None:
        text = " ".join(message.content for message in messages)
        return f"{text.split()[0]} {len(text.split())}" if text.endswith("What came first?") else None


class Other:
    def solve(self, messages: tuple[Message, ...]) -> str | None:
        return "blue" if "colour" in messages[-1].content else None


@pytest.fixture(autouse=True)
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "tasks", lambda: {"echo": Echo(), "other": Other(), "no-solver": object()})


def ask(model: Model, *contents: str) -> Response:
    messages = tuple(Message(role="user", content=content) for content in contents)
    return asyncio.run(model.generate(Request(messages=messages, max_new_tokens=8)))


def test_it_is_a_program_and_not_simulated() -> None:
    model = open_model("reader:window=8k")
    assert isinstance(model, Model)
    assert not model.simulated
    assert model.window is None
    assert model.facts["kind"] == "program"
    assert model.name == "reader:window=8k"


def test_within_its_window_it_sees_the_whole_prompt() -> None:
    response = ask(open_model("reader:window=8k"), "one two three What came first?")
    assert (response.text, response.n_prompt_tokens) == ("one 6", 7)


def test_beyond_its_window_it_sees_the_last_tokens_and_reports_them_all() -> None:
    response = ask(open_model("reader:window=6"), "one two three What came first?")
    assert (response.text, response.n_prompt_tokens) == ("two 5", 7)


def test_a_question_that_no_task_knows_gets_an_empty_answer() -> None:
    assert ask(open_model("reader:window=8k"), "How are you?").text == "The text does not say."


def test_two_answers_are_an_error_of_ours() -> None:
    with pytest.raises(ModelError, match="echo and other") as caught:
        ask(open_model("reader:window=8k"), "colour What came first?")
    assert not caught.value.transient


def test_what_is_forgotten_is_cut_out_of_the_messages() -> None:
    messages = (Message(role="system", content="be brief"), Message(role="user", content="abc def"))
    prompt = "<s>be brief</s><u>abc def</u>"
    assert last_part(messages, prompt, 0) == messages
    assert last_part(messages, prompt, 15) == messages[1:]
    assert [message.content for message in last_part(messages, prompt, prompt.index("def"))] == ["def"]
    assert last_part(messages, prompt, len(prompt) - 2) == ()


def test_the_window_may_come_as_an_option() -> None:
    assert open_model("reader:", window="4k", tokenizer="bytes").facts["sees_last_tokens"] == 4096


@pytest.mark.parametrize(("spec", "error"), [("reader:", ConfigError), ("reader:8k", ConfigError)])
def test_a_missing_window_is_refused(spec: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="reader:window=8k"):
        open_model(spec)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UnknownName, match="windw"):
        open_model("reader:", windw=3)
