"""Lay links build/typing/longreach/... over the four folders, so that type checkers see the one import package."""

import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    links = ROOT / "build" / "typing"
    shutil.rmtree(links, ignore_errors=True)
    face = links / "longreach"
    face.mkdir(parents=True)
    for source in (ROOT / folders["longreach"]).iterdir():
        if source.suffix in (".py", ".typed"):
            (face / source.name).symlink_to(source)
    for package, folder in folders.items():
        if package != "longreach":
            (face / package.removeprefix("longreach.")).symlink_to(ROOT / folder)


if __name__ == "__main__":
    main()
