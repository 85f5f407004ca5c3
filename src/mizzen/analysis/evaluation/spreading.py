"""Parts of a data set to workers, and their answers back in order.

The same part gives the same answer wherever and however often it is inferred, so one whose worker
died is given to another. Parts are sought out when a worker is free: nothing holds all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from mizzen.analysis.evaluation.inference import Inference, Inferred
from mizzen.data.columns import DataSet
from mizzen.diagnostics import Diagnostic, MizzenError, Severity, fail
from mizzen.workers.crew import Actors, Crew, Lost, Processes

TRIALS = 2
"""Workers that a part may cost before its samples are tried one by one, or one is given up."""


class Engine(Protocol):
    """A way to spread work."""

    @property
    def jobs(self) -> int | None:
        """How many workers there will be, where that is known."""
        ...

    def start(self, work: Inference) -> Crew:
        """Start the workers."""
        ...


@dataclass(frozen=True, slots=True)
class OnProcesses:
    """So many processes of this machine."""

    jobs: int

    def start(self, work: Inference) -> Crew:
        """Start the processes."""
        return Processes(self.jobs, work)


@dataclass(frozen=True, slots=True)
class OnRay:
    """So many actors of the cluster at an address, or as many as it has processors.

    Without an address the cluster is started on this machine.
    """

    address: str | None
    jobs: int | None = None

    def start(self, work: Inference) -> Crew:
        """Start the actors. E543 without Ray, or where the cluster is not there."""
        return Actors(self.jobs, work, self.address)


@dataclass(slots=True, eq=False)
class _Task:
    """A part, where it begins, and how many workers died of it."""

    start: int
    part: DataSet
    losses: int = 0


Done = Callable[[int, Inferred], None]
"""Is told of a part: how many samples it has, and what came."""


def spread(
    inference: Inference,
    parts: Iterator[DataSet],
    engine: Engine,
    done: Done,
    warn: Callable[[Diagnostic], None],
) -> list[Inferred]:
    """Infer all parts; answers are in the order of the samples.

    Raises what a part's answer says, of all wrong samples the first; E252 for a sample that every
    worker dies of.
    """
    crew = engine.start(inference)
    try:
        return _Spreading(crew, parts, done, warn).run()
    finally:
        crew.close()


@dataclass(eq=False)
class _Spreading:
    crew: Crew
    parts: Iterator[DataSet]
    done: Done
    warn: Callable[[Diagnostic], None]
    waiting: deque[_Task] = field(default_factory=deque[_Task])
    busy: dict[int, _Task] = field(default_factory=dict[int, _Task])
    answers: dict[int, Inferred] = field(default_factory=dict[int, Inferred])
    wrong: dict[int, Diagnostic] = field(default_factory=dict[int, Diagnostic])
    given: int = 0

    def run(self) -> list[Inferred]:
        """Let the workers work until nothing is left to do, or something is wrong."""
        for worker in range(self.crew.size):
            self._give(worker)
        while self.busy:
            worker, answer = self.crew.wait()
            task = self.busy.pop(worker)
            if isinstance(answer, Lost):
                self.crew.replace(worker)
                self._lose(task, answer)
            else:
                self._take(task, answer)
            self._give(worker)
        if self.wrong:
            raise MizzenError(self.wrong[min(self.wrong)])
        return [self.answers[start] for start in sorted(self.answers)]

    def _give(self, worker: int) -> None:
        task = self._next()
        if task is not None:
            self.busy[worker] = task
            self.crew.submit(worker, task.part)

    def _next(self) -> _Task | None:
        if self.waiting:
            return self.waiting.popleft()
        if self.wrong:  # parts that come later cannot be wrong first
            return None
        part = next(self.parts, None)
        if part is None:
            return None
        self.given += part.size
        return _Task(self.given - part.size, part)

    def _take(self, task: _Task, answer: Any) -> None:
        if isinstance(answer, Diagnostic):
            self.wrong[task.start] = answer
            return
        inferred: Inferred = answer
        self.answers[task.start] = inferred
        self.done(task.part.size, inferred)

    def _lose(self, task: _Task, lost: Lost) -> None:
        task.losses += 1
        first, last = task.part.name(0), task.part.name(task.part.size - 1)
        which = first if task.part.size == 1 else f"{first} to {last}"
        if task.losses < TRIALS:
            self.waiting.appendleft(task)
        elif task.part.size > 1:
            singles = (task.part.cut(i, i + 1) for i in range(task.part.size))
            self.waiting.extendleft(
                reversed([_Task(task.start + i, part) for i, part in enumerate(singles)])
            )
        else:
            raise fail(
                "E252",
                f"a worker must infer {which}, and {TRIALS} died of it, the last with "
                f"{lost.reason}",
                help="leave the sample out, or give the machine more memory",
            )
        self.warn(
            Diagnostic(
                "W256",
                f"{lost.worker} ended with {lost.reason} while it inferred {which}; another does "
                "it again",
                Severity.WARNING,
                help="the system ends processes when memory is short; fewer --jobs need less",
            )
        )
