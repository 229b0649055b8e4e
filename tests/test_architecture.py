"""The arrows between the folders: which module may import which, no circles, modules that fit in a head."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("suites", "adapters", "harness", "templates")
FOR_SUITES = {"sample", "task", "model", "tokenizer", "scoring", "numbers", "data", "needle_file", "rows"}
FOR_SUITES |= {"errors", "table_cache"}
FOR_ADAPTERS = FOR_SUITES | {"imported", "record", "registry"}


def modules() -> dict[str, Path]:
    """Dotted name -> file of every module of the package."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(("longreach", *parts)).removesuffix(".__init__")
            found[name.replace("longreach.harness.front", "longreach.front")] = path
    return found


def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    """Dotted names that a file imports (`from a import b` counts as `a` and `a.b`)."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_nobody_imports_a_folder_without_the_package() -> None:
    for path in [*modules().values(), *(ROOT / "tests").rglob("*.py")]:
        assert not {name.split(".")[0] for name in imports(path)} & set(FOLDERS), path
    assert not {"suites", "adapters", "harness"} & set(sys.modules)


def test_imports_point_one_way() -> None:
    for name, path in modules().items():
        folder = name.split(".")[1]
        for used in imports(path):
            if not used.startswith("longreach."):
                continue
            parts = used.split(".")
            where = f"{name} imports {used}"
            if folder == "harness":
                assert parts[1] not in ("suites", "adapters"), where
            elif folder in ("suites", "adapters"):
                assert parts[1] in (folder, "harness"), where
                if parts[1] == "harness" and len(parts) > 2:
                    assert parts[2] in (FOR_SUITES if folder == "suites" else FOR_ADAPTERS), where
            elif folder == "templates":
                raise AssertionError(where)


def test_there_is_no_import_circle() -> None:
    found = modules()
    arrows = {name: imports(path) & set(found) - {name} for name, path in found.items()}
    done: set[str] = set()

    def visit(name: str, road: tuple[str, ...]) -> None:
        assert name not in road, f"import circle: {' -> '.join((*road, name))}"
        if name not in done:
            for used in sorted(arrows[name]):
                visit(used, (*road, name))
            done.add(name)

    for name in arrows:
        visit(name, ())


def test_the_command_line_starts_without_heavy_libraries() -> None:
    heavy = {"pandas", "numpy", "scipy", "matplotlib", "openai", "tiktoken", "torch", "transformers", "pydantic"}
    seen: set[str] = set()
    todo = ["longreach.harness.cli", "longreach.harness.front"]
    found = modules() | {"longreach.harness.front": ROOT / "harness" / "front" / "__init__.py"}
    while todo:
        name = todo.pop()
        if name in seen or name not in found or name == "longreach.harness.tokenizer":
            continue
        seen.add(name)
        used = imports(found[name], top_level_only=True)
        if name.startswith("longreach.harness.cli"):
            assert not {item.split(".")[0] for item in used} & heavy, name
            todo.extend(used)


def test_modules_are_small_and_folders_are_shallow() -> None:
    for path in modules().values():
        assert len(path.read_text().splitlines()) <= 400, f"{path} has two rooms behind one door"
        assert len(path.relative_to(ROOT).parts) <= 3, path
