"""Figures as files and as inline SVG: matplotlib through its object interface, so that no display and no global state
are touched. The same numbers give the same bytes."""

import functools
import io
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from longreach.harness.lengths import format_length
from longreach.harness.report.palette import CAPABILITY, INK, MUTED
from longreach.harness.report.wording import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BROAD = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Arial Unicode MS",
    "Noto Sans",
)
MISSING = "\u25a1"
"""Stands in a figure for a character that no font at hand can draw; the tables hold the true name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One figure, drawn."""

    name: str
    """File name without suffix."""
    caption: str
    alt: str
    """Its numbers in words."""
    png: bytes
    svg: str


@contextmanager
def style() -> Iterator[None]:
    """The figure style, for the time of the block; the user's own settings do not shine through."""
    from matplotlib import rcParams
    from matplotlib import style as styles

    resource = files("longreach.templates").joinpath("card.mplstyle")
    with as_file(resource) as path, styles.context(str(path), after_reset=True):
        rcParams["font.sans-serif"] = ["DejaVu Sans", *broad_fonts()]
        yield


@functools.cache
def broad_fonts() -> tuple[str, ...]:
    """Installed fonts that draw more scripts than the one that comes with matplotlib."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in _BROAD if name in installed)


@functools.cache
def _characters(family: str) -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=[family]))).get_charmap())


def drawable(text: str, limit: int = 60) -> str:
    """`text` in one line with characters that the fonts at hand can draw."""
    line = plain(text, limit)
    missing = {char for char in line if ord(char) not in _characters("DejaVu Sans")}
    for family in broad_fonts() if missing else ():
        missing = {char for char in missing if ord(char) not in _characters(family)}
    return "".join(MISSING if char in missing else char for char in line)


def render(figure: "Figure") -> tuple[bytes, str]:
    """PNG bytes and SVG text, without dates."""
    png, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})
    figure.set_layout_engine("none")  # the layout that was found is kept, so that it is not sought again
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return png.getvalue(), svg.getvalue().decode("utf-8")


def length_labels(lengths: Sequence[int], ends: Sequence[int], gap: float) -> list[str]:
    """A label for each length on a log2 axis; empty where it would touch one to its right.

    Args:
        lengths: ascending.
        ends: lengths that the axis must hold.
        gap: least distance between labels, as a share of the axis.
    """
    span = math.log2(max(ends) / min(ends)) or 1.0
    labels: list[str] = []
    last = math.inf
    for length in reversed(lengths):
        x = math.log2(length) / span
        labels.append(format_length(length) if last - x >= gap else "")
        last = x if labels[-1] else last
    return labels[::-1]


def slug(name: str) -> str:
    """A task label as a file name: lower-case ASCII letters, digits, dots and dashes; may be empty."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9.]+", "-", ascii_name).strip("-.").lower()[:60]


_VARIABLES = {INK: "--ink", MUTED: "--muted", "#ffffff": "--paper"} | {
    color: f"--{capability}" for capability, color in CAPABILITY.items() if color != MUTED
}


def inline(drawing: Drawing) -> str:
    """The SVG as it stands inside a page: no prolog, its own ids, colours that follow the page's theme."""
    svg = drawing.svg[drawing.svg.index("<svg") :]
    prefix = re.sub(r"[^a-z0-9]", "-", drawing.name)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'^<svg ([^>]*?)\s*width="[^"]*"', r"<svg \1", svg)
    svg = re.sub(r'^<svg ([^>]*?)\s*height="[^"]*"', r"<svg \1", svg)
    for color, name in _VARIABLES.items():
        svg = svg.replace(f": {color}", f": var({name}, {color})")
    return svg.replace("<svg ", '<svg role="img" aria-hidden="true" focusable="false" ', 1).strip()
