"""The steps of a compiled network: NPU operators in the simulator, the others on CPU kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mizzen.artifact.control_step import ControlStep
from mizzen.artifact.host_steps import HostStep
from mizzen.artifact.interface import Origins, Values
from mizzen.artifact.kernel_step import KernelStep
from mizzen.artifact.onnx_steps import OnnxStep
from mizzen.artifact.program import CompiledPart, HazardReport, NpuFamily, ProgramView
from mizzen.artifact.resources import VariableStep
from mizzen.diagnostics import Diagnostic, Severity
from mizzen.frontends.tflite import Model, Operator, read, require_agreement
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.targets.families import families, loaded

if TYPE_CHECKING:
    from mizzen.cpu.host import HostKernels


Shape = tuple[int, ...]


class NpuStep:
    """An NPU operator: its program, and the tensors that it takes (with its state) and gives.

    final  places, among the outputs, of those that no later step completes
    """

    on_npu = True

    def __init__(self, family: NpuFamily, part: CompiledPart) -> None:
        self.family = family
        self.part = part
        self.program = part.program
        self.inputs = part.inputs
        self.outputs = part.outputs
        self.variables = part.variables
        self.final = frozenset(range(len(part.outputs)))

    @cached_property
    def simulator(self) -> Any:
        """The simulator of the program, a `Simulator`; planning it is done on first use."""
        return self.family.simulator(self.program)

    @cached_property
    def hazards(self) -> HazardReport:
        """What the waits of the stream leave unordered; found on first use."""
        return self.family.hazards(self.program)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What there is to know of the program, and of how it is executed."""
        return (*self.part.notes, *self.simulator.notes)

    @property
    def view(self) -> ProgramView:
        """The program, taken apart to look at it."""
        return self.family.view(self.program)

    @property
    def accelerator(self) -> str:
        """The accelerator that the program is for."""
        return self.family.accelerator_of(self.program)

    def run(self, values: Values, batch: int) -> None:
        """Compute the outputs, and the variables' next values, from the inputs in `values`."""
        self.run_on(self.simulator, values, batch)

    def run_on(self, simulator: Any, values: Values, batch: int) -> None:
        """Compute them with another simulator of the same program."""
        outcome = simulator.run([values[index] for index in self.inputs], batch)
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
        self.origins = [model.origin(operator) for operator in operators]
        taken = (tensor for operator in operators for tensor in model.main.present(operator.inputs))
        on_variables = any(operator.kind in VARIABLE_KINDS for operator in operators)
        self.keeps_state = on_variables or any(tensor.variable for tensor in taken)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The operators' types."""
        return tuple(operator.kind for operator in self.operators)

    @cached_property
    def kernels(self) -> HostKernels:
        """The kernels of these operators."""
        from mizzen.cpu.host import HostKernels

        return HostKernels(self.network, self.origins)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """Which operators were computed by others than TensorFlow Lite Micro's kernels, so far."""
        return tuple(
            Diagnostic(
                "W318",
                f"{self.operators[index].kind} was computed by {computer.value}, because "
                "TensorFlow Lite Micro has no kernel that takes it: a device needs one",
                Severity.WARNING,
                self.origins[index],
            )
            for index, computer in self.kernels.computers.items()
        )


HostSide = VariableStep | HostStep | OnnxStep | KernelStep
"""Steps of the host that compute on the values themselves."""

Step = NpuStep | CpuStep | ControlStep | HostSide


def read_network(data: bytes, name: str) -> Model:
    """Read a TFLite network that may have compiled parts, and that can be computed with.

    Raises as `read` and `require_agreement` of `mizzen.frontends.tflite`.
    """
    model = read(data, name, _memory_inputs)
    require_agreement(model)
    return model


def _memory_inputs(code: str) -> int:
    return next((family.memory_inputs for family in families() if family.code == code), 0)


def is_npu(operator: Operator) -> bool:
    """Whether an operator is a compiled part."""
    return operator.custom and any(family.code == operator.kind for family in families())


def family_of(operator: Operator) -> NpuFamily:
    """Return the family of a compiled part."""
    (own,) = (family for family in families() if family.code == operator.kind)
    return loaded(own.runtime)


def npu_step(model: Model, operator: Operator, origins: Origins, program: object = None) -> NpuStep:
    """Make the step of an NPU operator, whose tensors are the model's; `origins` of its stream.

    program  as the compiler of its family hands it over; None to read it from the operator
    """
    family = family_of(operator)
    if program is None:
        return NpuStep(family, family.read(model, operator, origins))
    return NpuStep(family, family.part(model, operator, origins, program))
