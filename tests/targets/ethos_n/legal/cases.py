"""What the hand-made cases are made of."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_n.config import Profile
from mizzen.targets.ethos_n.legal import Level
from mizzen.targets.ethos_n.network import Operation, Query
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    QuantizationInfo,
    Shape,
    TensorInfo,
)

OLD = (Profile.V23_02,)
NEW = (Profile.V25_03,)
BOTH = OLD + NEW

U, E, S = Level.UNSUPPORTED, Level.ESTIMATE_ONLY, Level.SUPPORTED

DEEPEST = 7168
"""Channels that fit in the 448 KiB of the 1TOPS variants, 64 bytes each."""
TOO_DEEP = "Tensor max depth cannot fit in SRAM (458816 / 458752)"
TYPES = "must be UINT8_QUANTIZED or INT8_QUANTIZED"


def of(zero_point: int = 0, scale: float = 1.0, axis: int | None = None) -> QuantizationInfo:
    return QuantizationInfo(zero_point, (scale,), axis)


PLAIN = of()
TWO_SCALES = QuantizationInfo(0, (1.0, 2.0))


def tensor(
    *shape: int,
    type: DataType = DataType.U8,
    format: DataFormat = DataFormat.NHWC,
    quantization: QuantizationInfo = PLAIN,
) -> TensorInfo:
    n, h, w, c = shape
    return TensorInfo((n, h, w, c), type, format, quantization)


MAP = tensor(1, 16, 16, 16)
"""A feature map that every operation takes that has no taste in planes."""


def feature_map(shape: Shape = MAP.shape, zero_point: int = 0) -> TensorInfo:
    return tensor(*shape, quantization=of(zero_point))


@dataclass(frozen=True)
class Broken:
    """A query that breaks a rule, and what is answered then."""

    rule: str
    query: Query
    level: Level
    message: str
    profiles: tuple[Profile, ...] = BOTH

    def __str__(self) -> str:
        kind = type(self.query.operation).__name__
        return f"{kind}-{self.rule}"


@dataclass(frozen=True)
class Kept:
    """A query that keeps to all rules."""

    query: Query
    profiles: tuple[Profile, ...] = BOTH

    def __str__(self) -> str:
        return type(self.query.operation).__name__


def ask(operation: Operation, *inputs: TensorInfo) -> Query:
    return Query(operation, inputs)


def input_faults(
    operation: Operation, what: str, *, of_type: str | None = None, base: TensorInfo = MAP
) -> list[Broken]:
    """Break the rules of batch, depth and type of an operation of one feature map."""
    n, h, w, c = base.shape
    batch = tensor(n + 1, h, w, c)
    deep = tensor(n, h, w, DEEPEST + 1)
    wide = tensor(n, h, w, c, type=DataType.S32)
    return [
        Broken("batch", ask(operation, batch), U, "Batch size must be 1"),
        Broken("input-depth", ask(operation, deep), U, f"{what}: {TOO_DEEP}"),
        Broken("input-type", ask(operation, wide), U, f"{of_type or what} {TYPES}"),
    ]


def layout_fault(operation: Operation, message: str, base: TensorInfo = MAP) -> Broken:
    """Break the rule of the format of an operation of one feature map."""
    other = tensor(*base.shape, format=DataFormat.NCHW)
    return Broken("input-format", ask(operation, other), U, message)


def scale_faults(
    operation: Operation, what: str, level: Level = U, base: TensorInfo = MAP
) -> list[Broken]:
    """Break the rules of the input's scales of an operation of one feature map."""
    along = tensor(*base.shape, quantization=of(axis=3))
    several = tensor(*base.shape, quantization=TWO_SCALES)
    return [
        Broken(
            "input-axis",
            ask(operation, along),
            level,
            f"{what}: Quantization Dim should not be used on Input",
        ),
        Broken(
            "input-scales",
            ask(operation, several),
            level,
            f"{what}: Input quantization scales must have a size of 1",
        ),
    ]


def zero_point_fault(operation: Operation, base: TensorInfo = MAP) -> Broken:
    """Break the rule of the input's zero point of an operation of one feature map."""
    beyond = tensor(*base.shape, quantization=of(256))
    return Broken(
        "input-zero-point", ask(operation, beyond), U, "Zero point out of range for input info"
    )
