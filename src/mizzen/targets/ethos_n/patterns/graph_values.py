"""Values of the tensor graph as the Support Library sees them, and what of them does not fit.

Read are constants, quantisations and RESCALEs. `Findings` holds the problems of one composite:
parameters are read to the end, problems pile up, and their texts are those of Apache TVM's Ethos-N
integration, so that who knows its logs finds them here. `Emission` adds composites to a network
of the library: the same code adds one to a region's network and, for asking whether it is
supported, to one of its own. A value that no composite gives is an input of the network.

Elements stay in their order whatever the shape, so a change of shape costs nothing until somebody
wants the other one: an operand may have another shape than its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mizzen.diagnostics import Origin, Reason
from mizzen.graph import Array, DType, Operation, Quantization, Value
from mizzen.ops import data_layout
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Concat, Reverse, Slice, Transpose
from mizzen.ops.elementwise import Clamp
from mizzen.ops.tensor import MaxPool2d
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_n.network import Network, Node, Operand, ReinterpretQuantization, Reshape
from mizzen.targets.ethos_n.network import Operation as NetworkOperation
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo, Shape, TensorInfo

SOURCE = "Apache TVM v0.14.0, Ethos-N: extraction of parameters"
MOST_DIMENSIONS = 4
TYPES = (DType.INT8, DType.UINT8)
"""Types of feature maps."""


class UnfitError(Exception):
    """Operations are no composite that the NPU has; `reasons` say why."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        super().__init__(accumulated(reasons))
        self.reasons = tuple(reasons)


def accumulated(reasons: Iterable[Reason]) -> str:
    """Return all messages as one text: joined by "; ", with ";" after the last."""
    texts = [reason.message for reason in reasons]
    return f"{'; '.join(texts)};" if texts else ""


class Findings:
    """Problems of one composite, in the order in which they were found."""

    def __init__(self) -> None:
        self.reasons: list[Reason] = []

    def need(
        self,
        holds: bool,
        rule: str,
        message: str,
        *,
        limit: str = "",
        actual: str = "",
        help: str = "",
    ) -> None:
        """Note a problem unless a condition holds."""
        if not holds:
            self.reasons.append(Reason(rule, message, limit, actual, help, SOURCE))

    def feature_map(self, *values: Value) -> None:
        """Note what keeps values from being feature maps: batch, type, dimensions."""
        for value in values:
            self._batch(value)
            self.types([value])
            rank = value.type.rank
            self.need(
                rank <= MOST_DIMENSIONS,
                "dimensions",
                f"dimensions={rank}, dimensions must be <= {MOST_DIMENSIONS}",
                limit=f"at most {MOST_DIMENSIONS} dimensions",
                actual=str(rank),
                help="join adjacent dimensions only",
            )

    def types(self, values: Iterable[Value]) -> None:
        """Note values whose elements are not of 8 bits."""
        for value in values:
            dtype = _numpy_name(value.dtype)
            self.need(
                value.dtype in TYPES,
                "type",
                f"dtype='{dtype}', dtype must be either uint8, int8 or int32",
                limit="uint8 or int8",
                actual=dtype,
                help="quantise it to 8 bits",
            )

    def _batch(self, value: Value) -> None:
        size = value.shape[0] if value.shape else 1
        self.need(
            size == 1,
            "batch",
            f"batch size={size}, batch size must = 1",
            limit="a batch of 1",
            actual=str(size),
            help="convert the network for a batch of 1, and run it once for each input",
        )

    def settle(self) -> None:
        """Raise UnfitError if anything was noted."""
        if self.reasons:
            raise UnfitError(self.reasons)


def unfit(
    rule: str, message: str, *, help: str = "", limit: str = "", actual: str = ""
) -> UnfitError:
    """Make the error of one problem, for `raise`."""
    return UnfitError([Reason(rule, message, limit, actual, help, SOURCE)])


def _numpy_name(dtype: DType) -> str:
    return {DType.BOOL: "bool", DType.SHAPE: "shape"}.get(dtype, dtype.numpy.name)


DATA_TYPES = {DType.INT8: DataType.S8, DType.UINT8: DataType.U8}
"""Types of feature maps and weights."""

KEEPS = (Clamp, Concat, Identity, MaxPool2d, data_layout.Reshape, Reverse, Slice, Transpose)
"""Operations that keep numbers as they are: what they take and give is quantised alike."""

LEAST_SCALE = float(np.finfo(np.float32).tiny)
"""The least number of float32 with all its bits, which scales are held in."""

CLOSE = 2.0**-12
"""Relative difference of scales that changes an 8-bit number by less than a tenth of a step."""


def filled(shape: tuple[int, ...]) -> Shape:
    """Return a shape of four extents, those that lack at the end being 1; of more, one row."""
    if len(shape) > 4:
        return 1, 1, 1, prod(shape)
    first, second, third, fourth = (*shape, 1, 1, 1, 1)[:4]
    return first, second, third, fourth


def channels_last(shape: tuple[int, ...]) -> Shape:
    """Return a shape of four extents, the last one staying the channels: [N,C] is [N,1,1,C]."""
    if len(shape) < 2:
        return 1, 1, 1, prod(shape)
    first, *middle, last = shape
    ones = (1,) * (2 - len(middle))
    second, third = (*ones, *middle)
    return first, second, third, last


def quantization_of(value: Value) -> Quantization | None:
    """Return how a value is quantised: what it says, else what it was or becomes unchanged."""
    seen = set[Value]()
    waiting = [value]
    while waiting:
        other = waiting.pop()
        if other in seen:
            continue
        seen.add(other)
        if other.quantization is not None:
            return other.quantization
        waiting += [user.results[0] for user in other.uses if isinstance(user, KEEPS)]
        producer = other.producer
        if isinstance(producer, KEEPS):
            waiting.append(producer.operand)
    return None


def quantization_info(value: Value) -> QuantizationInfo:
    """Return a feature map's quantisation; UnfitError where it is unknown or per channel."""
    quantization = quantization_of(value)
    if quantization is None or len(quantization.scales) != 1 or len(quantization.zero_points) != 1:
        what = "unknown" if quantization is None else "per channel"
        raise unfit(
            "quantization",
            f"quantization={what}, feature maps must have one scale and one zero point",
            limit="one scale and one zero point",
            actual=what,
            help="quantise the network, each tensor as a whole",
        )
    if not LEAST_SCALE <= quantization.scale < float("inf"):
        raise unfit(
            "scale",
            f"scale={quantization.scale:g}, a scale must be positive and finite",
            limit="a positive scale",
            actual=f"{quantization.scale:g}",
            help="quantise the network again",
        )
    return QuantizationInfo(quantization.zero_point, (quantization.scale,))


def info_of(value: Value, shape: Shape | None = None) -> TensorInfo:
    """Return the info of a feature map, perhaps in another shape; UnfitError if it is not one."""
    data_type = DATA_TYPES.get(value.dtype)
    if data_type is None:
        raise unfit(
            "type",
            f"dtype='{value.dtype.numpy.name}', dtype must be either uint8, int8 or int32",
            limit="uint8 or int8",
            actual=value.dtype.value,
            help="quantise it to 8 bits",
        )
    return TensorInfo(
        shape or filled(value.shape), data_type, quantization=quantization_info(value)
    )


def contents(value: Value) -> Array:
    """Return a constant's elements; UnfitError if it is not one."""
    array = value.constant
    if array is None:
        raise unfit(
            "constant",
            "expected constant data",
            limit="a constant",
            actual="a computed tensor",
            help="make it a constant of the network",
        )
    return array


def number(value: Value) -> int:
    """Return the one element of a constant."""
    return int(contents(value).reshape(-1)[0])


@dataclass(frozen=True, slots=True)
class Rescaling:
    """What a RESCALE does: (x - before) * ratio + after.

    ratios  one, or one for each channel; float64
    """

    ratios: Array
    before: int
    after: int

    @property
    def ratio(self) -> float:
        """The ratio, or that of the first channel."""
        return float(self.ratios[0])


def rescaling_of(operation: Operation) -> Rescaling:
    """Read a RESCALE. UnfitError unless its parameters are constants, and signed."""
    assert isinstance(operation, Rescale)
    _, multiplier, shift, before, after = operation.operands
    if operation.input_unsigned or operation.output_unsigned:
        raise unfit("unsigned", "RESCALE must be of signed numbers, and is of unsigned ones")
    ratios = np.ldexp(
        contents(multiplier).reshape(-1).astype(np.float64),
        -contents(shift).reshape(-1).astype(np.int64),
    )
    return Rescaling(ratios, number(before), number(after))


def one_rescaling_of(operation: Operation) -> Rescaling:
    """Read a RESCALE that multiplies all channels by one number; UnfitError if it does not."""
    rescaling = rescaling_of(operation)
    if rescaling.ratios.size != 1:
        raise unfit(
            "per-channel",
            "multipliers=one for each channel, multipliers must be one for all",
            help="quantise its tensors as a whole",
        )
    return rescaling


def close(got: float | Array, wanted: float | Array) -> bool:
    """Whether scales are the same but for rounding."""
    return bool(np.allclose(got, wanted, rtol=CLOSE, atol=0.0))


LARGEST_RESCALED = (1 << 14) - 256
"""Magnitude of a number in the output's steps up to which nothing wraps round: the kernels hold
twice of it in 16 bits, and two of them with the output's zero point."""

LARGEST_EXPONENT_SCALE = 1024.0
"""Input scales from about here on leave the kernel of sigmoid and tanh no multiplier (1419 for
tanh, 2839 for sigmoid)."""

COARSEST_MEAN = 4.0
"""What a step of a mean, which is the input's, may be in steps of the output that it is requantised
to: a mean is that far from the exact one."""

LEAST_PLANE = 2
"""Rows and columns of a plane whose means of 3x3 are right: in a single one the kernel divides by
6, though there are 3 elements."""


def need_no_wrapping(findings: Findings, source: TensorInfo, output: QuantizationInfo) -> None:
    """Note an input whose largest number, in the output's steps, is beyond a kernel's registers."""
    factor = source.quantization.scale / output.scale
    zero_point, data_type = source.quantization.zero_point, source.data_type
    limit = LARGEST_RESCALED / max(data_type.highest - zero_point, zero_point - data_type.lowest)
    findings.need(
        factor <= limit,
        "register-range",
        f"input scale / output scale={factor:g}, it must be <= {limit:g}, or numbers wrap round",
        limit=f"an output scale of at least 1/{limit:g} of the input's",
        actual=f"1/{factor:g}",
        help="quantise the network again: such an output is at its bounds almost everywhere",
    )


def need_exponents(findings: Findings, source: TensorInfo) -> None:
    """Note an input whose scale is beyond what sigmoid and tanh are computed with."""
    scale = source.quantization.scale
    findings.need(
        scale < LARGEST_EXPONENT_SCALE,
        "exponent-range",
        f"input scale={scale:g}, input scale must be < {LARGEST_EXPONENT_SCALE:g}",
        limit=f"an input scale under {LARGEST_EXPONENT_SCALE:g}",
        actual=f"{scale:g}",
        help="quantise the network again: almost every number is saturated",
    )


def need_plane(findings: Findings, source: TensorInfo, kernel: tuple[int, ...]) -> None:
    """Note a padded average over a plane of a single row or column."""
    least = min(source.height, source.width)
    findings.need(
        kernel != (3, 3) or least >= LEAST_PLANE,
        "thin-plane",
        f"plane={source.height}x{source.width}, a plane must have at least {LEAST_PLANE} rows and "
        "columns, or its means are divided by too much",
        limit=f"at least {LEAST_PLANE} rows and columns",
        actual=f"{source.height}x{source.width}",
        help="leave the pooling to the CPU, or average along one axis by a convolution",
    )


def need_fine_mean(findings: Findings, source: QuantizationInfo, output: QuantizationInfo) -> None:
    """Note a mean whose output is much finer than its input, in whose steps it is rounded first."""
    factor = source.scale / output.scale
    findings.need(
        factor <= COARSEST_MEAN,
        "mean-steps",
        f"input scale / output scale={factor:g}, it must be <= {COARSEST_MEAN:g} for a mean",
        limit=f"an output scale of at least 1/{COARSEST_MEAN:g} of the input's",
        actual=f"1/{factor:g}",
        help="let the mean have its input's quantisation, or average a plane of 7x7",
    )


class Emission:
    """A network in the making, and what values of the graph are in it.

    inputs  values that are inputs, in the order in which they were first wanted
    """

    def __init__(self) -> None:
        self.network = Network()
        self.inputs: dict[Value, Operand] = {}
        self.origin: Origin | None = None
        """Where what is added comes from."""
        self._operands: dict[Value, Operand] = {}
        self._aliases: dict[Value, Value] = {}
        self._shaped: dict[tuple[Operand, Shape], Operand] = {}

    def operand(self, value: Value, shape: Shape | None = None) -> Operand:
        """Return a value in a shape of as many elements; its own, filled to four extents, if none.

        UnfitError if it cannot be a feature map.
        """
        wanted = shape or filled(value.shape)
        return self._in_shape(self._found(value, wanted), wanted)

    def as_it_is(self, value: Value) -> Operand:
        """Return a value in whatever shape it has, for those who look at single elements only."""
        return self._found(value, filled(value.shape))

    def _found(self, value: Value, shape: Shape) -> Operand:
        while value in self._aliases:
            value = self._aliases[value]
        operand = self._operands.get(value)
        if operand is None:
            if value.constant is not None:
                raise unfit(
                    "constant-feature-map",
                    "feature maps must be computed or given, and this one is a constant",
                    help="compute what depends on constants only before",
                )
            operand = self.network.add_input(info_of(value, shape), self.origin)
            self._operands[value] = self.inputs[value] = operand
        return operand

    def _in_shape(self, operand: Operand, shape: Shape) -> Operand:
        if operand.info.shape == shape:
            return operand
        key = (operand, shape)
        if key not in self._shaped:
            self._shaped[key] = self.add(Reshape(shape), operand)
        return self._shaped[key]

    def add(self, operation: NetworkOperation, *inputs: Operand) -> Operand:
        """Add an operation with one output and return that."""
        return self.add_node(operation, *inputs).operand

    def add_node(self, operation: NetworkOperation, *inputs: Operand) -> Node:
        """Add an operation with any number of outputs."""
        return self.network.add(operation, *inputs, origin=self.origin)

    def constant(self, info: TensorInfo, data: Array) -> Operand:
        """Add weights or a bias; `data` is brought into the info's type."""
        array = np.asarray(data, info.data_type.dtype)
        return self.network.add_constant(info, array, self.origin)

    def bind(self, value: Value, operand: Operand) -> None:
        """Say that a value is an operand, whose numbers are read as the graph says."""
        quantization = quantization_of(value)
        if quantization is not None and len(quantization.scales) == 1:
            wanted = QuantizationInfo(quantization.zero_point, (quantization.scale,))
            operand = self.reinterpreted(operand, wanted)
        self._operands[value] = operand

    def reinterpreted(self, operand: Operand, wanted: QuantizationInfo) -> Operand:
        """Return an operand's numbers, read with a quantisation."""
        if operand.info.quantization == wanted:
            return operand
        return self.add(ReinterpretQuantization(wanted), operand)

    def alias(self, value: Value, source: Value) -> None:
        """Say that a value has the elements of another, in the same order."""
        if quantization_of(value) == quantization_of(source):
            self._aliases[value] = source
        else:
            self.bind(value, self.as_it_is(source))
