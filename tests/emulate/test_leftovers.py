"""A run of firmware leaves no process, no folder and no memory, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from mizzen.emulate import Core, guest, qemu_process
from mizzen.files import take_leftovers_away

from .conftest import Run, need_qemu
from .firmware import BOARD, Build

LOOP = Build("ends", "LOOP")


def test_memories_are_free_when_a_run_has_ended(
    run: Run, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages, dram = guest._pages, qemu_process._dram
    held: list[weakref.ref[np.ndarray]] = []

    def noted(found: guest.Bytes) -> guest.Bytes:
        held.append(weakref.ref(found))
        return found

    def noted_pages(size: int) -> guest.Bytes:
        return noted(pages(size))

    def noted_dram(path: Path, size: int) -> guest.Bytes:
        return noted(dram(path, size))

    monkeypatch.setattr(guest, "_pages", noted_pages)
    monkeypatch.setattr(qemu_process, "_dram", noted_dram)
    result = run(LOOP, core=core, seconds=0.5)
    assert held
    assert result.failures
    assert [row() for row in held if row() is not None] == []


RUN = """
import sys
from mizzen.emulate import Core, Options, emulate
print("ready", flush=True)
emulate(sys.argv[1], sys.argv[2], "ethos-u55-128", Options(core=Core.M55, seconds=300.0))
"""


def test_qemu_ends_with_a_killed_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_qemu()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    before = _folders()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(LOOP.prebuilt), BOARD],
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    child = _child_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for _ in range(100):
        if not _runs(child):
            break
        time.sleep(0.05)
    assert not _runs(child)
    assert _folders() - before, "a killed process cannot take its folder away"
    take_leftovers_away()
    assert _folders() <= before
    assert list(tmp_path.iterdir()) == []


def _folders() -> set[str]:
    place = qemu_process.SHARED_MEMORY
    return {path.name for path in place.iterdir() if path.name.startswith(".mizzen-")}


def _child_of(process: int) -> int:
    """Wait until a process has QEMU for a child, and return that."""
    for _ in range(400):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            if qemu_process.PROGRAM.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                time.sleep(0.5)
                return int(child)
        time.sleep(0.05)
    raise AssertionError("QEMU does not start")


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
