"""Battery files, flags and the built-in batteries."""

from pathlib import Path
from typing import Any

import pytest

from longreach.harness.errors import BatteryError, ConfigError, UnknownName
from longreach.harness.registry import tasks
from longreach.harness.running.battery import Battery
from longreach.harness.running.battery_load import builtin_names, load_battery
from longreach.harness.running.options import Options
from longreach.harness.running.plan import Plan, make_plan
from longreach.harness.running.resolve import resolve_tasks
from longreach.harness.tokenizer import WordsTokenizer


def load(**options: object) -> Battery:
    return load_battery(Options.of(**options))


def plan_of(battery: Battery, *, window: int | None = None) -> Plan:
    return make_plan(battery, resolve_tasks(battery), WordsTokenizer(), window=window)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


GENERATED = ("ruler.qa_1.documents=generated", "ruler.qa_2.documents=generated")


ROWS = Path(__file__).parent.parent / "fixtures" / "loaded"


def _data(name: str, folder: Path) -> str | None:
    """Rows for a battery on published sets, all of which it takes; None: the battery needs none."""
    if name in ("longbench_v2", "longbench", "longbench_e"):
        return f"{name}.data={ROWS / ('longbench_v2.jsonl' if name == 'longbench_v2' else 'longbench_trec.jsonl')}"
    if name == "leval":
        kinds = {"number": "gsm100", "pair": "sci_fi", "f1": "qa", "rouge": "qa", "match": "qa"}
        for task in (task for label, task in tasks().items() if label.startswith("leval.")):
            source = ROWS / f"leval_{kinds.get(task.exam.metric, 'quality')}.jsonl"  # type: ignore[attr-defined]
            (folder / f"{task.info.name.removeprefix('leval.')}.jsonl").write_bytes(source.read_bytes())
        return f"leval.data={folder}"
    return None


@pytest.mark.parametrize("name", [name for name in builtin_names() if name != "nolima-official"])
def test_every_built_in_battery_can_be_planned(name: str, tmp_path: Path) -> None:
    # RULER's own texts are in a package that no test needs, and published rows are nowhere.
    settings: dict[str, Any] = {"corpus": "mixed", "set": GENERATED} if name == "ruler" else {}
    if (data := _data(name, tmp_path)) is not None:
        pytest.importorskip("rouge_score")
        pytest.importorskip("jieba")
        settings = {"set": data}
    battery = load(battery=name, **settings)
    assert battery.name == name
    assert plan_of(battery, window=8192 if battery.cut_at_window else None).items


def test_recall_is_exactly_90_cases() -> None:
    battery = load(battery="recall")
    assert battery.lengths == (32768, 65536, 131072)
    assert len(battery.depths) == 10
    assert (battery.depths[0], battery.depths[1], battery.depths[-1]) == (0.0, 1 / 9, 1.0)
    assert len(plan_of(battery).items) == 90


def test_niah_has_octaves_eleven_depths_and_ten_samples() -> None:
    battery = load(battery="niah")
    assert battery.lengths == tuple(4096 * 2**k for k in range(6))
    assert (len(battery.depths), battery.samples) == (11, 10)


def test_quick_has_36_samples_of_retrieval_at_its_shortest_length() -> None:
    battery = load()
    plan = plan_of(battery)
    first = min(battery.lengths)
    assert battery.name == "quick"
    assert sum(item.label == "niah.single" and item.point.length == first for item in plan.items) == 36
    assert plan.headline == {"retrieval": ("niah.single",), "reasoning": ("ruler.vt",)}


def test_a_battery_is_cut_at_the_window_and_says_so() -> None:
    plan = plan_of(load(battery="niah"), window=8192)
    assert plan.lengths == (4096, 8192)
    assert {cell.length for cell in plan.infeasible} == {16384, 32768, 65536, 131072}


def test_the_advertised_window_goes_before_the_known_one() -> None:
    assert plan_of(load(battery="niah", advertised="16k"), window=131072).lengths == (4096, 8192, 16384)


def test_lengths_given_by_flag_are_not_cut() -> None:
    assert plan_of(load(battery="niah", lengths="4k,16k", samples=1), window=8192).lengths == (4096, 16384)


def test_a_reasoning_budget_that_does_not_fit_names_the_longest_length() -> None:
    with pytest.raises(BatteryError, match="longest length that fits is 7168"):
        plan_of(load(battery="niah", lengths="8k", reasoning_budget=1024), window=8192)


def test_tasks_alone_make_a_battery_with_the_grid_of_niah() -> None:
    battery = load(tasks="niah.single,ruler.vt")
    assert [entry.label for entry in battery.tasks] == ["niah.single", "ruler.vt"]
    assert (len(battery.depths), battery.samples, battery.lengths[-1]) == (11, 10, 131072)
    assert battery.headline == {}


def test_tasks_narrow_a_battery_and_its_headline() -> None:
    battery = load(battery="quick", tasks=["niah.distractor", "ruler.vt"])
    assert [entry.label for entry in battery.tasks] == ["niah.distractor", "ruler.vt"]
    assert plan_of(battery).headline == {"retrieval": ("niah.distractor",), "reasoning": ("ruler.vt",)}


def test_narrowing_to_a_task_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(BatteryError, match=r"did you mean 'niah.single'"):
        load(battery="quick", tasks="niah.singel")


def test_flags_override_every_task_of_the_file(file: Path) -> None:
    file.write_text(
        "lengths: [4k]\ndepths: [0.5]\ntasks:\n  - {task: niah.single, lengths: [8k], samples: 3}\n  - trace.arith\n"
    )
    battery = load(battery=file, lengths="512,1k", samples="2", depths=[0, 1], seed=7)
    plan = plan_of(battery)
    assert plan.lengths == (512, 1024)
    assert battery.seed == 7
    assert len(plan.items) == 2 * 2 * 2 * 2


def test_seed_zero_is_a_seed() -> None:
    assert load(battery="quick", seed=0).seed == 0


def test_samples_by_length_hold_for_longer_lengths_too(file: Path) -> None:
    file.write_text("lengths: [512, 1k, 2k]\ndepths: [0.5]\nsamples: {512: 5, 1k: 2}\ntasks: [niah.single]\n")
    plan = plan_of(load(battery=file))
    assert [cell["n"] for cell in plan.cells()] == [5, 2, 2]


def test_parameters_in_the_file_show_in_the_label_and_flags_do_not(file: Path) -> None:
    file.write_text(
        "lengths: [2k]\ndepths: [0.5]\ntasks:\n  - {task: niah.multi, needles: 2}\n  - {task: niah.multi, needles: 4}\n"
    )
    tasks = resolve_tasks(load(battery=file, set=["niah.multi.haystack=repeat"]))
    assert [task.label for task in tasks] == ["niah.multi[needles=2]", "niah.multi[needles=4]"]
    assert all(task.params["haystack"] == "repeat" for task in tasks)


def test_parameters_may_stand_under_params_too(file: Path) -> None:
    file.write_text(_GRID + "tasks: [{task: niah.multi, params: {needles: 4}}]\n")
    (entry,) = load(battery=file).tasks
    assert (entry.label, entry.params) == ("niah.multi[needles=4]", {"needles": 4})


def test_a_flag_can_address_one_of_two_variants_by_its_label(file: Path) -> None:
    file.write_text(
        "lengths: [2k]\ndepths: [0.5]\ntasks:\n  - {task: niah.multi, label: few, needles: 2}\n  - niah.multi\n"
    )
    few, other = resolve_tasks(load(battery=file, set="few.haystack=repeat"))
    assert (few.params.get("haystack"), other.params.get("haystack")) == ("repeat", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lenghts: [4k]\ndepths: [0]\ntasks: [niah.single]\n", r"unknown key 'lenghts'; did you mean 'lengths'"),
        ("lengths: [4k]\ndepths: [2]\ntasks: [niah.single]\n", r"depths: '2' is not a depth"),
        ("lengths: [4x]\ndepths: [0]\ntasks: [niah.single]\n", r"lengths: '4x' is not a length"),
        ("lengths: [4k]\ndepths: [0]\ntasks: []\n", r"tasks: "),
        ("lengths: [4k]\ndepths: [0]\nsamples: 0\ntasks: [niah.single]\n", r"samples: 0 is not a number of samples"),
        ("lengths: [4k]\ndepths: [0]\ntasks: [niah.single, niah.single]\n", r"two tasks are labelled 'niah.single'"),
        ("lengths: [4k]\ndepths: [0]\ntasks: [niah.single]\nheadline: {retrieval: [x]}\n", r"headline names 'x'"),
        ("lengths: [4k]\ndepths: [0]\ntasks: [niah.single]\nprice: {in: 1}\n", r"unknown key 'price.in'"),
        ("lengths: [4k\n", r"is not YAML"),
        ("- a\n- b\n", r"holds no battery"),
        ("!!python/object/apply:os.system [true]\n", r"is not YAML"),
    ],
)
def test_a_wrong_battery_file_is_one_line_with_file_and_key(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(BatteryError, match=message) as caught:
        load(battery=file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


_GRID = "lengths: [4k]\ndepths: [0.5]\n"
_NIAH = _GRID + "tasks: [niah.single]\n"


def _bomb() -> str:
    """Nine levels of nine aliases: 9**9 values in a few hundred bytes."""
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9)]
    return "\n".join([*lines, "tasks: *l8\n"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_GRID + "tasks: 5\n", "tasks: 5 is not a list; write task names"),
        (_GRID + "tasks: {a: b}\n", "is not a list; write task names"),
        (_GRID + "tasks: [null]\n", "tasks.0: None is not a task"),
        (_GRID + "tasks: [[niah.single]]\n", "tasks.0: ['niah.single'] is not a task"),
        (_GRID + "tasks: [{tusk: niah.single}]\n", "unknown key 'tusk'; did you mean 'task'?"),
        (_GRID + "tasks: &a [*a]\n", "a YAML alias holds itself"),
        (_GRID + _bomb(), "unfold to more than 1,000,000 values"),
        (_GRID + "tasks: [{task: niah.single, params: 3}]\n", "tasks.0.params: 3 is not a mapping"),
        (_GRID + "tasks: []\n", "write a list of task names"),
        (_NIAH + "headline: 7\n", "headline: 7 is not a headline"),
        (_NIAH + "headline: {retrieval: 7}\n", "headline: 7 is not a list of tasks"),
        (_NIAH + "headline: {reasoning: [niah.single]}\n", "which is a task of retrieval"),
        (_NIAH + "seed: abc\n", "seed: 'abc' is not a whole number"),
        (_NIAH + "temperature: hot\n", "temperature: 'hot' is not a number"),
        (_NIAH + "concurrency: -3\n", "concurrency: -3 is out of range; it must be >= 1"),
        (_NIAH + "model_args: 7\n", "model_args: 7 is not a mapping"),
        ("tasks: [niah.single]\nlengths: [4k]\n", "depths: is missing; write for example depths"),
        ("tasks: [niah.single]\nlengths: {4k: 1}\ndepths: [0.5]\n", "lengths: {'4k': 1} is not a list"),
        ("tasks: " + "[" * 5000, "nested too deeply"),
    ],
)
def test_a_malformed_battery_is_refused_in_our_words(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(BatteryError) as caught:
        resolve_tasks(load(battery=file))
    said = str(caught.value)
    assert message in said
    assert "\n" not in said
    assert len(said) < 400


@pytest.mark.parametrize("key", ["tasks: 5", "tasks: [null]", "tasks: [{tusk: niah.single}]"])
def test_narrowing_a_malformed_battery_is_refused_too(file: Path, key: str) -> None:
    file.write_text(f"{_GRID}{key}\n")
    with pytest.raises(BatteryError, match="tasks"):
        load(battery=file, tasks="niah.single")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"battery": "qick"}, "did you mean 'quick'"),
        ({"battery": "missing.yaml"}, "cannot be read"),
        ({"battery": "quick", "set": "samples=4"}, "not of the form"),
        ({"battery": "quick", "set": "niah.multi.needles=4"}, "not in this battery"),
        ({"battery": "quick", "model_args": "n_ctx"}, "name=value"),
        ({"battery": "quick", "extra_body": "{"}, "--extra-body is not JSON"),
        ({"battery": "quick", "temperature": -1}, "temperature"),
        ({"battery": "quick", "prove": "x"}, "prove: 'x' is not one of 'always', 'sample' or 'never'"),
        ({"battery": "quick", "set": "niah.single=3"}, "write --set niah.single.PARAMETER=VALUE"),
        ({"battery": "quick", "tasks": "RULER"}, "'RULER' is a battery and no task; run it with: longreach run ruler"),
        ({"tasks": "nolima"}, "'nolima' is a battery and no task"),
        ({"tasks": "NIAH.SINGLE"}, "there is no task 'NIAH.SINGLE'; did you mean 'niah.single'"),
        ({"tasks": "ruler.niah_s"}, "did you mean one of 'ruler.niah_single_1', 'ruler.niah_single_2', 'ruler.niah_s"),
        ({"tasks": "niah.single,niah.single"}, "--tasks names 'niah.single' twice; name it once"),
        ({"battery": "quick", "tasks": ["ruler.vt", "ruler.vt"]}, "--tasks names 'ruler.vt' twice"),
    ],
)
def test_wrong_flags_are_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises((BatteryError, UnknownName), match=message):
        load(**options)


def test_an_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'haystack'"):
        resolve_tasks(load(battery="quick", set="niah.single.haystak=repeat"))


def test_a_parameter_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(BatteryError, match="must be of type int"):
        resolve_tasks(load(tasks="niah.multi", set="niah.multi.needles=many"))


@pytest.mark.parametrize(
    ("value", "shown"), [("niah.single.kind=", "kind ''"), ("niah.single.kind=null", "kind is None")]
)
def test_a_parameter_without_a_value_is_not_the_word_none(value: str, shown: str) -> None:
    with pytest.raises(ConfigError, match=shown):
        resolve_tasks(load(tasks="niah.single", set=value))


def test_a_run_folder_is_no_battery_but_its_config_is(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("{}")
    with pytest.raises(BatteryError, match=f"is a run folder; .* give its {tmp_path}/config.yaml"):
        load(battery=str(tmp_path))


def test_a_flag_that_no_task_takes_is_refused() -> None:
    with pytest.raises(BatteryError, match="--needles has no effect"):
        resolve_tasks(load(tasks="ruler.vt", needles="mine.csv"))


def test_a_corpus_file_is_pinned_by_its_content(tmp_path: Path) -> None:
    corpus = tmp_path / "book.txt"
    corpus.write_text("It was a quiet day in the valley. " * 50)
    (task,) = resolve_tasks(load(tasks="niah.single", corpus=str(corpus)))
    assert str(task.params["haystack"]).startswith(f"file:{corpus}#")


def test_a_mapping_is_a_battery_too() -> None:
    battery = load(battery={"name": "x", "lengths": ["1k"], "depths": [0.5], "tasks": ["niah.single"]})
    assert (battery.name, battery.lengths) == ("x", (1024,))
