"""Keeping secrets out of every file and line: header values, keys in arguments, passwords in addresses."""

import re
from collections.abc import Mapping
from typing import Any

REDACTED = "<redacted>"
_SECRET = re.compile(
    r"auth|token$|api[-_]?key|secret|password|passwd|cookie|credential|bearer|^key$|[-_]key$", re.IGNORECASE
)
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
        elif isinstance(value, Mapping):
            found[name] = redact_mapping(value)
        else:
            found[name] = redact_url(value) if isinstance(value, str) else value
    return found


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
