"""Counting by the server: both dialects, spoken by a small server in this process."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from longreach.adapters.server_tokenizer import open_tokenizer
from longreach.harness.errors import ConfigError
from longreach.harness.sample import Message, Point
from longreach.suites.haystack import Needle, build

Reply = Callable[[str, dict[str, Any]], dict[str, Any] | None]


def _pieces(text: str) -> list[bytes]:
    """Two bytes a token: tokens split characters, as real ones do."""
    data = text.encode()
    return [data[i : i + 2] for i in range(0, len(data), 2)]


def _llama_cpp(path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    if path == "/apply-template":
        return {"prompt": f"<u>{body['messages'][-1]['content']}<a>"}
    if path != "/tokenize":
        return None
    if not body.get("with_pieces"):
        return {"tokens": list(range(len(_pieces(body["content"]))))}

    def piece(data: bytes) -> str | list[int]:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return list(data)

    return {"tokens": [{"id": 1, "piece": piece(data)} for data in _pieces(body["content"])]}


def _vllm(path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    if body.get("model") != "m":
        return None
    if path == "/detokenize":
        return {"prompt": bytes(body["tokens"]).decode()}
    if path != "/tokenize":
        return None
    if "messages" in body:
        text = f"<u>{body['messages'][-1]['content']}<a>"
        return {"count": len(text), "tokens": list(text.encode())}
    words = body["prompt"].replace(" ", "\u2581").replace("\u2581", " \u2581").split(" ")
    words = [word for word in words if word]
    return {"count": len(words), "tokens": [0] * len(words), "token_strs": words}


@pytest.fixture
def serve() -> Iterator[Callable[[Reply], str]]:
    servers: list[ThreadingHTTPServer] = []

    def start(reply: Reply) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = reply(self.path, body)
                data = json.dumps(answer or {}).encode()
                self.send_response(404 if answer is None else 200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_llama_cpp_counts_renders_and_gives_spans(serve: Callable[[Reply], str]) -> None:
    tokenizer = open_tokenizer(serve(_llama_cpp) + "/v1")
    assert tokenizer.count("abcdef") == 3
    assert tokenizer.knows_template
    assert tokenizer.render([Message(role="user", content="hi")], "x") == "<u>hi<a>x"
    starts, ends = tokenizer.spans("aé日b")
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [(0, 2), (1, 3), (2, 3), (3, 4)]


def test_vllm_counts_renders_and_gives_spans(serve: Callable[[Reply], str]) -> None:
    tokenizer = open_tokenizer(serve(_vllm), model="m")
    assert tokenizer.count("one two three") == 3
    assert tokenizer.render([Message(role="user", content="hi")]) == "<u>hi<a>"
    starts, ends = tokenizer.spans("one two")
    assert (starts.tolist(), ends.tolist()) == ([0, 3], [3, 7])


def test_prompts_are_exact(serve: Callable[[Reply], str]) -> None:
    tokenizer = open_tokenizer(serve(_llama_cpp))
    point = Point(task="t", length=1024, depth=0.4, index=0, seed=1)
    sample = build(
        point,
        tokenizer,
        haystack="mixed",
        needles=[Needle(text="Zorbla likes quince.", depth=0.4)],
        head="Text:\n\n",
        tail="\n\nWhat does Zorbla like?",
        reserve=16,
        rng=point.rng(),
        target=("quince",),
    )
    assert 0 <= 1024 - 16 - tokenizer.count(tokenizer.render(sample.messages)) <= 8


def test_a_server_without_these_paths_is_named_with_a_way_out(serve: Callable[[Reply], str]) -> None:
    with pytest.raises(ConfigError, match="answered HTTP 404.*--tokenizer hf:PATH"):
        open_tokenizer(serve(lambda path, body: None)).count("a")


def test_pieces_that_do_not_add_up_are_refused(serve: Callable[[Reply], str]) -> None:
    def other(path: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"tokens": [{"id": 1, "piece": "something else"}]}

    with pytest.raises(ConfigError, match="do not add up"):
        open_tokenizer(serve(other)).spans("abc")


def test_no_server_and_no_address_are_told_apart() -> None:
    with pytest.raises(ConfigError, match="gave no answer"):
        open_tokenizer("http://127.0.0.1:9").count("a")
    with pytest.raises(ConfigError, match="is no address"):
        open_tokenizer("localhost").count("a")
