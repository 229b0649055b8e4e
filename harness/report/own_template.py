"""`card --template FILE`: the user's own Jinja template over the context of card.md.j2, in a sandbox.

The template reads no file, changes nothing that it is given, and ends within seconds and megabytes; whatever goes wrong
is one line.
"""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from longreach.harness.errors import ConfigError
from longreach.harness.files import replacing
from longreach.harness.report.wording import plain

MAX_BYTES = 10_000_000
"""Longest text that a template may make, and longest string that one expression may."""
MAX_S = 5.0
RESERVED = frozenset({"config.yaml", "records.jsonl", "results.csv", "report.ipynb", "card.json"})
"""Files of a run folder that no template may overwrite."""


_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "translate"})
"""Methods of a text that make any amount of memory out of nothing."""


class _TooLong(Exception):
    """Time or size is used up."""


def output_name(template: Path) -> str:
    """Name of the file that a template makes: its own without `.j2`.

    Raises:
        ConfigError: it would overwrite what a run folder needs.
    """
    name = template.name.removesuffix(".j2").removesuffix(".jinja")
    if not name or name == template.name or name in RESERVED or name.startswith("."):
        raise ConfigError(
            f"--template {template} would write {name!r} into the run folder; name it like card-short.md.j2, which makes "
            f"card-short.md"
        )
    return name


def render_own(template: Path, context: Mapping[str, Any]) -> str:
    """The text that a user's template makes.

    Raises:
        ConfigError: the file cannot be read, or the template fails; one line with the place.
    """
    from jinja2 import TemplateError, TemplateNotFound
    from jinja2.exceptions import SecurityError

    try:
        source = template.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--template {template} cannot be read ({error}); name a Jinja template in UTF-8") from error
    try:
        return _rendered(source, context, html=output_name(template).endswith((".html", ".htm", ".xml")))
    except _TooLong as error:
        raise ConfigError(f"--template {template}: {error}") from error
    except SecurityError as error:
        raise ConfigError(f"--template {template}: not allowed in a template: {plain(error, 200)}") from error
    except TemplateNotFound as error:
        raise ConfigError(f"--template {template}: it may not include other files ({plain(error, 100)})") from error
    except TemplateError as error:
        line = f", line {number}" if (number := getattr(error, "lineno", None)) else ""
        reason = plain(error.message or type(error).__name__, 200)
        raise ConfigError(f"--template {template}{line}: {reason}; templates/card.md.j2 lists what there is") from error
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError, RecursionError) as error:
        raise ConfigError(f"--template {template}: {type(error).__name__}: {plain(error, 200)}") from error


def write_own(template: Path, context: Mapping[str, Any], folder: Path) -> Path:
    """Renders into `folder`, under the template's name without `.j2`; the path."""
    text = render_own(template, context)
    path = folder / output_name(template)
    with replacing(path) as file:
        file.write(text if text.endswith("\n") else text + "\n")
    return path


def _rendered(source: str, context: Mapping[str, Any], *, html: bool) -> str:
    template = _environment(html).from_string(source)
    parts: list[str] = []
    size, ends = 0, time.monotonic() + MAX_S

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        # Jinja compiles a template to Python lines: this stops a loop that puts nothing out.
        if time.monotonic() > ends:
            raise _TooLong(f"it takes longer than {MAX_S:g} s; make its loops shorter")
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        for part in template.generate(context):
            size += len(part)
            if size > MAX_BYTES:
                raise _TooLong(f"it makes more than {MAX_BYTES:,} characters; make its loops shorter")
            parts.append(part)
    finally:
        sys.settrace(before)
    return "".join(parts)


def _environment(html: bool) -> Any:
    from jinja2 import DictLoader, StrictUndefined
    from jinja2.exceptions import SecurityError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from longreach.harness.report.wording import code, markdown

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**", "%"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            small = numbers and max(abs(left), abs(right)) < (1000 if operator == "**" else 10**15)
            if not small and not (operator == "%" and numbers):
                raise SecurityError(f"{operator!r} of anything but small numbers")
            return super().call_binop(context, operator, left, right)

        def wrap_str_format(self, value: Any) -> None:
            """No special way for `format`: it is refused like the rest of `_PADDING`."""

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            return not (isinstance(obj, str) and attr in _PADDING) and super().is_safe_attribute(obj, attr, value)

    environment = Sandbox(
        loader=DictLoader({}), autoescape=html, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"md": markdown, "code": code, "plain": plain}
    for name in ("center", "indent", "format", "wordwrap", "pprint"):
        environment.filters.pop(name, None)
    environment.globals.pop("lipsum", None)
    return environment
