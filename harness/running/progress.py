"""Signs of life on standard error: one live line on a terminal, plain lines elsewhere. Answers are never printed."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from longreach.harness.record import COUNTED, Record

EVERY_S = 10.0
"""Seconds between plain lines."""
QUIET_S = 30.0
"""Seconds without any line after which there is one although nothing is new."""


class Progress:
    """Counts what is done and tells about it. Rate and ETA go by tokens, since lengths differ."""

    def __init__(
        self, *, stream: IO[str] | None = None, live: bool | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._live_wanted = self._stream.isatty() if live is None else live
        self._clock = clock
        self._update: Callable[[str], None] | None = None
        self._started = self._said = clock()
        self._total = self._done = 0
        self._tokens_total = self._tokens_done = self._tokens_used = 0
        self._scores = 0.0
        self._counted = 0
        self._cost: float | None = 0.0

    def start(self, lengths: list[int], *, stored: int) -> None:
        """Says what lies ahead: the lengths of the samples to be sent, and how many are in the folder already."""
        self._total, self._tokens_total = len(lengths), sum(lengths)
        self._started = self._said = self._clock()
        if stored:
            self.say(f"{stored} samples are stored already, {len(lengths)} to go")

    def add(self, record: Record) -> None:
        """One more sample is on disk."""
        self._done += 1
        self._tokens_done += record.length
        self._tokens_used += (record.n_prompt_tokens or record.n_tokens or 0) + (record.n_output_tokens or 0)
        if record.outcome in COUNTED:
            self._counted += 1
            self._scores += record.score or 0.0
            self._cost = None if self._cost is None or record.cost_usd is None else self._cost + record.cost_usd
        if self._update is not None:
            self._update(self.line())
        elif self._clock() - self._said >= EVERY_S:
            self.say(self.line())

    def beat(self) -> None:
        """Called from time to time: says that the run is alive where it has been quiet for long."""
        if self._update is None and self._clock() - self._said >= QUIET_S:
            self.say(self.line() if self._total else "waiting for the endpoint's first answers")

    def line(self) -> str:
        """The state in one line."""
        spent = max(self._clock() - self._started, 1e-9)
        rate = self._tokens_done / spent
        left = (self._tokens_total - self._tokens_done) / rate if rate > 0 else None
        parts = [
            f"{self._done}/{self._total} samples",
            f"{self._done / spent:.1f}/s",
            f"{self._tokens_used:,} tokens",
            f"{self._cost:.4f} USD" if self._cost is not None else "cost unknown",
            f"mean score {self._scores / self._counted:.2f}" if self._counted else "no score yet",
            f"about {_duration(left)} left" if left is not None else "time left unknown",
        ]
        return " | ".join(parts)

    def say(self, text: str) -> None:
        """One plain line."""
        self._said = self._clock()
        self._stream.write(f"longreach: {text}\n")
        self._stream.flush()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the state while the block runs, and the last state at its end."""
        if not self._live_wanted:
            try:
                yield
            finally:
                if self._done:
                    self.say(self.line())
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(file=self._stream)  # honours NO_COLOR
        with Live(Text(self.line()), console=console, refresh_per_second=4) as live:
            self._update = lambda text: live.update(Text(text))
            try:
                yield
            finally:
                self._update = None


def _duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
