"""A compiled NPU program: the command stream, its constants, its memory, its feature maps.

Readers of containers (the TFLite custom operator, Vela's raw `.npz`) make programs; the simulator
and the listing take them. Nothing here knows the container it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.machine.commands import Instruction, decode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, Accelerator


class RegionIndex(IntEnum):
    """Base pointers of the NPU as compilers number them; 3 and up are spare."""

    READ_ONLY = 0
    SCRATCH = 1
    SCRATCH_FAST = 2


class PayloadForm(Enum):
    """How a driver payload is laid out; the value is its first word, as text."""

    COP1 = "COP1"
    COP2 = "COP2"


@dataclass(frozen=True, slots=True)
class TensorAddress:
    """A tensor of the program's interface, inside a region.

    `shape` is the tensor's full shape in elements, `offset` its byte offset in `region`.
    `variable` marks state that the caller keeps from one invocation to the next.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    region: int
    offset: int
    variable: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, densely packed."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class HardwareId:
    """What the driver payload says the stream was made for: CONFIG and ID register images."""

    config_word: int
    id_word: int


BY_CONFIG_WORD = {accelerator.config_word: accelerator for accelerator in ACCELERATORS.values()}


def accelerator_of(hardware: HardwareId | None) -> Accelerator:
    """Return the accelerator that a driver payload names.

    Raises E604 without a CONFIG word, E605 for one that no accelerator has.
    """
    if hardware is None:
        raise fail(
            "E604",
            "the driver payload must say which hardware it is for, and has no CONFIG word",
            help="compile the network again; every current compiler writes one",
        )
    accelerator = BY_CONFIG_WORD.get(hardware.config_word)
    if accelerator is None:
        raise fail(
            "E605",
            f"CONFIG must be the word of an accelerator, not {hardware.config_word:#010x}",
            help="the artifact is damaged; compile it again",
        )
    return accelerator


StagedRun = tuple[int, npt.NDArray[np.uint8]]
"""Byte offset in a region, and what is there."""


@dataclass(frozen=True, eq=False)
class Program:
    """One NPU operator, ready to execute.

    words         command stream, uint32 little-endian, without driver actions
    hardware      CONFIG and ID words of the payload; None if the payload had none
    region_bytes  size of each region in bytes, by region number
    constants     initial contents of constant regions (uint8), by region number
    inputs        real inputs and state tensors, in the operator's order
    outputs       outputs in the operator's order
    origins       byte offset in the stream of an operation command -> the model's operator
    form          of the payload that the stream came in
    staged        constants that an earlier program has put into memory, by region: byte offset and
                  bytes (uint8) of each run
    """

    words: npt.NDArray[np.uint32]
    hardware: HardwareId | None
    region_bytes: dict[int, int]
    constants: dict[int, npt.NDArray[np.uint8]]
    inputs: tuple[TensorAddress, ...]
    outputs: tuple[TensorAddress, ...]
    name: str = "ethos-u"
    origins: dict[int, Origin] = field(default_factory=dict[int, Origin])
    form: PayloadForm = PayloadForm.COP1
    staged: Mapping[int, Sequence[StagedRun]] = field(
        default_factory=dict[int, Sequence[StagedRun]]
    )

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The commands of the stream, for the accelerator that the payload names; decoded once.

        Raises E604 and E605 for a payload that names none, E501 to E504 for a damaged stream.
        """
        return tuple(decode(self.words, accelerator_of(self.hardware).arch))
