"""Battery: everything that a run is asked to do, validated. The only place where a human's file enters (pydantic)."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from longreach.harness.errors import BatteryError, ConfigError
from longreach.harness.lengths import parse_depths, parse_length, parse_lengths, split
from longreach.harness.registry import did_you_mean

_ENTRY_KEYS = ("task", "label", "lengths", "depths", "samples")
Samples = int | dict[int, int]


def _read(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`parse` for a validator: None stays None, and its error becomes one that pydantic can place."""

    def read(value: Any) -> Any:
        try:
            return None if value is None else parse(value)
        except ConfigError as error:
            raise ValueError(str(error)) from error

    return read


def _samples(value: Any) -> Any:
    """`8` or `{4k: 8, 64k: 2}`."""
    if isinstance(value, Mapping):
        counts = {parse_length(length): _samples(n) for length, n in value.items()}
        if not counts:
            raise ValueError("samples by length is empty; write for example {4k: 10, 64k: 5}")
        return counts
    try:
        n = int(str(value))
    except ValueError:
        n = 0
    if n < 1 or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a number of samples (1 or more)")
    return n


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Entry(_Strict):
    """One task of a battery, with what differs from the battery's grid."""

    task: str
    label: str
    params: dict[str, Any] = Field(default_factory=dict)
    """Parameters given in the battery; they show in the label."""
    flags: dict[str, Any] = Field(default_factory=dict)
    """Parameters given by flags (`--set`, `--corpus`, ...); they do not."""
    lengths: tuple[int, ...] | None = None
    depths: tuple[float, ...] | None = None
    samples: Samples | None = None

    @model_validator(mode="before")
    @classmethod
    def _open(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"task": value}
        if not isinstance(value, Mapping) or not isinstance(value.get("task"), str):
            raise ValueError(f"{value!r} is not a task; write its name, or {{task: name, ...}}")  # noqa: TRY004 - pydantic
        if "params" in value:
            return dict(value)
        params = {name: item for name, item in value.items() if name not in _ENTRY_KEYS}
        shown = ",".join(f"{name}={item}" for name, item in sorted(params.items()))
        entry = {name: value[name] for name in _ENTRY_KEYS if name in value}
        return {"label": f"{value['task']}[{shown}]" if shown else value["task"], **entry, "params": params}

    _lengths = field_validator("lengths", mode="before")(_read(parse_lengths))
    _depths = field_validator("depths", mode="before")(_read(parse_depths))
    _n = field_validator("samples", mode="before")(_read(_samples))


class Prices(_Strict):
    """USD per million tokens."""

    input: float | None = Field(default=None, ge=0)
    cached: float | None = Field(default=None, ge=0)
    output: float | None = Field(default=None, ge=0)


class Battery(_Strict):
    """Everything that a run is asked to do."""

    name: str = "battery"
    description: str = ""
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    samples: Samples = 10
    seed: int = 42
    tasks: tuple[Entry, ...] = Field(min_length=1)
    headline: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Capability -> labels; a capability left out takes every task of it."""
    cut_at_window: bool = False
    """Leave out lengths above the advertised or known window."""
    controls: bool = False
    """Also ask each task's questions without the haystack and in a short context; no headline uses them."""
    tokenizer: str | None = None
    corpus: str | None = None
    needles: str | None = None
    language: str | None = None
    model: str | None = None
    model_args: dict[str, Any] = Field(default_factory=dict)
    advertised: int | None = None
    concurrency: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=0.0, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    reasoning_budget: int = Field(default=0, ge=0)
    system: str | None = None
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    judge: str | None = None
    cold: bool = False
    """Each prompt starts with a salt of its own, so that no prefix cache helps."""
    price: Prices = Prices()
    max_cost: float | None = Field(default=None, gt=0)
    """USD."""
    max_tokens: int | None = Field(default=None, gt=0)
    max_time: float | None = Field(default=None, gt=0)
    """Minutes."""
    explicit_lengths: bool = False
    """The lengths came from a flag: a cell that cannot be built is an error then."""

    _lengths = field_validator("lengths", mode="before")(_read(parse_lengths))
    _depths = field_validator("depths", mode="before")(_read(parse_depths))
    _n = field_validator("samples", mode="before")(_read(_samples))
    _tokens = field_validator("advertised", "max_tokens", mode="before")(_read(parse_length))

    @field_validator("headline", mode="before")
    @classmethod
    def _known_capabilities(cls, value: Any) -> Any:
        for name in value if isinstance(value, Mapping) else ():
            if name not in ("retrieval", "reasoning"):
                raise ValueError(f"headline is for retrieval or reasoning, not {name!r}")
        return {name: split(labels) for name, labels in dict(value).items()}

    @model_validator(mode="after")
    def _consistent(self) -> "Battery":
        labels = [entry.label for entry in self.tasks]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two tasks are labelled {label!r}; give one of them a label of its own")
        for label in (label for group in self.headline.values() for label in group):
            if label not in labels:
                raise ValueError(f"headline names {label!r}, which is not in tasks; {did_you_mean(label, labels)}")
        return self


def validate(data: Mapping[str, Any], origin: str) -> Battery:
    """The battery in `data`; an error names `origin`, the key and the nearest right one, in one line."""
    try:
        return Battery.model_validate(data)
    except ValidationError as error:
        # A misspelt key comes before what is missing because of it.
        first = min(error.errors(include_url=False), key=lambda item: item["type"] != "extra_forbidden")
        where = ".".join(str(part) for part in first["loc"]) or "battery"
        if first["type"] == "extra_forbidden":
            name = str(first["loc"][-1])
            known = (
                Battery.model_fields
                if len(first["loc"]) == 1
                else Prices.model_fields
                if "price" in first["loc"]
                else Entry.model_fields
            )
            raise BatteryError(f"{origin}: unknown key {where!r}; {did_you_mean(name, known)}") from error
        message = first["msg"].removeprefix("Value error, ")
        raise BatteryError(f"{origin}: {where}: {message}") from error
