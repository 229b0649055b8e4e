import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from longreach.harness.errors import ModelUnusable

Connect = Callable[..., Any]


def probe(model: Any) -> Any:
    async def go() -> None:
        try:
            await model.probe()
        finally:
            await model.close()

    asyncio.run(go())
    return model


def test_vllm_tells_its_window_and_version(server: Any, connect: Connect) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 32768}]}
    server.pages["/version"] = {"version": "0.11.0"}
    model = probe(connect())
    assert model.window == 32768
    assert {"server": "vLLM", "server_version": "0.11.0", "window": 32768}.items() <= model.facts.items()
    assert model.facts["host"] == f"127.0.0.1:{server.port}"


def test_llama_cpp_tells_its_loaded_and_native_window_and_takes_any_name(server: Any, connect: Connect) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "f.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}]}
    server.pages["/props"] = {"build_info": "b9", "default_generation_settings": {"n_ctx": 4096}}
    model = probe(connect())
    assert model.window == 4096
    assert (model.facts["native_window"], model.facts["server_version"]) == (8192, "b9")


def test_no_more_requests_than_the_server_has_slots_are_sent_at_once(server: Any, connect: Connect) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "f.gguf", "owned_by": "llamacpp"}]}
    server.pages["/props"] = {"total_slots": 1}
    model = probe(connect())
    assert (model.concurrency, model.facts["slots"]) == (1, 1)


def test_a_window_that_the_user_names_stays(server: Any, connect: Connect) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "m", "max_model_len": 32768}]}
    assert probe(connect(window="8k")).window == 8192


@pytest.mark.parametrize("listed", ["m", "m:latest", "models/m"])
def test_a_model_may_be_listed_under_a_longer_name(server: Any, connect: Connect, listed: str) -> None:
    server.pages["/v1/models"] = {"data": [{"id": listed}]}
    probe(connect())


def test_a_model_that_is_not_listed_is_unusable(server: Any, connect: Connect) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "qwen-large"}]}
    with pytest.raises(ModelUnusable, match="did you mean 'qwen-large'"):
        probe(connect("openai:qwen-larg"))


@pytest.mark.parametrize("page", [404, 405, 500, "<html>hello</html>", {"data": []}, {"data": None}, []])
def test_no_list_is_no_reason_to_stop(server: Any, connect: Connect, page: object) -> None:
    server.pages["/v1/models"] = page
    assert probe(connect()).window is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_unusable(server: Any, connect: Connect, status: int) -> None:
    server.pages["/v1/models"] = status
    with pytest.raises(ModelUnusable, match="OPENAI_API_KEY"):
        probe(connect())


def test_an_unreachable_server_is_unusable(connect: Connect) -> None:
    with pytest.raises(ModelUnusable, match="cannot be reached"):
        probe(connect(base_url="http://127.0.0.1:9/v1"))
