"""A child ends with its parent, however that ends and whatever the child is busy with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mizzen.workers.child import IS_TOLD, Child

pytestmark = pytest.mark.skipif(not IS_TOLD, reason="only Linux ends a busy child")

BUSY = "print('busy', flush=True)\nwhile True: pass"
DEAF = f"""
import signal
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
{BUSY}
"""
PARENT = """
import sys
from mizzen.workers.child import Child
child = Child([sys.executable, "-c", sys.argv[1]])
child.stdout.readline()
print(child.pid, flush=True)
{then}
"""
WAYS = {
    "killed": "import time; time.sleep(600)",
    "crashed": "import os; os.kill(os.getpid(), 11)",
    "exited at once": "import os; os._exit(3)",
    "raised": "raise ValueError",
    "forgot": "del child; import gc; gc.collect(); import time; time.sleep(600)",
}


def ended(process: int) -> bool:
    """Whether a process is gone within some seconds, or is only waited for."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("busy", [BUSY, DEAF], ids=["busy", "deaf"])
def test_a_busy_child_ends_with_its_parent(way: str, busy: str) -> None:
    words = [sys.executable, "-c", PARENT.format(then=WAYS[way]), busy]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    if way == "killed":
        parent.kill()
    assert ended(child)
    parent.kill()
    parent.communicate()


def test_a_grandchild_ends_too() -> None:
    inner = PARENT.format(then="child.wait()")
    outer = f"import sys\nsys.argv[1:] = [{BUSY!r}]\n{inner}"
    words = [sys.executable, "-c", PARENT.replace("print(child.pid", "print(child.stdout.readline"
             "().decode() if 0 else child.pid").format(then="child.wait()"), outer]  # fmt: skip
    parent = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    (grandchild,) = Path(f"/proc/{child}/task/{child}/children").read_text().split()
    parent.kill()
    parent.communicate()
    assert ended(child)
    assert ended(int(grandchild))


def test_a_child_outlives_the_thread_that_started_it() -> None:
    """The parent-death signal of prctl would end it then."""
    found: list[Child] = []
    thread = threading.Thread(target=lambda: found.append(Child([sys.executable, "-c", BUSY])))
    thread.start()
    thread.join()
    assert found[0].stdout is not None
    assert found[0].stdout.readline() == b"busy\n"
    time.sleep(0.3)
    assert found[0].poll() is None
    found[0].kill()
    found[0].communicate()


def test_a_forked_process_keeps_no_child_alive() -> None:
    forks = """
import os, sys, time
from mizzen.workers.child import Child
child = Child([sys.executable, "-c", sys.argv[1]])
child.stdout.readline()
if os.fork() == 0:
    time.sleep(600)
print(child.pid, flush=True)
time.sleep(600)
"""
    words = [sys.executable, "-c", forks, BUSY]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    group = os.getpgid(parent.pid)
    parent.kill()
    parent.wait()
    assert ended(child)
    os.killpg(group, signal.SIGKILL)
    parent.communicate()
