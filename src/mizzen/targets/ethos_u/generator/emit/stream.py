"""From ordered steps to words, and to a program."""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.emit import settings_u55, settings_u85
from mizzen.targets.ethos_u.generator.emit.located import Addresses
from mizzen.targets.ethos_u.generator.emit.order import Ordered, ordered
from mizzen.targets.ethos_u.generator.emit.plan import plan
from mizzen.targets.ethos_u.generator.emit.registers import Writer
from mizzen.targets.ethos_u.generator.emit.settings import of_transfer
from mizzen.targets.ethos_u.generator.emit.steps import TransferStep
from mizzen.targets.ethos_u.generator.operations import Role, Schedule
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.commands_values import ParallelMode
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import HardwareId, Program, RegionIndex, TensorAddress

ID_WORDS = {Arch.U55: 0x1006_6001, Arch.U65: 0x1006_6001, Arch.U85: 0x2000_7000}
"""ID register, as Vela 5.2 writes it: of architectures 1.0.6 and 2.0.0."""
KERNELS = {Arch.U55: settings_u55, Arch.U65: settings_u55, Arch.U85: settings_u85}
"""What knows the registers of operations."""
STOP_MASK = 0xFFFF


def emit(schedule: Schedule, accelerator: Accelerator) -> Program:
    """Return the program of a schedule: words, constants, and where its tensors are.

    Inputs and outputs have the names and shapes of the sequence's tensors. Raises E286 to E289 as
    `plan` does, E511 for a number that a register cannot hold.
    """
    planned = plan(schedule, accelerator)
    writer = Writer(accelerator.arch)
    origins: dict[int, Origin] = {}
    if accelerator.arch is Arch.U65:
        both = ParallelMode.DUAL_CORE_DEPTH if accelerator.cores > 1 else ParallelMode.SINGLE_CORE
        writer.set("SET_PARALLEL_MODE", (both,))
    for step in ordered(planned.steps, accelerator.arch):
        _write(writer, step, accelerator, origins)
    writer.do("OP_STOP", (STOP_MASK,))
    sequence, constants = schedule.sequence, planned.constants
    region_bytes = dict(schedule.region_bytes)
    region_bytes[RegionIndex.READ_ONLY] = constants.nbytes
    return Program(
        words=np.array(writer.words, np.uint32),
        hardware=HardwareId(accelerator.config_word, ID_WORDS[accelerator.arch]),
        region_bytes=region_bytes,
        constants={RegionIndex.READ_ONLY: constants},
        inputs=tuple(_address(planned.addresses, tensor) for tensor in sequence.inputs),
        outputs=tuple(_address(planned.addresses, tensor) for tensor in sequence.outputs),
        origins=origins,
    )


def _write(
    writer: Writer, row: Ordered, accelerator: Accelerator, origins: dict[int, Origin]
) -> None:
    step, kernels = row.step, KERNELS[accelerator.arch]
    if isinstance(step, TransferStep):
        for name, values in of_transfer(step, accelerator):
            writer.set(name, values)
        _wait(writer, row)
        origins[writer.offset_bytes] = step.origin
        writer.do("OP_DMA_START")
        return
    for link in step.links:
        for name, values in kernels.of_kernel(link):
            writer.set(name, values)
        writer.set("SET_BLOCKDEP", (row.blockdep,))
        if link is step.links[0]:
            _wait(writer, row)
        origins[writer.offset_bytes] = link.origin
        writer.do(*kernels.operation_command(link))


def _wait(writer: Writer, row: Ordered) -> None:
    if row.kernel_wait is not None:
        writer.do("OP_KERNEL_WAIT", (row.kernel_wait,))
    if row.dma_wait is not None:
        writer.do("OP_DMA_WAIT", (row.dma_wait,))


def _address(addresses: Addresses, tensor: int) -> TensorAddress:
    held, place = addresses.tensors[tensor], addresses.place(tensor, Origin())
    return TensorAddress(
        name=held.name,
        shape=held.shape,
        dtype=held.dtype,
        region=place.region,
        offset=place.offset_bytes,
        variable=held.role is Role.STATE,
    )
