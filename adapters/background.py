"""Blocking work of in-process models, beside the event loop and without holding up the end of the process.

`asyncio.to_thread` would: its threads are joined at exit, and a long prompt is read for minutes. These are daemons that
are told to stop. One that is inside a native call when the process ends is left there; one that is between tokens gets
the moment that it needs to come back, since a native callback into a closing interpreter is a crash.
"""

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_LAST_WAIT_S = 1.0  # a token takes much less, a part of a prompt much more
_running: dict[threading.Thread, threading.Event] = {}


async def in_background(work: Callable[[threading.Event], Result]) -> Result:
    """`work(stop)` in a thread of its own. When the caller is cancelled, `stop` is set and nobody waits."""
    done: concurrent.futures.Future[Result] = concurrent.futures.Future()
    done.set_running_or_notify_cancel()
    stop = threading.Event()

    def run() -> None:
        try:
            done.set_result(work(stop))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
            done.set_exception(error)
        finally:
            _running.pop(threading.current_thread(), None)

    thread = threading.Thread(target=run, name="longreach-model", daemon=True)
    _running[thread] = stop
    thread.start()
    try:
        return await asyncio.wrap_future(done)
    except asyncio.CancelledError:
        stop.set()
        raise


@atexit.register
def _stop_all() -> None:
    running = list(_running.items())
    for _, stop in running:
        stop.set()
    for thread, _ in running:
        thread.join(_LAST_WAIT_S)
