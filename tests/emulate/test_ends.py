"""How firmware may end badly: it always ends, and what is said names the place."""

from __future__ import annotations

import time

import pytest

from mizzen.emulate import Core, Reason

from .conftest import Run
from .firmware import Build

FAULTS = {
    "BAD_LOAD": "cannot load r0, 4 bytes at 0x55000000, by the instruction at ",
    "BAD_STORE": "cannot store r12, 2 bytes at 0x55000000, by the instruction at ",
    "READ_ONLY": "cannot store r4, 4 bytes at 0x38000000, by the instruction at ",
    "BAD_JUMP": "could not execute what is at 0x55000000",
    "UNDEFINED": "has no instruction de07",
    "BREAKPOINT": "stopped at a breakpoint at 0x",
}


@pytest.mark.parametrize("end", FAULTS)
def test_a_fault_names_instruction_and_place(run: Run, end: str) -> None:
    result = run(Build("ends", end))
    assert result.reason is Reason.FAULT
    (failure,) = result.failures
    assert failure.message.startswith(f"the processor {FAULTS[end]}")


def test_a_fault_says_what_the_board_has_there(run: Run) -> None:
    messages = [run(Build("ends", end)).failures[0].message for end in ("BAD_LOAD", "READ_ONLY")]
    assert messages[0].endswith(" (main): corstone300 has none there")
    assert messages[1].endswith(" (main): QSPI is read-only")


@pytest.mark.parametrize("end", ["LOOP", "STORM", "RESTARTS", "CHATTER"])
def test_the_time_is_kept(run: Run, core: Core, end: str) -> None:
    """On a busy machine QEMU may not say in time where it is."""
    start = time.monotonic()
    result = run(Build("ends", end), core=core, seconds=0.6)
    assert time.monotonic() - start < 10.0
    assert result.reason is Reason.TIMED_OUT
    (failure,) = result.failures
    assert failure.code == "E434"
    said, _, place = failure.message.partition("; it was at ")
    assert said == "the firmware did not end within 0.6 seconds"
    assert place.startswith("0x") or (core is Core.M55 and place == "an unknown place")


@pytest.mark.parametrize(("end", "place"), [("DEADLOCK", "event"), ("ASLEEP", "interrupt")])
def test_waiting_for_ever_is_a_deadlock(run: Run, core: Core, end: str, place: str) -> None:
    result = run(Build("ends", end), core=core)
    assert result.reason is Reason.DEADLOCK
    (failure,) = result.failures
    assert f"(board_wait_for_{place})" in failure.message
    assert failure.help == "the NPU was never started; see that its interrupt 56 is enabled"


def test_a_status_is_a_failure_whatever_was_written(run: Run, core: Core) -> None:
    result = run(Build("ends", "STATUS=7"), core=core)
    assert (result.marker_seen, result.exit_status, result.ok) == (True, 7, False)
    (failure,) = result.failures
    assert failure.render() == (
        "error[E437]: the firmware must end with status 0, and ended with 7\n"
        "  help what it wrote last says why; --accelerator-config names the NPU that firmware was "
        "built for"
    )


def test_a_missing_marker_is_a_failure(run: Run, core: Core) -> None:
    result = run(Build("ends", "SILENT"), core=core)
    assert result.exit_status == 0
    (failure,) = result.failures
    assert failure.render() == (
        "error[E438]: the firmware must write the line 'mizzen: ok', and did not\n"
        "  help exported firmware writes it when its example gave the right outputs; name a line "
        "of your own firmware with --marker"
    )


def test_another_marker_may_be_named(run: Run) -> None:
    assert run(Build("semihosting"), marker="by a text").ok


def test_a_marker_is_a_whole_line(run: Run) -> None:
    assert not run(Build("semihosting"), marker="by a").ok


def test_instructions_may_be_limited(run: Run) -> None:
    result = run(Build("ends", "LOOP"), instructions=5000)
    assert result.reason is Reason.LIMIT
    assert result.failures[0].message == "the firmware did not end within 5000 instructions"


def test_a_limit_of_instructions_is_of_all_of_them(run: Run) -> None:
    """Not of those up to an access to the NPU, a wait or an interrupt."""
    assert run(Build("careful"), instructions=20_000).ok
    assert run(Build("careful"), instructions=200).reason is Reason.LIMIT


def test_vector_instructions_need_the_other_processor(run: Run) -> None:
    result = run(Build("floats", core="m55"))
    (failure,) = result.failures
    assert failure.code == "E422"
    assert failure.help == "run it with --cpu m55, or build it with -mcpu=cortex-m33"
