"""The card: estimates and configuration in, card.md, card.json, card.html and figures out."""

import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from longreach.harness.record import Record
from longreach.harness.report.card_data import card_data
from longreach.harness.report.card_text import marks, model_name, terminal_lines
from longreach.harness.report.card_view import view
from longreach.harness.report.figure_change import draw_change
from longreach.harness.report.figure_curve import draw_curve
from longreach.harness.report.figure_heat import draw_heat
from longreach.harness.report.figure_panels import draw_families
from longreach.harness.report.figure_position import draw_position
from longreach.harness.report.figure_usage import draw_usage
from longreach.harness.report.figures import Drawing, inline, slug, style
from longreach.harness.report.markup import PLAIN
from longreach.harness.report.regression import regression_view
from longreach.harness.report.wording import code, markdown, plain
from longreach.harness.stats.compare import Comparison
from longreach.harness.stats.effective import Estimate
from longreach.harness.stats.estimates import Estimates, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One run, judged. Cheap to make; figures are drawn when they are first asked for."""

    estimates: Estimates
    config: Mapping[str, Any]
    regression: Comparison | None = None
    """Against a base run, where one was named."""
    _drawn: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def effective_retrieval(self) -> Estimate:
        """Effective retrieval length, tokens."""
        return self.estimates.effective["retrieval"]

    @property
    def effective_reasoning(self) -> Estimate:
        """Effective reasoning length, tokens."""
        return self.estimates.effective["reasoning"]

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        """Figures in the order of the card."""
        if "figures" not in self._drawn:
            self._drawn["figures"] = _draw(self.estimates, self.config, self.regression)
        found: tuple[Drawing, ...] = self._drawn["figures"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """All numbers, under the keys of card.json."""
        return card_data(self.estimates, self.config, self.regression)

    def to_json(self) -> str:
        """card.json: deterministic, no NaN."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    def context(self) -> dict[str, Any]:
        """What the templates read; the head of card.md.j2 lists it."""
        return view(self.estimates, self.config, self.drawings) | {"regression": regression_view(self.regression)}

    def to_markdown(self) -> str:
        """card.md: renders the same on GitHub and Hugging Face; images by relative path."""
        text = environment().get_template("card.md.j2").render(**self.context())
        return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"

    def to_html(self) -> str:
        """card.html: one file, no network, no script."""
        drawn = {drawing.name: {"svg": inline(drawing), "drawing": drawing} for drawing in self.drawings}
        page: str = environment().get_template("card.html.j2").render(**self.context(), drawn=drawn)
        return page.strip() + "\n"

    def verdict_lines(self) -> list[str]:
        """At most nine lines for a terminal; the path of the card makes ten."""
        return terminal_lines(self.estimates, self.config, PLAIN)


def make_card(records: Sequence[Record], config: Mapping[str, Any], regression: Comparison | None = None) -> Card:
    """The card of a run.

    Args:
        records: any order; of several records of one sample the last counts.
        config: content of config.yaml.
        regression: this run against a base.
    """
    return Card(estimates=estimate(records, config), config=config, regression=regression)


def write_card(card: Card, folder: Path) -> list[Path]:
    """Write card.md, card.json, card.html and figures/ into `folder`, each whole or not at all.

    Figures of an earlier card that this one does not have are left alone. Returns the paths written.
    """
    content: dict[str, bytes] = {}
    for drawing in card.drawings:
        content[f"figures/{drawing.name}.png"] = drawing.png
        content[f"figures/{drawing.name}.svg"] = drawing.svg.encode("utf-8")
    content["card.json"] = card.to_json().encode("utf-8", "replace")
    content["card.html"] = card.to_html().encode("utf-8", "replace")
    content["card.md"] = card.to_markdown().encode("utf-8", "replace")
    return write_files(folder, content)


def write_files(folder: Path, content: Mapping[str, bytes]) -> list[Path]:
    """Each file whole or not at all; returns the paths."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    return [_write(folder / name, data) for name, data in content.items()]


def _write(path: Path, data: bytes) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _draw(estimates: Estimates, config: Mapping[str, Any], regression: Comparison | None = None) -> tuple[Drawing, ...]:
    prefix = "".join(f"{word}: " for word in marks(estimates, config))
    title = f"{prefix}{model_name(config)}"
    found: list[Drawing | None] = []
    names: set[str] = set()
    with style():
        found.append(draw_curve(estimates, title, config.get("advertised")))
        found.append(draw_families(estimates, title, config.get("advertised")))
        for rank, curve in enumerate(estimates.tasks):
            name = f"heatmap-{slug(curve.name) or rank}"
            name = f"{name}-{rank}" if name in names else name
            names.add(name)
            cells = [cell for cell in estimates.cells if cell.task == curve.name]
            found.append(draw_heat(curve.name, cells, name, f"{curve.name}, {title}"))
        found.append(draw_position(estimates, title))
        found.append(draw_usage(estimates, title))
        found.append(draw_change(regression) if regression else None)
    return tuple(drawing for drawing in found if drawing is not None)


@functools.cache
def environment() -> Any:
    """Jinja with our templates and the filters md, code and plain; HTML is escaped."""
    from jinja2 import DictLoader, Environment, StrictUndefined, select_autoescape

    folder = files("longreach.templates")
    names = [item.name for item in folder.iterdir() if item.name.endswith(".j2")]
    sources = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
    made = Environment(
        loader=DictLoader(sources),
        autoescape=select_autoescape(enabled_extensions=("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    made.filters |= {"md": markdown, "code": code, "plain": plain}
    return made
