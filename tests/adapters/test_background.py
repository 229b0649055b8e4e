import asyncio
import subprocess
import sys
import threading

import pytest

from longreach.adapters.background import in_background


def test_work_is_done_in_another_thread_and_its_errors_come_back() -> None:
    assert asyncio.run(in_background(lambda _: threading.current_thread())) is not threading.main_thread()
    with pytest.raises(KeyError, match="missing"):
        asyncio.run(in_background(lambda _: {}["missing"]))


def test_a_cancelled_caller_does_not_wait_and_the_work_is_told() -> None:
    told, may_end = threading.Event(), threading.Event()

    def work(stop: threading.Event) -> None:
        stop.wait(10)
        told.set()
        may_end.wait(10)

    async def cancel() -> None:
        task = asyncio.ensure_future(in_background(work))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert told.wait(10)
    may_end.set()


def test_the_process_ends_although_work_goes_on() -> None:
    code = (
        "import asyncio, threading\n"
        "from longreach.adapters.background import in_background\n"
        "async def main():\n"
        "    task = asyncio.ensure_future(in_background(lambda stop: (stop.wait(60), print('told'))))\n"
        "    await asyncio.sleep(0)\n"
        "    raise SystemExit(3)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "told\n", "")
