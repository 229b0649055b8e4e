import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from longreach.adapters.openai_compatible import OpenAIModel
from longreach.adapters.openai_rates import rates_of
from longreach.harness.errors import (
    ConfigError,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelUnusable,
    PromptTooLarge,
    UnknownName,
)
from longreach.harness.model import Model, Request, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message

Ask = Callable[..., Response]
Connect = Callable[..., Any]
Delta = Callable[..., dict[str, Any]]


def test_a_streamed_answer_with_usage_times_and_unknown_cache(server: Any, connect: Connect, ask: Ask) -> None:
    server.answer("4817", prompt_tokens=30, completion_tokens=4, prompt_tokens_details=None)
    model = connect()
    response = ask(model, "Find it.", stop=("\n",), seed=7, top_p=0.9)
    assert isinstance(model, Model)
    assert (response.text, response.finish, response.reasoning) == ("4817", "stop", None)
    assert (response.n_prompt_tokens, response.n_output_tokens) == (30, 4)
    assert (response.n_cached_tokens, response.n_reasoning_tokens) == (None, None)
    assert response.ttft_s is not None and response.latency_s is not None
    assert response.ttft_answer_s == response.ttft_s <= response.latency_s
    assert response.raw["model"] == "m-served"
    assert server.requests == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Find it."}],
            "max_tokens": 16,
            "temperature": 0.0,
            "top_p": 0.9,
            "stop": ["\n"],
            "seed": 7,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


@pytest.mark.parametrize("cached", [0, 17])
def test_cached_tokens_of_zero_are_not_unknown(server: Any, connect: Connect, ask: Ask, cached: int) -> None:
    server.answer("x", prompt_tokens=30, prompt_tokens_details={"cached_tokens": cached})
    assert ask(connect()).n_cached_tokens == cached


def test_usage_may_be_missing(server: Any, connect: Connect, ask: Ask, delta: Delta) -> None:
    server.stream(delta(content="x"), delta(finish="stop"))
    assert ask(connect()).n_prompt_tokens is None


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_field_is_apart_from_the_answer(
    server: Any, connect: Connect, ask: Ask, delta: Delta, name: str
) -> None:
    server.stream(
        delta(role="assistant"), delta(**{name: "hm ", "content": None}), delta(content="4"), delta(finish="stop")
    )
    response = ask(connect())
    assert (response.text, response.reasoning) == ("4", "hm ")
    assert response.ttft_s is not None and response.ttft_answer_s is not None
    assert response.ttft_s <= response.ttft_answer_s


def test_reasoning_that_uses_up_the_budget_leaves_an_empty_answer(
    server: Any, connect: Connect, ask: Ask, delta: Delta
) -> None:
    server.stream(delta(reasoning_content="hm", content=None), delta(finish="length"))
    response = ask(connect())
    assert (response.text, response.reasoning, response.finish) == ("", "hm", "length")
    assert response.ttft_s is not None
    assert response.ttft_answer_s is None


def test_a_content_filter_and_a_refusal_finish_as_filter(server: Any, connect: Connect, ask: Ask, delta: Delta) -> None:
    server.stream(delta(finish="content_filter"))
    server.stream(delta(refusal="I cannot."), delta(finish="stop"))
    assert ask(connect()).finish == "filter"
    response = ask(connect())
    assert (response.finish, response.text, response.raw["refusal"]) == ("filter", "", "I cannot.")


def test_a_stream_without_finish_reason_is_broken_and_transient(
    server: Any, connect: Connect, ask: Ask, delta: Delta
) -> None:
    for done in (True, False):
        server.stream(delta(content="48"), done=done)
        with pytest.raises(ModelError, match="broken stream") as caught:
            ask(connect())
        assert caught.value.transient


def test_a_cut_socket_is_broken_unless_the_answer_had_ended(
    server: Any, connect: Connect, ask: Ask, delta: Delta
) -> None:
    server.stream(delta(content="48"), cut=True)
    server.stream(delta(content="48"), delta(finish="stop"), cut=True)
    with pytest.raises(ModelError, match="broken stream") as caught:
        ask(connect())
    assert caught.value.transient
    assert ask(connect()).text == "48"


def test_an_event_that_is_not_json_is_broken(server: Any, connect: Connect, ask: Ask) -> None:
    server.stream("{nope")
    with pytest.raises(ModelError, match="not JSON") as caught:
        ask(connect())
    assert caught.value.transient


def test_errors_inside_a_stream_are_told_apart(server: Any, connect: Connect, ask: Ask, delta: Delta) -> None:
    server.stream(delta(content="4"), {"error": {"message": "Overloaded", "code": 503}})
    server.stream({"error": {"message": "This model's maximum context length is 3 tokens", "code": 400}})
    server.stream({"error": "Overloaded", "error_type": "overloaded"})
    server.stream(delta(content="4", finish="error"))
    for kind, transient in ((ModelError, True), (ContextOverflow, False), (ModelError, True), (ModelError, True)):
        with pytest.raises(ModelError) as caught:
            ask(connect())
        assert (type(caught.value), caught.value.transient) == (kind, transient)


def test_a_reply_that_is_not_streamed_is_read_whole_and_has_no_ttft(server: Any, connect: Connect, ask: Ask) -> None:
    message = {"role": "assistant", "content": "4817", "reasoning_content": "hm"}
    server.reply(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}})
    response = ask(connect())
    assert (response.text, response.reasoning, response.n_prompt_tokens) == ("4817", "hm", 9)
    assert response.ttft_s is None
    assert response.latency_s is not None


@pytest.mark.parametrize("body", [{"choices": None}, {"choices": []}, {}, []])
def test_a_reply_without_choices_is_transient(server: Any, connect: Connect, ask: Ask, body: object) -> None:
    server.reply(200, body)
    with pytest.raises(ModelError) as caught:
        ask(connect())
    assert caught.value.transient


def test_an_error_object_with_status_200_is_an_error(server: Any, connect: Connect, ask: Ask) -> None:
    server.reply(200, {"error": {"message": "prompt is too long: 208656 tokens > 200000 maximum", "code": 400}})
    with pytest.raises(ContextOverflow):
        ask(connect())


def test_a_web_page_instead_of_an_answer_points_at_the_base_url(server: Any, connect: Connect, ask: Ask) -> None:
    server.reply(200, "<html><title>Welcome</title></html>")
    with pytest.raises(ModelUnusable, match="a web page titled 'Welcome'; check that --base-url"):
        ask(connect())


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


@pytest.mark.parametrize(
    ("refused", "body", "changed"),
    [
        (
            "max_tokens",
            {
                "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                "param": "max_tokens",
            },
            {"max_completion_tokens": 16},
        ),
        ("temperature", {"message": "Unsupported value: 'temperature' does not support 0", "param": "temperature"}, {}),
        ("stop", {"message": "Unsupported parameter: 'stop' is not supported with this model."}, {}),
        ("seed", {"message": "[{'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]"}, {}),
        ("stream_options", {"message": "Unrecognized request argument supplied: stream_options"}, {}),
    ],
)
def test_a_refused_parameter_is_adapted_once_and_remembered(
    server: Any, connect: Connect, ask: Ask, refused: str, body: dict[str, Any], changed: dict[str, Any]
) -> None:
    server.reply(400, {"error": body})
    server.answer("one\ntwo")
    model = connect()
    responses = [ask(model, stop=("\n",), seed=1) for _ in range(2)]
    assert len(server.requests) == 3
    first, second, third = server.requests
    assert second == third == {key: value for key, value in first.items() if key != refused} | changed
    assert refused in responses[0].raw["adapted"]
    assert refused in model.facts["adapted"]
    assert [response.text for response in responses] == ["one" if refused == "stop" else "one\ntwo"] * 2


def test_a_server_that_cannot_stream_is_asked_for_the_whole(server: Any, connect: Connect, ask: Ask) -> None:
    server.reply(400, {"error": {"message": "stream is not supported", "param": "stream"}})
    server.reply(200, {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]})
    assert ask(connect()).text == "4"
    assert "stream_options" not in server.requests[1]
    assert not server.requests[1].get("stream")


def test_a_parameter_that_stays_refused_is_an_error_and_no_endless_loop(
    server: Any, connect: Connect, ask: Ask
) -> None:
    server.reply(400, {"error": {"message": "max_tokens and max_completion_tokens are not supported"}})
    with pytest.raises(ModelUnusable):
        ask(connect())
    assert len(server.requests) == 2


def test_what_the_user_adds_is_sent_and_never_left_out(server: Any, connect: Connect, ask: Ask) -> None:
    server.answer("x")
    model = connect(
        headers='{"X-Team": "blue"}',
        extra_body={"temperature": 0.6, "top_k": 1},
        chat_template_kwargs='{"thinking": false}',
    )
    ask(model)
    sent = server.requests[0]
    assert (sent["temperature"], sent["top_k"]) == (0.6, 1)
    assert sent["chat_template_kwargs"] == {"thinking": False}
    assert server.headers[0]["X-Team"] == "blue"


def test_the_key_is_sent_and_never_told(
    server: Any, connect: Connect, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "very-secret-1")
    server.reply(401, {"error": {"message": "Incorrect API key: very-secret-1 (or sk-abcd***wxyz, or hush-hush)"}})
    model = connect(api_key_env="MY_KEY", headers={"X-Api-Token": "hush-hush"})
    with pytest.raises(ModelUnusable) as caught:
        ask(model)
    assert server.headers[0]["Authorization"] == "Bearer very-secret-1"
    told = f"{caught.value} {model.name} {model.facts}"
    assert "very-secret" not in told
    assert "sk-abcd" not in told
    assert "hush-hush" not in told


def test_no_key_is_needed_but_at_openai(server: Any, connect: Connect, ask: Ask) -> None:
    server.answer("x")
    ask(connect())
    assert server.headers[0]["Authorization"] == "Bearer EMPTY"
    with pytest.raises(ModelUnusable, match="OPENAI_API_KEY"):
        ask(connect(base_url=None))


def test_completions_send_the_joined_text_with_its_prefix(server: Any, connect: Connect, ask: Ask) -> None:
    server.stream(
        *({"choices": [{"index": 0, "text": piece}]} for piece in (" 48", "17")),
        {"choices": [{"finish_reason": "stop"}]},
    )
    messages = tuple(Message(role="user", content=text) for text in ("Read.", "Find it."))
    model = connect("openai-completions:m")
    response = ask(model, messages=messages, answer_prefix="\nIt is")
    assert (model.name, response.text) == ("openai-completions:m", " 4817")
    assert server.requests[0]["prompt"] == "Read.\n\nFind it.\nIt is"


def test_an_answer_prefix_needs_a_server_that_goes_on(server: Any, connect: Connect, ask: Ask) -> None:
    server.answer("4")
    with pytest.raises(ModelError, match="prefill=true"):
        ask(connect(), answer_prefix="It is")
    ask(connect(prefill="true"), answer_prefix="It is")
    assert server.requests[-1]["messages"][-1] == {"role": "assistant", "content": "It is"}


def test_many_requests_at_once_and_more_than_one_event_loop(server: Any, connect: Connect, ask: Ask) -> None:
    server.answer("x")
    model = connect()

    async def many() -> list[Response]:
        request = Request(messages=(Message(role="user", content="?"),), max_new_tokens=4)
        return await asyncio.gather(*(model.generate(request) for _ in range(40)))

    assert [response.text for response in asyncio.run(many()) + asyncio.run(many())] == ["x"] * 80
    ask(model)


def test_a_cancelled_request_ends_at_once(server: Any, connect: Connect, delta: Delta) -> None:
    server.stream(delta(content="4"), hang=True)
    model = connect()

    async def cancel() -> None:
        task = asyncio.ensure_future(
            model.generate(Request(messages=(Message(role="user", content="?"),), max_new_tokens=4))
        )
        while not server.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()
        await model.close()

    asyncio.run(cancel())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost:8000"}, "not a web address"),
        ({"timeout_s": "soon"}, "timeout_s: 'soon' is not a number"),
        ({"extra_body": "[1]"}, "--extra-body: a JSON object is needed"),
        ({"extra_body": "{"}, "not a JSON object"),
        ({"prefill": "perhaps"}, "neither true nor false"),
    ],
)
def test_options_that_make_no_sense_are_refused(connect: Connect, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        connect(**options)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UnknownName, match="base_urll"):
        open_model("openai:m", base_urll="x")


def test_a_model_named_by_its_file_is_told_without_the_folder(server: Any, connect: Connect, ask: Ask) -> None:
    for name, told in (("/home/me/m.gguf", "m.gguf"), ("C:\\models\\m.gguf", "m.gguf"), ("org/m", "org/m")):
        server.stream({"model": name, "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]})
        server.answer("y")
        assert ask(connect()).raw["model"] == told
        ask(connect())
        server._replies.clear()


def test_a_login_in_the_address_becomes_a_header_and_is_never_told(server: Any, connect: Connect, ask: Ask) -> None:
    server.reply(401, {"error": {"message": "no entry for bWU6cHctMTIzNDU="}})
    model = connect(base_url=server.url.replace("//", "//me:pw-12345@"))
    with pytest.raises(ModelUnusable) as caught:
        ask(model)
    assert server.headers[0]["Authorization"] == "Basic bWU6cHctMTIzNDU="
    asyncio.run(model.probe())
    assert "pw-12345" not in f"{caught.value} {model.facts}"
    assert "bWU6" not in f"{caught.value} {model.facts}"


def test_rate_headers_reach_the_limiter_of_answers_and_of_errors(
    server: Any, connect: Connect, ask: Ask, delta: Delta
) -> None:
    headers = {
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "10",
        "x-ratelimit-reset-tokens": "59.4s",
    }
    wanted = {"tokens_limit": 1000.0, "tokens_left": 10.0, "tokens_reset_s": 59.4}
    server.reply(200, {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}, **headers)
    server.reply(429, {"error": {"message": "slow down"}}, **headers)
    model = connect()
    assert ask(model).raw["rates"] == wanted
    with pytest.raises(ModelError) as caught:
        ask(model)
    assert caught.value.rates == wanted


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("12", 12.0),
        ("1970-01-01T00:01:40Z", 90.0),
        ("soon", None),
    ],
)
def test_resets_come_in_many_spellings(text: str, seconds: float | None) -> None:
    headers = {f"x-ratelimit-{name}-requests": "5" for name in ("limit", "remaining")}
    found = rates_of(headers | {"x-ratelimit-reset-requests": text}, now=10.0)
    assert found.get("requests_reset_s") == seconds
