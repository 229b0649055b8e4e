"""Study: one run of 500 samples, killed 50 times by SIGKILL at random moments, against the same run unbroken.

An answer is in flight from the moment its request is sent until its record is on disk; there are never more of them than
the run's concurrency. Held:

    identical results (timing columns aside), and no sample scored twice
    at each kill, requests of that process without a record  <=  concurrency
    all requests for samples  <=  samples + what was in flight at each kill

Beside it stands the server's own view, which knows nothing of the disk: requests that it had not yet answered in full at
the kill. What it had answered and the killed process had not yet stored is `answered_not_stored`.
Canaries, which look at the endpoint once before the first record, are counted apart. Prints one JSON line; exits 1 if
something does not hold.

    python tests/studies/kills.py [kills] [samples]
"""

import asyncio
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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longreach.harness.registry import get_task
from longreach.harness.sample import Message

TIMING = ("ttft_s", "latency_s")
CONCURRENCY = 8
LATENCY_S = (0.2, 0.6)
"""Of a reply, drawn evenly."""


def fault_server() -> Any:
    """The module beside this folder."""
    spec = importlib.util.spec_from_file_location("fault_server", Path(__file__).parent.parent / "fault_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fault_server"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def solve(text: str) -> str | None:
    """The answer of a single needle; None for a canary."""
    return get_task("niah.single").solve((Message(role="user", content=text),))  # type: ignore[attr-defined, no-any-return]


def counting_server() -> Any:
    """A fault server whose oracle tells samples from canaries, and answers after a while."""
    module = fault_server()

    class Counting(module.Oracle):  # type: ignore[name-defined, misc]
        def __post_init__(self) -> None:
            super().__post_init__()
            self.n_samples = self.n_canaries = 0

        async def reply(self, sent: Mapping[str, Any]) -> Any:
            if solve(sent["messages"][-1]["content"]) is None:
                self.n_canaries += 1
            else:
                self.n_samples += 1
            await asyncio.sleep(self._rng.uniform(*LATENCY_S))
            return await super().reply(sent)

    server = module.FaultServer()
    server.oracle = Counting(solve=solve)
    return server


def start(folder: Path, url: str, samples: int) -> subprocess.Popen[bytes]:
    """The run as a process of its own."""
    words = ["run", "--tasks", "niah.single", "--lengths", "512", "--depths", "0,0.25,0.5,0.75,1"]
    words += ["--samples", str(samples // 5), "--model", "openai:m", "--base-url", url, "--out", str(folder)]
    command = [sys.executable, "-m", "longreach", *words, "--concurrency", str(CONCURRENCY)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def n_records(folder: Path) -> int:
    """Whole lines on disk."""
    path = folder / "records.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def rows(folder: Path) -> list[dict[str, str]]:
    """results.csv without what the clock says."""
    with (folder / "results.csv").open() as file:
        return [{name: value for name, value in row.items() if name not in TIMING} for row in csv.DictReader(file)]


@dataclass(frozen=True, kw_only=True)
class Kill:
    """What one kill cost."""

    lost: int
    """Requests of the killed process without a record: what it had in flight."""
    at_server: int
    """Those of them that the server had not yet answered in full."""


def killed_run(server: Any, folder: Path, kills: int, samples: int, rng: random.Random) -> list[Kill]:
    """Runs to the end through so many kills."""
    found: list[Kill] = []
    while len(found) < kills:
        asked, stored = server.oracle.n_samples, n_records(folder)
        process = start(folder, server.url, samples)
        # Somewhere within the next few answers, so that the kills spread over the whole run.
        wanted = stored + rng.randrange(1, max(2 * (samples - stored) // (kills - len(found)), 2))
        while n_records(folder) < min(wanted, samples - 1) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.random() * LATENCY_S[1])
        if process.poll() is not None:
            break
        at_server, arrived = server.in_flight, server.n_requests
        process.send_signal(signal.SIGKILL)
        process.wait()
        while server.in_flight:  # requests that were on their way count too
            time.sleep(0.05)
        lost = server.oracle.n_samples - asked - (n_records(folder) - stored)
        found.append(Kill(lost=lost, at_server=at_server + server.n_requests - arrived))
    assert start(folder, server.url, samples).wait() == 0
    return found


def main(kills: int = 50, samples: int = 500) -> int:
    """The study."""
    with tempfile.TemporaryDirectory() as temporary:
        killed, unbroken = Path(temporary) / "killed", Path(temporary) / "unbroken"
        server = counting_server()
        assert start(unbroken, server.url, samples).wait() == 0
        found: dict[str, Any] = {"samples": samples, "requests_unbroken": server.oracle.n_samples}
        server.close()
        server = counting_server()
        told = killed_run(server, killed, kills, samples, random.Random(4))
        server.close()
        lines = [json.loads(line) for line in (killed / "records.jsonl").read_text().splitlines()]
        in_flight, at_server = sum(kill.lost for kill in told), sum(kill.at_server for kill in told)
        most = max((kill.lost for kill in told), default=0)
        twice = sum(n > 1 for n in Counter(line["key"] for line in lines).values())
        requests = server.oracle.n_samples
        identical = rows(killed) == rows(unbroken)
        found |= {
            "kills": len(told),
            "requests": requests,
            "canaries": server.oracle.n_canaries,
            "in_flight_at_kills": in_flight,
            "most_in_flight_at_a_kill": most,
            "concurrency": CONCURRENCY,
            "unanswered_at_server_at_kills": at_server,
            "answered_not_stored": in_flight - at_server,
            "identical_results": identical,
            "scored_twice": twice,
            "inequality": f"{requests} <= {samples} + {in_flight}",
            "inequality_of_the_server": f"{requests} <= {samples} + {at_server} + {in_flight - at_server}",
        }
        found["holds"] = identical and not twice and most <= CONCURRENCY and requests <= samples + in_flight
        print(json.dumps(found))
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
