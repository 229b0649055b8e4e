"""What holds for all tests: the package is installed, third-party plugins stay out, contract passes are counted."""

import os
from importlib.metadata import PackageNotFoundError, distribution

import pytest

os.environ["LONGREACH_PLUGINS"] = ""
os.environ["LONGREACH_NOTEBOOK"] = "off"  # three seconds a run; the tests of the notebook write it themselves


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
