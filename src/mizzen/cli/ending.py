"""What a command does when a signal asks it to end: it takes everything away that it made.

The first signal is an exception where the program is, as Ctrl-C always was in Python, so that
every block ends as it should. What stays busy in a library, or loses the exception there, is ended
from another thread: nothing temporary is left, and children end with their parent.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

from mizzen.files import ENDING, must_wait, take_all_away

GRACE_SECONDS = 2.0
"""How long the gentle way may take."""
SHELLS_BASE = 128
"""What shells add a signal's number to. Ref: POSIX, Shell Command Language, 2.8.2."""


class EndedBySignal(KeyboardInterrupt):
    """A signal asks the process to end."""


class Ending:
    """The signals of one process: `heed` them, then `status` is what they make of its status."""

    def __init__(self) -> None:
        self._signal: int | None = None

    @property
    def status(self) -> int | None:
        """The exit status after a signal, as shells count; None without."""
        return None if self._signal is None else SHELLS_BASE + self._signal

    @property
    def reason(self) -> str:
        """What is said of it."""
        if self._signal in (None, signal.SIGINT):
            return "interrupted"
        return f"ended by {signal.Signals(self._signal).name}"

    def heed(self) -> None:
        """Heed the signals that this process was not told to ignore, as `nohup` does."""
        asked = [each for each in ENDING if signal.getsignal(each) is not signal.SIG_IGN]
        reading, writing = os.pipe()
        if hasattr(os, "set_blocking"):  # Windows has it since Python 3.12, and needs it not
            os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_end_at_last, args=(reading,), daemon=True).start()
        for signal_ in asked:
            signal.signal(signal_, self._hear)

    def ignore_more(self) -> None:
        """Ignore signals from now on: Python's own end would give them the system's effect."""
        for signal_ in ENDING:
            signal.signal(signal_, signal.SIG_IGN)

    def _hear(self, number: int, _: FrameType | None) -> None:
        """Ask once: a second signal must not break what the first has begun to end."""
        if self._signal is not None:
            return
        self._signal = number
        error = EndedBySignal()
        if not must_wait(error):
            raise error


def _end_at_last(heard: int) -> None:
    """Wait for a signal that ends, and then for the end; bring it about if it does not come.

    The number comes from the system's own handler, even while the interpreter is busy elsewhere.
    """
    while (number := os.read(heard, 1)[0]) not in ENDING:
        pass
    time.sleep(GRACE_SECONDS)
    take_all_away()
    os._exit(SHELLS_BASE + number)
