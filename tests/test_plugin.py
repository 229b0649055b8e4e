"""A third party's task and model, installed beside longreach, work without a change of ours."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent / "plugin"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that sees the example plugin as an installed distribution."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(SOURCE, folder / "source")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    install += ["--no-build-isolation", "--target", str(folder / "site"), str(folder / "source")]
    subprocess.run(install, check=True, capture_output=True)
    return {key: value for key, value in os.environ.items() if key != "LONGREACH_PLUGINS"} | {
        "PYTHONPATH": str(folder / "site")
    }


def longreach(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "longreach", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_task_of_a_third_party_is_listed(environment: dict[str, str]) -> None:
    listed = json.loads(longreach(environment, "tasks", "--json").stdout)
    (shelf,) = [task for task in listed if task["name"] == "shelf"]
    assert shelf["capability"] == "retrieval"


def test_a_model_of_a_third_party_answers_a_task_of_a_third_party(environment: dict[str, str], tmp_path: Path) -> None:
    arguments = ["--tasks", "shelf", "--lengths", "512,1k", "--depths", "0,0.5,1", "--samples", "2"]
    done = longreach(environment, "run", "--model", "librarian:senior", *arguments, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "run" / "results.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * 3 * 2
    assert all(",scored," in row and ",1.0,True," in row for row in rows[1:])


def test_the_reader_solves_a_task_of_a_third_party(environment: dict[str, str], tmp_path: Path) -> None:
    arguments = [
        "--tasks",
        "shelf",
        "--lengths",
        "1k",
        "--depths",
        "0,1",
        "--samples",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    done = longreach(environment, "run", "--model", "reader:window=4k", *arguments)
    assert done.returncode == 0, done.stderr
    assert "longreach-shelf" in (tmp_path / "run" / "config.yaml").read_text()


def test_third_parties_can_be_left_out(environment: dict[str, str]) -> None:
    listed = json.loads(longreach(environment | {"LONGREACH_PLUGINS": ""}, "tasks", "--json").stdout)
    assert "shelf" not in {task["name"] for task in listed}
