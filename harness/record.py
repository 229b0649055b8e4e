"""Record: one sample's last state as one JSON line. Raw, append-only, readable for ever: `schema` says how."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from longreach.harness.errors import RunFolderError

SCHEMA = 1
Outcome = Literal["scored", "no_answer", "refused", "overflow", "truncated", "failed", "not_run"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
FINAL: frozenset[str] = frozenset({"scored", "no_answer", "refused", "overflow"})
"""Outcomes that a resumed run leaves alone; the others are tried again."""
COUNTED: frozenset[str] = frozenset({"scored", "no_answer", "refused"})
"""Outcomes that enter n and the mean; the last two count as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at one sample."""

    status: str
    """ok, rate_limited, timeout, broken_stream, server_error, overflow, ..."""
    delay_s: float = 0.0
    """Seconds waited before this try."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One sample: who was asked what, what came back, what it is worth."""

    schema: int = SCHEMA
    key: str
    """Hash of the point, the model and every setting that shapes the request."""
    origin: str = "run"
    """run, imported:<tool>; of means without samples: vendor, reported:<tool>."""
    task: str
    """Label in the battery, usually the task's name."""
    task_id: str
    """Name, version and parameters."""
    version: int
    capability: str
    family: str
    params: Mapping[str, Any] = field(default_factory=dict)
    length: int
    depth: float | None
    index: int
    seed: int
    model: str
    tokenizer: str
    outcome: Outcome
    attempts: tuple[Attempt, ...] = ()
    finish: str | None = None
    score: float | None = None
    """Strict score; 0 for no_answer and refused, None for the outcomes that are never scored."""
    score_published: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    extracted: str | None = None
    text: str = ""
    reasoning: str | None = None
    target: tuple[str, ...] = ()
    placed: tuple[float, ...] = ()
    n_tokens: int | None = None
    """Our count of the rendered prompt."""
    n_prompt_tokens: int | None = None
    """The backend's count of the prompt."""
    n_output_tokens: int | None = None
    n_reasoning_tokens: int | None = None
    n_cached_tokens: int | None = None
    ttft_s: float | None = None
    ttft_answer_s: float | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    prompt_sha256: str | None = None
    error: str | None = None
    at: str
    """UTC time of the last attempt, ISO 8601."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """recycled, notes, requests in flight, backend facts."""

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"unknown outcome {self.outcome!r}; one of {', '.join(OUTCOMES)}")
        if (self.score is None) == (self.outcome in COUNTED):
            raise ValueError(f"outcome {self.outcome!r} with score {self.score!r}")

    @property
    def is_reported(self) -> bool:
        """A mean that somebody reported without its samples: shown, but part of no estimate."""
        return self.origin == "vendor" or self.origin.startswith("reported:")

    def to_json(self) -> str:
        """One line of JSON, without the newline. Shallow on purpose: records are written by the thousand."""
        data = {name: getattr(self, name) for name in _NAMES}
        data["attempts"] = [dataclasses.asdict(attempt) for attempt in self.attempts]
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> "Record":
        """Inverse of `to_json`.

        Raises:
            RunFolderError: not a record, or of a schema that this version does not know.
        """
        try:
            data = json.loads(line)
        except ValueError as error:
            raise RunFolderError(f"not a JSON line: {error}") from error
        if not isinstance(data, dict):
            raise RunFolderError("a record is a JSON object")
        if data.get("schema") != SCHEMA:
            raise RunFolderError(f"record schema {data.get('schema')!r} is not known (this version reads {SCHEMA})")
        unknown = sorted(set(data) - set(_NAMES))
        if unknown:
            raise RunFolderError(f"record has unknown fields: {', '.join(unknown)}")
        try:
            data["attempts"] = tuple(Attempt(**attempt) for attempt in data.get("attempts", ()))
            for name in ("target", "placed"):
                data[name] = tuple(data.get(name, ()))
            return cls(**data)
        except (TypeError, ValueError) as error:
            raise RunFolderError(f"record is damaged: {error}") from error


_NAMES = tuple(item.name for item in dataclasses.fields(Record))
