import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longreach.adapters.simulator import Simulator
from longreach.harness.errors import ConfigError, ContentFiltered, ContextOverflow, ModelError
from longreach.harness.model import Model, Request, Response
from longreach.harness.registry import open_model
from longreach.harness.sample import Message, Point, Sample


def make_sample(index: int = 0, **changes: Any) -> Sample:
    point = {"task": "niah.single@1", "length": 4096, "depth": 0.5, "index": index, "seed": 42}
    point |= {key: changes.pop(key) for key in list(changes) if key in point}
    fields: dict[str, Any] = {"target": ("4817",), "choices": ("1111", "2222"), "n_tokens": 4000, "tokenizer": "words"}
    return Sample(point=Point(**point), messages=(Message(role="user", content="?"),), **(fields | changes))


def ask(model: Model, sample: Sample) -> Response:
    return asyncio.run(model.generate(Request(messages=sample.messages, max_new_tokens=32, sample=sample)))


def share_right(model: Model, n: int = 400, **point: Any) -> float:
    samples = [make_sample(index, **point) for index in range(n)]

    async def all_of_them() -> list[Response]:
        return [await model.generate(Request(messages=s.messages, max_new_tokens=32, sample=s)) for s in samples]

    return sum(response.text == "4817" for response in asyncio.run(all_of_them())) / n


@pytest.fixture
def profile(tmp_path: Path) -> Callable[..., Simulator]:
    def write(text: str) -> Simulator:
        path = tmp_path / "profile.yaml"
        path.write_text(text)
        model = open_model(f"sim:{path}")
        assert isinstance(model, Simulator)
        return model

    return write


def test_it_is_a_model_and_marked_simulated() -> None:
    model = open_model("sim:perfect")
    assert isinstance(model, Model)
    assert model.simulated
    assert model.name == "sim:perfect"


def test_perfect_gives_the_target_and_our_own_count() -> None:
    response = ask(open_model("sim:perfect"), make_sample(target=("A", "B")))
    assert (response.text, response.n_prompt_tokens, response.finish) == ("A, B", 4000, "stop")


def test_cliff_is_right_up_to_and_including_its_length() -> None:
    model = open_model("sim:cliff@32k")
    assert ask(model, make_sample(length=32768)).text == "4817"
    assert ask(model, make_sample(length=32769)).text != "4817"


def test_logistic_is_half_right_at_its_length() -> None:
    model = open_model("sim:logistic@64k")
    assert isinstance(model, Simulator)
    chances = [model.probability(make_sample(length=k * 1024).point) for k in (32, 64, 128)]
    assert chances[1] == 0.5
    assert math.isclose(chances[0] + chances[2], 1.0)
    assert abs(share_right(model, length=65536) - 0.5) < 0.08


def test_the_same_sample_gets_the_same_answer_from_another_instance() -> None:
    samples = [make_sample(index, length=65536) for index in range(50)]
    first, second = open_model("sim:logistic@64k"), open_model("sim:logistic@64k")
    assert [ask(first, s).text for s in samples] == [ask(second, s).text for s in samples]


def test_a_better_model_is_right_wherever_a_worse_one_is() -> None:
    worse, better = open_model("sim:logistic@32k"), open_model("sim:logistic@64k")
    samples = [make_sample(index, length=32768) for index in range(100)]
    assert all(ask(better, s).text == "4817" for s in samples if ask(worse, s).text == "4817")


def test_profile_is_log_linear_between_lengths_and_flat_outside(profile: Callable[..., Simulator]) -> None:
    model = profile("retrieval: {4k: 1.0, 16k: 0.8}")
    chance = {k: model.probability(make_sample(length=k * 1024).point) for k in (1, 4, 8, 16, 64)}
    assert chance == pytest.approx({1: 1.0, 4: 1.0, 8: 0.9, 16: 0.8, 64: 0.8})


def test_profile_depth_is_zero_at_both_ends_and_linear_between(profile: Callable[..., Simulator]) -> None:
    model = profile("retrieval: {4k: 0.9}\ndepth: {0.5: -0.2}")
    chance = [model.probability(make_sample(depth=depth).point) for depth in (0.0, 0.25, 0.5, 1.0, None)]
    assert chance == pytest.approx([0.9, 0.8, 0.7, 0.9, 0.9])


def test_profile_task_goes_before_capability_whatever_its_parameters(profile: Callable[..., Simulator]) -> None:
    model = profile("retrieval: {4k: 1.0}\ntasks: {own.task: {4k: 0.25}}")
    assert model.probability(make_sample(task='own.task@3?{"hops":2}').point) == 0.25
    assert model.probability(make_sample(task="another.task@1").point) == 1.0


def test_profile_latency_is_computed_and_price_is_told(profile: Callable[..., Simulator]) -> None:
    model = profile("latency: {prefill_tokens_per_s: 2000, decode_tokens_per_s: 10}\nprice: {input: 2.5}")
    response = ask(model, make_sample(target=("yes",)))
    assert (response.ttft_s, response.latency_s) == (2.0, 2.1)
    assert (model.price.input, model.price.output) == (2.5, None)


def test_wrong_answers_come_in_the_given_shares(profile: Callable[..., Simulator]) -> None:
    model = profile("retrieval: {4k: 0.0}\nwrong: {distractor: 0.5, near: 0.25, empty: 0.25}")
    texts = [ask(model, make_sample(index)).text for index in range(400)]
    assert set(texts) == {"1111", "2222", "4818", ""}
    assert abs(texts.count("") / 400 - 0.25) < 0.07
    assert abs(texts.count("4818") / 400 - 0.25) < 0.07


def test_a_wrong_answer_never_names_a_target() -> None:
    model = open_model("sim:cliff@1k")
    for target in ("4817", "Paris", "x", "0099", "A12B"):
        sample = make_sample(target=(target,), choices=(f"not {target}", target))
        assert target not in ask(model, sample).text


def test_a_merely_wrong_model_is_never_empty_by_default() -> None:
    model = open_model("sim:cliff@1k")
    assert all(ask(model, make_sample(index, choices=())).text for index in range(50))


def test_longer_prompts_than_the_window_overflow() -> None:
    model = open_model("sim:perfect", window="4k")
    assert model.window == 4096
    assert ask(model, make_sample(n_tokens=4064)).text == "4817"
    with pytest.raises(ContextOverflow, match="window of 4,096"):
        ask(model, make_sample(n_tokens=4065))


@pytest.mark.parametrize(
    ("fault", "error"), [("refused", ContentFiltered), ("overflow", ContextOverflow), ("failed", ModelError)]
)
def test_faults_raise_what_a_server_would(
    profile: Callable[..., Simulator], fault: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(profile(f"faults: {{{fault}: 1.0}}"), make_sample())


def test_faults_hit_their_share_of_points_and_always_the_same(profile: Callable[..., Simulator]) -> None:
    model = profile("faults: {no_answer: 0.1, truncated: 0.1}")
    responses = [ask(model, make_sample(index)) for index in range(300)]
    assert 15 <= sum(not r.text and r.finish == "length" for r in responses) <= 48
    assert 15 <= sum(r.n_prompt_tokens == 2000 for r in responses) <= 48
    assert responses == [ask(model, make_sample(index)) for index in range(300)]


def test_a_flaky_model_goes_at_the_second_try(profile: Callable[..., Simulator]) -> None:
    model = profile("faults: {flaky: 1.0}")
    with pytest.raises(ModelError) as caught:
        ask(model, make_sample())
    assert caught.value.transient
    assert ask(model, make_sample()).text == "4817"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("retreival: {4k: 1.0}", "did you mean 'retrieval'"),
        ("retrieval: {4kb: 1.0}", "'4kb' is not a length"),
        ("retrieval: {4k: 1.2}", "'?1.2'? is not a number from 0 to 1"),
        ("retrieval: {4k: .nan}", "is not a number"),
        ("retrieval: {}", "at least one length"),
        ("retrieval: 0.9", "a mapping of names to values"),
        ("latency: {prefil_tokens_per_s: 3}", "did you mean 'prefill_tokens_per_s'"),
        ("wrong: {near: 0.5}", "add up to 0.5; they must add up to 1"),
        ("faults: {failed: 0.7, refused: 0.7}", "at most 1"),
        ("- 1\n- 2", "a mapping of names"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_bad_profile_is_refused_with_a_reason(profile: Callable[..., Simulator], text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        profile(text)


def test_a_name_that_is_neither_shape_nor_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="perfect, cliff@LENGTH"):
        open_model("sim:perfekt")


def test_without_the_answer_key_it_says_so() -> None:
    request = Request(messages=(Message(role="user", content="?"),), max_new_tokens=8)
    with pytest.raises(ModelError, match="answer key"):
        asyncio.run(open_model("sim:perfect").generate(request))
