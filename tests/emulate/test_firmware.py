"""Our own firmware on each processor: NPU, interrupts, faults, floating point, timers."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mizzen.emulate import Core, Fault, Reason

from .conftest import Run, need_qemu
from .firmware import BUILDS, Build

EVERY_END = [
    "asleep: ends 1, errors 0",
    "looking: ends 2, errors 0",
    "masked: ends 3, errors 0",
    "by status: ends 3, errors 0",
    "mizzen: ok",
]


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_every_way_to_learn_of_the_end(run: Run, core: Core, accelerator: str) -> None:
    result = run(Build("interrupt"), accelerator, core=core)
    assert result.output.splitlines() == EVERY_END
    assert result.ok, result.failures
    assert [row.status for row in result.invocations] == [0xFFFF0022] * 4


def test_what_a_driver_does_wrong_shows_in_status(run: Run, core: Core) -> None:
    result = run(Build("faults"), core=core)
    assert result.output.splitlines() == [
        "a transfer: 0x00000022",
        "queue outside memory: 0x00000806",
        "target outside memory: 0x00009006",
        "source outside memory: 0x00004806",
        "target in memory of the processor: 0x00009006",
        "target misaligned: 0x00000806",
        "empty queue: 0x00000012",
        "queue without an end: 0x00000012",
        "damaged stream: 0x00000012",
        "a transfer again: 0x00000022",
        "mizzen: ok",
    ]
    assert result.ok
    texts = [note.message for note in result.notes]
    assert texts[0].endswith("QBASE must name memory that the NPU reaches, not 0x60000000")
    assert texts[3].endswith("in DTCM, which the NPU does not reach")
    assert texts[4].endswith("BASEP1 must be a multiple of 16, not 0x31000004")


def test_floating_point_survives_interrupts(run: Run, core: Core) -> None:
    product = np.float32(1.0)
    for _ in range(100):
        product = np.float32(product * np.float32(1.5) - np.float32(0.25)) * np.float32(0.5)
    result = run(Build("floats"), core=core)
    thousandths = int(product * np.float32(1000.0))
    assert result.output.splitlines()[0] == (
        f"sum 5050, product in thousandths {thousandths}, ends 100"
    )
    assert result.ok
    assert result.invocation_count == 100


def test_timers_and_calls_of_kernels(run: Run, core: Core) -> None:
    assert run(Build("ticks"), core=core).ok


def test_ticks_come_to_who_only_loops(run: Run, core: Core) -> None:
    """And none of them comes between a load and its end, which would make it twice."""
    assert run(Build("turns"), core=core).ok


def test_no_two_runs_differ(run: Run) -> None:
    """Ticks come by what was executed, not by the host's clock."""
    outputs = {run(Build("turns")).output for _ in range(2)}
    assert outputs == {"turns 4166667\nmizzen: ok\n"}


def test_cycles_are_counted(run: Run) -> None:
    result = run(Build("cycles"))
    assert result.ok
    assert result.output.splitlines()[0] == f"cycles {result.invocations[0].cycles.total}"


def test_a_fault_reaches_the_firmwares_handler(run: Run) -> None:
    need_qemu()
    result = run(Build("ends", "BAD_LOAD"), core=Core.M55)
    assert (result.output, result.exit_status) == ("unexpected exception 3\n", 128)


def test_interrupts_among_each_other(run: Run, core: Core) -> None:
    """A lower-case letter enters, an upper-case one leaves; brackets are the thread's."""
    result = run(Build("priorities"), core=core)
    assert result.output == "abBcCA (bBcC)cC<p>[cCs]\nmizzen: ok\n"
    assert result.ok


def test_every_access_is_the_same_on_both_processors(run: Run) -> None:
    need_qemu()
    results = [run(Build("access"), core=core) for core in Core]
    assert results[0].ok
    assert results[0].output == results[1].output
    assert results[0].trace == results[1].trace
    assert "ldrsb 0x00000042" in results[0].output


def test_the_host_is_out_of_reach(run: Run, core: Core) -> None:
    result = run(Build("semihosting"), core=core)
    assert result.ok
    assert result.output.splitlines() == ["by a handle", "by a text", "!", "mizzen: ok"]
    asked = "firmware asked the host {} by semihosting, and was refused"
    assert [note.message for note in result.notes] == [
        asked.format(what)
        for what in ("to open '/etc/passwd'", "to open 'notes.txt'", "to run 'reboot'")
    ]


STATUS = {Fault.PARSE_ERROR: 0x10, Fault.BUS_ERROR: 0x4}


@pytest.mark.parametrize("fault", [Fault.PARSE_ERROR, Fault.BUS_ERROR])
def test_a_failure_of_the_npu_reaches_the_firmware(run: Run, core: Core, fault: Fault) -> None:
    result = run(Build("careful"), core=core, fault=fault)
    assert result.exit_status == 5
    line = result.output.splitlines()[0]
    assert line.startswith("the NPU failed: ")
    assert int(line.split()[-1], 16) & 0x3C == STATUS[fault]
    assert [found.message for found in result.failures] == [
        "the firmware must end with status 0, and ended with 5"
    ]


def test_a_silent_npu_is_a_deadlock(run: Run, core: Core) -> None:
    result = run(Build("careful"), core=core, fault=Fault.SILENT, seconds=10.0)
    assert result.reason is Reason.DEADLOCK
    (failure,) = result.failures
    assert failure.code == "E435"
    assert "(board_wait_for_event)" in failure.message


def test_a_wrong_configuration_is_seen(run: Run, core: Core) -> None:
    result = run(Build("careful"), core=core, fault=Fault.WRONG_CONFIGURATION)
    assert (result.exit_status, result.invocation_count) == (3, 0)


def test_a_late_end_is_waited_for(run: Run, core: Core) -> None:
    assert run(Build("careful"), core=core, fault=Fault.LATE_INTERRUPT).ok


def test_a_late_end_shows_who_does_not_wait(run: Run, core: Core) -> None:
    assert run(Build("hasty"), core=core).ok
    assert run(Build("hasty"), core=core, fault=Fault.LATE_INTERRUPT).exit_status == 64


def test_a_late_end_reaches_those_who_look_at_memory(run: Run, core: Core) -> None:
    assert run(Build("interrupt"), core=core, fault=Fault.LATE_INTERRUPT).ok


@pytest.mark.parametrize(("source", "lines"), [("interrupt", EVERY_END), ("ticks", EVERY_END[-1:])])
def test_a_character_is_sent_once(run: Run, core: Core, source: str, lines: list[str]) -> None:
    """However long the host takes over it: something late or a tick may be due meanwhile."""

    def hear(_line: str) -> None:
        time.sleep(0.01)

    result = run(Build(source), core=core, fault=Fault.LATE_INTERRUPT, on_text=hear)
    assert result.ok
    assert result.output.splitlines() == lines


def test_the_bus_is_traced_in_order(run: Run, core: Core) -> None:
    result = run(Build("careful"), core=core)
    rows = [(row.access, row.register, row.value) for row in result.trace]
    assert rows[:2] == [("read", "CONFIG", 0x1807), ("write", "RESET", 1)]
    start = rows.index(("write", "CMD", 0xD))
    assert rows[start + 1] == ("irq", "IRQ", 1)
    clear = rows.index(("write", "CMD", 0xE))
    assert rows[clear + 1] == ("irq", "IRQ", 0)
    assert start < clear


def test_prebuilt_files_are_all_there() -> None:
    missing = [build.name for build in BUILDS if not build.prebuilt.is_file()]
    assert not missing
