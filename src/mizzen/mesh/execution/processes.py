"""Parts in processes of their own, which take orders over pipes.

A process gets the program as a file and nothing else. One that ends is replaced, and its part told
again what it was told; the same orders give the same answers.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.mesh.execution.engines import Crew, Job, Lost
from mizzen.mesh.execution.part import Answer, Orders, Part
from mizzen.mesh.program import parse_program, program_bytes
from mizzen.platforms.limits import how_ended
from mizzen.platforms.pipes import Answers, unless_gone
from mizzen.workers import Worker
from mizzen.workers.messages import read, write

SCRIPT = Path(__file__).with_name("process.py")


@dataclass(frozen=True)
class Processes:
    """So many processes of this machine, each with one part and one thread."""

    workers: int = 2

    def start(self, job: Job) -> Crew:
        """Start the processes."""
        return _Processes(job)


class _Processes:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.program = program_bytes(job.program)
        self.answers: Answers[int, Answer | Diagnostic] = Answers()
        self.workers: dict[int, Worker] = {}
        for part in range(len(job.parts)):
            self.replace(part)

    def submit(self, part: int, orders: Orders) -> None:
        requests, answers = self.workers[part].pipes
        with unless_gone():
            write(requests, orders)
        self.answers.expect(part, lambda: read(answers))

    def wait(self) -> tuple[int, Answer | Lost]:
        part, answer = self.answers.first()
        if isinstance(answer, EOFError):
            return part, Lost(how_ended(self.workers[part].end()))
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Diagnostic):
            raise MizzenError(answer)
        return part, answer

    def replace(self, part: int) -> None:
        worker = Worker(SCRIPT, sys.stderr.fileno() if _has_stderr() else subprocess.DEVNULL)
        self.workers[part] = worker
        job = self.job
        with unless_gone():
            write(worker.pipes[0], (self.program, job.parts[part], job.all_tensors, job.loss))

    def close(self) -> None:
        for worker in self.workers.values():
            worker.end()


def _has_stderr() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer orders for the part that the first message says, until they end."""
    try:
        program, *rest = read(requests)
        part = Part(parse_program(program, "program"), *rest)
    except MizzenError as error:
        write(answers, error.diagnostic)
        return
    try:
        while True:
            write(answers, _answer(part, read(requests)))
    except (EOFError, OSError):  # who asked is gone
        return


def _answer(part: Part, orders: Orders) -> Answer | Diagnostic:
    try:
        return part.work(orders)
    except MizzenError as error:
        return error.diagnostic
