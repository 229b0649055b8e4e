"""Addresses with a login in them."""

import base64
from urllib.parse import unquote, urlsplit


def without_login(url: str) -> tuple[str, dict[str, str]]:
    """The address without `user:password@`, and the header that says the same: the transport takes only one of both."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    basic = base64.b64encode(unquote(login).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {basic}"}
