"""Parts on Ray: an actor for each, here or on the machines of a cluster.

An actor has a set of elements, and takes all messages that are there for them in one call: there
are as many actors as workers, not as elements, and as many calls as steps, not as messages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.mesh.execution.engines import Crew, Job, Lost
from mizzen.mesh.execution.part import Answer, Loss, Orders, Part
from mizzen.mesh.program import parse_program, program_bytes


@dataclass(frozen=True)
class OnRay:
    """So many actors of a Ray cluster: of the one at `address`, or one that is started here.

    A cluster that this process is connected to already is used as it is, and left.
    """

    workers: int = 2
    address: str | None = None

    def start(self, job: Job) -> Crew:
        """Start the actors. E543 without Ray, or where the cluster is not there."""
        try:
            import ray
        except ImportError as error:
            raise fail(
                "E543",
                "ray must be installed for this engine, and is not",
                help="install Mizzen with its extra cluster: pip install '.[cluster]' in its "
                "checkout",
            ) from error
        return _Actors(ray, job, self.workers, self.address)


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
    def __init__(self, ray: Any, job: Job, workers: int, address: str | None) -> None:
        self.ray = ray
        self.job = job
        self.owns = not ray.is_initialized()
        if self.owns:
            self._connect(workers, address)
        self.program = ray.put(program_bytes(job.program))
        self.kind = ray.remote(num_cpus=1, max_restarts=0)(PartActor)
        self.actors: dict[int, Any] = {}
        self.outstanding: dict[Any, int] = {}
        for part in range(len(job.parts)):
            self.replace(part)

    def _connect(self, workers: int, address: str | None) -> None:
        options = {"num_cpus": workers} if address is None else {"address": address}
        variables = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        try:
            self.ray.init(
                **options,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                runtime_env={"env_vars": variables},
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise fail(
                "E543", f"a cluster must be at {address or 'this machine'}: {error}"
            ) from error

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
