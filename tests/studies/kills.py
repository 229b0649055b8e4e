"""Study: one run of 500 samples, killed 50 times by SIGKILL at random moments, against the same run unbroken.

Held: identical results (timing columns aside), no sample scored twice, and no more requests than samples plus what was in
flight at each kill. Prints one JSON line; exits 1 if something does not hold.

    python tests/studies/kills.py [kills] [samples]
"""

import csv
import importlib.util
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from longreach.harness.registry import get_task
from longreach.harness.sample import Message

TIMING = ("ttft_s", "latency_s")
CONCURRENCY = 8
CANARIES = 3
"""Requests before the grid, in each process that is killed before its first record."""


def fault_server() -> Any:
    """The module beside this folder."""
    spec = importlib.util.spec_from_file_location("fault_server", Path(__file__).parent.parent / "fault_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fault_server"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def solve(text: str) -> str | None:
    """The answer of a single needle."""
    return get_task("niah.single").solve((Message(role="user", content=text),))  # type: ignore[attr-defined, no-any-return]


def start(folder: Path, url: str, samples: int) -> subprocess.Popen[bytes]:
    """The run as a process of its own."""
    words = ["run", "--tasks", "niah.single", "--lengths", "512", "--depths", "0,0.25,0.5,0.75,1"]
    words += ["--samples", str(samples // 5), "--model", "openai:m", "--base-url", url, "--out", str(folder)]
    command = [sys.executable, "-m", "longreach", *words, "--concurrency", str(CONCURRENCY)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def n_lines(folder: Path) -> int:
    """Records on disk."""
    path = folder / "records.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def rows(folder: Path) -> list[dict[str, str]]:
    """results.csv without what the clock says."""
    with (folder / "results.csv").open() as file:
        return [{name: value for name, value in row.items() if name not in TIMING} for row in csv.DictReader(file)]


def killed_run(server: Any, folder: Path, kills: int, samples: int, rng: random.Random) -> tuple[int, int]:
    """Runs to the end through so many kills; returns how many hit, and the requests that were in flight then."""
    done = in_flight = 0
    while done < kills:
        process = start(folder, server.url, samples)
        before = n_lines(folder)
        # Somewhere within the next few answers, so that the kills spread over the whole run.
        wanted = before + rng.randrange(1, max(2 * (samples - before) // (kills - done), 2))
        while n_lines(folder) < min(wanted, samples) and process.poll() is None:
            time.sleep(0.002)
        if process.poll() is not None:
            break
        time.sleep(rng.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        in_flight += server.in_flight
        done += 1
    assert start(folder, server.url, samples).wait() == 0
    return done, in_flight


def main(kills: int = 50, samples: int = 500) -> int:
    """The study."""
    module = fault_server()
    with tempfile.TemporaryDirectory() as temporary:
        found: dict[str, Any] = {}
        for name in ("unbroken", "killed"):
            server = module.FaultServer()
            server.oracle = module.Oracle(solve=solve, prefill_s=0.03 / 512)
            folder = Path(temporary) / name
            if name == "unbroken":
                assert start(folder, server.url, samples).wait() == 0
            else:
                found["kills"], found["in_flight_at_kills"] = killed_run(
                    server, folder, kills, samples, random.Random(4)
                )
            found[f"requests_{name}"] = server.n_requests
            server.close()
        killed, unbroken = Path(temporary) / "killed", Path(temporary) / "unbroken"
        lines = [json.loads(line) for line in (killed / "records.jsonl").read_text().splitlines()]
        found["samples"] = samples
        found["identical_results"] = rows(killed) == rows(unbroken)
        found["scored_twice"] = sum(n > 1 for n in Counter(line["key"] for line in lines).values())
        found["requests_above_samples"] = found["requests_killed"] - samples
        # A kill loses at most what was in flight; canaries are asked again until the first record is there.
        allowed = found["kills"] * CONCURRENCY + CANARIES
        found["holds"] = (
            found["identical_results"] and not found["scored_twice"] and found["requests_above_samples"] <= allowed
        )
        print(json.dumps(found))
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
