"""The backend of ExecuTorch: a part of a program to the payload of its delegate.

ExecuTorch finds a backend by its class's name among all classes that derive from its own, and its
runtime by the same name; so the class has the name that Arm's backend has. Parts that another
class's partitioner made are handed on to that one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mizzen.compiler.codegen import RegionCode, RegionRefusal, step_of
from mizzen.compiler.ethos_u.makers import region_compiler
from mizzen.diagnostics import Reason, fail
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.graph import Value
from mizzen.package.executorch.vela_bin import VelaBin, VelaTensor, write
from mizzen.partition import extract
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex
from mizzen.torch.executorch.edge import read_edge
from mizzen.torch.executorch.specification import is_own, spec_from

if TYPE_CHECKING:
    from torch.export import ExportedProgram

BACKEND = "EthosUBackend"
NAME = "delegate"
ROUNDING = "executorch.kernels.quantized"
"""What registers the kernels of what stays around the NPU's parts."""


@cache
def backend_class() -> type[Any]:
    """Return the class that ExecuTorch finds; made once, since it finds all there ever were."""
    from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult

    import_module(ROUNDING)

    def preprocess(edge_program: ExportedProgram, compile_specs: list[Any]) -> Any:
        if not is_own(compile_specs):
            return _other(BackendDetails).preprocess(edge_program, compile_specs)
        return PreprocessResult(processed_bytes=payload_of(edge_program, compile_specs))

    members = {
        "preprocess": staticmethod(preprocess),
        "__doc__": "Parts of programs for Ethos-U, compiled by Mizzen.",
        "__module__": __name__,
    }
    return type(BACKEND, (BackendDetails,), members)


def _other(base: type[Any]) -> Any:
    classes = [each for each in base.__subclasses__() if each.__name__ == BACKEND]
    return next(each for each in classes if each is not backend_class())


def payload_of(exported: ExportedProgram, compile_specs: list[Any]) -> bytes:
    """Return the delegate's payload. E886 for a part that the compiler does not take."""
    compiler = region_compiler(spec_from(compile_specs).configuration)
    program = read_edge(exported, NAME, {}).program
    lowered = lower(program, compiler.window_limits)
    groups = tuple(
        sorted({operation.group for operation in lowered.graph if operation.group is not None})
    )
    code = compiler.compile(extract(lowered.graph, groups, NAME), None)
    if isinstance(code, RegionRefusal):
        raise _refused(code.general)
    inputs = [lowered.value_of[node] for node in _given(exported, program.nodes)]
    outputs = [lowered.value_of[node] for node in program.outputs]
    return write(_content(code, inputs, outputs))


def _given(exported: ExportedProgram, nodes: tuple[Any, ...]) -> list[Any]:
    names = {node.name: node for node in nodes if node.op == "placeholder"}
    return [names[str(name)] for name in exported.graph_signature.user_inputs]


def _content(code: RegionCode, inputs: list[Value], outputs: list[Value]) -> VelaBin:
    values: list[Value] = [*code.part.inputs, *code.part.outputs]
    step = step_of(code, {value: index for index, value in enumerate(values)})
    program: Program = step.program
    places = [*program.inputs, *program.outputs]
    place_of = {
        values[index]: place
        for index, place in zip((*step.inputs, *step.outputs), places, strict=True)
    }
    read_only = program.constants.get(RegionIndex.READ_ONLY)

    def tensor(value: Value) -> VelaTensor:
        place = place_of[value]
        return VelaTensor(value.shape, place.dtype.itemsize, place.offset, place.region)

    return VelaBin(
        commands=driver.build(program.words, program.hardware),
        weights=b"" if read_only is None else read_only.tobytes(),
        scratch_bytes=program.region_bytes.get(RegionIndex.SCRATCH, 0),
        inputs=tuple(map(tensor, inputs)),
        outputs=tuple(map(tensor, outputs)),
    )


def _refused(reason: Reason) -> Exception:
    return fail(
        "E886",
        f"the compiler must take each part that was tagged, and does not: {reason.message}",
        rule=reason.source,
        help="use to_edge_transform_and_lower, which lets the partitioner compile what it tags; or "
        "keep the operator out with additional_checks",
    )
