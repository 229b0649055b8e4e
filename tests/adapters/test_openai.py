"""OpenAI-compatible servers: streams, answers, parameters, keys."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from longreach.adapters.openai_rates import rates_of
from longreach.harness.errors import (
    ConfigError,
    ContextOverflow,
    ModelError,
    ModelUnusable,
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
