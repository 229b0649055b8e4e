"""A lock file against two writers in one run folder: process id and host, so that it also works on network disks."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longreach.harness.errors import RunFolderError

NAME = "run.lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; takes over the one of a process that is gone.

    Raises:
        RunFolderError: another living process, or one on another host, holds it.
    """
    path = folder / NAME
    mine = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": _started(os.getpid())})
    draft = folder / f"{NAME}.{os.getpid()}.{id(mine):x}"
    try:
        draft.write_text(mine, encoding="utf-8")
    except OSError as error:
        raise RunFolderError(
            f"run folder {folder} cannot be written ({error.strerror}); choose another --out"
        ) from error
    try:
        _claim(path, draft)
    finally:
        draft.unlink(missing_ok=True)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _claim(path: Path, draft: Path) -> None:
    for _ in range(3):
        try:
            os.link(draft, path)  # appears whole or not at all
            return
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if _create(path, draft.read_bytes()):
                return
        text = _read(path)
        if text is None:
            continue
        if not _is_stale(text):
            raise RunFolderError(
                f"run folder {path.parent} is in use by another process ({_describe(text)}); wait for it, choose another "
                f"--out, or delete {path} if that process is gone"
            )
        aside = draft.with_suffix(".stale")
        try:
            path.rename(aside)
        except FileNotFoundError:
            continue
        if _read(aside) != text:  # somebody else took it over in between: give it back
            aside.replace(path)
        else:
            aside.unlink()
    raise RunFolderError(f"the lock of run folder {path.parent} keeps changing hands; start one run at a time")


def _create(path: Path, data: bytes) -> bool:
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        return False
    return True


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _is_stale(text: str) -> bool:
    try:
        owner = json.loads(text)
        pid, host, started = int(owner["pid"]), owner["host"], owner["started"]
    except (ValueError, KeyError, TypeError):
        return False
    if host != socket.gethostname() or os.name == "nt":  # there signal 0 would be Ctrl-C
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return started is not None and _started(pid) != started  # the number went to another process since


def _started(pid: int) -> int | None:
    """Start of a process in clock ticks since boot, where the system tells."""
    try:
        return int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        )
    except (OSError, ValueError, IndexError):
        return None


def _describe(text: str) -> str:
    try:
        owner = json.loads(text)
        return f"process {owner['pid']} on {owner['host']}"
    except (ValueError, KeyError, TypeError):
        return "unknown"
