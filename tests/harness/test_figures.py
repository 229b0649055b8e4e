"""Figures: edge cases draw without a warning, the same numbers give the same bytes."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from longreach.harness.report.card import make_card
from longreach.harness.report.figures import drawable, inline, slug, style
from longreach.harness.report.palette import heat_color, ink_on

K = 1024
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def _drawings(make: Any, records: Any, **changes: Any) -> Any:
    return make_card(records, make.config(records, **changes)).drawings


def test_one_cell_draws(make: Any) -> None:
    curve, heat = _drawings(make, make.cell("niah.single", 4 * K, 0.5, 1, 1))
    assert curve.png.startswith(b"\x89PNG")
    assert heat.alt == "Heat map of niah.single. 4k: 100% (n 1)."


def test_a_grid_with_nothing_tested_draws_hatched(make: Any) -> None:
    curve, heat = _drawings(make, make.outcome("niah.single", 4 * K, 0.5, "overflow", 2))
    assert heat.alt == "Heat map of niah.single. 4k: not supported."
    assert "4k not tested" in curve.alt
    assert "<pattern" in heat.svg


def test_a_task_without_depth_is_one_column(make: Any) -> None:
    _, heat = _drawings(make, make.row("ruler.vt", {4 * K: 5, 8 * K: 2}, 5))
    assert heat.alt == "Heat map of ruler.vt. 4k: 100% (n 5). 8k: 40% (n 5)."


def test_alt_text_names_the_lowest_depth(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 10}, 10, (0.0, 1.0)) + make.cell("niah.single", 4 * K, 0.5, 4, 10)
    assert _drawings(make, records)[1].alt == ("Heat map of niah.single. 4k: 80% (n 30), lowest 40% at 50% depth.")


def test_many_depths_many_lengths_and_an_advertised_length_beyond_the_grid_draw(make: Any) -> None:
    depths = [i / 25 for i in range(26)]
    records = make.row("niah.single", {K << i: 1 for i in range(11)}, 1, depths)
    assert [d.name for d in _drawings(make, records, advertised=10 << 20)] == [
        "accuracy-by-length",
        "heatmap-niah.single",
        "accuracy-by-position",
    ]


@pytest.mark.parametrize(
    "name", ["\u4e2d\u6587\u9488 \U0001f9ea\U0001f489", "x" * 300, "$a_b^c$ {\\frac}", "\u05e9\u05dc\u05d5\u05dd"]
)
def test_any_name_draws(make: Any, name: str) -> None:
    records = [make.record(name, 4 * K, 0.5, i) for i in range(2)]
    curve, heat = _drawings(make, records, model={"name": name, "simulated": True})
    assert name[:20] in heat.alt
    assert curve.svg.rstrip().endswith("</svg>")


def test_characters_that_no_font_has_become_boxes() -> None:
    with style():
        assert drawable("abc \ue000") == "abc \u25a1"


def test_a_curve_that_lies_on_another_is_dashed_with_open_marks(make: Any) -> None:
    same = make.row("niah.single", {4 * K: 5, 8 * K: 3}, 5) + make.row("ruler.vt", {4 * K: 5, 8 * K: 3}, 5)
    apart = make.row("niah.single", {4 * K: 5, 8 * K: 3}, 5) + make.row("ruler.vt", {4 * K: 1, 8 * K: 0}, 5)
    dash = re.compile(r"stroke-dasharray: 6.6,6.6")
    assert dash.search(_drawings(make, same)[0].svg)
    assert not dash.search(_drawings(make, apart)[0].svg)


def _by_name(make: Any, records: Any, **changes: Any) -> dict[str, Any]:
    return {drawing.name: drawing for drawing in _drawings(make, records, **changes)}


def test_families_get_panels_with_bands_where_there_are_several(make: Any) -> None:
    retrieval = make.row("niah.single", {4 * K: 5, 8 * K: 3}, 5)
    assert "accuracy-by-family" not in _by_name(make, retrieval)
    found = _by_name(make, retrieval + make.row("ruler.vt", {4 * K: 5, 8 * K: 1}, 5), advertised=16 * K)
    assert "needle: needle: 4k 100% (n 5), 8k 60% (n 5). tracing" in found["accuracy-by-family"].alt


def test_positions_are_drawn_length_by_length(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 5}, 5, DEPTHS) + make.row("niah.single", {8 * K: 2}, 5, DEPTHS[:2])
    records += make.cell("niah.single", 8 * K, 1.0, 1, 5)
    drawing = _by_name(make, records)["accuracy-by-position"]
    assert "4k, retrieval: 100% at best. 8k, retrieval: 40% at best, lowest 20% at 100% depth." in drawing.alt
    assert "dashed: 95%" in drawing.caption


def test_positions_need_two_depths(make: Any) -> None:
    assert "accuracy-by-position" not in _by_name(make, make.row("niah.single", {4 * K: 5}, 5, (0.5,)))
    assert "accuracy-by-position" not in _by_name(make, make.row("ruler.vt", {4 * K: 5}, 5))


def test_times_are_drawn_cold_and_cached_apart(make: Any) -> None:
    cold = make.row("niah.single", {4 * K: 3, 8 * K: 3}, 3, (0.0,), ttft_s=2.0, latency_s=3.0, n_cached_tokens=0)
    cached = make.row("niah.single", {4 * K: 3}, 3, (1.0,), ttft_s=0.5, latency_s=1.0, n_cached_tokens=4000)
    drawing = _by_name(make, cold + cached)["time-and-cost"]
    assert "4k cached 0.50 s (95th percentile 0.50 s, n 3), 4k cold 2.00 s" in drawing.alt
    assert "cost" not in drawing.caption


def test_cost_is_drawn_where_it_is_known(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 3, 8 * K: 3}, 3, cost_usd=0.01)
    drawing = _by_name(make, records)["time-and-cost"]
    assert drawing.alt == "Cost per query: 4k $0.0100, 8k $0.0100."
    assert "time-and-cost" not in _by_name(make, make.row("niah.single", {4 * K: 3}, 3))


def test_same_numbers_same_bytes(make: Any) -> None:
    records = make.row("niah.single", {4 * K: 9, 8 * K: 3}, 10, DEPTHS)
    first, second = _drawings(make, records), _drawings(make, records)
    assert [(d.png, d.svg) for d in first] == [(d.png, d.svg) for d in second]
    assert b"Software" not in first[0].png
    assert "<dc:date>" not in first[0].svg


def test_names_that_differ_only_in_signs_get_files_of_their_own(make: Any) -> None:
    records = [make.record(task, 4 * K, 0.5, 0) for task in ("a b", "a/b", "\u4e2d", "\u6587")]
    names = [drawing.name for drawing in _drawings(make, records)]
    assert len(names) == len(set(names)) == 5


def test_the_users_own_matplotlib_settings_are_neither_used_nor_changed(make: Any) -> None:
    import matplotlib

    records = make.cell("niah.single", 4 * K, 0.5, 1, 1)
    before = _drawings(make, records)[0].svg
    with matplotlib.rc_context({"font.size": 31.0, "axes.grid": True, "svg.hashsalt": "other"}):
        assert _drawings(make, records)[0].svg == before
        assert matplotlib.rcParams["font.size"] == 31.0


def test_inline_svg_follows_the_page(make: Any) -> None:
    svg = inline(_drawings(make, make.cell("niah.single", 4 * K, 0.5, 1, 1))[0])
    assert svg.startswith("<svg ")
    assert "var(--ink" in svg
    assert 'id="accuracy-by-length-' in svg
    assert "<metadata" not in svg


def test_the_heat_ramp_jumps_at_the_threshold_and_rises_in_grey() -> None:
    def grey(color: str) -> float:
        red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    greys = [grey(heat_color(i / 100, 0.9)) for i in range(101)]
    assert greys == sorted(greys)
    assert grey(heat_color(0.9, 0.9)) - grey(heat_color(0.8999, 0.9)) > 40
    assert heat_color(1.0, 1.0) == "#fdee9c"
    assert (ink_on("#0b1f4b"), ink_on("#fdee9c")) == ("#ffffff", "#000000")


def test_slugs_are_plain_file_names() -> None:
    assert slug("niah.multi[needles=4]") == "niah.multi-needles-4"
    assert slug("../../etc/passwd") == "etc-passwd"
    assert slug("\u4e2d\u6587") == ""
