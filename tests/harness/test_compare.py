"""Comparing runs: pairs, tests, verdicts, words, exit codes."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from longreach.harness.commands.verdicts import add_verdict_commands
from longreach.harness.errors import ConfigError
from longreach.harness.record import Record
from longreach.harness.report.card import make_card
from longreach.harness.report.compare_text import to_lines, to_markdown
from longreach.harness.report.figure_change import draw_change
from longreach.harness.report.figures import style
from longreach.harness.stats.compare import Comparison, compare
from longreach.harness.stats.paired_tests import minimal_drop
from longreach.harness.stats.pairs import RunData, match
from longreach.harness.stats.series import in_order, make_series, series_lines, series_markdown
from tests.harness.test_paired_tests import pattern

Scores = dict[tuple[str, int], Sequence[float]]
MakeRun = Callable[..., RunData]


@pytest.fixture
def run(make: Any) -> MakeRun:
    """A run from scores by (task, length); prompts are those of the point unless `sha` says otherwise."""

    def build(name: str, scores: Scores, *, sha: str = "", extra: Sequence[Record] = (), **changes: Any) -> RunData:
        records = [
            make.record(task, length, None, i, score=score, prompt_sha256=f"{sha}{task}/{length}/{i}")
            for (task, length), row in scores.items()
            for i, score in enumerate(row)
        ]
        records += extra
        return RunData(name=name, records=tuple(records), config=make.config(records, **changes))

    return build


# Pairs


def test_only_identical_prompts_are_paired(run: MakeRun) -> None:
    base = run("a", {("niah.single", 4096): pattern(10)})
    assert len(match(base.records, base.records).pairs) == 10
    other = match(base.records, run("b", {("niah.single", 4096): pattern(10)}, sha="x").records)
    assert not other.pairs
    assert other.reasons == {"another prompt": 10}


def test_what_has_no_partner_is_counted_by_reason(run: MakeRun, make: Any) -> None:
    base = run("a", {("niah.single", 4096): pattern(10), ("niah.single", 8192): pattern(5)})
    gone = [
        make.record("niah.single", 4096, None, i, outcome="overflow", prompt_sha256=f"niah.single/4096/{i}")
        for i in range(8, 10)
    ]
    new = run("b", {("niah.single", 4096): pattern(8), ("ruler.vt", 4096): pattern(3)}, extra=gone)
    found = match(base.records, new.records)
    assert len(found.pairs) == 8
    assert found.reasons == {"only in base": 5, "only in new": 3, "not scored in new": 2}
    assert found.lost == {("niah.single", 4096): {"overflow": 2}}


def test_the_same_text_under_another_label_is_found(make: Any) -> None:
    base = [make.record("lb", 4096, None, 0, prompt_sha256="same")]
    new = [make.record("lb", 8192, None, 3, prompt_sha256="same")]
    found = match(base, new)
    assert (len(found.pairs), found.by_text) == (1, 1)


def test_imported_records_without_a_hash_are_paired_but_not_proven(make: Any) -> None:
    records = make.row("niah.single", {4096: 5}, 5)
    assert match(records, records).unproven == 5


# Verdicts


def test_a_run_against_itself_is_within_noise(run: MakeRun) -> None:
    scores: Scores = {("niah.single", 4096): pattern(200), ("niah.single", 8192): pattern(200, range(20))}
    result = compare(run("a", scores), run("b", scores))
    assert result.verdict == "within noise"
    assert {cell.verdict for cell in result.cells} == {"within noise"}
    assert result.exit_code == 0


def test_a_clear_drop_at_one_length_is_worse_and_named(run: MakeRun) -> None:
    base = run("a", {("niah.single", 4096): pattern(100), ("niah.single", 8192): pattern(100)})
    new = run("b", {("niah.single", 4096): pattern(100), ("niah.single", 8192): pattern(100, range(20))})
    result = compare(base, new)
    assert [cell.verdict for cell in result.cells] == ["within noise", "worse"]
    assert (result.verdict, result.exit_code) == ("worse", 1)
    assert "niah.single at 8k" in result.reason
    assert compare(new, base).verdict == "better"
    assert compare(new, base).exit_code == 0


def test_a_small_drop_everywhere_is_found_by_the_pooled_test(run: MakeRun) -> None:
    lengths = [1024 << i for i in range(8)]
    base = run("a", {("niah.single", length): pattern(50) for length in lengths})
    new = run("b", {("niah.single", length): pattern(50, [0, 1]) for length in lengths})
    result = compare(base, new)
    assert all(cell.verdict == "cannot tell" for cell in result.cells)
    assert result.verdict == "worse"
    assert result.reason == "Scores fell in the mean over all 400 pairs."


def test_a_rise_at_one_length_is_not_better_as_a_whole_while_the_mean_may_have_fallen(run: MakeRun) -> None:
    base = run("a", {("niah.single", 4096): pattern(6), ("niah.single", 8192): [0.0] * 6})
    new = run("b", {("niah.single", 4096): pattern(6, [0]), ("niah.single", 8192): pattern(6)})
    result = compare(base, new)
    assert result.cells[1].verdict == "better"
    assert result.overall is not None
    assert result.overall.low < 0.0
    assert result.verdict == "cannot tell"
    assert "Scores rose in niah.single at 8k, which is not shown for the whole." in result.reason


def test_few_pairs_cannot_tell(run: MakeRun) -> None:
    scores: Scores = {("niah.single", 4096): pattern(20)}
    result = compare(run("a", scores), run("b", scores))
    assert result.verdict == "cannot tell"
    assert result.exit_code == 0
    assert result.cells[0].detectable == pytest.approx(minimal_drop(20, 0.02) or 0)


def test_one_lucky_cell_among_families_does_not_alarm_for_the_whole(run: MakeRun) -> None:
    base = run("a", {("niah.single", 4096): pattern(100), ("ruler.vt", 4096): pattern(100)})
    new = run("b", {("niah.single", 4096): pattern(100, range(5)), ("ruler.vt", 4096): pattern(95) + [1.0] * 5})
    lucky = compare(base, new)
    assert lucky.cells[0].verdict == "worse"  # p = 0.031, alone in its family
    mixed = run("c", {("niah.single", 4096): pattern(100, range(5)), ("ruler.vt", 4096): pattern(100)})
    worse_before = run("d", {("niah.single", 4096): pattern(100), ("ruler.vt", 4096): pattern(100, range(4))})
    result = compare(worse_before, mixed)
    assert result.verdict == "within noise"
    assert "niah.single at 4k alone would alarm, but not after correction for 2 families" in result.reason


def test_nothing_in_common_cannot_tell_and_is_incomplete(run: MakeRun) -> None:
    base = run("a", {("niah.single", 4096): pattern(10)})
    result = compare(base, run("b", {("niah.single", 4096): pattern(10)}, sha="x", seed=7))
    assert (result.verdict, result.exit_code, result.overall) == ("cannot tell", 3, None)
    assert any("seeds differ (42 and 7)" in warning for warning in result.warnings)
    assert to_lines(result)[-1].startswith("cannot tell: The runs have no scored sample in common")


def test_cells_that_became_untestable_make_the_comparison_incomplete(run: MakeRun, make: Any) -> None:
    scores: Scores = {("niah.single", 4096): pattern(200)}
    lost = [make.record("niah.single", 8192, None, i, outcome="overflow", prompt_sha256=f"x{i}") for i in range(5)]
    kept = [make.record("niah.single", 8192, None, i, prompt_sha256=f"x{i}") for i in range(5)]
    result = compare(run("a", scores, extra=kept), run("b", scores, extra=lost))
    assert result.exit_code == 3
    assert "niah.single at 8k could be scored before and not now: 5 overflow." in to_lines(result)


def test_fractional_scores_are_compared_by_permutation(run: MakeRun) -> None:
    base = run("a", {("niah.multi", 4096): [0.75, 1.0] * 50})
    new = run("b", {("niah.multi", 4096): [0.5, 0.75] * 50})
    cell = compare(base, new).cells[0]
    assert cell.change.method == "sign-flip permutation"
    assert cell.verdict == "worse"
    assert cell.change.value == pytest.approx(-0.25)


# Effective lengths


def _ladder(*rates: int) -> Scores:
    """100 samples at 4k, 8k, ...: so many right."""
    return {("niah.single", 4096 << i): pattern(100, range(rate, 100)) for i, rate in enumerate(rates)}


def test_an_effective_length_has_changed_if_the_brackets_are_apart(run: MakeRun) -> None:
    claim = compare(run("a", _ladder(100, 100, 100, 20)), run("b", _ladder(100, 20, 20, 20))).lengths[0]
    assert claim.claimed
    assert claim.sentence == "Effective retrieval: 16,384 before, 4,096 now: the brackets do not overlap."


def test_an_effective_length_has_changed_if_the_paired_test_fires_where_it_broke(run: MakeRun) -> None:
    claim = compare(run("a", _ladder(100, 93, 20)), run("b", _ladder(100, 84, 20))).lengths[0]
    assert claim.claimed
    assert "the paired test alarms at 8k" in claim.sentence


def test_a_bucket_that_jumps_by_chance_is_not_claimed(run: MakeRun) -> None:
    claim = compare(run("a", _ladder(100, 90, 20)), run("b", _ladder(100, 89, 20))).lengths[0]
    assert (claim.base.value, claim.new.value) == (8192, 4096)
    assert not claim.claimed
    assert "not shown" in claim.sentence


def test_a_longer_grid_is_no_change(run: MakeRun) -> None:
    claim = compare(run("a", _ladder(100, 100)), run("b", _ladder(100, 100, 100, 100))).lengths[0]
    assert not claim.claimed
    assert claim.sentence.endswith("the brackets overlap and the runs share no length between the two.")


# Settings and words


def test_settings_that_differ_are_listed(run: MakeRun) -> None:
    scores: Scores = {("niah.single", 4096): pattern(50)}
    base = run("a", scores, model={"facts": {"rope": {"type": "yarn", "factor": 4}}})
    new = run("b", scores, model={"facts": {"rope": {"type": "none"}}}, sampling={"temperature": 0.7})
    found = {item.setting: (item.base, item.new) for item in compare(base, new).settings}
    assert found == {
        "model.facts.rope.factor": (4, None),
        "model.facts.rope.type": ("yarn", "none"),
        "sampling.temperature": (0, 0.7),
    }
    assert any("model.facts.rope.type" in warning for warning in compare(base, new).warnings)


def test_another_tokenizer_means_other_units(run: MakeRun) -> None:
    scores: Scores = {("niah.single", 4096): pattern(50)}
    base, new = run("a", scores), run("b", scores, sha="x", tokenizer={"name": "hf:qwen"})
    warning = compare(base, new).warnings[0]
    assert "Lengths are in different units: tiktoken:cl100k_base in the base, hf:qwen in the new run" in warning


def test_a_repeat_measures_how_much_answers_change_by_themselves(run: MakeRun) -> None:
    base = run("a", {("niah.single", 4096): pattern(100)})
    repeat = run("r", {("niah.single", 4096): pattern(100, range(6))})
    result = compare(base, run("b", {("niah.single", 4096): pattern(100, [7])}), repeat=repeat)
    assert result.noise is not None
    assert result.noise.churn == pytest.approx(0.06)
    assert result.cells[0].detectable == pytest.approx(minimal_drop(100, 0.06) or 0)
    assert any("Run noise: a repeat of the base changed 6.0% of its scores" in line for line in to_lines(result))


@pytest.fixture
def drop(run: MakeRun) -> Comparison:
    """A comparison with one clear drop and a name that tries to break tables."""
    base = run("a|b", {("niah.single", 4096): pattern(100)})
    return compare(base, run("<b>", {("niah.single", 4096): pattern(100, range(30))}))


def test_markdown_has_one_row_per_cell_and_survives_odd_names(drop: Comparison) -> None:
    text = to_markdown(drop)
    assert "worse" in text.splitlines()[0]
    assert "<b>" not in text
    row = next(line for line in text.splitlines() if line.startswith("| niah"))
    assert row.count("|") == 10
    assert "30.0" in row


def test_the_terminal_ends_with_the_verdict(drop: Comparison) -> None:
    lines = to_lines(drop)
    assert lines[0].split()[:3] == ["task", "length", "pairs"]
    assert lines[-1].startswith("worse: Scores fell in niah.single at 4k")
    assert "-30.0" in lines[-1]


def test_the_regression_of_a_card_is_json(drop: Comparison) -> None:
    data = json.loads(json.dumps(drop.to_dict()))
    assert data["verdict"] == "worse"
    assert data["cells"][0]["n"] == 100
    assert data["cells"][0]["change"] == pytest.approx(-0.3)


# Several runs


def test_a_series_is_ordered_by_its_number() -> None:
    names = ["runs/ckpt-1000", "runs/ckpt-200", "runs/ckpt-30"]
    assert in_order(names) == [2, 1, 0]
    assert in_order(["b", "a"]) == [0, 1]
    assert in_order(["v1-8k", "v2-4k"]) == [0, 1]


def test_a_ranking_says_who_is_tied_with_the_best(run: MakeRun) -> None:
    runs = [
        run("ckpt-100", {("niah.single", 4096): pattern(100, range(60))}),
        run("ckpt-200", {("niah.single", 4096): pattern(100, range(3))}),
        run("ckpt-300", {("niah.single", 4096): pattern(100, [7])}),
    ]
    series = make_series(runs, margin=0.05)
    assert [ranked.name for ranked in series.ranking] == ["ckpt-300", "ckpt-200", "ckpt-100"]
    assert [ranked.tied for ranked in series.ranking] == [True, True, False]
    assert series.steps[0].verdict == "better"
    assert series.exit_code == 0
    assert "Not to be told from the best: ckpt-200." in series_lines(series)
    assert series_markdown(series).count("| ckpt") == 3


def test_the_exit_code_of_a_series_is_last_against_first(run: MakeRun) -> None:
    good, bad = {("niah.single", 4096): pattern(100)}, {("niah.single", 4096): pattern(100, range(40))}
    assert make_series([run("v1", good), run("v2", bad), run("v3", good)], margin=0.05).exit_code == 0
    assert make_series([run("v1", good), run("v2", good), run("v3", bad)], margin=0.05).exit_code == 1


def test_a_ranking_uses_only_samples_that_all_runs_share(run: MakeRun) -> None:
    runs = [run(f"v{n}", {("niah.single", 4096): pattern(n * 10)}) for n in (1, 2, 3)]
    assert make_series(runs, margin=0.05).n == 10
    with pytest.raises(ConfigError, match="no scored sample"):
        make_series([*runs, run("v4", {("niah.single", 4096): pattern(10)}, sha="x")], margin=0.05)


def test_a_model_that_flips_three_percent_seldom_alarms_against_itself(run: MakeRun) -> None:
    rng = random.Random(5)
    truth = {
        (task, length): [float(rng.random() < rate) for _ in range(40)]
        for task, rate in (("niah.single", 0.95), ("ruler.vt", 0.7))
        for length in (4096, 8192, 16384)
    }

    def noisy(name: str) -> RunData:
        return run(name, {key: [1 - x if rng.random() < 0.03 else x for x in row] for key, row in truth.items()})

    alarms = sum(compare(noisy("a"), noisy("b")).verdict == "worse" for _ in range(40))
    assert alarms <= 4


# Command line


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[RunData], str]:
    """Writes a run to a folder as `longreach run` does."""
    from longreach.harness.running.store import write_config

    def write(data: RunData) -> str:
        path = tmp_path / data.name
        path.mkdir()
        write_config(path, data.config)
        (path / "records.jsonl").write_text("".join(record.to_json() + "\n" for record in data.records))
        return str(path)

    return write


@pytest.fixture
def app() -> typer.Typer:
    application = typer.Typer()
    add_verdict_commands(application)
    return application


def test_the_commands_end_with_the_exit_codes_of_the_contract(
    run: MakeRun, folder: Callable[[RunData], str], app: typer.Typer
) -> None:
    good = folder(run("good", {("niah.single", 4096): pattern(100)}))
    bad = folder(run("bad", {("niah.single", 4096): pattern(100, range(30))}))
    call = CliRunner().invoke
    assert call(app, ["compare", good, bad]).exit_code == 1
    assert call(app, ["compare", bad, good]).exit_code == 0
    assert json.loads(call(app, ["compare", good, bad, "--json"]).stdout)["verdict"] == "worse"
    assert call(app, ["compare", good, bad, "--markdown"]).stdout.startswith("**")
    assert call(app, ["gate", good, "recall@4k > 0.95"]).exit_code == 0
    assert call(app, ["gate", good, "recall@4k > 0.95", "reasoning@4k > 0.5"]).exit_code == 3
    assert call(app, ["gate", bad, "recall@4k > 0.95", "reasoning@4k > 0.5"]).exit_code == 1
    assert json.loads(call(app, ["gate", good, "recall > 0.9", "--json"]).stdout)[0]["verdict"] == "pass"


def test_one_run_cannot_be_compared(run: MakeRun, folder: Callable[[RunData], str], app: typer.Typer) -> None:
    good = folder(run("good", {("niah.single", 4096): pattern(10)}))
    assert isinstance(CliRunner().invoke(app, ["compare", good]).exception, ConfigError)
    assert isinstance(CliRunner().invoke(app, ["compare", good, good]).exception, ConfigError)


def test_a_card_with_a_baseline_holds_table_picture_and_numbers(run: MakeRun) -> None:
    base = run("base", {("niah.single", 4096): pattern(60)})
    new = run("new", {("niah.single", 4096): pattern(60, range(20))})
    card = make_card(new.records, new.config, compare(base, new))
    text, page, data = card.to_markdown(), card.to_html(), card.to_dict()
    assert "## Against `base`" in text
    assert "![Change in points. niah.single at 4k" in text
    assert "Against <code>base</code>" in page
    assert data["regression"]["verdict"] == "worse"
    assert [drawing.name for drawing in card.drawings][-1] == "change-by-length"
    plain = make_card(new.records, new.config)
    assert (plain.to_dict()["regression"], "Against" in plain.to_markdown()) == (None, False)


def test_the_picture_of_change_says_its_numbers_in_words(run: MakeRun) -> None:
    base = run("base", {("niah.single", 4096): pattern(60)})
    with style():
        drawing = draw_change(compare(base, run("new", {("niah.single", 4096): pattern(60, range(20))})))
        assert draw_change(compare(base, run("other", {("niah.single", 8192): pattern(60)}))) is None
    assert drawing is not None
    assert "niah.single at 4k -33.3" in drawing.alt
    assert drawing.svg.startswith("<?xml")


def test_compare_writes_a_picture_of_two_runs_and_of_a_series(
    run: MakeRun, folder: Callable[[RunData], str], app: typer.Typer, tmp_path: Path
) -> None:
    runs = [run(f"ckpt-{step}", {("niah.single", 4096): pattern(60, range(step))}) for step in (0, 5, 9)]
    paths = [folder(item) for item in runs]
    for count, name in ((2, "two.svg"), (3, "three.png")):
        found = CliRunner().invoke(app, ["compare", *paths[:count], "--figure", str(tmp_path / name)])
        assert (tmp_path / name).stat().st_size > 1000, found.output
    wrong = CliRunner().invoke(app, ["compare", *paths[:2], "--figure", "a.pdf"])
    assert isinstance(wrong.exception, ConfigError)
