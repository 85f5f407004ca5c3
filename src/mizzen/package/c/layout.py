"""What the container's tables look like: rows of little-endian 32-bit words, each field one word.

Offsets are bytes from the container's start, except places in the pool, which are words from its
start: the pool holds every list there is (extents, scales, arguments).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from mizzen.diagnostics import fail

MAGIC = int.from_bytes(b"MZN1", "little")
VERSION = 2

FILE_MAGIC = int.from_bytes(b"MZF1", "little")

ALIGNMENT_BYTES = 16
"""Of everything that the NPU or a kernel reads in place."""

WORD_BYTES = 4
MAX_RANK = 8
NONE = 0xFFFF_FFFF
"""An index of nothing: an argument or an output that is left out."""


class Place(IntEnum):
    """Where a tensor lies."""

    ARENA = 0
    CONTAINER = 1


class ElementType(IntEnum):
    """Types of elements."""

    BOOL = 0
    UINT8 = 1
    INT8 = 2
    UINT16 = 3
    INT16 = 4
    UINT32 = 5
    INT32 = 6
    INT64 = 7
    FLOAT32 = 8
    UINT64 = 9
    FLOAT64 = 10

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The type in NumPy."""
        return np.dtype(self.name.lower()).newbyteorder("<")


class StepKind(IntEnum):
    """Who executes a step."""

    NPU = 0
    KERNEL = 1


class ArgumentKind(IntEnum):
    """What an argument is; `low` and `high` of its row hold it."""

    TENSOR = 0
    NUMBER = 1
    NUMBERS = 2


class Binary(IntEnum):
    """What the kernels `binary` and `binary_scaled` compute of two elements."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    FLOOR_DIVIDE = 4
    MINIMUM = 5
    MAXIMUM = 6
    EQUAL = 7
    NOT_EQUAL = 8
    LESS = 9
    LESS_EQUAL = 10
    GREATER = 11
    GREATER_EQUAL = 12
    BITWISE_AND = 13
    BITWISE_OR = 14
    BITWISE_XOR = 15
    SQUARED_DIFFERENCE = 16
    SLOPE = 17
    MODULO = 18
    REMAINDER = 19


class Unary(IntEnum):
    """What the kernel `unary` computes of an element."""

    ABSOLUTE = 0
    NEGATE = 1
    BITWISE_NOT = 2
    SQUARE_ROOT = 3
    INVERSE_SQUARE_ROOT = 4
    RECIPROCAL = 5
    EXPONENTIAL = 6
    LOGARITHM = 7
    TANH = 8
    SIGMOID = 9
    FLOOR = 10
    CEILING = 11
    ROUND = 12
    SIGN = 13
    ROUND_FROM_FLOOR = 14
    ERROR_FUNCTION = 15
    EXPONENTIAL_LESS_ONE = 16
    TRUNCATE = 17
    LOGARITHM_OF_ONE_AND = 18
    LOGARITHM_TO_2 = 19
    LOGARITHM_TO_10 = 20
    SINE = 21
    COSINE = 22


class Reduction(IntEnum):
    """What the kernel `reduce` makes of a row of elements."""

    SUM = 0
    MEAN = 1
    MAXIMUM = 2
    MINIMUM = 3
    PRODUCT = 4
    ARGUMENT_OF_MAXIMUM = 5
    ARGUMENT_OF_MINIMUM = 6
    ANY = 7
    ALL = 8
    PLACE_OF_GREATEST = 9
    PLACE_OF_LEAST = 10
    GREATEST = 11
    LEAST = 12
    RUNNING_SUM = 13
    RUNNING_MEAN = 14


class Pool(IntEnum):
    """What the kernel `pool` makes of a window; NaN is the maximum, but never the greatest."""

    AVERAGE = 0
    MAXIMUM = 1
    GREATEST = 2


ENUMS: tuple[type[IntEnum], ...] = (
    Place, ElementType, StepKind, ArgumentKind, Binary, Unary, Reduction,
    Pool,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One word of a row."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its fields in order."""

    name: str
    doc: str
    fields: tuple[Field, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of one row."""
        return WORD_BYTES * len(self.fields)

    def pack(self, values: Mapping[str, int]) -> bytes:
        """Return a row of these values, one for each field. E460 for one that is no word."""
        assert values.keys() == {field.name for field in self.fields}, self.name
        for name, value in values.items():
            if not 0 <= value <= NONE:
                raise fail(
                    "E460",
                    f"{self.name}.{name} of a container must fit 32 bits, and is {value}",
                    help="the container's offsets are of 32 bits; split the network",
                )
        return np.array([values[field.name] for field in self.fields], "<u4").tobytes()

    def unpack(self, data: bytes, offset_bytes: int) -> dict[str, int]:
        """Return the values of the row at an offset. E461 if the container ends before it does."""
        end = offset_bytes + self.size_bytes
        if end > len(data):
            raise fail("E461", f"a container must hold all of its {self.name}, and ends before")
        words: Sequence[int] = np.frombuffer(data[offset_bytes:end], "<u4").tolist()
        return {field.name: word for field, word in zip(self.fields, words, strict=True)}


def row(name: str, doc: str, **fields: str) -> Row:
    """Return a row; fields are given by name, with what they mean."""
    return Row(name, doc, tuple(Field(key, text) for key, text in fields.items()))


def _table(name: str) -> dict[str, str]:
    return {f"{name}_count": f"rows of {name}", f"{name}_at": "bytes to the first"}


HEADER = row(
    "header",
    "The first bytes of a container",
    magic="MZN1",
    version="of the format",
    bytes="of the whole container",
    npu_config="CONFIG of the NPU that calls are for; 0 with npu_id of a container without any",
    npu_id="ID of the NPU that calls are for",
    arena_bytes="memory for tensors and for scratch memories",
    fast_bytes="memory for region 2 of NPU calls; 0 where none needs it",
    **_table("tensors"),
    **_table("steps"),
    **_table("npu_calls"),
    **_table("kernel_calls"),
    **_table("states"),
    **_table("kernels"),
    **_table("pool"),
    inputs="pool: tensors that are given, one word each",
    input_count="inputs",
    outputs="pool: tensors that are taken, one word each",
    output_count="outputs",
    constants_at="bytes to weights and constants, which may lie apart",
    program="CRC-32 of all before them, this word 0: what they are for",
)
FILE = row(
    "file",
    "The first bytes of a file that lies apart from the firmware",
    magic="MZF1",
    bytes="of the file",
    of="what its contents are for: header.program, or MODEL_INTERFACE",
    crc="CRC-32 of these words before, and of the contents after",
)
TENSOR = row(
    "tensor",
    "A tensor, densely packed",
    place="an mz_place",
    at="bytes from the start of that",
    bytes="of all elements",
    type="an mz_element_type",
    rank="number of extents",
    extents="pool: one word each",
    scale_count="0 of plain numbers, 1, or the extent of the axis",
    scales="pool: so many float32, then so many zero points",
    axis="of scales",
)
STEP = row(
    "step",
    "What is executed, in order",
    kind="an mz_step_kind",
    index="of the NPU call or kernel call",
)
NPU_CALL = row(
    "npu_call",
    "One invocation of the NPU's driver",
    payload_at="bytes to the payload",
    payload_bytes="of the payload",
    weights_at="bytes to region 0",
    weights_bytes="of region 0",
    scratch_at="bytes from the arena's start to region 1",
    scratch_bytes="of region 1",
    fast_bytes="of region 2; 0 where that is region 1",
    copies_in="pool: tensor and bytes from the start of region 1, before the call",
    copies_in_count="pairs",
    copies_out="pool: the same, after the call",
    copies_out_count="pairs",
)
KERNEL_CALL = row(
    "kernel_call",
    "One call of a kernel",
    kernel="index of its row of kernels",
    arguments="pool: rows of argument",
    argument_count="arguments",
    outputs="pool: tensors that are written, or MZ_NONE",
    output_count="outputs",
)
ARGUMENT = row(
    "argument",
    "An argument of a kernel call, in the pool",
    kind="an mz_argument_kind",
    low="TENSOR: index or MZ_NONE; NUMBER: bits 31 to 0; NUMBERS: pool, two words each",
    high="NUMBER: bits 63 to 32, or of a float32 the same as low; NUMBERS: how many",
)
STATE = row(
    "state",
    "A tensor that outlives an inference",
    read="tensor that the next inference reads",
    write="tensor that it takes over from, after the last step",
    initial_at="bytes to the contents before the first inference",
)
KERNEL = row(
    "kernel",
    "A kernel that calls need",
    id="mz_kernel.id: FNV-1a of its name",
)

ROWS = (HEADER, FILE, TENSOR, STEP, NPU_CALL, KERNEL_CALL, ARGUMENT, STATE, KERNEL)

TABLES: Mapping[str, Row] = {
    "tensors": TENSOR,
    "steps": STEP,
    "npu_calls": NPU_CALL,
    "kernel_calls": KERNEL_CALL,
    "states": STATE,
    "kernels": KERNEL,
}
"""The header's tables, the pool left out, and the rows that they have."""


def kernel_id(name: str) -> int:
    """Return the identity of a kernel: FNV-1a of its name, 32 bits."""
    identity = 0x811C_9DC5
    for byte in name.encode():
        identity = (identity ^ byte) * 0x0100_0193 & 0xFFFF_FFFF
    return identity
