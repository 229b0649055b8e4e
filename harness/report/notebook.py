"""report.ipynb of a run folder: written from a template, executed where nbclient and ipykernel are installed.

The kernel is this very interpreter, started without the user's IPython profile and killed at the time limit. The file
holds no time, no path and no version of the machine: same results, same matplotlib, same bytes.
"""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from longreach.harness.errors import RunFolderError
from longreach.harness.files import replacing
from longreach.harness.report.wording import markdown, plain
from longreach.harness.task import THRESHOLDS

NAME = "report.ipynb"
INSTALL = "pip install 'longreach[report]'"
LIMIT_S = 180.0
"""Seconds for the whole notebook; 3 are usual."""
RECALL = 0.95
"""Asked of retrieval beside its own threshold: is recall above 0.95?"""
_CELL = "# %% "
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def write_notebook(
    folder: Path,
    *,
    title: str,
    simulated: bool,
    thresholds: Mapping[str, float],
    headline: Mapping[str, Sequence[str]],
    limit_s: float = LIMIT_S,
) -> tuple[Path, str | None]:
    """Writes report.ipynb into a run folder; the file is either old or new, never half.

    Args:
        folder: the run folder, which holds results.csv (and config.yaml).
        title: heading; may come from a model's name, so it is shown as text.
        thresholds: mean score to be held against, by capability; the project's own where one is missing.
        headline: labels of the tasks by capability.
        limit_s: seconds for all cells together.

    Returns:
        The path, and one line for the user if the notebook could not be executed.

    Raises:
        RunFolderError: there is no results.csv.
    """
    if not (folder / "results.csv").is_file():
        raise RunFolderError(
            f"{folder} holds no results.csv, which report.ipynb reads; run `longreach rescore {folder}`"
        )
    cells = notebook_cells(title=title, simulated=simulated, thresholds=thresholds, headline=headline)
    book, missing = _notebook(cells), _missing()
    reason = missing or _execute(book, folder, limit_s)
    if reason is not None:  # what a failure says may name files of this machine: it goes to the user only
        cells.insert(0, ("markdown", "unexecuted", _unexecuted(missing or "its cells did not run to the end")))
        book = _notebook(cells)
    path = folder / NAME
    with replacing(path) as file:
        file.write(_nbformat().writes(book) + "\n")
    return path, None if reason is None else f"{NAME} was written but not executed: {reason}"


def notebook_cells(
    *, title: str, simulated: bool, thresholds: Mapping[str, float], headline: Mapping[str, Sequence[str]]
) -> list[tuple[str, str, str]]:
    """(kind, id, source) of each cell; kind is `code` or `markdown`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    tasks = {name: list(labels) for name, labels in headline.items() if labels and name in THRESHOLDS}
    questions = [(name, float(thresholds.get(name, THRESHOLDS[name]))) for name in tasks]
    if "retrieval" in tasks and ("retrieval", RECALL) not in questions:
        questions.insert([name for name, _ in questions].index("retrieval") + 1, ("retrieval", RECALL))
    heading = markdown(title)
    if simulated and "SIMULATED" not in heading:
        heading = f"SIMULATED: {heading}"
    # The output is Python and Markdown, not HTML: names go in as Python literals or through `markdown`.
    environment = Environment(
        loader=PackageLoader("longreach.templates", ""), autoescape=False, undefined=StrictUndefined, trim_blocks=True
    )
    text = environment.get_template("report.py.j2").render(
        heading=heading,
        simulated=simulated,
        headline=ascii(tasks),
        questions=ascii(questions),
    )
    return [_cell(part) for part in f"\n{text}".split(f"\n{_CELL}")[1:]]


def _cell(part: str) -> tuple[str, str, str]:
    name, _, source = part.partition("\n")
    source = source.strip("\n")
    if not name.startswith("[markdown] "):
        return "code", name, source
    lines = (line.removeprefix("#").removeprefix(" ") for line in source.split("\n"))
    return "markdown", name.removeprefix("[markdown] "), "\n".join(lines)


def _nbformat() -> Any:
    """The library, whose functions carry no types."""
    return importlib.import_module("nbformat")


def _notebook(cells: Sequence[tuple[str, str, str]]) -> Any:
    v4 = _nbformat().v4
    makers = {"code": v4.new_code_cell, "markdown": v4.new_markdown_cell}
    book = v4.new_notebook(metadata=_METADATA)
    book.cells = [makers[kind](source, id=name) for kind, name, source in cells]
    return book


def _unexecuted(reason: str) -> str:
    return (
        f"**This notebook was not executed**: {markdown(reason)}\n\n"
        f"Install what it needs and write the card again, or open this file in Jupyter and run all cells:\n\n"
        f"```\n{INSTALL}\nlongreach card RUN_FOLDER\n```"
    )


def _missing() -> str | None:
    """Why no kernel can be started, with the install line; None if one can."""
    for name in ("nbclient", "ipykernel"):
        if importlib.util.find_spec(name) is None:
            return f"the package {name} is not installed; {INSTALL}"
    return None


def _execute(book: Any, folder: Path, limit_s: float) -> str | None:
    """Runs all cells in place; what went wrong as one line, or None.

    In a thread of its own: the caller may sit in a running event loop (Jupyter), and nbclient would take the caller's
    signal handlers for Ctrl-C away.
    """
    from nbclient.exceptions import CellControlSignal
    from zmq import ZMQError

    # What a kernel can fail with on the way; none of it may cost the user the card.
    failures = (CellControlSignal, ZMQError, OSError, RuntimeError, ValueError, LookupError)
    with tempfile.TemporaryDirectory(prefix="longreach-") as scratch, ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(asyncio.run, _run(book, folder, Path(scratch), limit_s)).result()
        except failures as error:
            return _one_line(error, limit_s)
    _tidy(book)
    return None


async def _run(book: Any, folder: Path, scratch: Path, limit_s: float) -> None:
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    # A kernel spec of our own, so that the cells run in this interpreter whatever is installed under "python3".
    spec = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], **_SPEC}
    home = scratch / "kernels" / _SPEC["name"]
    home.mkdir(parents=True)
    (home / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    manager = AsyncKernelManager(
        kernel_name=_SPEC["name"],
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(home.parent)], ensure_native_kernel=False),
        connection_file=str(scratch / "connection.json"),
    )
    deadline = time.monotonic() + limit_s
    client = NotebookClient(
        book,
        km=manager,
        timeout_func=lambda _: max(1, int(deadline - time.monotonic())),
        record_timing=False,
        shutdown_kernel="immediate",
    )
    # No profile and no history of the user's, a fixed width, no debugger's warning; figures go into the notebook.
    environment = os.environ | {"IPYTHONDIR": str(scratch), "COLUMNS": "100", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    environment.pop("MPLBACKEND", None)
    await client.async_execute(cleanup_kc=True, cwd=str(folder), env=environment, stderr=subprocess.DEVNULL)


_SPEC = {"name": "longreach", "display_name": "Python 3", "language": "python"}


def _tidy(book: Any) -> None:
    """Takes out what differs between machines: versions, and warnings, which name files."""
    make = _nbformat().from_dict
    book.metadata = make(_METADATA)
    for cell in book.cells:
        cell.metadata = make({})
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]


def _one_line(error: Exception, limit_s: float) -> str:
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    if isinstance(error, CellExecutionError):
        return plain(f"a cell failed with {error.ename}: {error.evalue}", 300)
    if isinstance(error, CellTimeoutError):
        return f"it took longer than {limit_s:g} s"
    return plain(f"the Python kernel could not be run ({type(error).__name__}: {error})", 300)
