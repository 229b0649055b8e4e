"""What holds for all tests: the package is installed, third-party plugins stay out, contract passes are counted."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

os.environ["LONGREACH_PLUGINS"] = ""
os.environ["LONGREACH_NOTEBOOK"] = "off"  # three seconds a run; the tests of the notebook write it themselves
os.environ["LONGREACH_CACHE"] = "off"  # its own tests switch it on, in a folder of theirs


def pytest_configure(config: pytest.Config) -> None:
    """Say what to do if the package is not installed, instead of a hundred import errors."""
    try:
        distribution("longreach")
    except PackageNotFoundError as error:
        raise pytest.UsageError("longreach is not installed here; run: pip install -e '.[dev]'") from error


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tasks passed the contract tests: the reports carry the task's name as the property `contract`."""
    good: dict[str, bool] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):
                if name == "contract":
                    good[value] = good.get(value, True) and outcome == "passed"
    if good:
        broken = sorted(name for name, passed in good.items() if not passed)
        told = f"; broken by: {', '.join(broken)}" if broken else ""
        terminalreporter.write_line(f"contract: {len(good) - len(broken)} of {len(good)} tasks pass{told}")


@pytest.fixture(scope="session")
def fault_server() -> Any:
    """The module fault_server.py; tests cannot import each other by name."""
    spec = importlib.util.spec_from_file_location("fault_server", Path(__file__).with_name("fault_server.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fault_server"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(fault_server: Any) -> Iterator[Any]:
    """A fault server of this test alone."""
    faults = fault_server.FaultServer()
    yield faults
    faults.close()
