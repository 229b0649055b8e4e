"""tiktoken: counts, spans, offline failure."""

import importlib.metadata
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from longreach.adapters.tiktoken_tokenizer import TiktokenTokenizer, open_tokenizer
from longreach.harness.errors import ConfigError, DataError, UnknownName
from longreach.harness.sample import Message, Point
from longreach.suites.cuts import find_cuts
from longreach.suites.haystack import Needle, build

CL100K = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
TEXT = "Ünïcode 日本語 👩🏽‍🚀 x  y\n\n\tก็ don't <|endoftext|> 1234567 "


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the vocabularies that another package brings along; tiktoken looks nowhere else."""
    folder = tmp_path_factory.mktemp("tiktoken") / "cache"
    package = importlib.metadata.distribution("llama-index-core")
    shutil.copytree(str(package.locate_file("llama_index/core/_static/tiktoken_cache")), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(params=["cl100k_base", "o200k_base"])
def tokenizer(request: pytest.FixtureRequest, vocabularies: Path) -> TiktokenTokenizer:
    return open_tokenizer(request.param)


def test_spans_cover_the_text_without_a_gap(tokenizer: TiktokenTokenizer) -> None:
    starts, ends = tokenizer.spans(TEXT)
    assert starts.size == ends.size == tokenizer.count(TEXT)
    assert starts[0] == 0 and ends[-1] == len(TEXT)
    assert all(starts[1:] <= ends[:-1])
    ascii_text = "The wind had dropped, and it was late."
    starts, ends = tokenizer.spans(ascii_text)
    assert [ascii_text[a:b] for a, b in zip(starts[:3], ends[:3], strict=True)] == ["The", " wind", " had"]


def test_special_token_strings_count_as_ordinary_text(tokenizer: TiktokenTokenizer) -> None:
    assert tokenizer.count("<|endoftext|>") > 1
    assert not tokenizer.knows_template


def test_lone_surrogates_and_the_empty_text_are_counted(tokenizer: TiktokenTokenizer) -> None:
    assert tokenizer.count("a\ud800b") >= 3
    assert tokenizer.count("") == 0
    assert find_cuts("", tokenizer).n_tokens == 0


def test_a_panic_becomes_a_message(vocabularies: Path) -> None:
    with pytest.raises(DataError, match="run of several hundred thousand blanks"):
        open_tokenizer("o200k_base").count(" " * 1_000_000)


def test_a_model_name_finds_its_encoding(vocabularies: Path) -> None:
    assert open_tokenizer("gpt-4o").name == "tiktoken:o200k_base"


def test_a_rank_file_counts_as_the_encoding_does(vocabularies: Path, tmp_path: Path) -> None:
    path = tmp_path / "my.tiktoken"
    shutil.copy(vocabularies / CL100K, path)
    tokenizer = open_tokenizer(str(path))
    assert tokenizer.name == "tiktoken:cl100k_base@223921b7"
    assert tokenizer.count(TEXT * 20) == open_tokenizer("cl100k_base").count(TEXT * 20)


def test_a_file_that_holds_no_ranks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.tiktoken"
    path.write_text("this is\nno rank file", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a tiktoken rank file"):
        open_tokenizer(str(path))


def test_an_unknown_name_lists_the_encodings() -> None:
    with pytest.raises(UnknownName, match="cl100k_base"):
        open_tokenizer("no-such-encoding")


def test_without_network_one_line_gives_three_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "empty"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(ConfigError) as caught:
        open_tokenizer("p50k_base")
    message = str(caught.value)
    assert "\n" not in message
    assert all(way in message for way in ("TIKTOKEN_CACHE_DIR", "--tokenizer hf:PATH", "--tokenizer words"))


def test_prompts_are_exact(tokenizer: TiktokenTokenizer) -> None:
    for index, length in enumerate((512, 1000, 4096, 20_000)):
        point = Point(task="t", length=length, depth=0.4, index=index, seed=1)
        sample = build(
            point,
            tokenizer,
            haystack=("mixed", "noise", "stdlib")[index % 3],
            needles=[Needle(text="Zorbla likes quince.", depth=0.4)],
            head="Text:\n\n",
            tail="\n\nWhat does Zorbla like?",
            reserve=16,
            rng=point.rng(),
            target=("quince",),
        )
        assert 0 <= length - 16 - tokenizer.count(sample.messages[0].content) <= 8
        assert abs(sample.placed[0] - 0.4) <= 0.01


def test_render_joins_the_contents(tokenizer: TiktokenTokenizer) -> None:
    messages = [Message(role="system", content="A"), Message(role="user", content="B")]
    assert tokenizer.render(messages, "C") == "A\n\nBC"
