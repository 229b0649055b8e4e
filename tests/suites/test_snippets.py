"""Shuffled snippets: nothing lost, nothing twice, the same on every machine, drawn anew by the seed."""

from collections import Counter
from pathlib import Path

from longreach.harness.data import pin
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid
from longreach.harness.tokenizer import WordsTokenizer
from longreach.suites.snippets import SNIPPET, shuffled, snippets_of, split


def _text() -> str:
    lines = [f"Line {number} tells of {number * 7} gulls over the bay. " * (1 + number % 40) for number in range(300)]
    return "\n".join(line.strip() for line in lines)


def test_snippets_are_large_enough_and_hold_every_word_once() -> None:
    parts = split(_text())
    assert all(SNIPPET <= len(part) < 2 * SNIPPET + 60 for part in parts[:-1])
    assert Counter(" ".join(parts).split()) == Counter(_text().split())
    assert split("") == []


def test_a_seed_draws_an_order_and_a_shorter_text_begins_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "gulls.txt"
    path.write_text(_text())
    spec = pin(str(path))
    first, again, other = (shuffled(spec, 10**6, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert Counter(first.split()) == Counter(other.split()) == Counter(_text().split())
    assert first.startswith(shuffled(spec, 20_000, 1))
    assert 20_000 <= len(shuffled(spec, 20_000, 1)) < 23_000


def test_texts_made_here_are_left_as_they_are() -> None:
    assert snippets_of("mixed") == "mixed"
    assert snippets_of("noise") == "noise"
    assert snippets_of("bible") == "snippets/bible"


def test_a_task_reads_a_file_in_snippets_or_in_its_own_order(tmp_path: Path) -> None:
    path = tmp_path / "gulls.txt"
    path.write_text(_text())
    grid = Grid(lengths=(4096,), depths=(0.5,), n=1)
    texts = {}
    for mixed_up in (True, False):
        task = get_task("nolima.onehop", haystack=pin(str(path)), shuffled=mixed_up)
        sample = task.sample(next(iter(task.points(grid))), WordsTokenizer())
        assert 0 <= 4096 - task.info.reserve - sample.n_tokens <= 8
        texts[mixed_up] = sample.haystack_text.replace(sample.extra["sought"][0], "")
    order = [int(word) for word in texts[False].split() if word.isdigit()][::2]
    assert order == sorted(order)
    assert [int(word) for word in texts[True].split() if word.isdigit()][::2] != order
