"""One sentence, three notations: Markdown, HTML and plain text. Sentences are written once; strings in them are made
harmless by the notation."""

import html
from collections.abc import Callable
from dataclasses import dataclass

from longreach.harness.report.wording import code, markdown, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """How a notation writes text that may hold anything, emphasis, and code."""

    text: Callable[[object], str]
    """Free text, made harmless."""
    strong: Callable[[str], str]
    """Emphasis around text that is already harmless."""
    code: Callable[[object], str]
    """A name or a command, made harmless."""


def _html(text: object) -> str:
    return html.escape(plain(text))


MARKDOWN = Markup(text=markdown, strong=lambda text: f"**{text}**", code=code)
HTML = Markup(
    text=_html, strong=lambda text: f"<strong>{text}</strong>", code=lambda text: f"<code>{_html(text)}</code>"
)
PLAIN = Markup(text=plain, strong=lambda text: text, code=plain)
