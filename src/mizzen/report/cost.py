"""What an artifact's operations cost: time, what bounds it, what crosses which bus.

Every time is in cycles of the NPU's clock; those of a CPU operator are converted by the two clocks.
All of them are estimates: nothing here was measured on hardware.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from mizzen.diagnostics import Device, Origin
from mizzen.report.energy import InferenceEnergy


class Bound(Enum):
    """What an operation waits for, so that it takes the time it does."""

    MAC = "MAC"
    """Multiply-accumulates at the full rate of the array."""
    ROUNDING = "MAC array rounding"
    """The part of the array that the operation's shape leaves idle."""
    WEIGHTS = "weight decoding"
    OUTPUT = "output"
    """What scales, activates and writes results; elementwise operations."""
    SRAM = "SRAM"
    FLASH = "flash"
    DRAM = "DRAM"
    WAITING = "waiting"
    """For an earlier operation or transfer."""
    FILL = "fill"
    """Filling and draining the pipeline."""
    CPU = "CPU"


MEMORY_BOUNDS = frozenset({Bound.SRAM, Bound.FLASH, Bound.DRAM})
"""What is waited for where the NPU could go on."""


class Purpose(Enum):
    """What bytes on a bus are."""

    FEATURE_MAP = "feature map"
    WEIGHTS = "weights"
    SCALES = "scales"
    TABLE = "lookup table"
    TRANSFER = "transfer"
    """Of a DMA operation."""
    COMMANDS = "command stream"


class Unit(Enum):
    """What is at work: a lane of the timeline."""

    MAC = "MAC array"
    WEIGHTS = "weight decoder"
    OUTPUT = "output unit"
    DMA = "DMA"
    CPU = "CPU"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of an operation that cross the bus to a memory, what bursts fetch besides included.

    memory  by its name in `vela.ini`: ``Sram``, ``Dram``, ``OnChipFlash``, ``OffChipFlash``
    port    of the NPU: ``Axi0``, ``Axi1``; empty where it is not known
    """

    memory: str
    port: str
    purpose: Purpose
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class OperationCost:
    """One operation of the NPU, a transfer of its DMA, or an operator on the CPU.

    step              index among the artifact's steps
    index             among the operations of the artifact, in the order of execution
    name              command of the stream (``OP_CONV``), or the operator's type on the CPU
    origin            operator of the user's model; `command` is the word offset in the stream
    start_cycles, end_cycles  when it is at work, from the inference's start
    cycles            what the inference gets longer by it; they add up to the inference's
    causes            `cycles` by what they are waited for; they add up to `cycles`
    macs              multiply-accumulates that the operation needs
    macs_per_cycle    of the whole array
    shape             what it takes and gives: ``49x10x1 -> 25x5x64``
    detail            how the machine does it: block, kernel, traversal
    traffic           bytes by memory, port and purpose
    vela_cycles       by Vela's formula, for who reads Vela's tables; None where it has none
    processor_cycles  of a CPU operator, at the CPU's own clock
    """

    step: int
    index: int
    name: str
    device: Device
    origin: Origin | None
    start_cycles: int
    end_cycles: int
    cycles: int
    causes: Mapping[Bound, int]
    macs: int = 0
    macs_per_cycle: int = 0
    shape: str = ""
    detail: str = ""
    traffic: tuple[Traffic, ...] = ()
    vela_cycles: int | None = None
    processor_cycles: int = 0

    @property
    def bound(self) -> Bound:
        """What most of its time is waited for."""
        return max(self.causes, key=lambda cause: self.causes[cause], default=Bound.FILL)

    @property
    def utilisation(self) -> float:
        """MACs per cycle over those of the whole array, 0 to 1, while it is at work.

        An algorithm that needs fewer products than there are (Winograd's) has 1.
        """
        capacity = self.macs_per_cycle * max(self.end_cycles - self.start_cycles, 1)
        return min(1.0, self.macs / capacity) if capacity else 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """Time that a unit is at work on an operation, in cycles from the inference's start."""

    unit: Unit
    operation: int
    start_cycles: int
    end_cycles: int


@dataclass(frozen=True, slots=True)
class InferenceTime:
    """How long an inference takes: the timing model's estimate, the same wherever it is told.

    cycles             of the NPU's clock, operators on the CPU included
    npu_cycles         of these, the NPU's
    compute_cycles     of these, the ones that are waited for no memory
    clock_hz           of the NPU; 0 where no clock is known
    processor          core that the CPU's part is estimated for; empty where there is none
    conversion_cycles  not of these: what the CPU takes besides where a program has floats for a
                       file of integers
    processor_clock_hz  of that core; 0 for the NPU's
    """

    cycles: int
    npu_cycles: int
    compute_cycles: int
    clock_hz: float
    processor: str = ""
    conversion_cycles: int = 0
    processor_clock_hz: float = 0.0

    def with_conversions(self) -> InferenceTime:
        """Return the time of a file that converts a program's floats itself."""
        cycles = self.cycles + self.conversion_cycles
        return replace(self, cycles=cycles, conversion_cycles=0)

    @property
    def cpu_cycles(self) -> int:
        """Cycles of the CPU's part, at the NPU's clock."""
        return self.cycles - self.npu_cycles

    @property
    def seconds(self) -> float:
        """Time of an inference; 0 where no clock is known."""
        return self.cycles / self.clock_hz if self.clock_hz else 0.0

    @property
    def inferences_per_second(self) -> float:
        """Inferences one after the other; 0 where that is not known."""
        return 1 / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class CostReport:
    """What an inference of an artifact costs.

    configuration      accelerator, system configuration, memory mode in force, by those names
    clock_hz           of the NPU
    processor          core that the CPU's part is estimated for; empty where there is none
    operations         of the artifact's file, in the order of execution
    spans              in the order of their starts
    meaning            what a reader must know of these cycles; empty where nothing is special
    conversion_cycles  besides the operations, where a program has floats for a file of integers
    processor_clock_hz  of the core; 0 for the NPU's
    energy             of an inference; None where figures of the board are not known
    """

    model: str
    configuration: Mapping[str, str]
    clock_hz: float
    processor: str
    operations: tuple[OperationCost, ...]
    spans: tuple[Span, ...] = ()
    meaning: str = ""
    conversion_cycles: int = 0
    processor_clock_hz: float = 0.0
    energy: InferenceEnergy | None = None

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    @property
    def cycles(self) -> int:
        """Cycles of an inference, CPU operators included."""
        return sum(operation.cycles for operation in self.operations)

    @property
    def npu_cycles(self) -> int:
        """Cycles of the NPU's part."""
        return sum(
            operation.cycles for operation in self.operations if operation.device is Device.NPU
        )

    @property
    def cpu_cycles(self) -> int:
        """Cycles of the CPU's part, at the NPU's clock."""
        return self.cycles - self.npu_cycles

    @property
    def time(self) -> InferenceTime:
        """How long an inference takes."""
        on_npu = [operation for operation in self.operations if operation.device is Device.NPU]
        waited = added(operation.causes for operation in on_npu)
        for memory in MEMORY_BOUNDS:
            waited.pop(memory, None)
        return InferenceTime(
            self.cycles,
            self.npu_cycles,
            sum(waited.values()),
            self.clock_hz,
            self.processor,
            self.conversion_cycles,
            self.processor_clock_hz,
        )

    @property
    def causes(self) -> dict[Bound, int]:
        """Cycles of an inference by what they are waited for."""
        return added(operation.causes for operation in self.operations)

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """Bytes of an inference by memory, port and purpose."""
        sums: dict[tuple[str, str, Purpose], tuple[int, int]] = {}
        for traffic in (each for operation in self.operations for each in operation.traffic):
            key = traffic.memory, traffic.port, traffic.purpose
            read, written = sums.get(key, (0, 0))
            sums[key] = read + traffic.read_bytes, written + traffic.written_bytes
        return tuple(Traffic(*key, *both) for key, both in sums.items())

    def of_operator(self, index: int) -> Iterator[OperationCost]:
        """Return the operations that an operator of the user's model became."""
        for operation in self.operations:
            if operation.origin is not None and operation.origin.operator == index:
                yield operation


def added(parts: Iterable[Mapping[Bound, int]]) -> dict[Bound, int]:
    """Add up cycles by cause."""
    sums: dict[Bound, int] = {}
    for causes in parts:
        for cause, cycles in causes.items():
            sums[cause] = sums.get(cause, 0) + cycles
    return sums
