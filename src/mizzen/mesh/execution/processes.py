"""Parts in processes of their own, which take orders over pipes.

A process gets the program as a file and nothing else. One that ends is replaced, and its part told
again what it was told; the same orders give the same answers.
"""

from __future__ import annotations

import selectors
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.mesh.execution.engines import Crew, Job, Lost
from mizzen.mesh.execution.part import Answer, Orders, Part
from mizzen.mesh.program import parse_program, program_bytes
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
        self.selector = selectors.DefaultSelector()
        self.workers: dict[int, Worker] = {}
        for part in range(len(job.parts)):
            self.replace(part)

    def submit(self, part: int, orders: Orders) -> None:
        try:
            write(self.workers[part].pipes[0], orders)
        except BrokenPipeError:
            return  # the end of its answers says so

    def wait(self) -> tuple[int, Answer | Lost]:
        for key, _ in self.selector.select():
            part: int = key.data
            worker = self.workers[part]
            try:
                answer = read(worker.pipes[1])
            except EOFError:
                return part, self._lost(part, worker)
            if isinstance(answer, Diagnostic):
                raise MizzenError(answer)
            return part, answer
        raise AssertionError("a selector waits for ever")

    def _lost(self, part: int, worker: Worker) -> Lost:
        self.selector.unregister(worker.pipes[1])
        return Lost(f"exit status {worker.end()}")

    def replace(self, part: int) -> None:
        worker = Worker(SCRIPT, sys.stderr.fileno() if _has_stderr() else subprocess.DEVNULL)
        self.workers[part] = worker
        self.selector.register(worker.pipes[1], selectors.EVENT_READ, part)
        try:
            job = self.job
            write(worker.pipes[0], (self.program, job.parts[part], job.all_tensors, job.loss))
        except BrokenPipeError:
            return

    def close(self) -> None:
        self.selector.close()
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
    except (EOFError, BrokenPipeError):
        return


def _answer(part: Part, orders: Orders) -> Answer | Diagnostic:
    try:
        return part.work(orders)
    except MizzenError as error:
        return error.diagnostic
