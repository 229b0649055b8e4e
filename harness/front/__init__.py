"""longreach: how much of a language model's context window is really usable.

Names are loaded when they are first used, so that `import longreach` and `longreach --help` stay light.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longreach.harness.model import Model, Request, Response
    from longreach.harness.record import Record
    from longreach.harness.registry import get_task
    from longreach.harness.running.find import find
    from longreach.harness.running.run import Run, run
    from longreach.harness.sample import Grid, Message, Point, Sample
    from longreach.harness.stats.effective import Estimate, effective_length
    from longreach.harness.task import Score, Task, TaskInfo

__version__ = version("longreach")

_HOMES = {
    "Estimate": "stats.effective",
    "Grid": "sample",
    "Message": "sample",
    "Model": "model",
    "Point": "sample",
    "Record": "record",
    "Request": "model",
    "Response": "model",
    "Run": "running.run",
    "Sample": "sample",
    "Score": "task",
    "Task": "task",
    "TaskInfo": "task",
    "effective_length": "stats.effective",
    "find": "running.find",
    "get_task": "registry",
    "run": "running.run",
}

__all__ = [
    "Estimate",
    "Grid",
    "Message",
    "Model",
    "Point",
    "Record",
    "Request",
    "Response",
    "Run",
    "Sample",
    "Score",
    "Task",
    "TaskInfo",
    "__version__",
    "effective_length",
    "find",
    "get_task",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'longreach' has no attribute {name!r}")
    return getattr(import_module(f"longreach.harness.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
