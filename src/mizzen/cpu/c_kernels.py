"""Run networks on the kernels of Mizzen's C runtime, compiled for this machine.

They compute what TensorFlow Lite Micro's do, bit for bit, and stand for these where their package
has no wheel. The runtime looks at every word of a container before anything of it is used, so it
runs in this process.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu.c_library import CLibrary, TensorPlace
from mizzen.cpu.operator_calls import network_program
from mizzen.cpu.tables import tabulated
from mizzen.cpu.tflm import KernelRefusalError
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity
from mizzen.frontends.tflite import Tensor, read
from mizzen.package.c import encode
from mizzen.package.c.layout import ALIGNMENT_BYTES
from mizzen.package.c.lowering import lower
from mizzen.package.c.reader import decode

Array = npt.NDArray[Any]

NAME = "Mizzen's C kernels"


class CKernels:
    """A network on the C runtime's kernels.

    `operators` says where each of its operators comes from, in order, for diagnostics.

    Raises, when it is run, E702 for what the kernels do not take.
    """

    def __init__(self, library: CLibrary, network: bytes, operators: Sequence[Origin] = ()) -> None:
        self._library = library
        self._network = network
        self._operators = list(operators)
        self._container: bytes | None = None
        self._outputs: tuple[Tensor, ...] = ()
        self._opened: _Opened | None = None
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element of `inputs`, arrays `[batch, *shape]`; outputs have that form.

        Every inference starts from the initial state. `batch` is needed if there are no inputs.
        """
        count = len(inputs[0]) if batch is None else batch
        with self._lock, self._refusing():
            if self._opened is None:
                self._opened = self._open()
            return self._opened.batch(inputs, count)

    def session(self, batch: int = 1) -> CSession:
        """Open a session, in which each of `batch` elements keeps its state."""
        with self._refusing():
            return CSession(self, [self._open() for _ in range(batch)])

    def _open(self) -> _Opened:
        if self._container is None:
            main = read(self._network, "").main
            self._outputs = main.present(main.outputs)
            self._container = _container(self._network)
        return _Opened(self._library, self._container, self._outputs, self._only)

    @property
    def _only(self) -> Origin | None:
        return self._operators[0] if len(self._operators) == 1 else None

    @contextmanager
    def _refusing(self) -> Generator[None]:
        """Say what the lowering or the runtime refuses as kernels do: E702 at its operator."""
        try:
            yield
        except KernelRefusalError:
            raise
        except MizzenError as error:
            raise _refusal(
                error.diagnostic.message, error.diagnostic.origin or self._only
            ) from None


class CSession:
    """Contexts of one network, one for each element of a batch, that keep their state."""

    def __init__(self, kernels: CKernels, opened: Sequence[_Opened]) -> None:
        self._kernels = kernels
        self._opened = opened
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element, from the state that the call before left.

        `batch`, if given, must be the session's.
        """
        assert batch in {None, len(self._opened)}
        with self._lock:
            results = [
                each.infer([array[element] for array in inputs])
                for element, each in enumerate(self._opened)
            ]
        return [np.stack(column) for column in zip(*results, strict=True)]


class _Opened:
    """A container that is open, with its arena."""

    def __init__(
        self,
        library: CLibrary,
        container: bytes,
        outputs: Sequence[Tensor],
        origin: Origin | None,
    ) -> None:
        self._library = library
        self._origin = origin
        self._outputs = outputs
        arena_bytes = decode(container).header["arena_bytes"]
        self._container = _aligned(len(container))
        self._container[:] = np.frombuffer(container, np.uint8)
        self._arena = _aligned(arena_bytes)
        self._context = _aligned(library.context_bytes())
        self._must(
            library.open(
                self._address, self._container.ctypes.data, len(container),
                self._arena.ctypes.data, arena_bytes,
            )
        )  # fmt: skip

    @property
    def _address(self) -> int:
        return self._context.ctypes.data

    def batch(self, inputs: Sequence[Array], count: int) -> list[Array]:
        """Infer `count` times, each from the initial state."""
        results: list[list[Array]] = []
        for element in range(count):
            self._must(self._library.reset(self._address))
            results.append(self.infer([array[element] for array in inputs]))
        return [np.stack(column) for column in zip(*results, strict=True)]

    def infer(self, inputs: Sequence[Array]) -> list[Array]:
        """Infer once, from the state that there is."""
        for place, array in enumerate(inputs):
            self._view(self._library.input, place)[:] = np.frombuffer(array.tobytes(), np.uint8)
        self._must(self._library.invoke(self._address))
        outputs: list[Array] = []
        for place, tensor in enumerate(self._outputs):
            data = self._view(self._library.output, place).tobytes()
            outputs.append(np.frombuffer(data, tensor.dtype or np.uint8).reshape(tensor.shape))
        return outputs

    def _view(self, find: Any, place: int) -> Array:
        """Return the bytes of an input or output, where they lie."""
        found = TensorPlace()
        self._must(find(self._address, place, ctypes.byref(found)))
        if not found.size_bytes:
            return np.empty(0, np.uint8)
        memory = (ctypes.c_uint8 * found.size_bytes).from_address(found.data)
        return np.frombuffer(memory, np.uint8)

    def _must(self, status: int) -> None:
        if status:
            raise _refusal(self._library.status_text(status).decode(), self._origin)


def _container(network: bytes) -> bytes:
    """Return a network as a container of the runtime."""
    return encode(lower(network_program(read(network, "")), tabulated), None)


def _refusal(said: str, origin: Origin | None) -> KernelRefusalError:
    diagnostic = Diagnostic(
        "E702",
        f"{NAME} must take the operators left on the CPU, but say: {said}",
        Severity.ERROR,
        origin,
        help="use operators that the C runtime has, or that the NPU takes",
    )
    return KernelRefusalError(diagnostic, said)


def _aligned(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Return so many bytes of memory, aligned as the runtime wants it."""
    memory = np.zeros(size_bytes + ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[start : start + size_bytes]
