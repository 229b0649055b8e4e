"""Profiles of simulated models: score against length per capability and task, depth, latency, price, faults.

retrieval: {4k: 1.0, 64k: 0.97, 128k: 0.8}      # log-linear between the given lengths, flat outside
reasoning: {4k: 0.9, 32k: 0.6}                   # missing: as retrieval; `documents` likewise
depth: {0.5: -0.1}                               # added; linear between given depths, 0 at 0 and 1
tasks: {ruler.vt: {4k: 0.7}}                     # overrides by task name
latency: {prefill_tokens_per_s: 5000, decode_tokens_per_s: 60, sleep: false}     # sleep: really wait that long
price: {input: 2.5, cached: 0.25, output: 10}    # USD per million tokens
window: 128k                                     # longer prompts overflow
wrong: {distractor: 0.7, near: 0.3, empty: 0}    # what a wrong answer is; shares
faults: {no_answer: 0.02, refused: 0.01}         # shares of points; also overflow, failed, truncated, flaky
"""

import bisect
import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longreach.adapters.options import read_flag, read_length, read_number
from longreach.harness.errors import ConfigError
from longreach.harness.model import Price
from longreach.harness.registry import did_you_mean

Curve = tuple[tuple[float, float], ...]
"""(x, y) points, ascending in x; x is log2 of the length, or the depth."""
FAULTS = ("no_answer", "refused", "overflow", "failed", "truncated", "flaky")
# An empty text is the outcome `no_answer`, and more than 5% of those withhold every claim at a length, so that a model
# which is merely wrong must not give any unless its profile asks for it.
WRONG = {"distractor": 0.7, "near": 0.3, "empty": 0.0}
SLOPE = 2.0  # of the logistic shape, per octave: 0.88 one octave below the middle, 0.98 two below
_KEYS = ("retrieval", "reasoning", "documents", "depth", "tasks", "latency", "price", "window", "wrong", "faults")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a simulated model can do."""

    shape: Callable[[int], float] | None = None
    """Score by length (tokens) of the named shapes; curves go before it."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    """By capability."""
    tasks: Mapping[str, Curve] = field(default_factory=dict)
    """By task name; goes before the capability."""
    depth: Curve = ()
    """Added to the score, by depth."""
    prefill_tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    sleep: bool = False
    price: Price = field(default_factory=Price)
    window: int | None = None
    wrong: Mapping[str, float] = field(default_factory=lambda: dict(WRONG))
    faults: Mapping[str, float] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    """The profile as it was written, for the card."""

    def probability(self, task: str, capability: str, *, length: int, depth: float | None) -> float:
        """Chance of a right answer, 0 to 1."""
        curve = self.tasks.get(task) or self.curves.get(capability) or self.curves.get("retrieval", ())
        if curve:
            value = interpolate(curve, math.log2(length))
        else:
            value = self.shape(length) if self.shape is not None else 1.0
        if depth is not None and self.depth:
            value += interpolate(self.depth, depth)
        return min(1.0, max(0.0, value))

    def seconds(self, n_prompt: int, n_output: int) -> tuple[float | None, float | None]:
        """Time to first token and in all; None where the profile names no speed."""
        if self.prefill_tokens_per_s is None:
            return None, None
        ttft_s = n_prompt / self.prefill_tokens_per_s
        decode_s = n_output / self.decode_tokens_per_s if self.decode_tokens_per_s is not None else 0.0
        return ttft_s, ttft_s + decode_s

    def with_window(self, window: int) -> "Profile":
        """The same with another window."""
        return dataclasses.replace(self, window=window, source={**self.source, "window": window})


def interpolate(curve: Curve, x: float) -> float:
    """Linear between the points of `curve`, flat outside."""
    right = bisect.bisect_left(curve, (x, -math.inf))
    if right == 0:
        return curve[0][1]
    if right == len(curve):
        return curve[-1][1]
    (x0, y0), (x1, y1) = curve[right - 1], curve[right]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def named_profile(rest: str) -> Profile | None:
    """The profile of `perfect`, `cliff@L` or `logistic@L`; None if `rest` has not that form."""
    shape, at, length = rest.partition("@")
    if rest == "perfect":
        return Profile(source={"shape": rest})
    if not at or shape not in ("cliff", "logistic"):
        return None
    middle = read_length(length, f"model 'sim:{rest}'")

    def cliff(tokens: int) -> float:
        return 1.0 if tokens <= middle else 0.0

    def logistic(tokens: int) -> float:
        return 1.0 / (1.0 + math.exp(SLOPE * math.log2(tokens / middle)))

    return Profile(shape=cliff if shape == "cliff" else logistic, source={"shape": rest})


def read_profile(path: str) -> Profile:
    """The profile in a YAML file.

    Raises:
        ConfigError: unreadable, an unknown key (the nearest right one is named), or a value that makes no sense.
    """
    import yaml

    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        shape, at, length = path.partition("@")
        near = difflib.get_close_matches(shape, ("perfect", "cliff", "logistic"), n=1)
        hint = f"; did you mean 'sim:{near[0]}{at}{length}'?" if near else ""
        raise ConfigError(
            f"model 'sim:{path}': neither perfect, cliff@LENGTH or logistic@LENGTH nor a profile that can be read "
            f"({error}){hint}"
        ) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"profile {path} is not YAML: {' '.join(str(error).split())}") from error
    where = f"profile {path}"
    data = _section(data, where, _KEYS)
    latency = _section(
        data.get("latency"), f"{where}, latency", ("prefill_tokens_per_s", "decode_tokens_per_s", "sleep")
    )
    price = _section(data.get("price"), f"{where}, price", ("input", "cached", "output"))
    return Profile(
        curves={name: _curve(data[name], f"{where}, {name}") for name in _KEYS[:3] if name in data},
        tasks={
            str(task): _curve(curve, f"{where}, tasks, {task}")
            for task, curve in _section(data.get("tasks"), f"{where}, tasks").items()
        },
        depth=_depth(data.get("depth"), f"{where}, depth"),
        prefill_tokens_per_s=_positive(latency, "prefill_tokens_per_s", where),
        decode_tokens_per_s=_positive(latency, "decode_tokens_per_s", where),
        sleep=read_flag(latency.get("sleep", False), f"{where}, latency, sleep"),
        price=Price(**{key: read_number(value, f"{where}, price, {key}") for key, value in price.items()}),
        window=read_length(data["window"], f"{where}, window") if "window" in data else None,
        wrong=_shares(data["wrong"], f"{where}, wrong", tuple(WRONG), whole=True) if "wrong" in data else dict(WRONG),
        faults=_shares(data.get("faults"), f"{where}, faults", FAULTS),
        source={str(key): value for key, value in data.items()},
    )


def _section(value: object, where: str, known: tuple[str, ...] | None = None) -> dict[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: a mapping of names to values is needed, not {value!r}")
    for key in value:
        if known is not None and key not in known:
            raise ConfigError(f"{where}: there is no key {key!r}; {did_you_mean(str(key), known)}")
    return value


def _curve(value: object, where: str) -> Curve:
    points = [
        (math.log2(read_length(length, where)), read_number(score, f"{where}, {length}", high=1.0))
        for length, score in _section(value, where).items()
    ]
    if not points:
        raise ConfigError(f"{where}: give at least one length and its score, like {{4k: 0.9}}")
    return tuple(sorted(points))


def _depth(value: object, where: str) -> Curve:
    given = {
        read_number(depth, where, high=1.0): read_number(change, f"{where}, {depth}", low=-1.0, high=1.0)
        for depth, change in _section(value, where).items()
    }
    return tuple(sorted(({0.0: 0.0, 1.0: 0.0} | given).items())) if given else ()


def _positive(section: Mapping[str, object], key: str, where: str) -> float | None:
    return read_number(section[key], f"{where}, latency, {key}", low=1e-9) if key in section else None


def _shares(value: object, where: str, known: tuple[str, ...], *, whole: bool = False) -> dict[str, float]:
    shares = {
        key: read_number(share, f"{where}, {key}", high=1.0) for key, share in _section(value, where, known).items()
    }
    total = sum(shares.values())
    if total > 1.0 + 1e-9 or (whole and abs(total - 1.0) > 1e-9):
        raise ConfigError(
            f"{where}: the shares add up to {total:g}; they must add up to {'' if whole else 'at most '}1"
        )
    return shares
