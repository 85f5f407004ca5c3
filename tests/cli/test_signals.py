"""A command that is told to end takes everything away, and says by its status what told it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mizzen.cli import ending, main
from mizzen.cli.main import Exit

SIGNALS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
IGNORED_BEHIND = (signal.SIGINT, signal.SIGHUP)
SOURCE = Path(__file__).parents[2] / "src"
LOOP = Path(__file__).parents[1] / "emulate" / "prebuilt" / "ends-loop-m33.elf"


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """Let processes heed signals even where the tests were started by `nohup` or behind `&`."""
    before = {row: signal.signal(row, signal.default_int_handler) for row in IGNORED_BEHIND}
    yield
    for row, handler in before.items():
        signal.signal(row, handler)


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(SOURCE)}


def started(code: str, folder: Path) -> subprocess.Popen[bytes]:
    """Run `code`, in which `busy(words)` is what a verb does, and wait until it is busy."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(folder),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


COMMAND = """
import sys, time
from pathlib import Path
from mizzen.cli import main
from mizzen.files import temporary_folder
from mizzen.files.leftovers import new_name
from mizzen.workers.child import Child

def busy(words, console):
    new_name(Path()).write_bytes(b"half a file")
    with temporary_folder(Path()) as folder:
        (folder / "dram").write_bytes(b"1")
        child = Child([sys.executable, "-c", "while True: pass"])
        print("ready", flush=True)
        {wait}
    return 0

main._execute = busy
sys.argv[1:] = ["targets"]
sys.exit(main.main())
"""
WAITS = {
    "waits": "time.sleep(600)",
    "loses it": "\n        ".join(
        ("while True:", "    try: time.sleep(600)", "    except BaseException: pass")
    ),
    "makes another error of it": "\n        ".join(
        ("try: time.sleep(600)", "except BaseException: raise ImportError('x') from None")
    ),
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_ends_a_command(tmp_path: Path, name: str, wait: str) -> None:
    process = started(COMMAND.format(wait=WAITS[wait]), tmp_path)
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=20)
    assert process.returncode == SIGNALS[name]
    assert err.decode() in (
        "", "interrupted\n" if name == "SIGINT" else f"ended by {name}\n"
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    time.sleep(0.2)
    assert (
        not Path(f"/proc/{child}/cmdline").exists()
        or not Path(f"/proc/{child}/cmdline").read_bytes()
    )


AT_ONCE = """
import os, signal, sys
from mizzen.cli import main
main.take_leftovers_away = lambda: os.kill(os.getpid(), {number})
sys.argv[1:] = ["targets"]
sys.exit(main.main())
"""


def test_a_signal_before_anything_has_begun(tmp_path: Path) -> None:
    words = [sys.executable, "-c", AT_ONCE.format(number=int(signal.SIGTERM))]
    ended = subprocess.run(words, env=environment(tmp_path), capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (SIGNALS["SIGTERM"], b"ended by SIGTERM\n")


IN_A_BLOCK = """
import os, time
from mizzen.cli.ending import EndedBySignal, Ending
from mizzen.files import held
Ending().heed()
try:
    with held(), held():
        os.kill(os.getpid(), {number})
        time.sleep(0.1)
        print("whole")
except EndedBySignal:
    print("then ended")
"""


def test_a_signal_waits_for_a_block_though_another_thread_takes_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", IN_A_BLOCK.format(number=int(signal.SIGTERM))]
    ended = subprocess.run(words, env=environment(tmp_path), capture_output=True, check=True)
    assert ended.stdout == b"whole\nthen ended\n"


def test_several_signals_end_it_as_the_first_does(tmp_path: Path) -> None:
    process = started(COMMAND.format(wait=WAITS["waits"]), tmp_path)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGINT"):
        process.send_signal(getattr(signal, name))
        time.sleep(0.001)
    process.communicate(timeout=20)
    assert process.returncode in SIGNALS.values()
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """As `nohup` wants it."""
    code = COMMAND.format(wait="time.sleep(1.0)")
    code = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{code}"
    process = started(code, tmp_path)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_what_a_killed_command_left_is_gone_after_the_next(tmp_path: Path) -> None:
    process = started(COMMAND.format(wait=WAITS["waits"]), tmp_path)
    process.kill()
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 3
    words = [sys.executable, "-m", "mizzen", "--version"]
    subprocess.run(words, env=environment(tmp_path), check=True, capture_output=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SIGNALS)
def test_a_loop_of_firmware_ends_at_once(tmp_path: Path, name: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mizzen", "emulate", str(LOOP), "--timeout", "300"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    assert process.stderr is not None
    process.stderr.readline()  # the configuration in force
    time.sleep(2.0)
    start = time.monotonic()
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=20)
    assert process.returncode == SIGNALS[name]
    assert time.monotonic() - start < ending.GRACE_SECONDS, "by the run itself, not by force"


@pytest.mark.parametrize("error", [MemoryError(), OSError(12, "Cannot allocate memory")])
def test_too_little_memory_is_no_bug(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> int:
        raise error

    monkeypatch.setattr(main, "_execute", refused)
    assert main.main(["targets"]) == Exit.WRONG_INPUT
    assert capsys.readouterr().err.startswith("error[E205]: the work must fit in this machine's")
