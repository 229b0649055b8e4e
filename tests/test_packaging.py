"""What a wheel would miss: packages that are not listed, entry points that do not load, a slow front door."""

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_packages_equal_the_folders_on_disk() -> None:
    folders = {"longreach"}
    for folder in ("suites", "adapters", "harness", "templates"):
        for init in (ROOT / folder).rglob("__init__.py"):
            name = ".".join(("longreach", *init.parent.relative_to(ROOT).parts))
            folders.add(name.replace("longreach.harness.front", "longreach"))
    assert folders == set(PYPROJECT["tool"]["setuptools"]["packages"])


def test_every_own_entry_point_loads() -> None:
    for group in ("longreach.tasks", "longreach.models", "longreach.tokenizers"):
        for name in PYPROJECT["project"]["entry-points"][group]:
            (point,) = [item for item in entry_points(group=group) if item.name == name and item.dist]
            assert point.load() is not None


def test_importing_the_face_loads_no_heavy_library() -> None:
    code = (
        "import sys, longreach; print(sorted({'pandas', 'scipy', 'matplotlib', 'openai', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_help_page_loads_no_heavy_library() -> None:
    code = (
        "import sys\nfrom longreach.harness.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('HEAVY', sorted({'pandas', 'numpy', 'scipy', 'matplotlib', 'openai', 'pydantic', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "HEAVY []"
