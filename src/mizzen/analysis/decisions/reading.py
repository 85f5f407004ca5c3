"""What the commands of a stream say of each operation."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.cost.ethos_u import ethos_u_operations
from mizzen.analysis.cost.reporting import configuration_of
from mizzen.analysis.decisions.alternatives import alternatives, order_of, table_slot
from mizzen.analysis.decisions.alternatives_u85 import alternatives_u85
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.report.cost import OperationCost
from mizzen.report.decisions import Banks, Decision
from mizzen.report.words import MEMORY_NAMES, size
from mizzen.targets.ethos_u.generator.shared_buffer import CORES, OUTPUT_BANKS, TABLE_BANKS, Core
from mizzen.targets.ethos_u.judge.hazards.maps import Kind, Map, MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel, Transfer
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.stream import Queue, Wait, steps
from mizzen.targets.ethos_u.judge.timing import KernelWork, TransferWork
from mizzen.targets.ethos_u.judge.timing.machine import Machine, machine_of
from mizzen.targets.ethos_u.judge.timing.work import work_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of


def decisions(
    artifact: Artifact, configuration: EthosUConfiguration | None = None
) -> dict[int, tuple[Decision, ...]]:
    """Return how each operation of an artifact's Ethos-U streams is done, by the step's index.

    configuration  the system that it runs in; else the one that it was compiled for, as
                   `mizzen.analysis.cost.cost_report` takes it

    Raises E570 for a configuration of another accelerator, E5xx and E6xx for streams that cannot
    be read.
    """
    chosen = configuration_of(artifact, configuration)
    if chosen is None:
        return {}
    return {
        index: tuple(_Reader(step.program, chosen).rows())
        for index, step in enumerate(artifact.steps)
        if isinstance(step, NpuStep) and isinstance(step.program, Program)
    }


class _Reader:
    def __init__(self, program: Program, configuration: EthosUConfiguration) -> None:
        self._program = program
        self._accelerator = accelerator_of(program.hardware)
        self._core: Core | None = CORES.get(self._accelerator.name)
        self._machine: Machine = machine_of(configuration)
        self._costs, _ = ethos_u_operations(program, configuration)
        self._registers = Registers()

    def rows(self) -> Iterator[Decision]:
        """Return the kernel operations, with what is before each of them."""
        before: list[str] = []
        waits: list[str] = []
        costs = iter(self._costs)
        pairs = zip(
            steps(self._program, self._accelerator, self._registers),
            work_of(self._program, self._accelerator),
            strict=True,
        )
        for step, work in pairs:
            match step:
                case Wait():
                    waits.append(_wait(step))
                    continue
                case Transfer():
                    assert isinstance(work, TransferWork)
                    next(costs)
                    before.append(self._transfer(work, waits))
                case Kernel():
                    assert isinstance(work, KernelWork)
                    yield self._kernel(step, work, next(costs), (tuple(before), tuple(waits)))
                    before = []
            waits = []

    def _transfer(self, work: TransferWork, waits: list[str]) -> str:
        source, target = (self._memory(run.place) for run in (work.sources[0], work.destination))
        behind = f" after {', '.join(waits)}" if waits else ""
        return f"{size(work.destination.bytes_)} from {source} to {target}{behind}"

    def _memory(self, place: MemoryBlock) -> str:
        """Return the kind of memory behind a place, in words."""
        bus = self._machine.bus(place)
        return str(place) if bus is None else MEMORY_NAMES[bus.memory.value]

    def _kernel(
        self,
        kernel: Kernel,
        work: KernelWork,
        cost: OperationCost,
        around: tuple[tuple[str, ...], tuple[str, ...]],
    ) -> Decision:
        before, waits = around
        others = alternatives_u85 if self._core is None else alternatives
        taken, other, fitting = others(work, self._registers, self._machine)
        maps = [item.map for item in work.blocks.inputs]
        maps += [] if work.blocks.result is None else [work.blocks.result.map]
        constants = [self._memory(stream.place) for stream in work.streams[:1]]
        return Decision(
            command=kernel.origin.command or 0,
            name=kernel.name + (f" {kernel.mode}" if kernel.mode else ""),
            operator=_operator(cost),
            shape=cost.shape,
            block=work.blocks.block,
            order=order_of(work),
            layouts=tuple(_layout(fm) for fm in maps),
            constants="".join(constants),
            banks=() if self._core is None else tuple(self._banks(kernel, self._core)),
            before=before,
            waits=waits,
            blockdep=kernel.blockdep,
            table=None if self._core is None else table_slot(self._registers),
            cycles=cost.cycles,
            bound=cost.bound.value,
            microblock=() if self._core is not None else work.microblock,
            format=_format(work),
            taken=taken,
            other=other,
            fitting=fitting,
        )

    def _banks(self, kernel: Kernel, core: Core) -> Iterator[Banks]:
        number = self._registers.number
        end, start = number("SET_IFM_IB_END"), number("SET_AB_START")
        has_table = table_slot(self._registers) is not None or core.keeps_tables
        yield Banks("output", 0, OUTPUT_BANKS)
        if kernel.name == "OP_ELEMENTWISE":
            second = len(kernel.blocks.inputs) > 1
            middle = number("SET_IFM2_IB_START") if second else end
            yield Banks("first input" if second else "input", OUTPUT_BANKS, middle)
            if second:
                yield Banks("second input", middle, end)
        else:
            yield Banks("input", OUTPUT_BANKS, end)
            yield Banks("accumulators", start, core.banks - (TABLE_BANKS if has_table else 0))
        if has_table:
            yield Banks("tables", core.banks - TABLE_BANKS, core.banks)


def _layout(map_: Map) -> str:
    if map_.place.kind is Kind.CHAIN:
        return "chain"
    return "NHCWB16" if map_.bricks else "NHWC"


def _format(work: KernelWork) -> str:
    """Return what U85 calls the format of weights that are not usual."""
    names = {"fast": work.fast_weights, "sparse": work.sparse}
    return ", ".join(name for name, is_so in names.items() if is_so)


def _wait(wait: Wait) -> str:
    name = "KERNEL_WAIT" if wait.queue is Queue.KERNELS else "DMA_WAIT"
    return f"{name} {wait.outstanding}"


def _operator(cost: OperationCost) -> str:
    """Say which operator of the user's model it is; empty if that is not known."""
    origin = cost.origin
    if origin is None or origin.operator is None:
        return ""
    return f"operator {origin.operator}" + (f" {origin.kind}" if origin.kind else "")
