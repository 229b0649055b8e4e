"""The card: exact sentences, escaping, files."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from longreach.harness.record import Attempt
from longreach.harness.report.card import make_card, write_card
from longreach.harness.report.card_text import verdict
from longreach.harness.report.markup import MARKDOWN, PLAIN

K = 1024
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


def _rows(make: Any, task: str, passes: dict[int, float], n: int = 20) -> Any:
    return make.row(task, passes, n, DEPTHS if task.startswith("niah") else (None,))


def _verdict(make: Any, records: Any, **changes: Any) -> str:
    card = make_card(records, make.config(records, **changes))
    return verdict(card.estimates, card.config, PLAIN)


MEASURED = {4 * K: 20, 8 * K: 20, 16 * K: 0}


def test_both_measured(make: Any) -> None:
    records = _rows(make, "niah.single", {4 * K: 20, 8 * K: 20, 16 * K: 20, 32 * K: 20, 64 * K: 0, 128 * K: 0})
    records += make.row("ruler.vt", {4 * K: 100, 8 * K: 100, 16 * K: 100, 32 * K: 0}, 100)
    assert _verdict(make, records, advertised=128 * K) == (
        "Of the advertised 128k tokens, sim:test retrieves reliably up to 32k tokens (not beyond) and reasons reliably up to "
        "16k tokens (not beyond): 25% and 13% of the window."
    )


def test_undecided_names_the_best_estimate_and_the_upper_end(make: Any) -> None:
    passes = dict(zip((4 * K, 8 * K, 16 * K, 32 * K), (100, 100, 93, 60), strict=True))
    assert _verdict(make, make.row("niah.single", passes, 100)) == (
        "sim:test retrieves reliably up to 8k tokens (best estimate 16k, not beyond 16k). "
        "Reasoning was not measured: run longreach run reasoning --model sim:test."
    )


def test_no_upper_end_is_said(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 100, 8 * K: 88}, 100)
    assert _verdict(make, records).startswith(
        "sim:test retrieves reliably up to 4k tokens (best estimate 4k, no upper end found up to 8k). "
    )


def test_above_the_grid(make: Any) -> None:
    assert _verdict(make, _rows(make, "niah.single", {4 * K: 20, 8 * K: 20}), advertised=8 * K).startswith(
        "Of the advertised 8k tokens, sim:test retrieves reliably up to 8k tokens, the largest length tested: 100% of the "
        "window. "
    )


def test_above_the_grid_but_uncertain(make: Any) -> None:
    assert _verdict(make, _rows(make, "niah.single", {4 * K: 2, 8 * K: 2}, 2)).startswith(
        "sim:test is not shown to retrieve reliably at any tested length (best estimate >= 8k, the largest tested). "
    )


def test_below_the_grid(make: Any) -> None:
    records = make.row("ruler.vt", {4 * K: 10, 8 * K: 0}, 100)
    assert _verdict(make, records) == (
        "sim:test does not reason reliably even at 4k tokens, the shortest length tested. "
        "Retrieval was not measured: run longreach run niah --model sim:test."
    )


def test_below_the_grid_but_uncertain(make: Any) -> None:
    assert _verdict(make, _rows(make, "niah.single", {4 * K: 8, 8 * K: 0}, 10)).startswith(
        "sim:test is not shown to retrieve reliably at any tested length (best estimate below 4k, not beyond 4k). "
    )


def test_a_share_of_the_window_is_given_only_for_what_is_reliable(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED) + make.row("ruler.vt", {4 * K: 10}, 100)
    assert _verdict(make, records, advertised=32 * K) == (
        "Of the advertised 32k tokens, sim:test retrieves reliably up to 8k tokens (not beyond) and does not reason reliably "
        "even at 4k tokens, the shortest length tested: 25% of the window for retrieval."
    )


def test_overflow_is_named_beside_the_claim(make: Any) -> None:
    records = _rows(make, "niah.single", {4 * K: 20, 8 * K: 20})
    records += [r for depth in DEPTHS for r in make.outcome("niah.single", 16 * K, depth, "overflow", 20)]
    assert _verdict(make, records).startswith(
        "sim:test retrieves reliably up to 8k tokens, the largest length tested. "
        "Retrieval: not supported from 16k on: 100 samples at 16k did not fit the model. "
    )


def test_a_model_that_takes_nothing_is_not_measured(make: Any) -> None:
    records = make.outcome("niah.single", 4 * K, None, "overflow", 3)
    assert _verdict(make, records).startswith(
        "sim:test has no effective length on this card. Retrieval was not measured. No length could be tested: "
        "3 samples at 4k did not fit the model. "
    )


def test_empty_answers_refuse_a_statement_and_say_what_to_raise(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 80}, 80) + make.outcome("niah.single", 4 * K, None, "no_answer", 20, 80)
    assert _verdict(make, records).startswith(
        "sim:test has no effective length on this card. No statement on retrieval: 4k supports no claim: 20% of 100 "
        "answers there were empty; raise --reasoning-budget or the answer budget, or check the chat template. "
    )


def test_simulated_imported_and_vendor_are_words_in_title_and_verdict(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED)
    simulated = make_card(records, make.config(records, model={"simulated": True}))
    assert simulated.to_markdown().splitlines()[7] == "# Long-context card: SIMULATED: `sim:test`"
    assert "\n> SIMULATED: **`sim:test`** retrieves" in simulated.to_markdown()
    assert '<span class="mark">SIMULATED</span>' in simulated.to_html()
    imported = make.row("niah.single", {4 * K: 100}, 100, origin="imported:lm-eval")
    assert _verdict(make, imported).startswith("IMPORTED: sim:test")
    vendor = make.row("niah.single", {8 * K: 1}, 1, origin="vendor")
    assert _verdict(make, vendor, planned=[]).startswith("VENDOR-REPORTED: sim:test has no effective length")
    program = {"facts": {"kind": "program"}}
    assert _verdict(make, records, model=program).startswith("A PROGRAM, NOT A LANGUAGE MODEL: sim:test")


def test_the_command_for_a_missing_claim_quotes_the_model(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED)
    assert _verdict(make, records, model={"spec": "llamacpp:my model.gguf"}).endswith(
        "Reasoning was not measured: run longreach run reasoning --model 'llamacpp:my model.gguf'."
    )


def test_thirty_cases_at_64k_cannot_show_recall_above_95_percent(make: Any) -> None:
    records = make.row("niah.single", {32 * K: 30, 64 * K: 29}, 30)
    text = make_card(records, make.config(records)).to_markdown()
    assert (
        "- Recall: 64k with 30 samples cannot show > 0.95: even 30/30 gives a lower bound of 0.886. Needs 73/73, or at "
        "most 1 miss in 110; plan 174 for a 90% chance if the true rate is 0.99.\n" in text
    )
    assert "- Recall: 32k with 30 samples cannot show > 0.90: even 30/30" in text


def test_undecided_lengths_say_how_many_samples_their_misses_need(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 53}, 54) + make.row("niah.single", {8 * K: 48}, 50)
    text = make_card(records, make.config(records)).to_markdown()
    assert (
        "Recall: 8k with 50 samples and 2 misses leaves > 0.90 undecided (lower bound 0.862); with 2 misses it takes "
        "70 samples." in text
    )


def test_uneven_samples_say_what_they_weigh(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 40}, 40) + make.row("niah.distractor", {4 * K: 10}, 10)
    text = make_card(records, make.config(records)).to_markdown()
    assert "Recall: 4k with 20 samples cannot show > 0.90: even 20/20" in text
    assert "(50 samples, spread unevenly over tasks and depths, weigh like 20.)" in text


def test_a_limit_on_request_size_is_told_apart_from_the_window(make: Any) -> None:
    attempts = (Attempt(status="too_large"),)
    records = make.row("niah.single", {4 * K: 40}, 40)
    records += [make.record("niah.single", 8 * K, None, i, outcome="overflow", attempts=attempts) for i in range(2)]
    text = make_card(records, make.config(records)).to_markdown()
    assert "- 2 samples at 8k were rejected as too long: not supported there, which is no failure.\n" in text
    assert "2 of the rejected samples, at 8k, broke a limit on the size of one request" in text


def test_terminal_lines_are_few(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED)
    lines = make_card(records, make.config(records, advertised=32 * K)).verdict_lines()
    assert len(lines) <= 9
    assert lines[2].split() == ["advertised", "effective", "retrieval", "effective", "reasoning"]
    assert re.fullmatch(r"best estimate, tokens +32,768 +8,192 +not measured", lines[3])


def test_the_terminal_names_what_stands_beside_the_headline(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED) + _rows(make, "niah.distractor", {4 * K: 3})
    headline = {"retrieval": ["niah.single"], "reasoning": []}
    lines = make_card(records, make.config(records, headline=headline, advertised=32 * K)).verdict_lines()
    assert len(lines) <= 9
    assert lines[-1] == "beside the headline (best estimates): niah.distractor < 4,096"


def test_a_native_window_stands_where_no_length_is_advertised(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED)
    card = make_card(records, make.config(records, model={"facts": {"native_window": 8192}}))
    assert "| best estimate, tokens | not stated; native window 8,192 (from the model) | 8,192 |" in card.to_markdown()
    assert card.to_dict()["verdict"].startswith(
        "sim:test (native window 8k) retrieves reliably up to 8k tokens (not beyond)."
    )
    assert "of the window" not in card.to_dict()["verdict"]


def test_the_command_to_run_again_names_no_folder_of_this_machine(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED)
    command = "longreach run niah --model 'llamacpp:my model.gguf' --out /home/me/runs/x --samples 2"
    card = make_card(records, make.config(records, command=command))
    wanted = "longreach run niah --model 'llamacpp:my model.gguf' --samples 2"
    assert f"```sh\n{wanted}\n```" in card.to_markdown()
    assert card.to_dict()["provenance"]["command"] == wanted
    assert "/home/me" not in card.to_html() + card.to_json() + card.to_markdown()


def test_a_mean_over_tasks_says_where_one_of_them_was_not_run(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 10, 8 * K: 10}, 10) + make.row("niah.distractor", {4 * K: 10}, 10)
    text = make_card(records, make.config(records)).to_markdown()
    assert "| mean of the 2 needle tasks | 100 \u00b18 | part | - | 20 |" in text
    assert "part: not every task of the mean was run" in text


def test_an_unknown_cache_is_said_in_words(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 5}, 5, n_output_tokens=7)
    line = make_card(records, make.config(records)).to_markdown()
    assert (
        "35 in answers (how many of them are reasoning is not reported); how many of the prompts' tokens came" in line
    )


def test_the_card_keeps_its_order(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 30, 8 * K: 2}, 30, DEPTHS)
    text = make_card(records, make.config(records)).to_markdown()
    marks = ["\n> ", "| best estimate", "**Samples:** scored 300", "![Accuracy", "![Heat map", "## Scores by task"]
    marks += ["## Where it breaks", "## Time and money", "## What this card does not show", "## Protocol"]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert text.startswith("---\ntags:\n- long-context\n- longreach\n---\n")
    assert "```sh\nlongreach run niah --model sim:test\n```" in text


def test_states_are_typography(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 100, 8 * K: 90, 16 * K: 10}, 100)
    records += make.outcome("niah.single", 32 * K, None, "overflow", 5)
    text = make_card(records, make.config(records)).to_markdown()
    assert "| `niah.single` | **100 \u00b12** | 90 \u00b16 | *10 \u00b16* | n/s | -90 at 16k | 100 |" in text


def test_unknown_times_and_costs_are_words(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 5}, 5)
    text = make_card(records, make.config(records)).to_markdown()
    assert "Times were not reported." in text
    assert "Cost: unknown for 5 samples; give --price-in" in text


def test_an_unknown_share_of_cached_tokens_makes_the_cost_a_range(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 2}, 2, n_prompt_tokens=4000, cost_usd=0.01)
    config = make.config(records)
    config["model"]["price"] = {"input": 2.5, "cached": 0.25, "output": 10.0}
    text = make_card(records, config).to_markdown()
    assert "lies between \\$0.0020 (every prompt cached) and \\$0.0200 (none)" in text


def test_warnings_stand_before_the_figures(make: Any) -> None:
    extra = {"recycled": True, "notes": ["special-token text was spaced"]}
    records = make.row("niah.single", {4 * K: 5}, 5, extra=extra)
    config = make.config(
        records,
        tokenizer={"name": "words", "is_estimate": True},
        model={"facts": {"native_window": 2048}},
    )
    text = make_card(records, config).to_markdown()
    warnings = text[text.index("**Read this first**") : text.index("![")]
    assert "Recycled text: in 5 of 5 prompts at 4k the haystack repeats parts of its corpus" in warnings
    assert "Lengths are estimated: they are counted with words" in warnings
    assert "4k: above the native window of 2,048 tokens, and no RoPE or YaRN scaling is known" in warnings
    assert "5 prompts: special-token text was spaced." in warnings


def test_distractors_stand_right_beside_a_perfect_headline(make: Any) -> None:
    records = _rows(make, "niah.single", {4 * K: 20}) + _rows(make, "niah.distractor", {4 * K: 10})
    headline = {"retrieval": ["niah.single"], "reasoning": []}
    text = make_card(records, make.config(records, headline=headline)).to_markdown()
    assert "| `niah.distractor` | < 4,096 | < 4,096 |" in text
    assert "niah.distractor reaches < 4,096 tokens where the retrieval headline (niah.single)" in text


def test_an_empty_run_still_makes_a_card(make: Any, tmp_path: Path) -> None:
    planned = [{"task": "niah.single", "length": 4 * K, "depth": 0.5, "n": 3}]
    config = make.config([], planned=planned, tasks=[{"task": "niah.single", "label": "niah.single", "params": {}}])
    card = make_card([], config)
    assert "3 samples at 4k were planned and not run." in card.to_markdown()
    assert len(write_card(card, tmp_path)) == 7
    assert "has no effective length on this card" in make_card([], {}).to_markdown()


HOSTILE = 'a|b`c`<img src=x onerror=alert(1)>[x](http://e.example)\x1b[31m\n"quoted" & ${{7*7}}'


def test_hostile_strings_change_neither_markdown_nor_html(make: Any) -> None:
    records = [make.record("niah.single", 4 * K, 0.5, i, text=HOSTILE, score=0.0) for i in range(3)]
    records[0] = make.record("niah.single", 4 * K, 0.5, 0, text=HOSTILE, score=0.0, extra={"notes": [HOSTILE]})
    config = make.config(records, model={"name": HOSTILE, "spec": HOSTILE, "facts": {"server": HOSTILE}})
    card = make_card(records, config)
    page, text = card.to_html(), card.to_markdown()
    for tag in ("<img", "<script"):
        assert tag not in page
    assert "\x1b" not in page + text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count(" |") for line in tables if "server" in line} == {2}
    prose = re.sub(r"`+[^`]*(?:`[^`]+)*`+", "", text)
    assert "<img" not in prose


class _Page(HTMLParser):
    void = frozenset({"meta", "link", "img", "br", "path", "use"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag


@pytest.fixture
def page(make: Any) -> _Page:
    records = make.row("niah.single", {4 * K: 18, 8 * K: 2}, 20, DEPTHS) + make.row("ruler.vt", {4 * K: 9}, 10)
    parser = _Page()
    parser.feed(make_card(records, make.config(records, advertised=16 * K)).to_html())
    return parser


def test_the_page_is_well_formed_and_self_contained(page: _Page) -> None:
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "iframe", "img"} & set(names)
    links = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href", "xlink:href")]
    assert all(link and link.startswith("#") for link in links)
    assert "svg" in names


def test_ids_are_unique_and_cells_can_be_focused(page: _Page) -> None:
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    cells = [attrs for tag, attrs in page.tags if tag == "td" and "tabindex" in attrs]
    assert len(cells) == 11
    assert all(attrs["aria-describedby"] in ids for attrs in cells)


def test_card_json_has_the_stable_keys_and_no_nan(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 9.5}, 10, DEPTHS)
    card = make_card(records, make.config(records))
    data = json.loads(card.to_json(), parse_constant=lambda name: pytest.fail(name))
    contract = {"model", "simulated", "advertised_length", "effective_retrieval", "effective_reasoning", "cells"}
    contract |= {"curves", "dead_zones", "position_bias", "length_bias", "latency", "cost", "regression", "provenance"}
    assert contract <= data.keys()
    assert data["schema"] == 1
    assert data["regression"] is None
    keys = {"value", "low", "high", "censored", "state", "definition", "threshold", "confidence"}
    assert keys <= data["effective_retrieval"].keys()
    keys = {"task", "length", "depth", "n", "mean", "low", "high", "score_published", "state", "outcomes"}
    assert all(keys <= cell.keys() and len(cell["outcomes"]) == 7 for cell in data["cells"])


def test_the_same_run_gives_the_same_bytes_in_any_order_of_records(make: Any, tmp_path: Path) -> None:
    records = make.row("niah.single", {4 * K: 9, 8 * K: 3}, 10, DEPTHS)
    config = make.config(records)
    first = write_card(make_card(records, config), tmp_path / "a")
    for path in write_card(make_card(records, json.loads(json.dumps(config))), tmp_path / "b"):
        assert path.read_bytes() == (tmp_path / "a" / path.relative_to(tmp_path / "b")).read_bytes()
    assert make_card(records[::-1], config).to_dict()["cells"][0]["mean"] == 0.9
    assert sorted(path.name for path in first if path.parent == tmp_path / "a") == ["card.html", "card.json", "card.md"]
    assert not list(tmp_path.rglob("*.tmp"))


def test_images_of_the_markdown_exist(make: Any, tmp_path: Path) -> None:
    records = make.row("niah.single", {4 * K: 9}, 10, DEPTHS)
    write_card(make_card(records, make.config(records)), tmp_path)
    images = re.findall(r"\]\((figures/[^)]+)\)", (tmp_path / "card.md").read_text(encoding="utf-8"))
    names = ("accuracy-by-length", "heatmap-niah.single", "accuracy-by-position")
    assert images == [f"figures/{name}.png" for name in names]
    assert all((tmp_path / image).is_file() for image in images)


def test_the_verdict_is_the_same_sentence_in_every_notation(make: Any) -> None:
    records = _rows(make, "niah.single", MEASURED)
    card = make_card(records, make.config(records))
    bold = verdict(card.estimates, card.config, MARKDOWN)
    assert bold.replace("*", "").replace("`", "") == verdict(card.estimates, card.config, PLAIN)
