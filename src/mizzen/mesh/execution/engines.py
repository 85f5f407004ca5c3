"""Who executes parts of a machine: an interface for one process, several, or a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mizzen.mesh.execution.part import Answer, Loss, Orders, Part
from mizzen.mesh.program import MeshProgram


@dataclass(frozen=True, eq=False)
class Job:
    """A program, and the elements of each part; `all_tensors` and `loss` as in `Part`."""

    program: MeshProgram
    parts: tuple[tuple[int, ...], ...]
    all_tensors: bool
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of an answer: the worker that had a part is gone, with everything in it."""

    reason: str


class Crew(Protocol):
    """Workers, one for each part of a job. One order at a time is given to each."""

    def submit(self, part: int, orders: Orders) -> None:
        """Let a part do something."""
        ...

    def wait(self) -> tuple[int, Answer | Lost]:
        """Return the first answer of those that are outstanding, at least one."""
        ...

    def replace(self, part: int) -> None:
        """Put a new worker, who knows nothing, in the place of a lost one."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


class Engine(Protocol):
    """A way to execute programs."""

    @property
    def workers(self) -> int:
        """How many parts it executes at the same time."""
        ...

    def start(self, job: Job) -> Crew:
        """Start a worker for each part."""
        ...


@dataclass(frozen=True)
class InProcess:
    """Everything in this process, one part after the other."""

    parts: int = 1

    @property
    def workers(self) -> int:
        """How many parts there are; more than one is for tests of what goes between them."""
        return self.parts

    def start(self, job: Job) -> Crew:
        """Make the parts."""
        return _Here(job)


class _Here:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.parts = [self._part(elements) for elements in job.parts]
        self.answers: deque[tuple[int, Answer]] = deque()

    def _part(self, elements: Sequence[int]) -> Part:
        return Part(self.job.program, elements, self.job.all_tensors, self.job.loss)

    def submit(self, part: int, orders: Orders) -> None:
        self.answers.append((part, self.parts[part].work(orders)))

    def wait(self) -> tuple[int, Answer | Lost]:
        return self.answers.popleft()

    def replace(self, part: int) -> None:
        self.parts[part] = self._part(self.job.parts[part])

    def close(self) -> None:
        self.parts.clear()
