"""What kernels of TensorFlow Lite Micro ask of the arena, on a processor with 32-bit addresses.

A row says what a kernel keeps for good: its options as they are read from the network, what it
takes before tensors are looked at (`kept`) and while it prepares (`prepared`), and what it needs
while it runs (`running`). Structures have the sizes that they have in a build of tflite-micro
90b983c, reference kernels, for a Cortex-M33; arrays follow from the operator's shapes. What has no
row is measured, which bounds it from above (`measured`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mizzen.export.tflm.arena.structures import (
    CHANNEL_BYTES,
    COUNT_BYTES,
    EVAL_TENSOR_BYTES,
    Block,
)
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model, Operator, Subgraph, Tensor
from mizzen.frontends.tflite.model import ABSENT

INT_BYTES = 4
_WORD, _BYTE, _PAIR = Block(4), Block(1, 1), Block(2, 1)
"""Options of most operators."""
LOOKUP_BYTES = 2 * 513
"""A table of 16-bit numbers with one after the last."""
NPU_BASE_BYTES = 8
NPU_SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Requests:
    """What one operator's kernel asks for.

    options   what the network says of the operator
    kept      blocks for good, before tensors are looked at
    prepared  blocks for good, while it prepares
    running   blocks while it runs, each planned with the tensors
    looks     how often it looks at its tensors while it prepares, at most
    """

    options: Block | None = None
    kept: tuple[int, ...] = ()
    prepared: tuple[int, ...] = ()
    running: tuple[int, ...] = ()
    looks: int = 1


@dataclass(frozen=True, slots=True)
class Facts:
    """An operator, with its tensors; those that it does not have are None."""

    operator: Operator
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]

    def given(self, place: int) -> Tensor:
        """Return an input that the operator must have."""
        tensor = self.inputs[place]
        if tensor is None:
            raise LookupError(place)
        return tensor

    @property
    def output(self) -> Tensor:
        """The first output."""
        return self.outputs[0]


Rule = Callable[[Facts], Requests]


def requests_of(model: Model, subgraph: Subgraph, operator: Operator) -> Requests | None:
    """Return the memory requests of an operator's kernel; None where no row says so."""
    rule = RULES.get(operator.kind)
    if rule is None:
        return None
    inputs = tuple(None if i == ABSENT else subgraph.tensors[i] for i in operator.inputs)
    facts = Facts(operator, inputs, subgraph.present(operator.outputs))
    if any(tensor is not None and tensor.type is TensorType.INT4 for tensor in inputs):
        return None
    try:
        return rule(facts)
    except LookupError:
        return None


def _plain(options: Block | None = None, *kept: int) -> Rule:
    """Return the rule of a kernel whose structures are all that it asks for."""
    requests = Requests(options, kept)
    return lambda _: requests


def _windowed(options: Block, kept: int) -> Rule:
    """Two numbers for each channel of the output: the filter's axis 0, or 3 if it is depthwise."""

    def rule(facts: Facts) -> Requests:
        channels = facts.given(1).shape[3 if facts.operator.kind.startswith("DEPTH") else 0]
        return Requests(options, (kept,), (INT_BYTES * channels,) * 2, looks=2)

    return rule


def _transposed(facts: Facts) -> Requests:
    """A sum of 32 or 64 bits for each element of the output, and biases in 64 bits."""
    source, channels = facts.given(2), facts.given(1).shape[0]
    running: list[int] = []
    if source.type is TensorType.INT8:
        running.append(4 * facts.output.elements)
    if source.type is TensorType.INT16:
        running.append(8 * facts.output.elements)
        bias = facts.inputs[3] if len(facts.inputs) > 3 else None
        if bias is not None and bias.type is TensorType.INT16:
            running.append(8 * bias.elements)
    prepared = (INT_BYTES * channels,) * 2
    return Requests(Block(16), (72,), prepared, tuple(running), looks=3)


def _dense(facts: Facts) -> Requests:
    """Two numbers for each row of the weights, where these have scales of their own."""
    quantization = facts.given(1).quantization
    channels = 0 if quantization is None else len(quantization.scale)
    prepared = (INT_BYTES * channels,) * 2 if channels > 1 else ()
    return Requests(Block(5, 1), (48,), prepared)


def _averaged(facts: Facts) -> Requests:
    source = facts.given(0)
    sums = (
        (4 * facts.output.elements,) if source.type in (TensorType.INT8, TensorType.INT16) else ()
    )
    return _reduced(facts, sums)


def _reduced(facts: Facts, sums: tuple[int, ...] = ()) -> Requests:
    """Where the kernel is in the input, and the axes."""
    places = INT_BYTES * len(facts.given(0).shape), INT_BYTES * facts.given(1).elements
    return Requests(Block(1, 1), (44,), (), (*sums, *places), looks=2)


def _recurrent(facts: Facts) -> Requests:
    """Four gates of the cell's state; input 19 is the cell's state, [batch, units]."""
    state = facts.given(19)
    return Requests(Block(16), (688,), (), (state.size_bytes or 0,) * 4)


def _softmax(facts: Facts) -> Requests:
    tables = (LOOKUP_BYTES,) * 2 if facts.given(0).type is TensorType.INT16 else ()
    return Requests(Block(4), (56,), tables)


def _mirrored(facts: Facts) -> Requests:
    return Requests(Block(1, 1), (20,), (), (INT_BYTES * len(facts.given(0).shape),) * 2)


def _added_up(facts: Facts) -> Requests:
    addresses = (INT_BYTES * len(facts.inputs),)
    kept = () if facts.output.type is TensorType.FLOAT32 else (40,)
    return Requests(None, (), kept, addresses, looks=1)


def _filtered(facts: Facts) -> Requests:
    """Sums of every filter, and in integers of every unit; input 1 is [filters, features]."""
    filters = facts.given(1).shape[0]
    batch = facts.given(0).shape[0]
    running = [INT_BYTES * batch * filters]
    if facts.given(0).type is not TensorType.FLOAT32:
        running.append(INT_BYTES * batch * (filters // facts.operator.options["rank"]))
    return Requests(Block(8), (36,), (), tuple(running))


def _reshaping(options: Block | None) -> Rule:
    """The output's shape, which the kernel writes anew."""
    return lambda facts: Requests(options, (), (_shape_bytes(facts.output),))


def _summed_on(facts: Facts) -> Requests:
    prepared = () if facts.output.type is TensorType.FLOAT32 else (36,)
    return Requests(_PAIR, (), prepared)


def _real(facts: Facts) -> Requests:
    """A kernel that keeps nothing for real numbers."""
    if facts.output.type is not TensorType.FLOAT32:
        raise LookupError(facts.output.type)
    return Requests()


def _on_npu(facts: Facts) -> Requests:
    """A base address and a size of every input and output (ethos_u/ethosu.cc)."""
    bases = len(facts.inputs) + len(facts.outputs)
    return Requests(None, (12,), (), (NPU_BASE_BYTES * bases, NPU_SIZE_BYTES * bases))


def _multiplied(facts: Facts) -> Requests:
    """Copies of operands that are turned: a structure, its shape and its contents; the output's
    shape, which the kernel writes anew."""
    options = facts.operator.options
    turned = [facts.given(0)] if options.get("adj_x") else []
    turned += [] if options.get("adj_y") else [facts.given(1)]
    prepared = [] if facts.output.type is TensorType.FLOAT32 else [28]
    for operand in turned:
        prepared += [EVAL_TENSOR_BYTES, _shape_bytes(operand), operand.size_bytes or 0]
    return Requests(Block(3, 1), (16,), (*prepared, _shape_bytes(facts.output)), looks=2)


def _shape_bytes(tensor: Tensor) -> int:
    return COUNT_BYTES + CHANNEL_BYTES * len(tensor.shape)


def _assigned(facts: Facts) -> Requests:
    """The variable itself, which the first that assigns it makes (`arena` counts others out)."""
    return Requests(None, (), (facts.given(1).size_bytes or 0,))


def _transformed(facts: Facts) -> Requests:
    """A Fourier transform's state: kissfft of half the length, and a copy of the input.

    Ref: kissfft 130, kiss_fft_alloc, kiss_fftr_alloc.
    """
    source, output = facts.given(0), facts.output
    element = source.dtype.itemsize if source.dtype else 0
    length = 2 * (output.shape[-1] // 2 - 1)
    number, points = 2 * element, length // 2
    state = 12 + (264 + number + number * (points - 1)) + number * (points * 3 // 2)
    return Requests(None, (32, state), (), (element * length,))


def _banked(facts: Facts) -> Requests:
    return Requests(None, (36, 8 * (facts.output.shape[-1] + 1)))


def _subtracted(facts: Facts) -> Requests:
    return Requests(None, (44, 4 * facts.output.shape[-1]))


_COMPARED = _plain(None, 32)

RULES: Mapping[str, Rule] = {
    "ABS": _plain(None, 28),
    "ADD": _plain(_PAIR, 60),
    "ADD_N": _added_up,
    "ARG_MAX": _plain(_BYTE),
    "ARG_MIN": _plain(_BYTE),
    "ASSIGN_VARIABLE": _assigned,
    "AVERAGE_POOL_2D": _plain(Block(40), 32),
    "BATCH_MATMUL": _multiplied,
    "BATCH_TO_SPACE_ND": _plain(),
    "BROADCAST_TO": _plain(),
    "CALL_ONCE": _plain(_WORD, 8),
    "CAST": _plain(_PAIR),
    "CEIL": _plain(),
    "CONCATENATION": _plain(Block(8), 24),
    "CONV_2D": _windowed(Block(28), 56),
    "COS": _plain(),
    "CUMSUM": _summed_on,
    "DEPTHWISE_CONV_2D": _windowed(Block(28), 56),
    "DEPTH_TO_SPACE": _reshaping(_WORD),
    "DEQUANTIZE": _plain(None, 32),
    "DIV": _plain(_BYTE, 28),
    "ELU": _plain(None, 256),
    "EQUAL": _COMPARED,
    "EXP": _real,
    "EXPAND_DIMS": _plain(),
    "FLOOR": _plain(),
    "FLOOR_DIV": _plain(),
    "FLOOR_MOD": _plain(),
    "FULLY_CONNECTED": _dense,
    "GATHER": _reshaping(Block(8)),
    "GATHER_ND": _reshaping(None),
    "GREATER": _COMPARED,
    "GREATER_EQUAL": _COMPARED,
    "HARD_SWISH": _plain(None, 20),
    "L2_NORMALIZATION": _plain(_BYTE, 4),
    "L2_POOL_2D": _reshaping(Block(40)),
    "LEAKY_RELU": _plain(_WORD, 24),
    "LESS": _COMPARED,
    "LESS_EQUAL": _COMPARED,
    "LOG": _plain(),
    "LOGICAL_AND": _plain(),
    "LOGICAL_NOT": _plain(),
    "LOGICAL_OR": _plain(),
    "LOGISTIC": _plain(None, 16),
    "LOG_SOFTMAX": _real,
    "MAXIMUM": _plain(),
    "MAX_POOL_2D": _plain(Block(40), 32),
    "MEAN": _averaged,
    "MINIMUM": _plain(),
    "MIRROR_PAD": _mirrored,
    "MUL": _plain(_BYTE, 36),
    "NEG": _plain(),
    "NOT_EQUAL": _COMPARED,
    "PACK": _plain(Block(8)),
    "PAD": _plain(None, 56),
    "PADV2": _plain(None, 56),
    "PRELU": _plain(None, 28),
    "QUANTIZE": _plain(None, 32),
    "READ_VARIABLE": _plain(),
    "REDUCE_ALL": _reduced,
    "REDUCE_MAX": _reduced,
    "REDUCE_MIN": _reduced,
    "RELU": _plain(None, 28),
    "RELU6": _plain(None, 8),
    "RESHAPE": _plain(Block(36)),
    "RESIZE_BILINEAR": _plain(_PAIR),
    "RESIZE_NEAREST_NEIGHBOR": _plain(_PAIR),
    "REVERSE_V2": _plain(),
    "ROUND": _plain(),
    "RSQRT": _plain(None, 28),
    "SELECT_V2": _plain(None, 1),
    "SHAPE": _plain(_BYTE),
    "SIN": _plain(),
    "SLICE": _plain(),
    "SOFTMAX": _softmax,
    "SPACE_TO_BATCH_ND": _plain(None, 4),
    "SPACE_TO_DEPTH": _reshaping(_WORD),
    "SPLIT": _plain(_WORD),
    "SPLIT_V": _plain(_WORD),
    "SQRT": _plain(),
    "SQUARE": _plain(),
    "SQUARED_DIFFERENCE": _plain(None, 112),
    "SQUEEZE": _plain(Block(36)),
    "STRIDED_SLICE": _plain(Block(24), 84),
    "SUB": _plain(_PAIR, 52),
    "SUM": _averaged,
    "SVDF": _filtered,
    "SignalEnergy": _plain(None, 8),
    "SignalFftAutoScale": _plain(),
    "SignalFilterBank": _banked,
    "SignalFilterBankLog": _plain(None, 8),
    "SignalFilterBankSpectralSubtraction": _subtracted,
    "SignalFilterBankSquareRoot": _plain(),
    "SignalPCAN": _plain(None, 4),
    "SignalRfft": _transformed,
    "SignalWindow": _plain(None, 8),
    "TANH": _plain(None, 16),
    "TRANSPOSE": _plain(),
    "TRANSPOSE_CONV": _transposed,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _recurrent,
    "UNPACK": _plain(Block(8)),
    "VAR_HANDLE": _plain(Block(8), 4),
    "ZEROS_LIKE": _plain(),
    "ethos-u": _on_npu,
}
"""By the operator's name in a network."""


def bytes_on_device(tensor: Tensor) -> int:
    """Return the bytes of a tensor in the arena; the handle of a variable lies with its kernel."""
    if tensor.type is TensorType.RESOURCE:
        return 0
    return tensor.size_bytes or 0
