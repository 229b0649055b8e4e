"""What a user may ask of a run: one table for the command line, the Python API and the reproduce command.

Every field is None until it is given. Values may be strings as on the command line (`"4k,8k"`) or Python values
(`["4k", 8192]`); the battery makes sense of them.
"""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from longreach.harness.errors import ConfigError, UnknownName
from longreach.harness.running.redact import redact_header, redact_mapping, redact_url


def _option(
    help: str, *, kind: type = str, alias: str = "", panel: str = "Sampling", many: bool = False
) -> dict[str, Any]:
    """What the command line must know about a field; `many` = may be repeated."""
    return {"help": help, "kind": kind, "alias": alias, "panel": panel, "many": many}


_WHAT, _MODEL, _LIMITS, _SEARCH = "What to test", "Model", "Limits", "Search"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Flags of `run`, `plan`, `find` and `generate`; the field names are the flags with underscores."""

    battery: Any = None
    """Built-in name, YAML file, or a run folder's config.yaml."""
    lengths: Any = field(default=None, metadata=_option("Prompt + answer tokens, such as 4k,8k,16k.", panel=_WHAT))
    depths: Any = field(
        default=None, metadata=_option("Where the needle starts, such as 0,0.25,0.5,0.75,1.", panel=_WHAT)
    )
    samples: Any = field(
        default=None,
        metadata=_option(
            "Samples per task, length and depth; a task without depth gets as many per length as one with depths.",
            alias="--limit",
            panel=_WHAT,
        ),
    )
    tasks: Any = field(
        default=None, metadata=_option("Only these tasks; without a battery, these tasks as in `niah`.", panel=_WHAT)
    )
    seed: Any = field(default=None, metadata=_option("Seed of every prompt (default 42).", kind=int, panel=_WHAT))
    needles: Any = field(
        default=None,
        metadata=_option("Your own needles: CSV, JSON or JSONL with needle, question, answer.", panel=_WHAT),
    )
    corpus: Any = field(
        default=None,
        metadata=_option(
            "Haystack: mixed, repeat, noise, stdlib, bible, essays, pg19; a file (text, PDF, HTML, "
            "FILE.jsonl::COLUMN), a folder, or hf:NAME::COLUMN.",
            panel=_WHAT,
        ),
    )
    language: Any = field(
        default=None, metadata=_option("Filler, needles and questions: en, pt, ru, zh or mixed.", panel=_WHAT)
    )
    set: Any = field(
        default=None, metadata=_option("A task parameter: task.param=value. May be repeated.", panel=_WHAT, many=True)
    )
    tokenizer: Any = field(
        default=None,
        metadata=_option("tiktoken:NAME, hf:PATH_OR_ID, bytes, words, server. Default: the model's own.", panel=_WHAT),
    )
    prove: Any = field(
        default=None,
        metadata=_option(
            "Encode each finished prompt to prove its length: always (default), sample (one in 16), never.", panel=_WHAT
        ),
    )
    out: Any = field(
        default=None,
        metadata=_option("Run folder (default runs/<battery>-<model>).", alias="--output-path", panel=_WHAT),
    )
    model: Any = field(default=None, metadata=_option("scheme:name, such as openai:NAME or sim:perfect.", panel=_MODEL))
    model_args: Any = field(default=None, metadata=_option("Options of the model: k=v,k=v.", panel=_MODEL))
    base_url: Any = field(
        default=None, metadata=_option("Address of the server, up to and including /v1.", panel=_MODEL)
    )
    advertised: Any = field(default=None, metadata=_option("Advertised window, such as 128k.", panel=_MODEL))
    concurrency: Any = field(default=None, metadata=_option("Requests at once.", kind=int, panel=_MODEL))
    header: Any = field(default=None, metadata=_option("HTTP header K=V. May be repeated.", panel=_MODEL, many=True))
    extra_body: Any = field(default=None, metadata=_option("JSON merged into each request.", panel=_MODEL))
    chat_template_kwargs: Any = field(
        default=None, metadata=_option("JSON for the chat template, such as thinking on or off.", panel=_MODEL)
    )
    judge: Any = field(default=None, metadata=_option("Model SPEC that grades the answers.", panel=_MODEL))
    system: Any = field(default=None, metadata=_option("System prompt."))
    cold: Any = field(
        default=None, metadata=_option("A salt of its own before each prompt: no prefix cache helps.", kind=bool)
    )
    temperature: Any = field(default=None, metadata=_option("Sampling temperature (default 0).", kind=float))
    top_p: Any = field(default=None, metadata=_option("Nucleus sampling.", kind=float))
    reasoning_budget: Any = field(
        default=None, metadata=_option("Tokens for reasoning on top of the answer's.", kind=int)
    )
    price_in: Any = field(default=None, metadata=_option("USD per million prompt tokens.", kind=float, panel=_LIMITS))
    price_cached: Any = field(
        default=None, metadata=_option("USD per million cached prompt tokens.", kind=float, panel=_LIMITS)
    )
    price_out: Any = field(default=None, metadata=_option("USD per million output tokens.", kind=float, panel=_LIMITS))
    max_cost: Any = field(
        default=None, metadata=_option("Stop before this command has spent so many USD.", kind=float, panel=_LIMITS)
    )
    max_tokens: Any = field(
        default=None, metadata=_option("Stop before this command has used so many tokens.", panel=_LIMITS)
    )
    max_time: Any = field(default=None, metadata=_option("Stop after so many minutes.", kind=float, panel=_LIMITS))
    shard: Any = field(
        default=None,
        metadata=_option("Ask only part i of n, in a folder of its own; `longreach merge` unites them.", panel=_LIMITS),
    )
    force: Any = field(
        default=None, metadata=_option("Go on although the shortest length looks broken.", kind=bool, panel=_LIMITS)
    )
    max_length: Any = field(default=None, metadata=_option("Longest length of the search, such as 1M.", panel=_SEARCH))
    min_length: Any = field(
        default=None, metadata=_option("Shortest length (default 1k); lengths double from there.", panel=_SEARCH)
    )
    capability: Any = field(
        default=None, metadata=_option("retrieval, reasoning or both (default both).", panel=_SEARCH)
    )
    certify: Any = field(
        default=None,
        metadata=_option("Go on until the threshold itself is certified (strict bracket).", kind=bool, panel=_SEARCH),
    )
    refine: Any = field(
        default=None,
        metadata=_option("Test one more length between the last pass and the first fail.", kind=bool, panel=_SEARCH),
    )
    cache_mode: Any = field(
        default=None,
        metadata=_option(
            "Five questions on each context, for servers with a prefix cache (battery `shared`; retrieval only).",
            kind=bool,
            panel=_SEARCH,
        ),
    )
    plan: Any = field(
        default=None,
        metadata=_option("Print the tokens to expect for assumed curves; send nothing.", kind=bool, panel=_SEARCH),
    )

    @classmethod
    def of(cls, **given: Any) -> "Options":
        """Options by name.

        Raises:
            UnknownName: no such option; the nearest one is named. ConfigError: an empty name, as an unset variable of
                the shell leaves it.
        """
        from longreach.harness.registry import did_you_mean  # numpy comes with it: not for `longreach --help`

        for name in given:
            if name not in NAMES:
                raise UnknownName(f"there is no option {name!r}; {did_you_mean(name, NAMES)}")
        for name in _NAMED:
            value = given.get(name)
            if value is not None and not (str(value).strip(" ,") if isinstance(value, str) else value):
                flag = "--" + name.replace("_", "-")
                raise ConfigError(f"{flag} is empty; give it a value, or leave it out for the default")
        return cls(**given)

    def command(self, verb: str) -> str:
        """The command line that asks for the same, secrets taken out."""
        words = ["longreach", verb]
        if self.battery is not None:
            words.append(self.battery if isinstance(self.battery, str) else str(self.battery))
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.name == "battery" or value is None or value is False:
                continue
            flag = "--" + item.name.replace("_", "-")
            if value is True:
                words.append(flag)
            elif item.metadata["many"]:
                for part in [value] if isinstance(value, str) else _pairs(value):
                    words += [flag, redact_header(part) if item.name == "header" else part]
            else:
                words += [flag, _text(item.name, value)]
        return shlex.join(words)


def _pairs(value: Any) -> list[str]:
    return [f"{name}={text}" for name, text in value.items()] if isinstance(value, Mapping) else [str(v) for v in value]


def _text(name: str, value: Any) -> str:
    if name == "base_url":
        return redact_url(str(value))
    if name == "model_args":
        if isinstance(value, str):
            value = dict(part.partition("=")[::2] for part in value.split(","))
        return ",".join(f"{key}={text}" for key, text in redact_mapping(value).items())
    if name in ("extra_body", "chat_template_kwargs"):
        try:
            data = json.loads(value) if isinstance(value, str) else dict(value)
        except ValueError:
            return "<not JSON>"
        return json.dumps(redact_mapping(data), ensure_ascii=False)
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


_NAMED = ("out", "model", "base_url", "tasks", "needles", "corpus", "language", "tokenizer", "judge", "capability")
"""Options that are no use when empty, and would fall back to a default without a word."""
NAMES = tuple(item.name for item in dataclasses.fields(Options))
SEARCH = tuple(item.name for item in dataclasses.fields(Options) if item.metadata.get("panel") == _SEARCH)
"""Options of `find` alone."""
