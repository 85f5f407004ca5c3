"""What each operation of a stream asks of the units and buses, read from the registers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.judge.hazards.array_u85 import MICROBLOCK_SIDES, jobs_kept
from mizzen.targets.ethos_u.judge.hazards.blocks import Blocks, Shape
from mizzen.targets.ethos_u.judge.hazards.kernels import UNARY
from mizzen.targets.ethos_u.judge.hazards.maps import Kind as PlaceKind
from mizzen.targets.ethos_u.judge.hazards.maps import MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel, Transfer
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.shared_buffer import GRANULES, SUBKERNEL
from mizzen.targets.ethos_u.judge.hazards.stream import Wait, steps
from mizzen.targets.ethos_u.judge.timing.rates import INPUT_DEPTH
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program


class WorkKind(Enum):
    """How the array works on an operation."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    REDUCE_SUM = "reduce sum"
    POOL = "pool"
    ELEMENTWISE = "elementwise"
    RESIZE = "resize"


@dataclass(frozen=True, slots=True)
class Stream:
    """Constants that an operation reads again for every block in height and width."""

    what: str
    place: MemoryBlock
    bytes_: int


@dataclass(frozen=True, slots=True)
class KernelWork:
    """A kernel operation.

    mode         of pooling or an elementwise operation; else empty
    blocks       the hazard checker's reading of blocks, inputs and output
    microblock   height, width and depth that the array computes at once
    kernel_height  rows of the kernel
    subkernels   kernel elements of each part of the kernel that is done by itself
    channels     input channels that each output element needs
    slab         input channels of one job
    input_bits, output_bits  of elements
    wide         whether accumulators have 40 or 48 bits
    activation   ``table``, ``relu`` or empty
    simple       of ADD and SUB, whether both operands are scaled in 16 bits
    turned       whether the output's height and width are exchanged, or its width reversed
    chained      whether its first input comes out of a chain buffer
    kept         jobs whose inputs stay in the input memory, for the next block in depth; 0 where
                 each job reads its own
    command_bytes  of the stream, since the operation before
    """

    name: str
    origin: Origin
    kind: WorkKind
    mode: str
    blocks: Blocks
    blockdep: int
    goes_on: bool
    microblock: Shape
    is_u85: bool
    kernel_height: int
    subkernels: tuple[int, ...]
    channels: int
    slab: int
    part_kernel: bool
    sparse: bool
    fast_weights: bool
    cores: int
    input_bits: int
    output_bits: int
    inputs: int
    wide: bool
    activation: str
    simple: bool
    turned: bool
    chained: bool
    kept: int
    streams: tuple[Stream, ...]
    command_bytes: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the result needs."""
        if self.kind not in (WorkKind.CONVOLUTION, WorkKind.DEPTHWISE):
            return 0
        elements = math.prod(self.blocks.shape)
        return elements * sum(self.subkernels) * self.channels


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes at one end of a transfer, and the length of the runs that they lie in."""

    place: MemoryBlock
    bytes_: int
    run_bytes: int


@dataclass(frozen=True, slots=True)
class TransferWork:
    """A transfer of the DMA: what it reads, indices included, and where to."""

    name: str
    origin: Origin
    sources: tuple[Run, ...]
    destination: Run
    command_bytes: int


Step = KernelWork | TransferWork | Wait


def work_of(program: Program, accelerator: Accelerator) -> Iterator[Step]:
    """Return the steps of the front end.

    Raises as `mizzen.targets.ethos_u.judge.hazards.find_hazards`.
    """
    registers = Registers()
    reader = _Reader(registers, accelerator)
    for step in steps(program, accelerator, registers):
        match step:
            case Wait():
                yield step
            case Kernel():
                yield reader.kernel(step)
            case Transfer():
                yield reader.transfer(step)


@dataclass(slots=True)
class _Reader:
    registers: Registers
    accelerator: Accelerator
    word: int = field(default=0)

    def _commands(self, origin: Origin) -> int:
        """Return the bytes of commands since the last operation."""
        here = (origin.command or 0) + 1
        words, self.word = here - self.word, here
        return 4 * words

    def transfer(self, transfer: Transfer) -> TransferWork:
        """Return the work of a transfer for the buses."""
        length = self.registers.number("SET_DMA0_LEN")
        runs = [
            Run(access.place,
                sum(part.length * part.columns * part.rows for part in access.bytes.grids), length)
            for access in (*transfer.reads, *transfer.writes)
        ]  # fmt: skip
        return TransferWork(
            transfer.name,
            transfer.origin,
            tuple(runs[:-1]),
            runs[-1],
            self._commands(transfer.origin),
        )

    def kernel(self, kernel: Kernel) -> KernelWork:
        """Return the work of an operation for the array, the other units and the buses."""
        registers = self.registers
        kind, mode = _kind(kernel, registers)
        convolved = kind in (WorkKind.CONVOLUTION, WorkKind.REDUCE_SUM)
        part = kind is WorkKind.CONVOLUTION and (
            registers.choice("SET_KERNEL_STRIDE", "weight_order") == "PART_KERNEL_FIRST"
        )
        channels = registers.number("SET_IFM_DEPTH_M1") if convolved else 1
        inputs = kernel.blocks.inputs
        slab = inputs[0].slab if inputs and inputs[0].slab else channels
        is_u85 = self.accelerator.shram_kib is None
        subkernels = _subkernels(registers, kind)
        return KernelWork(
            name=kernel.name,
            origin=kernel.origin,
            kind=kind,
            mode=mode,
            blocks=kernel.blocks,
            blockdep=kernel.blockdep,
            goes_on=kernel.goes_on,
            microblock=self._microblock(),
            is_u85=is_u85,
            kernel_height=0 if kind is WorkKind.ELEMENTWISE
            else registers.number("SET_KERNEL_HEIGHT_M1"),
            subkernels=subkernels,
            channels=channels,
            slab=slab,
            part_kernel=part,
            sparse=is_u85 and convolved and _says(registers, "SET_WEIGHT_FORMAT",
                                                  "weight_sparsity", "SPARSE_2_4"),
            fast_weights=is_u85 and convolved and _says(registers, "SET_WEIGHT_FORMAT",
                                                        "weight_format", "FWD"),
            cores=self._cores(kernel.blocks.shape),
            input_bits=8 * registers.element_bytes("IFM"),
            output_bits=8 * registers.element_bytes("OFM"),
            inputs=len(inputs),
            wide=_says(registers, "SET_ACC_FORMAT", "acc_format", "I48" if is_u85 else "I40"),
            activation=self._activation(is_u85),
            simple=not is_u85 and registers.choice("SET_IFM_PRECISION", "scale_mode")
            == "OPA_OPB_16",
            turned=is_u85 and self._turned(),
            chained=any(item.map.place.kind is PlaceKind.CHAIN for item in inputs),
            kept=self._kept(kernel.blocks) if is_u85 and len(subkernels) == 1 else 0,
            streams=tuple(
                Stream(access.what, access.place, access.bytes.end - access.bytes.first)
                for access in kernel.reads
                if access.what in ("weights", "scales")
            ),
            command_bytes=self._commands(kernel.origin),
        )  # fmt: skip

    def _cores(self, shape: Shape) -> int:
        """Return how many cores work: those that the channels are divided among."""
        if self.accelerator.cores == 1 or shape[2] == 1:
            return 1
        dual = _says(self.registers, "SET_PARALLEL_MODE", "parallel_mode", "DUAL_CORE_DEPTH")
        return self.accelerator.cores if dual else 1

    def _kept(self, blocks: Blocks) -> int:
        microblock = self.registers.choice("SET_ACC_FORMAT", "microblock")
        return jobs_kept(blocks, self.accelerator.macs, microblock)

    def _microblock(self) -> Shape:
        if self.accelerator.shram_kib is not None:
            return GRANULES[self.accelerator.name].microblock
        name = self.registers.choice("SET_ACC_FORMAT", "microblock")
        high, wide = MICROBLOCK_SIDES[name]
        return high, wide, self.accelerator.macs // (INPUT_DEPTH * high * wide)

    def _activation(self, is_u85: bool) -> str:
        registers = self.registers
        if is_u85:
            function = registers.choice("SET_ACTIVATION", "activation_function")
            return "" if function == "LUT_NONE" else "table"
        if int(registers.fields("SET_ACTIVATION")["activation_function"]) > 0:
            return "table"
        return "relu" if self._clips() else ""

    def _clips(self) -> bool:
        """Whether results are clipped to less than their type."""
        bits = 8 * self.registers.element_bytes("OFM")
        signed = _says(self.registers, "SET_OFM_PRECISION", "activation_type", "SIGNED")
        if bits > 16 or not self.registers.has("SET_ACTIVATION_MIN"):
            return False
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        limits = [self.registers.number(f"SET_ACTIVATION_{end}") & 0xFFFF for end in ("MIN", "MAX")]
        return limits != [low & 0xFFFF, high & 0xFFFF]

    def _turned(self) -> bool:
        registers = self.registers
        return registers.choice("SET_OFM_PRECISION", "activation_transpose") in (
            "WHC", "WCH", "CWH",
        ) or _says(registers, "SET_OFM_PRECISION", "activation_reverse", "W")  # fmt: skip


def _says(registers: Registers, name: str, field: str, member: str) -> bool:
    return registers.has(name) and registers.choice(name, field) == member


def _kind(kernel: Kernel, registers: Registers) -> tuple[WorkKind, str]:
    match kernel.name:
        case "OP_CONV":
            return WorkKind.CONVOLUTION, ""
        case "OP_DEPTHWISE":
            return WorkKind.DEPTHWISE, ""
        case "OP_POOL" if kernel.mode == "REDUCE_SUM":
            return WorkKind.REDUCE_SUM, kernel.mode
        case "OP_POOL":
            return WorkKind.POOL, kernel.mode
        case "OP_RESIZE":
            return WorkKind.RESIZE, kernel.mode
        case _:
            return WorkKind.ELEMENTWISE, kernel.mode


def _subkernels(registers: Registers, kind: WorkKind) -> tuple[int, ...]:
    """Return the kernel elements of each part of at most 8 x 8 positions."""
    if kind in (WorkKind.ELEMENTWISE, WorkKind.RESIZE):
        return (1,)
    fields = registers.fields("SET_KERNEL_STRIDE")
    sides: list[list[int]] = []
    for size, axis in (("HEIGHT", "y"), ("WIDTH", "x")):
        step = int(fields[f"dilation_{axis}"]) + 1
        count = (registers.number(f"SET_KERNEL_{size}_M1") - 1) // step + 1
        most = SUBKERNEL // step
        sides.append([min(most, count - at) for at in range(0, count, most)])
    return tuple(high * wide for high in sides[0] for wide in sides[1])


def is_unary(mode: str) -> bool:
    """Whether an elementwise operation has one operand."""
    return mode in UNARY
