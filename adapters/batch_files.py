"""Lines of batch files as OpenAI, vLLM (`vllm run-batch`) and others read and write them.

Request: custom_id, method, url, body. Reply: custom_id, response (status_code, body), error; in any order, and failures in
a file of their own.
"""

from collections.abc import Collection, Mapping
from typing import Any

from longreach.adapters.openai_errors import error_from
from longreach.adapters.openai_stream import Collector
from longreach.harness.errors import ModelError
from longreach.harness.model import Response

_STREAM = ("stream", "stream_options")


def batch_line(custom_id: str, body: Mapping[str, Any], *, chat: bool) -> dict[str, Any]:
    """One request; a batch is never streamed."""
    url = "/v1/chat/completions" if chat else "/v1/completions"
    kept = {name: value for name, value in body.items() if name not in _STREAM}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": kept}


def batch_reply(line: Mapping[str, Any], *, host: str, secrets: Collection[str]) -> Response | ModelError:
    """The answer in one line, or the error that it stands for. There are no times in a batch."""
    response = line.get("response")
    if not isinstance(response, Mapping):
        said = line.get("error") or "the line holds neither a response nor an error"
        return error_from(None, said, {}, host=host, answered=True, secrets=secrets)
    status, body = response.get("status_code", 200), response.get("body")
    if status != 200 or not isinstance(body, Mapping) or body.get("error"):
        error = body.get("error") if isinstance(body, Mapping) and body.get("error") else body or line.get("error")
        return error_from(None if status == 200 else int(status), error, {}, host=host, answered=True, secrets=secrets)
    reply = Collector()
    try:
        reply.feed(body, 0.0)
        found = reply.response(0.0, streamed=False, adapted={})
    except ModelError as error:
        return error
    return Response(
        text=found.text,
        reasoning=found.reasoning,
        finish=found.finish,
        n_prompt_tokens=found.n_prompt_tokens,
        n_output_tokens=found.n_output_tokens,
        n_reasoning_tokens=found.n_reasoning_tokens,
        n_cached_tokens=found.n_cached_tokens,
        raw=dict(found.raw) | {"batch": True},
    )
