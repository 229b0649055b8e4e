"""How full are RULER's prompts, and are they fair? `python tests/studies/fill.py [--samples 100] [--lengths 4k,32k,128k]`

The thirteen tasks with cl100k_base, built without proof: tokens that each prompt falls short of its length by an encode of the
whole of it, apart from the builder; the share whose summed length was that one (the proof would have changed nothing); the score of the reference solver, and two
controls, the solver without the context and a plausible wrong answer. No program answers SQuAD's questions, so that the
solver of the QA tasks gets invented documents. Then positions: chi-square of the depths of 500 samples against uniform.
"""

import argparse
import importlib.util
import statistics
import tempfile
from pathlib import Path
from typing import Any

from longreach.harness.lengths import format_length, parse_lengths
from longreach.harness.model import Response
from longreach.harness.registry import get_task, open_tokenizer
from longreach.harness.sample import Grid, Message, Sample
from longreach.harness.task import Solvable, Task
from longreach.harness.tokenizer import Tokenizer, WithProof

TOLERANCE = 8
BINS = 10
POSITIONS = ("qa_1", "qa_2", "niah_single_1", "niah_multikey_2", "niah_multikey_3", "vt")
ABOUT = "{task:16} {length:>6} {n:>4} {least:>5} {mean:>6.2f} {most:>5} {exact:>9.0%} {solver:>7.3f} {blind:>8.3f} {wrong:>6.3f}"


def bench() -> Any:
    """The module bench.py beside this one."""
    spec = importlib.util.spec_from_file_location("bench", Path(__file__).with_name("bench.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_context(sample: Sample) -> tuple[Message, ...]:
    """The prompt with nothing between its head and its question."""
    start, end = sample.extra["context"]
    content = sample.messages[-1].content
    return (*sample.messages[:-1], Message(role="user", content=content[:start] + content[end:]))


def value(task: Task, sample: Sample, answer: str | None) -> float:
    return task.score(sample, Response(text=answer or "")).value


def row(name: str, task: Task, solved: Task, length: int, tokenizer: Tokenizer, n: int) -> dict[str, Any]:
    """What `n` prompts of one length show; `solved` is the task on documents that its solver knows."""
    assert isinstance(solved, Solvable)
    unproven = WithProof(tokenizer, "never")
    short, exact, scores, blind, wrong = [], [], [], [], []
    for point in task.points(Grid(lengths=(length,), depths=(0.5,), n=n)):
        sample = task.sample(point, unproven)
        encoded = tokenizer.count(tokenizer.render(sample.messages, sample.answer_prefix))
        short.append(length - task.info.reserve - encoded)
        exact.append(sample.n_tokens == encoded)
        known = sample if solved is task else solved.sample(point, unproven)
        scores.append(value(solved, known, solved.solve(known.messages)))
        blind.append(value(solved, known, solved.solve(without_context(known))))
        wrong.append(value(solved, known, known.choices[0]))
    assert min(short) >= 0, name
    assert max(short) <= TOLERANCE, name
    means = {"solver": scores, "blind": blind, "wrong": wrong, "exact": exact, "mean": short}
    return {
        "task": name.removeprefix("ruler."),
        "length": format_length(length),
        "n": n,
        "least": min(short),
        "most": max(short),
        **{key: statistics.fmean(found) for key, found in means.items()},
    }


def positions(name: str, task: Task, tokenizer: Tokenizer, n: int) -> str:
    """Chi-square of where the needles of `n` samples stand, one needle of each sample in turn."""
    from scipy.stats import chisquare

    counts = [0] * BINS
    points = list(task.points(Grid(lengths=(32768,), depths=(0.5,), n=n)))
    for point in points:
        placed = task.sample(point, WithProof(tokenizer, "never")).placed
        counts[min(int(placed[point.index % len(placed)] * BINS), BINS - 1)] += 1
    found = chisquare(counts)
    return f"{name:16} {counts}  chi2({BINS - 1}) = {found.statistic:.1f}, p = {found.pvalue:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--lengths", default="4k,32k,128k")
    parser.add_argument("--positions", type=int, default=500, help="samples of each chi-square")
    options = parser.parse_args()
    module = bench()
    with tempfile.TemporaryDirectory() as folder:
        module.prepare(Path(folder))
        tokenizer = open_tokenizer("tiktoken:cl100k_base")
        print("task             length    n   min   mean   max predicted  solver  no text  wrong")
        thirteen = module.the_thirteen()
        for name, task in thirteen.items():
            solved = get_task(name, documents="generated") if hasattr(task, "documents") else task
            for length in parse_lengths(options.lengths):
                print(ABOUT.format(**row(name, task, solved, length, tokenizer, options.samples)), flush=True)
        print(f"\nneedles of {options.positions} samples of 32k in tenths of the text")
        for name in POSITIONS:
            print(positions(name, thirteen[f"ruler.{name}"], tokenizer, options.positions), flush=True)


if __name__ == "__main__":
    main()
