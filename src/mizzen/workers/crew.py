"""Workers that all do the same to whatever task they are given, in processes or on Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from mizzen.diagnostics import lacks_memory
from mizzen.platforms.limits import how_ended
from mizzen.platforms.pipes import Answers, unless_gone
from mizzen.workers import Worker
from mizzen.workers.cluster import connected
from mizzen.workers.messages import read, write

SCRIPT = Path(__file__).with_name("crew_process.py")

Work = Callable[[Any], Any]
"""What is done to a task; it can be pickled, and so can tasks and answers."""


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of an answer: the worker is gone. `worker` says which, `reason` how it ended."""

    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """In place of an answer: an error that was not expected, or memory that was not there."""

    text: str
    of_memory: bool = False


class Crew(Protocol):
    """Workers by number; one task at a time is given to each."""

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def submit(self, worker: int, task: object) -> None:
        """Let a worker do something."""
        ...

    def wait(self) -> tuple[int, Any | Lost]:
        """Return the first answer of those that are outstanding, at least one."""
        ...

    def replace(self, worker: int) -> None:
        """Put a new worker in the place of a lost one."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


class Processes:
    """Processes of this machine, each with one thread."""

    def __init__(self, size: int, work: Work) -> None:
        self.size = size
        self._work = work
        self._answers: Answers[int, Any] = Answers()
        self.workers: dict[int, Worker] = {}
        for worker in range(size):
            self.replace(worker)

    def submit(self, worker: int, task: object) -> None:
        """Let a process do something; one that has ended says so when it is waited for."""
        requests, answers = self.workers[worker].pipes
        with unless_gone():
            write(requests, task)
        self._answers.expect(worker, lambda: read(answers))

    def wait(self) -> tuple[int, Any | Lost]:
        """Return the first answer."""
        worker, answer = self._answers.first()
        if isinstance(answer, EOFError):
            return worker, self._lost(worker)
        if isinstance(answer, Exception):
            raise answer
        return worker, answered(answer)

    def replace(self, worker: int) -> None:
        """Start a process."""
        started = Worker(SCRIPT, subprocess.DEVNULL if _stderr() is None else sys.stderr.fileno())
        self.workers[worker] = started
        with unless_gone():
            write(started.pipes[0], self._work)

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.end()

    def _lost(self, worker: int) -> Lost:
        ended = self.workers[worker]
        return Lost(f"process {ended.process.pid}", how_ended(ended.end()))


class Actors:
    """Actors of a Ray cluster: of the one at `address`, or of one that is started here."""

    def __init__(self, size: int | None, work: Work, address: str | None) -> None:
        self._ray, self._owns = connected(size or 1, address)
        cpus = self._ray.cluster_resources().get("CPU", 1)
        self.size = max(1, int(cpus)) if size is None else size
        self._kind = self._ray.remote(num_cpus=1, max_restarts=0)(Actor)
        self._work = self._ray.put(work)
        self.actors: dict[int, Any] = {}
        self._outstanding: dict[Any, int] = {}
        for worker in range(self.size):
            self.replace(worker)

    def submit(self, worker: int, task: object) -> None:
        """Let an actor do something."""
        self._outstanding[self.actors[worker].answer.remote(task)] = worker

    def wait(self) -> tuple[int, Any | Lost]:
        """Return the first answer."""
        (done,), _ = self._ray.wait(list(self._outstanding), num_returns=1)
        worker = self._outstanding.pop(done)
        try:
            return worker, answered(self._ray.get(done))
        except self._ray.exceptions.RayActorError as error:
            return worker, Lost(f"actor {worker}", str(error).split("\n")[0])

    def replace(self, worker: int) -> None:
        """Start an actor."""
        self.actors[worker] = self._kind.remote(self._work)

    def close(self) -> None:
        """End all actors."""
        for actor in self.actors.values():
            self._ray.kill(actor)
        if self._owns:
            self._ray.shutdown()


class Actor:
    """What an actor does."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def answer(self, task: object) -> object:
        """Do what is to be done to a task."""
        return _answer(self._work, task)


def answered(answer: Any) -> Any:
    """Return an answer, or raise what was not expected."""
    if isinstance(answer, Failed) and answer.of_memory:
        raise MemoryError(answer.text)
    if isinstance(answer, Failed):
        raise RuntimeError(f"in a worker: {answer.text}")
    return answer


def serve(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """Do to every task what the first message says, until they end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what started this is interrupted, and ends it
    try:
        work: Work = read(tasks)
        while True:
            write(answers, _answer(work, read(tasks)))
    except (EOFError, OSError):  # who asked is gone
        return


def _answer(work: Work, task: object) -> object:
    try:
        return work(task)
    except Exception as error:
        return Failed(traceback.format_exc(), lacks_memory(error))


def _stderr() -> int | None:
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def main() -> None:
    """Serve on standard input and output; what else is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
