"""Errors of OpenAI-compatible servers: told apart, asked again or not, and how long is waited."""

from collections.abc import Callable
from typing import Any

import pytest

from longreach.adapters.openai_compatible import OpenAIModel
from longreach.harness.errors import (
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelUnusable,
    PromptTooLarge,
)
from longreach.harness.model import Request, Response

Ask = Callable[..., Response]
Connect = Callable[..., Any]
Delta = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, ContextOverflow),
        (
            400,
            {
                "object": "error",
                "message": "This model's maximum context length is 8192 tokens. However, you requested 8204 tokens "
                "(12 in the messages, 8192 in the completion)",
                "code": 400,
            },
            ContextOverflow,
        ),
        (400, {"object": "error", "message": "maximum context length is 3 tokens", "code": 400}, ContextOverflow),
        (400, {"error": {"type": "exceed_context_size_error", "message": "request (5031 tokens)"}}, ContextOverflow),
        (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"}, ContextOverflow),
        (413, {"error": {"message": "input length 9000 exceeds"}}, ContextOverflow),
        (500, {"error": {"message": "Context size has been exceeded."}}, ContextOverflow),
        (413, "<html><title>413 Request Entity Too Large</title></html>", PromptTooLarge),
        (429, {"error": {"message": "Request too large for m: Limit 30000, Requested 200000"}}, PromptTooLarge),
        (400, {"error": {"code": "content_filter", "message": "The response was filtered"}}, ContentFiltered),
        (403, {"error": {"message": "Your input was flagged"}}, ContentFiltered),
        (401, {"error": {"message": "Incorrect API key provided"}}, ModelUnusable),
        (403, {"error": {"message": "not for you"}}, ModelUnusable),
        (404, {"error": {"message": "The model `m` does not exist"}}, ModelUnusable),
        (402, {"error": {"message": "Pay first"}}, ModelUnusable),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, ModelUnusable),
        (400, {}, ModelUnusable),
        (400, "<html><title>Bad Request</title></html>", ModelUnusable),
    ],
)
def test_final_errors_are_told_apart_and_asked_once(
    server: Any, connect: Connect, ask: Ask, status: int, body: object, error: type[ModelError]
) -> None:
    server.reply(status, body)
    with pytest.raises(ModelError) as caught:
        ask(connect())
    assert type(caught.value) is error
    assert not caught.value.transient
    assert caught.value.status == status
    assert len(server.requests) == 1


def test_a_bare_400_after_good_answers_fails_one_sample_only(server: Any, connect: Connect, ask: Ask) -> None:
    server.answer("x")
    server.reply(400, {})
    model = connect()
    ask(model)
    with pytest.raises(ModelError) as caught:
        ask(model)
    assert type(caught.value) is ModelError
    assert not caught.value.transient


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_passing_errors_are_transient_and_tried_once_here(server: Any, connect: Connect, ask: Ask, status: int) -> None:
    server.reply(status, {"error": {"message": "later"}}, retry_after="7")
    with pytest.raises(ModelError, match="later") as caught:
        ask(connect())
    assert (caught.value.transient, caught.value.retry_after_s, caught.value.status) == (True, 7.0, status)
    assert len(server.requests) == 1


def test_no_token_in_time_is_a_timeout(server: Any, connect: Connect, ask: Ask, delta: Delta) -> None:
    server.stream(delta(role="assistant", content=""), hang=True)
    with pytest.raises(ModelError, match="time-out, no token") as caught:
        ask(connect(timeout_s=0.1), max_new_tokens=1, n_tokens=1)
    assert caught.value.transient


def test_silence_between_tokens_is_a_timeout(server: Any, connect: Connect, ask: Ask, delta: Delta) -> None:
    server.stream(delta(content="4"), hang=True)
    with pytest.raises(ModelError, match="time-out, the stream stood still") as caught:
        ask(connect(stall_s=0.1))
    assert caught.value.transient


def test_silence_after_the_end_loses_nothing(server: Any, connect: Connect, ask: Ask, delta: Delta) -> None:
    server.stream(delta(content="4", finish="stop"), hang=True)
    assert ask(connect(stall_s=0.1)).text == "4"


def test_the_first_token_may_take_longer_for_a_longer_prompt(connect: Connect) -> None:
    model = connect(timeout_s=60, prefill_tokens_per_s=50)
    request = Request(messages=(), max_new_tokens=100, n_tokens=100_000)
    assert isinstance(model, OpenAIModel)
    assert model._first_token_s(request, stream=True) == 60 + 2000 + 5


def test_an_unreachable_server_is_unusable_at_first_and_transient_later(
    server: Any, connect: Connect, ask: Ask
) -> None:
    with pytest.raises(ModelUnusable, match="cannot be reached"):
        ask(connect(base_url="http://127.0.0.1:9/v1"))
    server.answer("x")
    model = connect()
    ask(model)
    server.close()
    with pytest.raises(ModelError, match="the connection failed") as caught:
        ask(model)
    assert type(caught.value) is ModelError
    assert caught.value.transient
    server.__init__()  # for the fixture to close
