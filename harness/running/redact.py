"""Keeping secrets out of every file and line: header values, keys in arguments, passwords in addresses."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "<redacted>"
MIN_KEY = 8
"""Characters of the shortest API key that is looked for in texts."""
_SECRET = re.compile(
    r"auth|token$|api[-_]?key|secret|password|passwd|cookie|credential|bearer|^key$|[-_]key$", re.IGNORECASE
)
_KEY_NAME = re.compile(r"(key|token|secret|password|passwd)$", re.IGNORECASE)
_HARMLESS = re.compile(r"_env$", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """True if a header or argument of this name holds a secret. `api_key_env` names a variable, which is none.

    >>> [is_secret(name) for name in ("Authorization", "X-Api-Key", "api_key_env", "max_tokens")]
    [True, True, False, False]
    """
    return bool(_SECRET.search(name)) and not _HARMLESS.search(name)


def redact_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with the values of secret names replaced, at every depth."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if is_secret(str(name)):
            found[name] = REDACTED
        else:
            found[name] = _redact_value(value)
    return found


def _redact_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return redact_mapping(value)
    if isinstance(value, list | tuple):
        return [_redact_value(item) for item in value]
    return redact_url(value) if isinstance(value, str) else value


def api_keys(model_args: Mapping[str, Any]) -> tuple[str, ...]:
    """The API keys that this process knows, as they stand in the environment; short ones (EMPTY, none) are no secrets."""
    names = {"OPENAI_API_KEY", str(model_args.get("api_key_env") or "OPENAI_API_KEY")}
    return tuple(sorted(key for name in names if len(key := os.environ.get(name, "")) >= MIN_KEY))


def keys_around() -> tuple[str, ...]:
    """All that looks like a key in the environment, whatever names it: a last guard, where the settings are not known."""
    values = {value for name, value in os.environ.items() if _KEY_NAME.search(name)}
    return tuple(sorted(value for value in values if len(value) >= MIN_KEY))


def without(value: Any, keys: Iterable[str]) -> Any:
    """`value` (text, or JSON values) with every one of `keys` replaced wherever it stands, in names too."""
    keys = tuple(keys)
    if isinstance(value, str):
        for key in keys:
            value = value.replace(key, REDACTED)
        return value
    if isinstance(value, Mapping):
        return {without(name, keys): without(item, keys) for name, item in value.items()}
    return [without(item, keys) for item in value] if isinstance(value, list | tuple) else value


def holds_redacted(value: Any) -> bool:
    """True if something was taken out of `value`, at any depth."""
    if isinstance(value, Mapping):
        return any(holds_redacted(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(holds_redacted(item) for item in value)
    return isinstance(value, str) and REDACTED in value


def redact_header(line: str) -> str:
    """`K=V` with V replaced if K names a secret."""
    name, sign, value = line.partition("=")
    return f"{name}{sign}{REDACTED if is_secret(name.strip()) else value}"


def redact_url(text: str) -> str:
    """Takes user:password and key-like query values out of an address; other text stays as it is.

    >>> redact_url("https://me:pw@host/v1?api_key=1&x=2")
    'https://<redacted>@host/v1?api_key=<redacted>&x=2'
    """
    text = re.sub(r"(\w+://)[^/@\s]+@", rf"\1{REDACTED}@", text)

    def hide(match: re.Match[str]) -> str:
        return match.group(0) if not is_secret(match.group(2)) else f"{match.group(1)}{match.group(2)}={REDACTED}"

    return re.sub(r"([?&])([\w-]+)=([^&\s]*)", hide, text)
