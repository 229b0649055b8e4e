"""Several models side by side: one table of effective lengths, one of scores by length, small multiples."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longreach.harness.lengths import format_length
from longreach.harness.report.card import Card, environment, write_files
from longreach.harness.report.card_data import clean
from longreach.harness.report.card_tables import ScoreCell, score_cell
from longreach.harness.report.card_text import advertised_text, bracket_text, marks, model_name, verdict
from longreach.harness.report.figure_panels import Panel, draw_panels
from longreach.harness.report.figures import Drawing, inline, style
from longreach.harness.report.markup import HTML, MARKDOWN, PLAIN
from longreach.harness.report.wording import join_words, plain

SCHEMA = 1
FIGURE = "models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Cards of different models, to be read together."""

    cards: tuple[Card, ...]

    @property
    def names(self) -> list[str]:
        """Name of each model with its marks in front."""
        return [_name(card) for card in self.cards]

    def drawing(self) -> Drawing | None:
        """One panel per model, both capabilities in each."""
        panels = [
            Panel(title=name, curves=tuple(card.estimates.headline.values()), advertised=card.config.get("advertised"))
            for name, card in zip(self.names, self.cards, strict=True)
        ]
        caption = (
            "Mean score of the headlines against prompt length, a panel per model, with 95% bands (blue, circles: "
            "retrieval; brown, squares: reasoning); dashed: thresholds; dotted: chance; dotted upright: advertised length."
        )
        with style():
            return draw_panels(panels, name=FIGURE, title=f"{len(self.cards)} models", caption=caption)

    def warnings(self) -> list[str]:
        """What forbids to read one column against another."""
        found = []
        tokenizers = list(dict.fromkeys(name for card in self.cards for name in _tokenizers(card)))
        if len(tokenizers) > 1:
            found.append(
                f"Lengths are in different units: they were counted by {join_words(tokenizers)}. The same length stands for "
                f"different amounts of text."
            )
        for capability in ("retrieval", "reasoning"):
            rules = {
                card.estimates.effective[capability].definition
                for card in self.cards
                if card.estimates.effective[capability].state != "not_measured"
            }
            if len(rules) > 1:
                found.append(f"The {capability} headlines differ between the models ({'; or '.join(sorted(rules))}).")
        simulated = [
            name for name, card in zip(self.names, self.cards, strict=True) if marks(card.estimates, card.config)
        ]
        if simulated:
            found.append(f"Not run here on a language model, or not all of it: {join_words(simulated)}.")
        return found

    def context(self) -> dict[str, Any]:
        """What models.md.j2 and models.html.j2 read."""
        drawing = self.drawing()
        return {
            "names": self.names,
            "rows": [_row(card) for card in self.cards],
            "warnings": self.warnings(),
            "tables": [table for capability in ("retrieval", "reasoning") if (table := _table(self.cards, capability))],
            "verdicts_markdown": [verdict(card.estimates, card.config, MARKDOWN) for card in self.cards],
            "verdicts_html": [verdict(card.estimates, card.config, HTML) for card in self.cards],
            "figure": (drawing, f"figures/{FIGURE}.png") if drawing else None,
            "drawn": {FIGURE: {"svg": inline(drawing), "drawing": drawing}} if drawing else {},
            "version": self.cards[0].config.get("longreach") or "unknown",
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it for machines: the cards' own data, and what stands between them."""
        keys = (
            "model",
            "marks",
            "verdict",
            "advertised_length",
            "effective_retrieval",
            "effective_reasoning",
            "curves",
        )
        data = [card.to_dict() for card in self.cards]
        found: dict[str, Any] = clean(
            {
                "schema": SCHEMA,
                "models": [{key: item[key] for key in keys} for item in data],
                "warnings": self.warnings(),
            }
        )
        return found

    def verdict_lines(self) -> list[str]:
        """One line per model."""
        return [verdict(card.estimates, card.config, PLAIN) for card in self.cards]


def write_models(models: Models, folder: Path) -> list[Path]:
    """card.md, card.html, card.json and the figure of several models; returns the paths."""
    context = models.context()
    content: dict[str, bytes] = {}
    if context["figure"]:
        drawing: Drawing = context["figure"][0]
        content |= {f"figures/{FIGURE}.png": drawing.png, f"figures/{FIGURE}.svg": drawing.svg.encode("utf-8")}
    text = json.dumps(models.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    content["card.json"] = text.encode("utf-8", "replace")
    content["card.html"] = environment().get_template("models.html.j2").render(**context).encode("utf-8", "replace")
    markdown = environment().get_template("models.md.j2").render(**context)
    content["card.md"] = (re.sub(r"\n{3,}", "\n\n", markdown).strip() + "\n").encode("utf-8", "replace")
    return write_files(folder, content)


def _name(card: Card) -> str:
    prefix = "".join(f"{word}: " for word in marks(card.estimates, card.config))
    return prefix + plain(model_name(card.config))


def _tokenizers(card: Card) -> list[str]:
    name = (card.config.get("tokenizer") or {}).get("name")
    return [str(name)] if name else []


def _row(card: Card) -> list[str]:
    """Name, advertised, then best estimate and bracket of each capability."""
    found = card.estimates.effective
    return [
        _name(card),
        advertised_text(card.config),
        *(
            text
            for capability in ("retrieval", "reasoning")
            for text in (found[capability].text, bracket_text(found[capability]))
        ),
    ]


def _table(cards: Sequence[Card], capability: str) -> Mapping[str, Any] | None:
    """Headline means by model and length; None if no model has this capability."""
    curves = [card.estimates.headline.get(capability) for card in cards]
    lengths = sorted({length for curve in curves if curve for length in curve.lengths})
    if not lengths:
        return None
    untested = ScoreCell(text="-", state="not_tested")
    return {
        "capability": capability,
        "lengths": [format_length(length) for length in lengths],
        "rows": [
            (_name(card), [score_cell(curve.at(k), curve.threshold) if curve else untested for k in lengths])
            for card, curve in zip(cards, curves, strict=True)
        ],
    }
