"""The bytes of a request, and the end of a reply."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from longreach.adapters.openai_body import body_bytes
from longreach.harness.model import Response

Ask = Callable[..., Response]


@pytest.mark.parametrize(
    "text",
    [
        "",
        'a "b" \\ c',
        "line\nline\r\n\ttab",
        "bell \x07, nul \x00, del \x7f",
        "ночь 夜 🌙 \u2028",
        "\\n is no newline",
    ],
)
def test_a_body_is_what_json_dumps_writes(text: str) -> None:
    body = {"model": text, "messages": [{"role": "user", "content": text}], text: [1, 0.5, True, None, {"a": text}]}
    assert body_bytes(body) == json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def test_half_a_surrogate_pair_is_not_sent_as_something_else() -> None:
    with pytest.raises(UnicodeEncodeError):
        body_bytes({"messages": [{"role": "user", "content": "a \ud83d b"}]})


def test_a_number_that_json_cannot_hold_is_not_sent() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        body_bytes({"temperature": float("nan")})


def test_a_reply_is_over_at_its_done_though_the_server_holds_the_line(
    server: Any,
    connect: Callable[..., Any],
    ask: Ask,
    delta: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("longreach.adapters.openai_compatible.DRAIN_S", 30.0)
    server.stream(delta(content="4"), delta(finish="stop"), "[DONE]", hang=True)
    model, started = connect(), time.monotonic()
    assert ask(model).text == "4"
    assert time.monotonic() - started < 5
