"""Runs TFLite Micro's kernels; started as a script, in a process of its own.

The kernels trust their network: a damaged one can end the process, loop, or write anywhere, so they
never run in the user's. The script answers requests on standard input until that closes. Requests
and answers are a JSON document after its length (uint64), then the contents of the arrays that it
lists. Standard error is a file, in which the script finds what the kernels print.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mizzen.platforms.limits import limit_resources, limit_time

Array = npt.NDArray[Any]
Document = dict[str, Any]

ADDRESS_SPACE_BYTES = 4 << 30
LOG_BYTES = 16 << 20
FIRST_ARENA_BYTES = 1 << 16
LAST_ARENA_BYTES = 1 << 29
"""An arena that is too small is doubled until it is larger than any microcontroller's memory."""

ARENA_STEP_BYTES = 64

PART_BYTES = 1024
SCALE_BYTES = 16
WIDEST_BYTES = 8
"""More than the description of a tensor or operator takes in an arena, each scale, each element."""

STDERR = 2


class ArenaTooSmallError(Exception):
    """Says that the largest arena is too small, in the kernels' words."""


def send(stream: IO[bytes], document: Document, arrays: Sequence[Array] = ()) -> None:
    """Write a message."""
    listed = [(array.dtype.str, array.shape) for array in arrays]
    text = json.dumps({**document, "arrays": listed}).encode()
    _write(stream, struct.pack("<Q", len(text)) + text)
    for array in arrays:
        _write(stream, array.tobytes())
    stream.flush()


def _write(stream: IO[bytes], data: bytes) -> None:
    """Write all of it: a stream without a buffer may take less at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def receive(stream: IO[bytes]) -> tuple[Document, list[Array]]:
    """Read a message; EOFError if the other side has ended."""
    (length,) = struct.unpack("<Q", _exactly(stream, 8))
    document: Document = json.loads(_exactly(stream, length))
    arrays: list[Array] = []
    for name, shape in document.pop("arrays"):
        dtype = np.dtype(name)
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        arrays.append(np.ndarray(tuple(shape), dtype, _exactly(stream, size)).copy())
    return document, arrays


def _exactly(stream: IO[bytes], size: int) -> bytes:
    """Read so much; a stream without a buffer may give less at a time."""
    data = stream.read(size)
    if len(data) == size:
        return data
    parts = [data]
    while (missing := size - sum(map(len, parts))) > 0:
        part = stream.read(missing)
        if not part:
            raise EOFError
        parts.append(part)
    return b"".join(parts)


class _Network:
    """A network, the arena that it needs, and an interpreter to reset and use again."""

    def __init__(self, data: bytes) -> None:
        self._runtime: Any = import_module("tflite_micro").runtime
        model = self._runtime.convert_bytearray_to_object(data)
        self._data = data
        self._arena_bytes = min(_ample_bytes(model), LAST_ARENA_BYTES)
        self._has_resources = self._runtime.count_resource_variables(model) > 0
        self.outputs = len(model.subgraphs[0].outputs)
        self._interpreter = self.interpreter()

    def interpreter(self) -> Any:
        """Make an interpreter, as it is before its first inference."""
        while True:
            start = os.fstat(STDERR).st_size
            try:
                return self._runtime.Interpreter.from_bytes(
                    self._data, arena_size=self._arena_bytes
                )
            except RuntimeError:
                if "missing: " not in printed(start):
                    raise
                if self._arena_bytes >= LAST_ARENA_BYTES:
                    raise ArenaTooSmallError from None
                self._arena_bytes *= 2
                os.ftruncate(STDERR, start)
                os.lseek(STDERR, start, os.SEEK_SET)

    def reset(self) -> Any:
        """Return an interpreter as it is before its first inference.

        A reset does not repeat what initialises resources, so these need another interpreter.
        """
        if self._has_resources:
            return self.interpreter()
        self._interpreter.reset()
        return self._interpreter

    def memory(self) -> Array:
        """Return the bytes that the interpreter takes of an arena's start and of its end.

        The third number is the size of an arena in which it can be prepared.
        """
        start = os.fstat(STDERR).st_size
        self._interpreter.print_allocations()
        text = printed(start)
        head, tail = (int(_BYTES[part].findall(text)[0]) for part in ("head", "tail"))
        least_bytes = head + tail
        while not self._fits(least_bytes):
            least_bytes += max(least_bytes // 16, ARENA_STEP_BYTES)
        return np.array([head, tail, least_bytes])

    def _fits(self, arena_bytes: int) -> bool:
        try:
            self._runtime.Interpreter.from_bytes(self._data, arena_size=arena_bytes)
        except RuntimeError:
            return False
        return True


def _ample_bytes(model: Any) -> int:
    """Return the size of an arena in which a network fits without any reuse of memory.

    Where an arena is a little too small, some kernels do not look whether they got what they asked
    for, and the process ends. Ref: TFLite Micro, MicroContext::AllocateTempInputTensor.
    """
    total = FIRST_ARENA_BYTES
    for subgraph in model.subgraphs:
        total += PART_BYTES * len(subgraph.operators)
        for tensor in subgraph.tensors:
            extents = (
                [] if tensor.shape is None else [max(int(extent), 1) for extent in tensor.shape]
            )
            scales = None if tensor.quantization is None else tensor.quantization.scale
            total += PART_BYTES + SCALE_BYTES * (0 if scales is None else len(scales))
            if model.buffers[tensor.buffer].data is None:
                total += WIDEST_BYTES * int(np.prod(extents, dtype=np.int64))
    return total


_BYTES = {part: re.compile(rf"Arena allocation {part} (\d+) bytes") for part in ("head", "tail")}


def printed(start: int) -> str:
    """Return the text that was printed from a place in standard error on."""
    return text_of(STDERR, start, LOG_BYTES)


def text_of(log: int, start: int, most_bytes: int) -> str:
    """Return the text in a log from a place on, after which what is printed follows."""
    end = os.lseek(log, 0, os.SEEK_END)
    os.lseek(log, start, os.SEEK_SET)
    text = os.read(log, most_bytes)
    os.lseek(log, end, os.SEEK_SET)
    return text.decode(errors="replace")


class _TflmServer:
    def __init__(self) -> None:
        self._networks: dict[int, _Network] = {}
        self._sessions: dict[int, tuple[_Network, list[Any]]] = {}

    def answer(self, request: Document, arrays: list[Array]) -> list[Array]:
        """Do what a request asks; return the arrays that it asks for."""
        for key in request["forget"]:
            self._networks.pop(key, None)
            self._sessions.pop(key, None)
        key: int = request["key"]
        batch: int = request["batch"]
        match request["verb"]:
            case "load":
                self._networks[key] = _Network(arrays[0].tobytes())
                return []
            case "measure":
                return [self._networks[key].memory()]
            case "run":
                network = self._networks[key]
                fresh = (network.reset() for _ in range(batch))
                return _infer(fresh, network, arrays, request["seconds"])
            case "open":
                network = self._networks[request["network"]]
                interpreters = [network.interpreter() for _ in range(batch)]
                self._sessions[key] = network, interpreters
                return []
            case _:
                network, interpreters = self._sessions[key]
                return _infer(interpreters, network, arrays, request["seconds"])


def _infer(
    interpreters: Iterable[Any], network: _Network, inputs: list[Array], seconds: float
) -> list[Array]:
    """Infer once with each interpreter, on one element of the batch; the limit is for each."""
    results: list[list[Array]] = []
    for element, interpreter in enumerate(interpreters):
        limit_time(seconds)
        for index, array in enumerate(inputs):
            interpreter.set_input(np.asarray(array[element]), index)
        interpreter.invoke()
        results.append([np.asarray(interpreter.get_output(i)) for i in range(network.outputs)])
    return [np.stack(column) for column in zip(*results, strict=True)]


def main() -> None:
    """Answer requests until there are no more."""
    limit_resources(ADDRESS_SPACE_BYTES, LOG_BYTES)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(STDERR, 1)
    server = _TflmServer()
    while True:
        try:
            request, arrays = receive(sys.stdin.buffer)
        except EOFError:
            return
        _reply(server, answers, request, arrays)


def _reply(server: _TflmServer, answers: IO[bytes], request: Document, arrays: list[Array]) -> None:
    start = os.fstat(STDERR).st_size
    limit_time(request["seconds"])
    try:
        outputs = server.answer(request, arrays)
    except Exception as error:
        limit_time(0)
        refused = {"error": type(error).__name__, "text": f"{printed(start)}\n{error}"}
        send(answers, refused)
    else:
        limit_time(0)
        send(answers, {}, outputs)


if __name__ == "__main__":
    main()
