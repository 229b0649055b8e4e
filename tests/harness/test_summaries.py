"""RULER's summary and lengths relative to a base score: published figures from the same scores, and the bias of small runs."""

import random
from typing import Any

import pytest

from longreach.harness.report.card import make_card
from longreach.harness.report.published_view import published_view
from longreach.harness.stats.cells import Cell
from longreach.harness.stats.summaries import relative_lengths, ruler_summary

K = 1024
TASKS = (
    *(f"niah_single_{number}" for number in (1, 2, 3)),
    *(f"niah_multikey_{number}" for number in (1, 2, 3)),
    *("niah_multivalue", "niah_multiquery", "vt", "cwe", "fwe", "qa_1", "qa_2"),
)
LENGTHS = tuple(K << shift for shift in range(2, 8))
NONE_LOST = dict.fromkeys(("scored", "no_answer", "refused", "overflow", "truncated", "failed", "not_run"), 0)


def _config(tasks: tuple[str, ...] = TASKS, **params: Any) -> dict[str, Any]:
    return {"tasks": [{"task": f"ruler.{t}", "label": f"ruler.{t}", "params": params, "info": {}} for t in tasks]}


def _cell(task: str, length: int, published: float, **lost: int) -> Cell:
    """A cell whose strict score is 0, so that only RULER's rule can give what is expected."""
    return Cell(
        task=f"ruler.{task}",
        length=length,
        depth=None,
        planned=500,
        n=500,
        s=0.0,
        published=published / 100,
        outcomes=NONE_LOST | {"scored": 500} | lost,
        threshold=0.7,
    )


def _cells(scores: tuple[float, ...], spread: float = 0.0) -> list[Cell]:
    """Thirteen tasks whose mean is the score: half of them above it, half below."""
    shifts = [spread * (index % 2 * 2 - 1) for index in range(12)] + [0.0]
    return [
        _cell(t, n, score + d)
        for t, d in zip(TASKS, shifts, strict=True)
        for n, score in zip(LENGTHS, scores, strict=True)
    ]


def test_gpt_4_as_ruler_prints_it() -> None:
    """RULER's readme, row GPT-4-1106-preview: 96.6 to 81.2, Avg 91.6, wAvg 89.0 and 94.1, effective 64K."""
    found = ruler_summary(_cells((96.6, 96.3, 95.2, 93.2, 87.0, 81.2), spread=2.5), _config())
    assert found is not None
    assert found.means == pytest.approx((96.6, 96.3, 95.2, 93.2, 87.0, 81.2))
    assert found.average is not None and found.weighted_inc is not None and found.weighted_dec is not None
    assert (round(found.average, 1), round(found.weighted_inc, 1), round(found.weighted_dec, 1)) == (91.6, 89.0, 94.1)
    assert found.effective == "64K"


def test_a_length_with_a_task_missing_has_no_mean_and_blocks_longer_ones() -> None:
    cells = [cell for cell in _cells((99.0,) * 6) if (cell.task, cell.length) != ("ruler.qa_2", 16 * K)]
    found = ruler_summary(cells, _config())
    assert found is not None
    assert [mean is None for mean in found.means] == [False, False, True, False, False, False]
    assert found.average == pytest.approx(99.0)
    assert found.effective == ">8K"
    overflown = [_cell(t, n, 99.0, overflow=int(n == 128 * K)) for t in TASKS for n in LENGTHS]
    lost = ruler_summary(overflown, _config())
    assert lost is not None and lost.means[-1] is None and lost.tasks["ruler.vt"][-1] is None


def test_lengths_that_cannot_hold_every_task_are_not_where_the_effective_length_begins() -> None:
    cells = [cell for cell in _cells((99.0,) * 6) if (cell.task, cell.length) != ("ruler.qa_2", 4 * K)]
    blocked, begun = (
        ruler_summary(cells, _config()),
        ruler_summary(cells, _config() | {"infeasible": [{"task": "ruler.qa_2", "length": 4 * K}]}),
    )
    assert blocked is not None and begun is not None
    assert (blocked.effective, begun.effective) == ("", ">128K")


def test_fewer_tasks_have_no_summary_of_ruler() -> None:
    assert ruler_summary(_cells((99.0,) * 6), _config(TASKS[:-1])) is None
    assert ruler_summary([], {}) is None


def test_the_card_shows_the_summary_and_names_other_text(make: Any) -> None:
    records = [r for t in TASKS for r in make.row(f"ruler.{t}", {4 * K: 9, 8 * K: 6}, 10)]
    config = make.config(records)
    plain = make_card(records, config)
    assert "wAvg(inc) 70.0, wAvg(dec) 80.0; effective length at 85.6: 4K." in plain.to_markdown()
    assert "| **mean of 13** | **90.0** | **60.0** | |" in plain.to_markdown()
    assert "effective length at 85.6: 4K" in plain.to_html()
    assert plain.to_dict()["ruler_summary"]["mean_of_13"] == [90.0, 60.0]
    assert plain.context()["ruler"]["notes"] == []
    config["tasks"][1]["params"] = {"haystack": "mixed"}
    (note,) = published_view(make_card(records, config).estimates, config)["ruler"]["notes"]
    assert note == "On other text than RULER's own, and not to be compared with its table: ruler.niah_single_2."


@pytest.mark.parametrize("longer", ["overflow", "scored"])
def test_other_rules_say_not_measured_where_the_shortest_length_was_not_tested(make: Any, longer: str) -> None:
    records = make.outcome("niah.single", 4 * K, 0.5, "failed", 5)
    records += make.outcome("niah.single", 8 * K, 0.5, longer, 5)
    assert (
        "| same runs by other rules |  | not measured | - |" in make_card(records, make.config(records)).to_markdown()
    )
    failing = make.row("niah.single", {4 * K: 0}, 5)
    markdown = make_card(failing, make.config(failing)).to_markdown()
    assert "| same runs by other rules |  | RULER 85.6: none; largest passing: none | - |" in markdown


def _pair_rows(make: Any, task: str, pair: str, passes: dict[int, int], n: int, start: int) -> list[Any]:
    rows = []
    for length, good in passes.items():
        for index in range(n):
            score = float(index < good)
            extra = {"groups": {"pair": pair}}
            rows.append(make.record(task, length, None, start + index, score=score, score_published=score, extra=extra))
    return rows


def test_the_base_is_the_mean_of_each_pairs_best_and_the_length_is_relative_to_it(make: Any) -> None:
    """Two pairs, best means 1.0 (at 256) and 0.8 (at 1k): base 0.9, threshold 0.765; of means 0.7, threshold 0.595."""
    records = _pair_rows(make, "nolima.onehop", "a", {256: 10, 512: 8, K: 6, 2 * K: 9, 4 * K: 7}, 10, 0)
    records += _pair_rows(make, "nolima.onehop", "b", {256: 4, 512: 6, K: 8, 2 * K: 7, 4 * K: 5}, 10, 10)
    (found,) = relative_lengths(records, {})
    assert (found.n_pairs, found.trials, found.base_lengths) == (2, 10.0, (256, 512, K))
    assert found.base == pytest.approx(0.9)
    assert found.base_of_means == pytest.approx(0.7)
    assert found.threshold == pytest.approx(0.765)
    assert found.scores == pytest.approx({256: 0.7, 512: 0.7, K: 0.7, 2 * K: 0.8, 4 * K: 0.6})
    assert (found.value, found.largest, found.value_of_means) == (None, 2 * K, 4 * K)


def test_the_best_of_noisy_means_lies_above_the_truth(make: Any) -> None:
    """nolima.md: with a true 0.90 at three lengths the expected base is 0.971 from 10 trials, 0.986 from 5."""
    rng = random.Random(7)
    for trials, expected in ((10, 0.971), (5, 0.986)):
        records = [
            row
            for pair in range(300)
            for row in _pair_rows(
                make,
                "nolima.onehop",
                f"pair {pair}",
                {length: sum(rng.random() < 0.9 for _ in range(trials)) for length in (256, 512, K)},
                trials,
                pair * trials,
            )
        ]
        (found,) = relative_lengths(records, {})
        assert found.base == pytest.approx(expected, abs=0.008)
        assert found.base_of_means == pytest.approx(0.9, abs=0.012)
        assert found.trials == trials


def test_tasks_of_a_headline_stand_together_and_each_alone(make: Any) -> None:
    records = _pair_rows(make, "nolima.onehop", "a", {K: 10}, 10, 0) + _pair_rows(
        make, "nolima.twohop", "b", {K: 5}, 10, 0
    )
    both, *each = relative_lengths(records, {"headline": {"reasoning": ["nolima.onehop", "nolima.twohop"]}})
    assert both.task == "nolima.onehop + nolima.twohop"
    assert both.base == pytest.approx(0.75)
    assert [item.base for item in each] == pytest.approx([1.0, 0.5])


def test_tasks_without_pairs_or_without_short_lengths_have_no_base(make: Any) -> None:
    assert relative_lengths(make.row("niah.single", {K: 5}, 5), {}) == ()
    assert relative_lengths(_pair_rows(make, "nolima.onehop", "a", {4 * K: 5}, 5, 0), {}) == ()


def test_a_length_that_was_not_tested_ends_the_run_of_lengths(make: Any) -> None:
    """1k and 4k pass; 2k did not fit for one sample, whatever the other nine scored."""
    records = _pair_rows(make, "nolima.onehop", "a", {512: 10, K: 10, 2 * K: 9, 4 * K: 10}, 10, 0)
    lost = make.outcome("nolima.onehop", 2 * K, None, "overflow", 1, start=10)
    (found,) = relative_lengths(records + lost, {})
    assert (found.value, found.largest, found.value_of_means, found.untested) == (K, 4 * K, K, (2 * K,))
    assert list(found.scores) == [512, K, 4 * K]
    text = make_card(records + lost, make.config(records + lost)).to_markdown()
    assert "| >= 1k | >= 1k | 10.0 x 1 pairs | 512 100%, 1k 100%, 4k 100% |" in text
    first = [record for record in records if record.length != K] + make.outcome("nolima.onehop", K, None, "failed", 3)
    text = make_card(first, make.config(first)).to_markdown()
    assert "| not tested | not tested |" in text


def test_the_card_prints_the_trials_beside_the_length(make: Any) -> None:
    records = _pair_rows(make, "nolima.onehop", "a", {512: 9, K: 9, 2 * K: 3}, 10, 0)
    text = make_card(records, make.config(records)).to_markdown()
    assert "| `nolima.onehop` | 90.0% | 90.0% | 76.5% | 1k | 1k | 10.0 x 1 pairs | 512 90%, 1k 90%, 2k 30% |" in text
    assert (
        "With 10.0 trials per pair and length (130 as published) the best of several means lies above the truth" in text
    )


def test_departures_stand_on_the_card_once_each_and_escaped(make: Any) -> None:
    records = (
        make.row("ruler.vt", {4 * K: 5}, 5)
        + make.row("ruler.cwe", {4 * K: 5}, 5)
        + make.row("niah.single", {4 * K: 5}, 5)
    )
    config = make.config(records)
    assert "differ from their published sources" not in make_card(records, config).to_markdown()
    infos = {entry["label"]: entry["info"] for entry in config["tasks"]}
    infos["ruler.vt"]["departures"] = ["Both differ.", "Only <b>vt</b> | does *so*."]
    infos["ruler.cwe"]["departures"] = ["Both differ."]
    card = make_card(records, config)
    text, page = card.to_markdown(), card.to_html()
    assert text.count("Both differ.") == page.count("Both differ.") == 1
    assert "all 2 of them:\n\n- Both differ." in text
    assert "- Only &lt;b>vt&lt;/b> &#124; does \\*so\\*." in text
    assert "<li>Only &lt;b&gt;vt&lt;/b&gt; | does *so*.</li>" in page
    assert card.to_dict()["provenance"]["tasks"][0]["info"]["departures"][0] == "Both differ."
