"""Run networks on TFLite Micro's kernels, in a worker process that damaged networks may end.

One worker serves the whole process and all of its threads, one request at a time; it starts with
the first network and again after each one that ended it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu.tflm_process import (
    LAST_ARENA_BYTES,
    ArenaTooSmallError,
    Document,
    receive,
    send,
    text_of,
)
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity, fail
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Tensor, read
from mizzen.package.tflite.long_biases import with_long_biases
from mizzen.platforms.limits import FROM_OUTSIDE, TIMED_OUT, how_ended
from mizzen.platforms.pipes import unless_gone
from mizzen.workers import Worker, Workers

Array = npt.NDArray[Any]

SCRIPT = Path(__file__).with_name("tflm_process.py")
TIME_LIMIT_SECONDS = 60
"""For one inference. The networks that microcontrollers run take milliseconds here."""

TEXT_CHARACTERS = 500
"""How much of what the kernels print goes into a diagnostic."""


class KernelRefusalError(MizzenError):
    """E702: kernels of a device do not take an operator; `said` is why, in their own words."""

    def __init__(self, diagnostic: Diagnostic, said: str) -> None:
        super().__init__(diagnostic)
        self.said = said


_NUMBER = re.compile(r"^Node \w+ \(number (\d+)\) failed", re.MULTILINE)
_KIND = re.compile(r"^Failed to get registration from op code (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """Bytes of an interpreter's arena.

    planned_bytes  from its start on: tensors, and what kernels need while they run
    kept_bytes     from its end on: what the interpreter and its kernels keep
    least_bytes    an arena of this size suffices, and is hardly larger than need be
    """

    planned_bytes: int
    kept_bytes: int
    least_bytes: int


class CpuKernels:
    """A network on the CPU.

    `operators` says where each of its operators comes from, in order, for diagnostics.

    Raises, when it is first run: E701 without the package tflite-micro, E702 for what the kernels
    refuse, E703 if they end the worker, E704 if one inference takes longer than a minute, E707 if
    they give other tensors than the network says.
    """

    def __init__(self, network: bytes, operators: Sequence[Origin] = ()) -> None:
        self._operators = list(operators)
        self._network = network
        self._outputs: tuple[Tensor, ...] = ()
        self._key = next(_keys)
        self._worker: _Worker | None = None
        weakref.finalize(self, _forgotten.append, self._key)

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element of `inputs`, arrays `[batch, *shape]`; outputs have that form.

        Every inference starts from the initial state. `batch` is needed if there are no inputs.
        """
        with _workers.lock:
            worker = self._load()
            count = len(inputs[0]) if batch is None else batch
            request = {"verb": "run", "key": self._key, "batch": count}
            return self.checked(worker.ask(request, inputs, self), count)

    def memory(self) -> KernelMemory:
        """Return the memory of the network's interpreter here, with pointers of 64 bits."""
        with _workers.lock:
            worker = self._load()
            request = {"verb": "measure", "key": self._key, "batch": 0}
            (sizes,) = worker.ask(request, [], self)
            return KernelMemory(*sizes.tolist())

    def session(self, batch: int = 1) -> CpuSession:
        """Open a session, in which each of `batch` elements keeps its state."""
        return CpuSession(self, batch)

    def open(self, key: int, batch: int) -> _Worker:
        """Make the interpreters of a session, and return the worker that has them."""
        with _workers.lock:
            worker = self._load()
            request = {"verb": "open", "key": key, "batch": batch, "network": self._key}
            worker.ask(request, [], self)
            return worker

    @property
    def origin(self) -> Origin | None:
        """The operator, if it is the only one, else the model."""
        match self._operators:
            case []:
                return None
            case [only]:
                return only
            case several:
                return Origin(several[0].model)

    def origin_of(self, text: str) -> Origin | None:
        """Say where the operator is that the kernels name in what they print."""
        if (number := _NUMBER.search(text)) and int(number[1]) < len(self._operators):
            return self._operators[int(number[1])]
        if kind := _KIND.search(text):
            return next((o for o in self._operators if o.kind == kind[1]), self.origin)
        return self.origin

    def checked(self, outputs: list[Array], count: int) -> list[Array]:
        """Return the outputs of `count` inferences; E707 unless they fit the network's outputs."""
        return fitting(outputs, self._outputs, count, "TFLite Micro", self.origin)

    def _load(self) -> _Worker:
        worker = _the_worker()
        if self._worker is not worker:
            network = np.frombuffer(self._readable(), np.uint8)
            worker.ask({"verb": "load", "key": self._key, "batch": 0}, [network], self)
            self._worker = worker
        return worker

    def _readable(self) -> bytes:
        """Return the network with the constants that the kernels read, and note its outputs.

        What is wrong with a damaged one is for the kernels to say.
        """
        try:
            model = read(self._network, "")
        except MizzenError:
            return self._network
        self._outputs = model.main.present(model.main.outputs)
        record = with_long_biases(model.record)
        if record is None and model.is_as_stored:
            return self._network
        return write(record or model.record, SCHEMA)


def fitting(
    outputs: list[Array],
    tensors: Sequence[Tensor],
    count: int,
    whose: str,
    origin: Origin | None,
) -> list[Array]:
    """Return the outputs of `count` inferences on kernels; E707 unless they fit the tensors.

    Kernels compute shapes of their own, and nothing else compares those with the file's.
    """
    for tensor, given in zip(tensors, outputs, strict=bool(tensors)):
        if given.size != count * tensor.elements or given.dtype != tensor.dtype:
            raise fail(
                "E707",
                f'{whose}\'s kernels must give "{tensor.name}" as {tensor.type.name} '
                f"{list(tensor.shape)}, as the network says, but give {given.dtype} "
                f"{list(given.shape[1:])}",
                origin=origin,
                help="the network is damaged; convert it again",
            )
    return outputs


class CpuSession:
    """Interpreters of one network, one for each element of a batch, that keep their state."""

    def __init__(self, kernels: CpuKernels, batch: int) -> None:
        self._kernels = kernels
        self._batch = batch
        self._key = next(_keys)
        self._worker = kernels.open(self._key, batch)
        weakref.finalize(self, _forgotten.append, self._key)

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element, from the state that the call before left.

        `batch`, if given, must be the session's. E705 if the state is lost, because another network
        has ended the worker.
        """
        assert batch in {None, self._batch}
        with _workers.lock:
            _drop_ended()
            if self._worker not in _workers:
                raise fail(
                    "E705",
                    "the session's state on the CPU must be there, but is lost: the process that "
                    "held it has ended, or belongs to another process",
                    origin=self._kernels.origin,
                    help="open a new session",
                )
            request = {"verb": "step", "key": self._key, "batch": self._batch}
            outputs = self._worker.ask(request, inputs, self._kernels)
            return self._kernels.checked(outputs, self._batch)


class _Worker(Worker):
    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:  # it never has a name
            self._log = os.dup(file.fileno())
        super().__init__(SCRIPT, self._log)

    @property
    def has_ended(self) -> bool:
        """Whether something has ended the worker since its last answer."""
        return self.process.poll() is not None

    def ask(self, request: Document, arrays: Sequence[Array], kernels: CpuKernels) -> list[Array]:
        """Return the arrays of the answer; what goes wrong is an error of `kernels`."""
        requests, answers = self.pipes
        start = os.fstat(self._log).st_size
        try:
            with unless_gone():  # it has ended, and that is found next
                every = {"seconds": TIME_LIMIT_SECONDS, "forget": _to_forget()}
                send(requests, {**request, **every}, arrays)
            answer, outputs = receive(answers)
        except Exception:  # it has ended, or its answer makes no sense
            text = text_of(self._log, start, TEXT_CHARACTERS)
            raise _ended(self.end(), text, kernels.origin) from None
        except BaseException:  # an interrupt leaves half a message behind
            self.end()
            raise
        if answer:
            text = answer["text"]
            raise _refused(answer["error"], text, kernels.origin_of(text))
        return outputs

    def close(self) -> None:
        os.close(self._log)
        super().close()

    def end(self) -> int:
        """End the worker, which serves no one any more, and return its exit status."""
        with contextlib.suppress(ValueError):
            _workers.remove(self)
        return super().end()


_keys = itertools.count()
_workers = Workers[_Worker]()
_forgotten: list[int] = []


def _drop_ended() -> None:
    """Forget a worker that was ended between two requests, by whatever ends processes."""
    for worker in list(_workers):
        if worker.has_ended:
            worker.end()


def is_installed() -> bool:
    """Whether there are the kernels: their package has wheels for Linux on x86-64 alone."""
    return find_spec("tflite_micro") is not None


def begin() -> None:
    """Start the kernels' process if the package is there: who will run them need not wait then."""
    if is_installed():
        with _workers.lock:
            _the_worker()


def _the_worker() -> _Worker:
    _drop_ended()
    if not _workers:
        _require_package()
        _workers.append(_Worker())
    return _workers[0]


def _to_forget() -> list[int]:
    """Return the networks and sessions that nothing holds any more; appended to while this runs."""
    return [_forgotten.pop() for _ in range(len(_forgotten))]


def _require_package() -> None:
    if not is_installed():
        raise fail(
            "E701",
            "operators on the CPU must have TFLite Micro's kernels, but the package tflite-micro "
            "is not installed",
            help="pip install tflite-micro (Linux on x86-64 only)",
        )


def _ended(status: int, text: str, origin: Origin | None) -> MizzenError:
    if status == TIMED_OUT:
        return fail(
            "E704",
            f"an inference on the CPU must take at most {TIME_LIMIT_SECONDS} seconds, and took "
            "longer",
            origin=origin,
            help="the network is damaged, or too large for TFLite Micro's kernels",
        )
    how = how_ended(status)
    if status in FROM_OUTSIDE:
        return fail(
            "E703",
            f"the process of the CPU's kernels must go on, but something ended it with {how}",
            origin=origin,
            help="run it again; the system ends processes when memory is short",
        )
    printed = f": {_one_line(text)}" if text.strip() else ""
    return fail(
        "E703",
        f"TFLite Micro's kernels must finish, but ended with {how}{printed}",
        origin=origin,
        help="the network is damaged, or uses an operator in a way that the kernels do not check",
    )


def _refused(error: str, text: str, origin: Origin | None) -> MizzenError:
    if error in {ArenaTooSmallError.__name__, MemoryError.__name__}:
        return fail(
            "E706",
            f"operators on the CPU must do with {LAST_ARENA_BYTES >> 20} MiB of memory, and need "
            "more",
            origin=origin,
        )
    said = _one_line(text)
    refusal = Diagnostic(
        "E702",
        f"TFLite Micro's kernels must take the operators left on the CPU, but say: {said}",
        Severity.ERROR,
        origin,
        help="use operators that TFLite Micro has, or that the NPU takes",
    )
    return KernelRefusalError(refusal, said)


def _one_line(text: str) -> str:
    line = "; ".join(part for part in map(str.strip, text.splitlines()) if part)
    return line if len(line) <= TEXT_CHARACTERS else f"{line[:TEXT_CHARACTERS]}..."
