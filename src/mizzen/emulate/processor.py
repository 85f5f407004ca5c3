"""What a processor backend is: it runs firmware until that ends, and says how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mizzen.diagnostics import Diagnostic
from mizzen.emulate.queue import TimeIsUpError


class Core(Enum):
    """The processors there are; the value is the name on the command line.

    M33 is Unicorn's, without vector instructions. M55 is QEMU's, with them.
    """

    M33 = "m33"
    M55 = "m55"


class Reason(Enum):
    """Why a run ended; the value is for people."""

    EXITED = "the firmware ended itself"
    TIMED_OUT = "the time was over"
    DEADLOCK = "the firmware waits for what cannot come"
    FAULT = "the processor could not go on"
    LIMIT = "the instructions were used up"


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended.

    status      the firmware's own, where it ended itself
    diagnostic  what was wrong, where it did not
    """

    reason: Reason
    status: int | None = None
    diagnostic: Diagnostic | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How long firmware may run; `instructions` is counted by M33 only, and slows it down."""

    seconds: float
    instructions: int | None = None


class Deadline:
    """The moment at which a run must be over, by the clock of the wall."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left_seconds(self) -> float:
        """Seconds until then; negative after it."""
        return self._end - time.monotonic()

    def call_off(self) -> None:
        """Let it be over now: who waits for the run has been interrupted."""
        self._end = 0.0

    def check(self, needed_seconds: float = 0.0) -> None:
        """Raise `TimeIsUpError` if it is over, or will be before what is next has ended."""
        if self.left_seconds <= needed_seconds:
            raise TimeIsUpError


class Processor(Protocol):
    """A backend with firmware loaded. It is run once."""

    def run(self, limits: Limits, deadline: Deadline) -> End:
        """Run until the firmware ends, or is ended."""
        ...


def timed_out(limits: Limits, place: str) -> End:
    """Return the end of a run whose time was over when the firmware was at `place`."""
    message = f"the firmware did not end within {limits.seconds:g} seconds; it was at {place}"
    hint = "give it more with --timeout, or look for the loop there"
    return End(Reason.TIMED_OUT, diagnostic=Diagnostic("E434", message, help=hint))


def deadlock(place: str, interrupt: int, *, npu_ran: bool) -> End:
    """Return the end of a run that waits at `place` for nothing; `interrupt` is the NPU's."""
    message = f"the firmware waits at {place}, and nothing is pending that could wake it"
    state = "ended its last run" if npu_ran else "was never started"
    hint = f"the NPU {state}; see that its interrupt {interrupt} is enabled"
    return End(Reason.DEADLOCK, diagnostic=Diagnostic("E435", message, help=hint))
