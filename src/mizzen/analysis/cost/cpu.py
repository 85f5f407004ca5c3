"""Operators on the CPU as rows of a cost report: estimates by class of operator, never nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.analysis.cost.processors import Class, Processor
from mizzen.artifact.control_step import ControlStep
from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import HostStep
from mizzen.artifact.kernel_step import KernelStep
from mizzen.artifact.onnx_steps import OnnxStep
from mizzen.artifact.resources import VariableStep
from mizzen.artifact.steps import CpuStep, NpuStep, Step
from mizzen.diagnostics import Device, Origin
from mizzen.frontends.tflite import Subgraph, macs, read
from mizzen.frontends.tflite.model import Operator
from mizzen.report.cost import Bound, OperationCost, Span, Unit
from mizzen.report.words import layer_shape

KINDS: dict[Class, str] = {
    Class.CONVOLUTION: "CONV_2D TRANSPOSE_CONV Conv ConvTranspose",
    Class.DEPTHWISE: "DEPTHWISE_CONV_2D",
    Class.DENSE: "FULLY_CONNECTED BATCH_MATMUL UNIDIRECTIONAL_SEQUENCE_LSTM SVDF Gemm MatMul",
    Class.POOL: "MAX_POOL_2D AVERAGE_POOL_2D MaxPool AveragePool",
    Class.ELEMENTWISE: (
        "ADD SUB MUL MINIMUM MAXIMUM RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU ABS NEG "
        "QUANTIZE DEQUANTIZE CAST quantize dequantize QuantizeLinear sign "
        "Add Sub Mul Div Min Max Relu Clip LeakyRelu PRelu Abs Neg Cast"
    ),
    Class.FUNCTION: "SOFTMAX LOG_SOFTMAX LOGISTIC TANH HARD_SWISH ELU EXP LOG RSQRT SQRT GELU "
    "Softmax LogSoftmax Sigmoid Tanh HardSwish HardSigmoid Elu Exp Log Sqrt Gelu Erf",
    Class.MOVE: (
        "RESHAPE CONCATENATION TRANSPOSE PAD PADV2 MIRROR_PAD SPLIT SPLIT_V SQUEEZE EXPAND_DIMS "
        "PACK UNPACK SLICE STRIDED_SLICE SHAPE READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE VAR_HANDLE "
        "IF WHILE CALL STABLEHLO_COMPOSITE STABLEHLO_WHILE narrow widen permute "
        "Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Pad Expand Gather Identity"
    ),
}
CLASSES = {name: kind for kind, names in KINDS.items() for name in names.split()}
"""Operators by their types; those that are not here are `Class.OTHER`."""


@dataclass(frozen=True, slots=True)
class Work:
    """An operator: its amount, in the unit of its class, and its output elements."""

    kind: str
    origin: Origin | None
    amount: int
    outputs: int = 0
    macs: int = 0
    shape: str = ""


def cpu_operations(
    step: Step, contents: Contents, core: Processor, ratio: float
) -> tuple[list[OperationCost], list[Span]]:
    """Return the operators of a step on the CPU; `ratio` is cycles of the NPU in one of the CPU."""
    operations: list[OperationCost] = []
    spans: list[Span] = []
    now = 0
    for index, work in enumerate(_works(step, contents)):
        kind = CLASSES.get(work.kind, Class.OTHER)
        taken = max(1, math.ceil(core.cycles(kind, work.amount, work.outputs)))
        cycles = max(1, round(taken * ratio))
        operations.append(
            OperationCost(
                step=0,
                index=index,
                name=work.kind,
                device=Device.CPU,
                origin=work.origin,
                start_cycles=now,
                end_cycles=now + cycles,
                cycles=cycles,
                causes={Bound.CPU: cycles},
                macs=work.macs,
                shape=work.shape,
                processor_cycles=taken,
            )
        )
        spans.append(Span(Unit.CPU, index, now, now + cycles))
        now += cycles
    return operations, spans


def _works(step: Step, contents: Contents) -> Iterator[Work]:
    match step:
        case NpuStep():
            return
        case CpuStep():
            model = read(step.network, step.origins[0].model or "")
            for operator, origin in zip(model.main.operators, step.origins, strict=True):
                yield _operator(model.main, operator, origin)
        case VariableStep():
            for operator, origin in zip(step.operators, step.origins, strict=True):
                yield Work(operator.kind, origin, _size_bytes(step, contents))
        case ControlStep():
            yield Work(step.operator.kind, step.origins[0], step.moved_bytes)
        case KernelStep():
            for kind, elements in zip(step.kinds, step.elements, strict=True):
                yield Work(kind, None, elements)
        case _:
            amount = _elements(step, contents)
            for kind in step.kinds:
                yield Work(kind, None, amount)


def _operator(subgraph: Subgraph, operator: Operator, origin: Origin) -> Work:
    outputs = subgraph.present(operator.outputs)
    inputs = [tensor for tensor in subgraph.present(operator.inputs) if tensor.data is None]
    products = macs(subgraph, operator)
    elements = sum(tensor.elements for tensor in outputs)
    match CLASSES.get(operator.kind, Class.OTHER):
        case Class.CONVOLUTION | Class.DEPTHWISE | Class.DENSE:
            amount = products or elements
        case Class.POOL:
            window = int(operator.options["filter_height"]) * int(operator.options["filter_width"])
            amount = elements * window
        case Class.MOVE:
            amount = sum(tensor.size_bytes or 0 for tensor in outputs)
        case _:
            amount = max([elements, *(tensor.elements for tensor in inputs)])
    shape = layer_shape((each.shape for each in inputs), (each.shape for each in outputs))
    return Work(operator.kind, origin, amount, elements, products, shape)


def _size_bytes(step: VariableStep, contents: Contents) -> int:
    infos = contents.infos
    return sum(infos[index].size_bytes for index in {*step.inputs, *step.outputs} & infos.keys())


def _elements(step: HostStep | OnnxStep, contents: Contents) -> int:
    infos = contents.infos
    known = {*step.inputs, *step.outputs} & infos.keys()
    return max([math.prod(infos[index].shape) for index in known], default=1)
