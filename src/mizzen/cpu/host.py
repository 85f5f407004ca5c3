"""Operators on the CPU, computed on this host by the first that has them.

TensorFlow Lite Micro's kernels compute what they take: they are what runs on the device. They do
not take every operator of TensorFlow Lite, nor every type of those that they have. What they refuse
is computed operator by operator: on the kernels where they take the operator alone, else as the
integers of its graph, which need no other package, else on LiteRT's reference kernels where these
are installed. A device has none of the two: who computed an operator is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy.typing as npt

from mizzen.cpu import litert
from mizzen.cpu.device import DeviceKernels, Runs, device_kernels
from mizzen.cpu.graph import GraphKernels, graph_kernels
from mizzen.cpu.litert import LiteRtKernels
from mizzen.cpu.tflm import KernelRefusalError
from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.tflite import Model, Operator, read
from mizzen.package.tflite.extract import extract

Array = npt.NDArray[Any]


class Computer(Enum):
    """Who computes an operator here; the value is what people call it."""

    TFLM = "TensorFlow Lite Micro"
    GRAPH = "Mizzen's integer reference"
    LITERT = "LiteRT"


class NothingComputesError(MizzenError):
    """E702: nothing on this host computes an operator; `why` says so in a clause about it."""

    def __init__(
        self, refused: KernelRefusalError, also: str, why: str, help: str | None = None
    ) -> None:
        diagnostic = refused.diagnostic
        message = f"{diagnostic.message}; {also}"
        super().__init__(replace(diagnostic, message=message, help=help or diagnostic.help))
        first = refused.said.split("; ")[0]
        self.why = f'{why} (the first says "{first}")'


class HostKernels:
    """A network on the CPU.

    `operators` says where each of its operators comes from, in order, for diagnostics.

    Raises, when it is run, as `CpuKernels` does; E702 is of an operator that nothing here computes.
    """

    def __init__(self, network: bytes, operators: Sequence[Origin] = ()) -> None:
        self._network = network
        self._origins = list(operators)
        self._whole = device_kernels(network, operators)
        self._divided: _Divided | None = None

    @property
    def computers(self) -> dict[int, Computer]:
        """Who computed the operators that TensorFlow Lite Micro's kernels do not, by index."""
        return {} if self._divided is None else self._divided.computers

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element of `inputs`, arrays `[batch, *shape]`; outputs have that form.

        Every inference starts from the initial state. `batch` is needed if there are no inputs.
        """
        count = len(inputs[0]) if batch is None else batch
        if self._divided is None:
            try:
                return self._whole.run(inputs, count)
            except KernelRefusalError as refused:
                self.divide(refused)
        return self.divided.run(inputs, count)

    def session(self, batch: int = 1) -> HostSession:
        """Open a session, in which each of `batch` elements keeps its state."""
        return HostSession(self, self._whole, batch)

    @property
    def divided(self) -> _Divided:
        """The network operator by operator, once it is known that it must be."""
        assert self._divided is not None
        return self._divided

    def divide(self, refused: KernelRefusalError) -> None:
        """Go on operator by operator, which the kernels do not take all together."""
        if self._divided is None:
            self._divided = _Divided(read(self._network, ""), self._origins, refused)


class HostSession:
    """Interpreters of one network, one for each element of a batch, that keep their state."""

    def __init__(self, kernels: HostKernels, whole: DeviceKernels, batch: int) -> None:
        self._kernels = kernels
        self._batch = batch
        self._whole: Runs | None = None
        self._each: dict[int, Runs] = {}
        self._begun = False
        try:
            self._whole = whole.session(batch)
        except KernelRefusalError as refused:
            self._divide(refused)

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element, from the state that the call before left.

        `batch`, if given, must be the session's. E705 if the state is lost, because another network
        has ended the worker; E708 if what keeps it has no kernel that does.
        """
        assert batch in {None, self._batch}
        if self._whole is not None:
            try:
                outputs = self._whole.run(inputs, self._batch)
            except KernelRefusalError as refused:
                if self._begun:  # there is state by now, which others would not have
                    raise
                self._divide(refused)
            else:
                self._begun = True
                return outputs
        return self._kernels.divided.run(inputs, self._batch, self._each)

    def _divide(self, refused: KernelRefusalError) -> None:
        self._kernels.divide(refused)
        self._whole, self._each = None, self._kernels.divided.sessions(self._batch)


class _Divided:
    """A network operator by operator."""

    def __init__(
        self, model: Model, origins: Sequence[Origin], refused: KernelRefusalError
    ) -> None:
        self._main = model.main
        try:
            self._operators = [
                _Operator(model, operator, origins[operator.index : operator.index + 1])
                for operator in model.main.operators
            ]
        except MizzenError:  # one cannot stand alone
            raise refused from None

    @property
    def computers(self) -> dict[int, Computer]:
        return {
            place: operator.computer
            for place, operator in enumerate(self._operators)
            if operator.computer is not Computer.TFLM
        }

    def sessions(self, batch: int) -> dict[int, Runs]:
        """Open a session of each operator that the kernels take."""
        sessions = {
            place: operator.session(batch) for place, operator in enumerate(self._operators)
        }
        return {place: session for place, session in sessions.items() if session is not None}

    def run(
        self,
        inputs: Sequence[Array],
        count: int,
        sessions: Mapping[int, Runs] | None = None,
    ) -> list[Array]:
        """Infer from the initial state, or from that of `sessions`."""
        values = dict(zip(self._main.inputs, inputs, strict=True))
        for place, operator in enumerate(self._operators):
            part = operator.part
            given = [values[index] for index in part.inputs]
            if sessions is None:
                outputs = operator.run(given, count)
            else:
                outputs = operator.step(given, count, sessions.get(place))
            values.update(zip(part.outputs, outputs, strict=True))
        return [values[index] for index in self._main.outputs]


class _Operator:
    """An operator by itself: its network, and who computes it."""

    def __init__(self, model: Model, operator: Operator, origins: Sequence[Origin]) -> None:
        self.part = extract(model.record, [operator.index])
        self.computer = Computer.TFLM
        tensors = model.main.present(operator.inputs)
        self._keeps_state = any(tensor.variable for tensor in tensors)
        self._origins = origins
        self._micro = device_kernels(self.part.network, origins)
        self._other: GraphKernels | LiteRtKernels | None = None

    def session(self, batch: int) -> Runs | None:
        try:
            return self._micro.session(batch)
        except KernelRefusalError:
            return None

    def run(self, inputs: Sequence[Array], count: int) -> list[Array]:
        return self._computed(self._micro, inputs, count)

    def step(self, inputs: Sequence[Array], count: int, session: Runs | None) -> list[Array]:
        """Infer from the state of a session. E708 if what keeps it has no kernel that does."""
        outputs = self._computed(session or self._micro, inputs, count)
        if self._other is not None and self._keeps_state:
            raise fail(
                "E708",
                "a session must keep the state of its operators, but this one has no kernel in "
                f"TensorFlow Lite Micro, and {self.computer.value} starts each inference anew",
                origin=self._origins[0] if self._origins else None,
                help="infer with `run`, where every inference starts anew",
            )
        return outputs

    def _computed(self, micro: Runs, inputs: Sequence[Array], count: int) -> list[Array]:
        if self._other is not None:
            return self._other.run(inputs, count)
        try:
            return micro.run(inputs, count)
        except KernelRefusalError as refused:
            return self._instead(refused, inputs, count)

    def _instead(
        self, refused: KernelRefusalError, inputs: Sequence[Array], count: int
    ) -> list[Array]:
        """Compute what the kernels refuse."""
        model = read(self.part.network, "")
        integers = None if self._keeps_state else graph_kernels(model)
        if integers is not None:
            self.computer, self._other = Computer.GRAPH, integers
            return integers.run(inputs, count)
        other = self._litert(model, refused)
        try:
            outputs = other.run(inputs, count)
        except MizzenError as error:
            why = "neither TensorFlow Lite Micro nor LiteRT has a kernel that takes it"
            raise NothingComputesError(refused, error.diagnostic.message, why) from None
        self.computer, self._other = Computer.LITERT, other
        return outputs

    def _litert(self, model: Model, refused: KernelRefusalError) -> LiteRtKernels:
        if model.main.operators[0].custom:
            raise refused
        missing = "TensorFlow Lite Micro has no kernel that takes it"
        objection = litert.objection(model, model.main.operators[0])
        if objection is not None:
            raise NothingComputesError(refused, objection, f"{missing}, and {objection}")
        if not litert.is_installed():
            also = f"LiteRT, which may have one, is not installed ({litert.INSTALL})"
            help = f"{refused.diagnostic.help}; or let LiteRT compute it here: {litert.INSTALL}"
            raise NothingComputesError(refused, also, f"{missing}, and {also}", help)
        return LiteRtKernels(self.part.network, self._origins)
