"""The words of `longreach check`: what was found, and what to change."""

from collections.abc import Iterator, Mapping
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.running.checked import Checked, Reading

_SETTINGS = {
    "Ollama": "num_ctx (or OLLAMA_CONTEXT_LENGTH when the server starts)",
    "llama.cpp": "-c / --ctx-size (it is shared by the slots of --parallel)",
    "vLLM": "--max-model-len, and leave out truncate_prompt_tokens",
    "SGLang": "--context-length, and leave out --allow-auto-truncate",
}
_ANY = (
    "num_ctx or OLLAMA_CONTEXT_LENGTH (Ollama, which cuts in silence), -c / --ctx-size (llama.cpp), --max-model-len (vLLM), "
    "or a proxy in between"
)


def advice(reading: Reading, facts: Mapping[str, Any]) -> str:
    """What a truncating server did, and the setting that is probably the cause."""
    part = {"start": "; the start is lost", "end": "; the end is lost"}.get(str(reading.lost), "")
    if reading.read is not None:
        what = f"of a prompt of about {reading.sent:,} tokens it read {reading.read:,}{part}"
    else:
        what = (
            f"it reports no token counts, and in a prompt of about {reading.sent:,} tokens the code at one end is found "
            f"and the one at the other end never{part}"
        )
    setting = _SETTINGS.get(str(facts.get("server")), _ANY)
    return f"cuts prompts in silence: {what}. Raise its window: {setting}; or test shorter lengths"


def finding_lines(found: Checked) -> Iterator[str]:
    """One finding a line: ok, note, warn or bad, then what it means."""
    server = " ".join(str(found.facts[name]) for name in ("server", "server_version") if found.facts.get(name))
    yield f"ok    endpoint: {found.facts.get('host', 'model')} {server or '(server unknown)'}"
    if found.answers:
        yield "ok    answers: both short canaries found"
    elif found.empty:
        yield "warn  answers: empty at the token limit; reasoning may have used it up: raise --reasoning-budget"
    else:
        yield "warn  answers: a code in a short prompt was not found; wrong model, a base model, or a chat template?"
    yield "ok    streaming: yes" if found.streaming else "note  streaming: no; time to first token stays unknown"
    if found.counts_wrongly:
        yield (
            f"warn  usage: not to be believed; {found.template_tokens:,} tokens on top of a short message, {found.ratio} of "
            f"its tokens to one of ours: look for a proxy that adds text or counts wrongly"
        )
    elif found.usage:
        yield f"ok    usage: reported; template {found.template_tokens} tokens, {found.ratio} of its tokens to one of ours"
    else:
        yield "warn  usage: not reported; tokens and cost are estimates, and only answers can show a cut"
    state = "ok    cached tokens: reported" if found.cached == "reported" else "note  cached tokens: not reported"
    yield state + (
        "" if found.cached == "reported" else "; latency cannot be told cold from cached unless --cold is given"
    )
    yield (
        "note  reasoning: yes; its tokens come on top, see --reasoning-budget"
        if found.reasoning
        else "ok    reasoning: none"
    )
    adapted = found.facts.get("adapted") or {}
    if adapted:
        yield "note  parameters: " + ", ".join(f"{name} {what}" for name, what in sorted(adapted.items()))
    else:
        yield "ok    parameters: all accepted"
    for reading in found.readings:
        yield _reading_line(reading, found.facts)
    window = found.facts.get("window")
    yield (
        f"ok    window: {window:,} tokens, says the endpoint" if window else "note  window: not stated by the endpoint"
    )


def _reading_line(reading: Reading, facts: Mapping[str, Any]) -> str:
    where = f"{format_length(reading.length)}: "
    if reading.state == "truncated":
        return f"bad   {where}{advice(reading, facts)}"
    if reading.state == "read":
        told = f"{reading.read:,} tokens by its count" if reading.read is not None else "both ends found"
        return f"ok    {where}read whole ({told})"
    if reading.state == "overflow":
        return f"ok    {where}refused as too long, as it should: the window ends below ({reading.error})"
    if reading.state == "unknown":
        return f"warn  {where}answered, but nothing shows that all of it was read"
    kind = "a limit on one request stands before the window" if reading.state == "too_large" else "failed"
    return f"warn  {where}{kind} ({reading.error})"
