"""Parts on Ray: an actor for each, here or on the machines of a cluster.

An actor has a set of elements, and takes all messages that are there for them in one call: there
are as many actors as workers, not as elements, and as many calls as steps, not as messages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.mesh.execution.engines import Crew, Job, Lost
from mizzen.mesh.execution.part import Answer, Loss, Orders, Part
from mizzen.mesh.program import parse_program, program_bytes
from mizzen.workers.cluster import connected


@dataclass(frozen=True)
class OnRay:
    """So many actors of a Ray cluster: of the one at `address`, or one that is started here.

    A cluster that this process is connected to already is used as it is, and left.
    """

    workers: int = 2
    address: str | None = None

    def start(self, job: Job) -> Crew:
        """Start the actors. E543 without Ray, or where the cluster is not there."""
        return _Actors(job, self.workers, self.address)


class PartActor:
    """What an actor does: it has a part."""

    def __init__(
        self, program: bytes, elements: tuple[int, ...], all_tensors: bool, loss: Loss | None
    ) -> None:
        self.part = Part(parse_program(program, "program"), elements, all_tensors, loss)

    def work(self, orders: Orders) -> Answer | Diagnostic:
        """Let the part work; its errors are answers."""
        try:
            return self.part.work(orders)
        except MizzenError as error:
            return error.diagnostic

    def process(self) -> int:
        """Return the process that the actor is in."""
        return os.getpid()


class _Actors:
    def __init__(self, job: Job, workers: int, address: str | None) -> None:
        self.ray, self.owns = connected(workers, address)
        self.job = job
        self.program = self.ray.put(program_bytes(job.program))
        self.kind = self.ray.remote(num_cpus=1, max_restarts=0)(PartActor)
        self.actors: dict[int, Any] = {}
        self.outstanding: dict[Any, int] = {}
        for part in range(len(job.parts)):
            self.replace(part)

    def submit(self, part: int, orders: Orders) -> None:
        self.outstanding[self.actors[part].work.remote(orders)] = part

    def wait(self) -> tuple[int, Answer | Lost]:
        (done,), _ = self.ray.wait(list(self.outstanding), num_returns=1)
        part = self.outstanding.pop(done)
        try:
            answer = self.ray.get(done)
        except self.ray.exceptions.RayActorError as error:
            return part, Lost(str(error).split("\n")[0])
        if isinstance(answer, Diagnostic):
            raise MizzenError(answer)
        return part, answer

    def replace(self, part: int) -> None:
        job = self.job
        self.actors[part] = self.kind.remote(
            self.program, job.parts[part], job.all_tensors, job.loss
        )

    def close(self) -> None:
        for actor in self.actors.values():
            self.ray.kill(actor)
        if self.owns:
            self.ray.shutdown()
