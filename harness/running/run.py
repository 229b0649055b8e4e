"""run(): from options to a run folder with its card; the one function behind the command line and the Python API.

Repeating a call resumes it: samples that are stored are not asked again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longreach.harness.errors import LongreachError
from longreach.harness.record import Record
from longreach.harness.running.budget import Caps
from longreach.harness.running.conduct import Cell, Collected, Conductor, drive
from longreach.harness.running.frame import frame
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import Prepared, prepare
from longreach.harness.running.progress import Progress
from longreach.harness.running.results import write_results
from longreach.harness.running.store import Store, open_store

if TYPE_CHECKING:
    import pandas as pd

    from longreach.harness.report.card import Card

ConductorOf = Callable[[Prepared, Store, Caps, Progress], Conductor]


@dataclass(slots=True, kw_only=True)
class Run:
    """A finished or stopped run."""

    folder: Path
    records: list[Record]
    """Last state of each sample, in the order of results.csv."""
    card: "Card"
    stopped: str | None
    """Why it ended early, if it did."""
    untested: tuple[Cell, ...]
    """Planned cells (task, length, depth) that are not tested."""
    exit_code: int
    """0 done, 3 incomplete, 4 model unusable."""
    error: LongreachError | None = None
    _frame: "pd.DataFrame | None" = field(default=None, init=False)

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per record: the columns of results.csv, and capability and family."""
        if self._frame is None:
            self._frame = frame(self.records)
        return self._frame


def run(battery: Any = None, *, model: Any = None, lengths: Any = None, out: Any = None, **options: Any) -> Run:
    """Plans, runs or resumes, scores, stores and writes the card.

    Args:
        battery: built-in name, YAML file, a run's config.yaml, or a mapping like one.
        model: SPEC such as `openai:NAME`; default: the embedded model.
        lengths: `["4k", 8192]` or `"4k,8k"`.
        out: run folder.
        options: the flags of `longreach run` by name, underscores for hyphens.

    Raises:
        ConfigError, RunFolderError, ModelUnusable: nothing useful could be done. A run that was stopped early is
        returned with `stopped` set.
    """
    given = Options.of(battery=battery, model=model, lengths=lengths, out=out, **options)
    finished = run_options(given, Progress())
    if finished.error is not None:
        raise finished.error
    return finished


def run_options(options: Options, progress: Progress) -> Run:
    """`run` for options that are made already; an unusable model is reported in the Run."""
    return finish(prepare(options), Conductor, progress)


def finish(prepared: Prepared, conductor: ConductorOf, progress: Progress) -> Run:
    """Opens the folder, lets a conductor do its work, writes the card."""
    caps = caps_of(prepared)
    with open_store(prepared.folder, prepared.secrets) as store:
        collected = drive(conductor(prepared, store, caps, progress))
        card, records = write_results(prepared.folder, store.records, progress.say)
    return Run(
        folder=prepared.folder,
        records=records,
        card=card,
        stopped=collected.stopped,
        untested=collected.untested,
        exit_code=collected.exit_code,
        error=collected.error,
    )


def caps_of(prepared: Prepared) -> Caps:
    """The limits of this command.

    Raises:
        ConfigError: a limit on cost without prices.
    """
    battery = prepared.battery
    return Caps(
        price=prepared.price, max_cost=battery.max_cost, max_tokens=battery.max_tokens, max_time=battery.max_time
    )


def collect(prepared: Prepared, store: Store, caps: Caps, progress: Progress) -> Collected:
    """The part of a run that talks to the model: records and config.yaml, no card yet."""
    return drive(Conductor(prepared, store, caps, progress))
