"""Battery: everything that a run is asked to do, validated. The only place where a human's file enters (pydantic)."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from longreach.harness.errors import BatteryError, ConfigError
from longreach.harness.lengths import parse_depths, parse_length, parse_lengths, split
from longreach.harness.registry import did_you_mean
from longreach.harness.running.malformed import refusal, shown
from longreach.harness.stats.blocks import centres
from longreach.harness.task import is_label
from longreach.harness.tokenizer import Prove

_ENTRY_KEYS = ("task", "label", "lengths", "depths", "samples", "optional")
_LISTED = (str, int, float, list, tuple, type(None))
Samples = int | dict[int, int]


def _read(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`parse` for a validator: None stays None, and its error becomes one that pydantic can place."""

    def read(value: Any) -> Any:
        if parse in (parse_lengths, parse_depths) and not isinstance(value, _LISTED):
            raise ValueError(f"{shown(value)} is not a list; write the values one by one, such as [4k, 8k]")
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
    optional: bool = False
    """A task on published rows that is left out, and listed as such, unless its `data` is given."""

    @model_validator(mode="before")
    @classmethod
    def _open(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"task": value}
        if isinstance(value, Entry):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"{shown(value)} is not a task; write its name, or {{task: name, ...}}")  # noqa: TRY004 - pydantic
        if not isinstance(value.get("task"), str):
            names = [str(name) for name in value]
            near = [key for key in names if key not in _ENTRY_KEYS and did_you_mean(key, ["task"]).startswith("did")]
            mend = f"unknown key {near[0]!r}; did you mean 'task'?" if near else "write its name, or {task: name, ...}"
            raise ValueError(f"{shown(dict(value))} names no task; {mend}")  # noqa: TRY004 - pydantic
        entry: dict[str, Any] = {name: value[name] for name in _ENTRY_KEYS if name in value}
        params: Mapping[Any, Any] = {name: item for name, item in value.items() if name not in _ENTRY_KEYS}
        if "params" in value:
            entry, params = dict(value), value["params"] if isinstance(value["params"], Mapping) else {}
        marks = ",".join(f"{name}={item}" for name, item in sorted(params.items(), key=lambda pair: str(pair[0])))
        return {"label": f"{value['task']}[{marks}]" if marks else value["task"], "params": params, **entry}

    @field_validator("label")
    @classmethod
    def _plain_label(cls, value: str) -> str:
        """Labels stand in tables, file names and on terminals."""
        if not is_label(value):
            raise ValueError(
                f"{shown(value)} is no label: it must be one line of printable text without '|'; give the task another label"
            )
        return value

    _lengths = field_validator("lengths", mode="before")(_read(parse_lengths))
    _depths = field_validator("depths", mode="before")(_read(parse_depths))
    _n = field_validator("samples", mode="before")(_read(_samples))

    @property
    def lacks_data(self) -> bool:
        """True for an optional task without data."""
        return self.optional and not (self.params | self.flags).get("data")


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
    strata: bool = False
    """Depths are drawn inside five equal strata; `depths` names their centres."""
    seed: int = 42
    tasks: tuple[Entry, ...] = Field(min_length=1)
    headline: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Capability -> labels; a capability left out takes every task of it."""
    cut_at_window: bool = False
    """Leave out lengths above the advertised or known window."""
    controls: bool = False
    """Also ask each task's questions without the haystack and in a short context; no headline uses them."""
    tokenizer: str | None = None
    prove: Prove = "always"
    """Which prompts are encoded as a whole once they are made, to prove their length: all, one in 16, or none."""
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
        if not isinstance(value, Mapping):
            raise ValueError(f"{shown(value)} is not a headline; write for example {{retrieval: [niah.single]}}")  # noqa: TRY004 - pydantic
        for name, labels in value.items():
            if name not in ("retrieval", "reasoning"):
                raise ValueError(f"headline is for retrieval or reasoning, not {shown(name)}")
            if not isinstance(labels, str | list | tuple):
                raise ValueError(f"{shown(labels)} is not a list of tasks; write for example [niah.single]")  # noqa: TRY004 - pydantic
        return {name: split(labels) for name, labels in value.items()}

    def _own_depths(self) -> tuple[tuple[float, ...], ...]:
        return tuple(entry.depths for entry in self.tasks if entry.depths is not None)

    @model_validator(mode="after")
    def _consistent(self) -> "Battery":
        if self.strata and any(depths != centres() for depths in (self.depths, *self._own_depths())):
            raise ValueError(
                f"strata goes with the depths {list(centres())}, the centres of five; write those, or drop it"
            )
        labels = [entry.label for entry in self.tasks]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two tasks are labelled {label!r}; give one of them a label of its own")
        for label in (label for group in self.headline.values() for label in group):
            if label not in labels:
                raise ValueError(f"headline names {label!r}, which is not in tasks; {did_you_mean(label, labels)}")
        return self


_MODELS: Mapping[str, type[BaseModel]] = {"": Battery, "tasks": Entry, "price": Prices}
"""The model of what stands under a key."""


def validate(data: Mapping[str, Any], origin: str) -> Battery:
    """The battery in `data`; an error names `origin`, the key and the nearest right one, in one line."""
    try:
        return Battery.model_validate(data)
    except ValidationError as error:
        raise refusal(error, origin, _MODELS) from error


def validate_entries(data: Mapping[str, Any], origin: str) -> list[Entry]:
    """The tasks in `data`, checked before flags touch them; errors as of `validate`."""
    given = data.get("tasks")
    if isinstance(given, str):
        given = split(given)
    if given is None or given == []:
        return []  # `validate` says what is missing
    if not isinstance(given, list | tuple):
        raise BatteryError(f"{origin}: tasks: {shown(given)} is not a list; write task names, such as [niah.single]")
    found = []
    for number, entry in enumerate(given):
        try:
            found.append(Entry.model_validate(entry))
        except ValidationError as error:
            raise refusal(error, origin, _MODELS, at=f"tasks.{number}") from error
    return found
