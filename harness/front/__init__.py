"""longreach: how much of a language model's context window is really usable."""

from importlib.metadata import version

from longreach.harness.model import Model, Request, Response
from longreach.harness.record import Record
from longreach.harness.registry import get_task
from longreach.harness.sample import Grid, Message, Point, Sample
from longreach.harness.task import Score, Task, TaskInfo

__version__ = version("longreach")

__all__ = [
    "Grid",
    "Message",
    "Model",
    "Point",
    "Record",
    "Request",
    "Response",
    "Sample",
    "Score",
    "Task",
    "TaskInfo",
    "__version__",
    "get_task",
]
