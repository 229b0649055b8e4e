"""What an endpoint tells about itself before the first request: is the model there, its window, server and version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from longreach.harness.errors import ModelUnusable
from longreach.harness.registry import did_you_mean

# owned_by in the model list -> server, where it tells its version (below the API's root), and under which key
_SERVERS = {
    "vllm": ("vLLM", "/version", "version"),
    "sglang": ("SGLang", "/get_server_info", "version"),
    "llamacpp": ("llama.cpp", "/props", "build_info"),
    "library": ("Ollama", "/api/version", "version"),
}
_ANY_NAME = {"llamacpp"}  # serves its one model whatever name is asked for
_WINDOW_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Facts for the card, and what else the endpoint states."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    window: int | None = None
    slots: int | None = None
    """Requests that the server works on at once; more would only wait there, and their times with them."""


def read_models(listing: object, name: str, *, host: str) -> tuple[Mapping[str, Any], str | None]:
    """The list entry of `name` and who owns it; empty where the endpoint gives no list.

    Raises:
        ModelUnusable: there is a list and the model is not in it.
    """
    data = listing.get("data") if isinstance(listing, Mapping) else None
    entries = {str(item["id"]): item for item in data or () if isinstance(item, Mapping) and item.get("id")}
    if not entries:
        return {}, None
    for listed, entry in entries.items():
        # "llama3" for "llama3:latest" (Ollama), "models/x" for "x" (Google), "x" for the variant "x:free" (OpenRouter)
        if name in (listed, listed.rpartition("/")[2], listed.removesuffix(":latest")) or name.split(":")[0] == listed:
            return entry, entry.get("owned_by")
    first = next(iter(entries.values()))
    if first.get("owned_by") in _ANY_NAME:
        return first, first.get("owned_by")
    raise ModelUnusable(f"{host} does not serve the model {name!r}; {did_you_mean(name, list(entries)[:40])}")


async def probe_endpoint(client: Any, name: str, *, host: str) -> Found:
    """Ask for the list of models, and for the server's version where the list shows which server it is.

    Args:
        client: an `AsyncOpenAI`.

    Raises:
        ModelUnusable: the model is not in the list. Errors of `openai` for the list itself.
    """
    raw = await client.models.with_raw_response.list(timeout=10.0)
    facts: dict[str, Any] = {}
    if raw.headers.get("server"):
        facts["server_header"] = raw.headers["server"]
    listing = await _json(raw)
    entry, owner = read_models(listing, name, host=host)
    window = next((entry[key] for key in _WINDOW_KEYS if isinstance(entry.get(key), int)), None)
    meta = entry.get("meta")
    if isinstance(meta, Mapping) and isinstance(meta.get("n_ctx_train"), int):
        facts["native_window"] = meta["n_ctx_train"]
    slots = None
    if owner in _SERVERS:
        server, path, key = _SERVERS[owner]
        facts["server"] = server
        told = await _get(client, path)
        if isinstance(told.get(key), str):
            facts["server_version"] = told[key]
        settings = told.get("default_generation_settings")
        if isinstance(settings, Mapping) and isinstance(settings.get("n_ctx"), int):
            window = settings["n_ctx"]
        if isinstance(told.get("total_slots"), int) and told["total_slots"] > 0:
            slots = facts["slots"] = told["total_slots"]
    if window is not None:
        facts["window"] = window
    return Found(facts=facts, window=window, slots=slots)


async def _json(raw: Any) -> object:
    try:
        return raw.http_response.json()
    except ValueError:  # a web page: there is no list here
        return None


async def _get(client: Any, path: str) -> Mapping[str, Any]:
    """JSON object at `path` below the API's root; empty if there is none: nothing depends on it."""
    import openai

    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    try:
        told = await client.get(f"{root}{path}", cast_to=object, options={"timeout": 5.0})
    except (openai.OpenAIError, ValueError):
        return {}
    return told if isinstance(told, Mapping) else {}
