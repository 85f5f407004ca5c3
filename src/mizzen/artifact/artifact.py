"""Compiled networks, ready to run: NPU operators in the simulator, the rest on CPU kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.batching import Arrays, Batch, arrange, batch_of
from mizzen.artifact.host_steps import HostStep
from mizzen.compiler.backend import HazardReport, Origins
from mizzen.compiler.registry import Backend, backend_for, backend_of
from mizzen.diagnostics import Diagnostic, fail
from mizzen.frontends.tflite import Model, Operator, Quantization, Tensor, read
from mizzen.frontends.tflite.npu import is_npu

if TYPE_CHECKING:
    from mizzen.cpu.tflm import CpuKernels, CpuSession
    from mizzen.report import CompileReport

Array = npt.NDArray[Any]
Values = dict[int, Array]
"""Tensor index to a batch of values, `[N, *shape]`."""

ARCHIVE_START = b"PK"
"""How a ZIP archive starts, which is what an `.npz` is."""

PLAN_NAME = b"plan.json"
"""In every archive of a program that runs partly in PyTorch."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output: its name, shape for one inference, type and quantisation."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    quantization: Quantization | None

    @property
    def quantisation(self) -> Quantization | None:
        """`quantization`, in the spelling of the command line."""
        return self.quantization


@dataclass(frozen=True, slots=True)
class Variable:
    """State of an NPU operator: its tensor, and what it is before the first inference."""

    index: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    initial: int

    def start(self, batch: int) -> Array:
        """Return the state before the first inference, `[batch, *shape]`."""
        return np.full((batch, *self.shape), self.initial, self.dtype)


class NpuStep:
    """An NPU operator: its program, and the tensors that it takes (with its state) and gives.

    program  of the type of the backend's target
    """

    on_npu = True

    def __init__(
        self,
        backend: Backend[Any],
        program: Any,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        variables: tuple[Variable, ...],
    ) -> None:
        self.backend = backend
        self.program = program
        self.inputs = inputs
        self.outputs = outputs
        self.variables = variables

    @cached_property
    def simulator(self) -> Any:
        """The simulator of the program, a `Simulator`; planning it is done on first use."""
        return self.backend.simulator(self.program)

    @cached_property
    def hazards(self) -> HazardReport:
        """What the waits of the stream leave unordered; found on first use."""
        return self.backend.hazards(self.program)

    @property
    def accelerator(self) -> str:
        """The accelerator that the program is for."""
        return self.backend.accelerator_of(self.program)

    def run(self, values: Values, batch: int) -> None:
        """Compute the outputs, and the variables' next values, from the inputs in `values`."""
        outcome = self.simulator.run([values[index] for index in self.inputs], batch)
        values.update(zip(self.outputs, outcome.outputs, strict=True))
        indices = (variable.index for variable in self.variables)
        values.update(zip(indices, outcome.variables, strict=True))


class CpuStep:
    """Consecutive operators that the compiler left to the CPU."""

    on_npu = False

    def __init__(self, model: Model, operators: Sequence[Operator]) -> None:
        from mizzen.package.tflite.extract import extract

        part = extract(model.record, [operator.index for operator in operators])
        self.operators = tuple(operators)
        self.network = part.network
        self.inputs = part.inputs
        self.outputs = part.outputs
        self._origins = [model.origin(operator) for operator in operators]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The operators' types."""
        return tuple(operator.kind for operator in self.operators)

    @cached_property
    def kernels(self) -> CpuKernels:
        """The kernels of these operators."""
        from mizzen.cpu.tflm import CpuKernels

        return CpuKernels(self.network, self._origins)


Step = NpuStep | CpuStep | HostStep


class Artifact:
    """A compiled network.

    inputs, outputs  what an inference takes and gives
    steps            NPU operators, and runs of CPU operators between them, in order
    accelerator      the configuration that NPU operators are for, None without any
    report           what the compilation said, where it is known
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        report: CompileReport | None = None,
        origins: Sequence[Origins] = (),
        contents: Contents | None = None,
    ) -> None:
        self.data = data
        self.name = name
        self.report = report
        if contents is None:
            contents = _read(data, name, origins)
        self._contents = contents
        self.inputs = tuple(contents.infos[index] for index in contents.inputs)
        self.outputs = tuple(contents.infos[index] for index in contents.outputs)
        self.steps = contents.steps
        self.accelerator = _accelerator(self.steps, name)

    def run(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Infer a batch; each inference starts from the initial state.

        An array is `[N, *shape[1:]]` where the input's first extent is 1, or `[N, *shape]`; an
        array of exactly the input's shape is one inference. Outputs come in the same form: one
        array, or a tuple of several. Raises E711 to E713 for arrays that do not fit, E6xx for
        faults of the NPU, E701 to E705 where the CPU's kernels fail.
        """
        batch = batch_of(arrays, self.inputs)
        return self._arranged(self._execute(batch, _NoState()), batch)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What there is to know about the NPU's part: paths whose meaning is only inferred."""
        steps = (step for step in self.steps if isinstance(step, NpuStep))
        return tuple(note for step in steps for note in step.simulator.notes)

    @property
    def hazards(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the order of accesses to memory in the NPU's part; empty if nothing.

        Errors E671 to E673 for accesses that may happen in either order, E674 for reads of bytes
        that nothing wrote, E675 for accesses outside the declared memory, E676 for outputs that
        are not written. Raises as `mizzen.targets.ethos_u.hazards.find_hazards`.
        """
        reports = (step.hazards for step in self.steps if isinstance(step, NpuStep))
        return tuple(found for report in reports for found in report.diagnostics)

    def session(self, batch: int = 1) -> Session:
        """Start `batch` independent streams of inferences whose state goes on."""
        return Session(self, batch)

    def save(self, path: str | Path) -> None:
        """Write the artifact, and the report of its compilation beside it if there is one."""
        target = Path(path)
        target.write_bytes(self.data)
        if self.report is not None:
            from mizzen.report import write_sidecar

            write_sidecar(self.report, target)

    def _arranged(self, outputs: Arrays, batch: Batch) -> Array | tuple[Array, ...]:
        arranged = arrange(outputs, self.outputs, batch)
        return arranged[0] if len(arranged) == 1 else tuple(arranged)

    def _execute(self, batch: Batch, state: _State) -> list[Array]:
        contents = self._contents
        values: Values = dict(zip(contents.inputs, batch.arrays, strict=True))
        for index, constant in contents.constants.items():
            values[index] = np.broadcast_to(constant, (batch.size, *constant.shape))
        state.begin(contents.carried, values, batch.size)
        for position, step in enumerate(self.steps):
            match step:
                case NpuStep():
                    state.provide(step.variables, values, batch.size)
                    step.run(values, batch.size)
                    state.keep(step.variables, values)
                case CpuStep():
                    inputs = [values[index] for index in step.inputs]
                    kernels = state.kernels(position, step, batch.size)
                    outputs = kernels.run(inputs, batch.size)
                    values.update(zip(step.outputs, outputs, strict=True))
                case _:
                    step.run(values, batch.size)
        state.end(contents.carried, values)
        # An output may be an input, a constant or state: the caller gets arrays of its own.
        return [np.array(values[index]) for index in contents.outputs]


class _NoState:
    """Every inference starts anew."""

    def begin(self, carried: Sequence[Carried], values: Values, batch: int) -> None:
        for state in carried:
            values[state.read] = np.broadcast_to(state.initial, (batch, *state.initial.shape))

    def end(self, carried: Sequence[Carried], values: Values) -> None:
        """Nothing outlives an inference."""

    def provide(self, variables: Sequence[Variable], values: Values, batch: int) -> None:
        for variable in variables:
            if variable.index not in values:
                values[variable.index] = variable.start(batch)

    def keep(self, variables: Sequence[Variable], values: Values) -> None:
        """Nothing outlives an inference."""

    def kernels(self, position: int, step: CpuStep, batch: int) -> CpuKernels | CpuSession:
        return step.kernels


class _KeptState(_NoState):
    """State of a session: variables of NPU operators, interpreters of CPU operators."""

    def __init__(self) -> None:
        self._variables: Values = {}
        self._carried: Values = {}
        self._sessions: dict[int, CpuSession] = {}

    def begin(self, carried: Sequence[Carried], values: Values, batch: int) -> None:
        super().begin(carried, values, batch)
        values.update({row.read: found for row in carried
                       if (found := self._carried.get(row.read)) is not None})  # fmt: skip

    def end(self, carried: Sequence[Carried], values: Values) -> None:
        for state in carried:
            self._carried[state.read] = values[state.write]

    def provide(self, variables: Sequence[Variable], values: Values, batch: int) -> None:
        for variable in variables:
            if variable.index in self._variables:
                values[variable.index] = self._variables[variable.index]
        super().provide(variables, values, batch)

    def keep(self, variables: Sequence[Variable], values: Values) -> None:
        for variable in variables:
            self._variables[variable.index] = values[variable.index]

    def kernels(self, position: int, step: CpuStep, batch: int) -> CpuKernels | CpuSession:
        if position not in self._sessions:
            self._sessions[position] = step.kernels.session(batch)
        return self._sessions[position]


_State = _NoState


class Session:
    """Inferences whose state tensors go on from call to call, for `batch` streams at once."""

    def __init__(self, artifact: Artifact, batch: int = 1) -> None:
        if batch < 1:
            raise fail("E713", f"a session needs a batch of at least 1, not {batch}")
        self._artifact = artifact
        self._batch = batch
        self._state = _KeptState()

    def run(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Infer once for every stream; arrays and outputs as for `Artifact.run`."""
        batch = batch_of(arrays, self._artifact.inputs, without_inputs=self._batch)
        if batch.size != self._batch:
            raise fail(
                "E713",
                f"every call of this session must bring a batch of {self._batch}, not {batch.size}",
                help="a session keeps one state for each stream; start another for another batch",
            )
        outputs = self._artifact._execute(batch, self._state)  # pyright: ignore[reportPrivateUsage] a session is its artifact's other half
        return self._artifact._arranged(outputs, batch)  # pyright: ignore[reportPrivateUsage] as above


def load(path: str | Path, accelerator: str | None = None) -> Artifact:
    """Read an artifact: a compiled `.tflite`, one with nothing for an NPU, or Vela's raw `.npz`.

    `accelerator` asserts which configuration the artifact is for. Raises E1xx for files that are
    none or are damaged, E113 for another accelerator, E210 for one that there is not.
    """
    if accelerator is not None:
        backend_for(accelerator)
    source = Path(path)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise fail("E110", f"{source} must be a file that can be read: {error.strerror}") from None
    artifact = _with_sidecar(data, source)
    if accelerator is not None and artifact.accelerator not in (None, accelerator):
        raise fail(
            "E113",
            f"{source.name} must be for {accelerator}, and was compiled for {artifact.accelerator}",
            help=f"compile the network with --accelerator-config {accelerator}",
        )
    return artifact


def _with_sidecar(data: bytes, source: Path) -> Artifact:
    from mizzen.report import read_sidecar

    report = read_sidecar(source, data)
    return Artifact(data, source.name, report, [] if report is None else report.origins)


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """State between steps: the tensors that it is read from and written to, and how it starts."""

    read: int
    write: int
    initial: Array


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What an artifact holds: tensors by index, and the steps between them."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    infos: dict[int, TensorInfo]
    steps: tuple[Step, ...]
    constants: Values
    carried: tuple[Carried, ...] = ()


def _read(data: bytes, name: str, origins: Sequence[Origins]) -> Contents:
    if not data.startswith(ARCHIVE_START):
        return _from_tflite(data, name, origins)
    if PLAN_NAME in data:
        from mizzen.artifact.archive import is_program, unpack

        if is_program(data):
            return unpack(data, name)
    from mizzen.artifact.vela_raw import contents_of

    return contents_of(data, name)


def _from_tflite(data: bytes, name: str, origins: Sequence[Origins]) -> Contents:
    model = read(data, name)
    main = model.main
    steps = tuple(_steps(model, origins))
    needed = {index for step in steps for index in step.inputs} | set(main.outputs)
    values = {index: main.tensors[index].values for index in needed}
    return Contents(
        inputs=main.inputs,
        outputs=main.outputs,
        infos={index: _info(main.tensors[index], name) for index in (*main.inputs, *main.outputs)},
        steps=steps,
        constants={index: array for index, array in values.items() if array is not None},
    )


def _info(tensor: Tensor, file: str) -> TensorInfo:
    if tensor.dtype is None:
        raise fail(
            "E714",
            f"{file}: tensor {tensor.name!r} must have a type that NumPy has, "
            f"not {tensor.type.name}",
        )
    return TensorInfo(tensor.name, tensor.shape, tensor.dtype, tensor.quantization)


def _steps(model: Model, origins: Sequence[Origins]) -> Iterator[Step]:
    streams = 0
    for on_npu, operators in groupby(model.main.operators, is_npu):
        if not on_npu:
            yield CpuStep(model, list(operators))
            continue
        for operator in operators:
            known = origins[streams] if streams < len(origins) else {}
            yield npu_step(model, operator, known)
            streams += 1


def npu_step(model: Model, operator: Operator, origins: Origins) -> NpuStep:
    """Make the step of an NPU operator, whose tensors are the model's; `origins` of its stream."""
    backend = backend_of(operator.kind)
    assert backend is not None, "an NPU operator is one of a backend"
    return backend.step(model, operator, origins)


def variable_of(tensor: Tensor) -> Variable:
    """Return the state that a tensor holds."""
    zero = zero_of(tensor.quantization)
    return Variable(tensor.index, tensor.shape, tensor.dtype or np.dtype(np.uint8), zero)


def zero_of(quantization: Quantization | None) -> int:
    """Return the number that state starts at: the one that stands for zero."""
    return quantization.zero_point[0] if quantization else 0


def _accelerator(steps: Sequence[Step], name: str) -> str | None:
    found = {step.accelerator for step in steps if isinstance(step, NpuStep)}
    if len(found) > 1:
        raise fail("E114", f"{name} must be for one accelerator, not for {sorted(found)}")
    return found.pop() if found else None
