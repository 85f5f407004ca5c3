"""Pipes to other processes: what they say when the other end is gone, and which has an answer.

Windows says EINVAL where others say EPIPE, and cannot wait for one of several pipes: so a thread
reads each. Ref: subprocess, Popen._stdin_write.
"""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import Generic, TypeVar

GONE = frozenset((errno.EPIPE, errno.EINVAL, errno.ESHUTDOWN))


@contextmanager
def unless_gone() -> Generator[None]:
    """Write to a pipe, or do nothing if its other end is closed: the end of answers says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in GONE:
            raise


Key = TypeVar("Key", bound=Hashable)
Message = TypeVar("Message")


class Answers(Generic[Key, Message]):
    """The first answer of several processes: a thread waits for each of them."""

    def __init__(self) -> None:
        self._come: queue.SimpleQueue[tuple[Key, Message | Exception]] = queue.SimpleQueue()

    def expect(self, key: Key, read: Callable[[], Message]) -> None:
        """Read one answer; what `read` raises is raised where it is taken."""

        def wait() -> None:
            try:
                answer: Message | Exception = read()
            except Exception as error:
                answer = error
            self._come.put((key, answer))

        threading.Thread(target=wait, daemon=True).start()

    def first(self) -> tuple[Key, Message | Exception]:
        """Return the first answer that has not been taken, or what was raised instead."""
        return self._come.get()
