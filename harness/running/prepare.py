"""From options to everything that a run needs, before anything is sent or written."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longreach.harness.model import Model, Price
from longreach.harness.running.battery import Battery
from longreach.harness.running.battery_load import load_battery
from longreach.harness.running.config import ADDRESS, addresses, make_config
from longreach.harness.running.options import Options
from longreach.harness.running.plan import Item, Plan, make_plan
from longreach.harness.running.redact import api_keys, without
from longreach.harness.running.resolve import (
    BatteryTask,
    Settings,
    given_tokenizer,
    resolve_judge,
    resolve_model,
    resolve_price,
    resolve_tasks,
    settings_of,
    with_system,
)
from longreach.harness.running.shards import Shard, parse_shard
from longreach.harness.running.store import CONFIG, RECORDS, read_config
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer

Planner = Callable[[Battery, Sequence[BatteryTask], Tokenizer, int | None], Plan]
"""Battery, its tasks, the tokenizer and the model's window (None = unknown) -> the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Everything resolved and planned; nothing sent, nothing written."""

    options: Options
    battery: Battery
    model: Model
    spec: str
    tokenizer: Tokenizer
    plan: Plan
    settings: Settings
    price: Price
    judge: Model | None = None
    """Grades the answers, where the battery names one."""
    verb: str = "run"
    """Command that asks for the same."""
    scan: Mapping[str, Any] | None = None
    """The rules of an adaptive scan, for config.yaml."""
    check: Mapping[str, Any] | None = None
    """What canaries showed about the endpoint, for config.yaml."""

    @property
    def folder(self) -> Path:
        """The run folder: `out`, else runs/<battery>-<model>; a shard has a folder of its own in it."""
        folder = Path("runs") / f"{_slug(self.battery.name)}-{_slug(self.settings.model)}"
        if self.options.out is not None:
            folder = Path(str(self.options.out)).expanduser()
        return folder / self.shard.name if self.shard is not None else folder

    @property
    def shard(self) -> Shard | None:
        """Which part of the plan this process asks; None = all of it."""
        return parse_shard(self.options.shard) if self.options.shard is not None else None

    @property
    def items(self) -> tuple[Item, ...]:
        """The samples that this process asks."""
        return self.plan.items if self.shard is None else self.shard.part(self.plan.items)

    def config(self) -> dict[str, Any]:
        """What config.yaml will say, with the facts that the model knows by now."""
        config = make_config(
            battery=self.battery,
            plan=self.plan,
            model=self.model,
            spec=self.spec,
            tokenizer=self.tokenizer,
            settings=self.settings,
            price=self.price,
            command=self.options.command(self.verb),
        )
        if self.check is not None:
            config["model"]["facts"]["check"] = dict(self.check)
        if self.shard is not None:
            config["shard"] = self.shard.text
        if self.scan is not None:
            config |= {"planned": [], "scan": dict(self.scan)}  # a scan plans no cells: it decides as it goes
        found: dict[str, Any] = without(config, self.secrets) if self.secrets else config
        return found

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must stand in no file: the API keys in use."""
        return api_keys(self.battery.model_args)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:60] or "run"


def prepare(options: Options) -> Prepared:
    """Resolves and plans.

    Raises:
        ConfigError: usage or configuration, in one line. ModelUnusable: from opening the model.
    """
    return assemble(
        options,
        load_battery(options),
        lambda battery, tasks, tokenizer, window: make_plan(battery, tasks, tokenizer, window=window),
    )


def assemble(options: Options, battery: Battery, make: Planner) -> Prepared:
    """Tasks, model, tokenizer and settings of a battery, with the plan that `make` draws up."""
    tasks = resolve_tasks(battery)
    given = given_tokenizer(battery)
    model, spec = resolve_model(battery, given)
    own = given or model.tokenizer or WordsTokenizer()
    tokenizer = with_system(own, battery.system, cold=battery.cold, prove=battery.prove)
    prepared = Prepared(
        options=options,
        battery=battery,
        model=model,
        spec=spec,
        tokenizer=tokenizer,
        plan=make(battery, tasks, tokenizer, model.window),
        settings=settings_of(battery, model, tokenizer),
        price=resolve_price(battery, model),
        judge=resolve_judge(battery),
    )
    return replace(prepared, settings=_as_first_asked(prepared))


def _as_first_asked(prepared: Prepared) -> Settings:
    """The settings with the address that the folder's records began with: a server that is back on another port is the
    same, and so are the keys of its records."""
    settings = prepared.settings
    if not all((prepared.folder / name).is_file() for name in (CONFIG, RECORDS)):
        return settings
    args = {name: value for name, value in settings.model_args.items() if name != ADDRESS}
    if first := addresses(read_config(prepared.folder))[0]:
        args[ADDRESS] = first
    return replace(settings, model_args=args)
