"""The operations and waits of a stream, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.hazards.kernels import KernelsU55, KernelsU85
from mizzen.targets.ethos_u.judge.hazards.operations import Operation
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.transfers import transfer_u55, transfer_u85
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program

KERNELS = {"OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE", "OP_RESIZE"}


class Queue(Enum):
    """What a wait is about."""

    KERNELS = "OP_KERNEL_WAIT"
    TRANSFERS = "OP_DMA_WAIT"


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until at most `outstanding` operations of a queue are."""

    queue: Queue
    outstanding: int


def steps(
    program: Program, accelerator: Accelerator, registers: Registers | None = None
) -> Iterator[Operation | Wait]:
    """Return the front end's operations and waits. E5xx and E61x for streams that cannot be read.

    registers  holds, whenever a step is returned, what the commands before it have set

    OP_BRANCH is refused with E677: what follows it is not known before it runs.
    """
    registers = Registers() if registers is None else registers
    is_u85 = accelerator.arch is Arch.U85
    kernels = (KernelsU85 if is_u85 else KernelsU55)(registers, accelerator)
    transfer = transfer_u85 if is_u85 else transfer_u55
    for instruction in program.instructions:
        name = instruction.name
        if name.startswith("SET_"):
            registers.write(instruction)
            continue
        origin = _origin(program, instruction)
        registers.read_for(name, origin)
        if name == "OP_STOP":
            return
        if name in KERNELS or name == "OP_DMA_START":
            try:
                started: Operation = (
                    kernels.kernel(instruction, origin)
                    if name in KERNELS
                    else transfer(registers, instruction, origin)
                )
            except MizzenError as error:
                raise _at(error, name, origin) from None
            yield started
        elif name == "OP_BRANCH":
            raise _branches(origin)
        elif name in ("OP_KERNEL_WAIT", "OP_DMA_WAIT"):
            yield Wait(Queue(name), int(next(iter(instruction.values.values()))))


def _at(error: MizzenError, name: str, origin: Origin) -> MizzenError:
    """Say where, if the part that failed did not know."""
    diagnostic = error.diagnostic
    if diagnostic.origin is not None:
        return error
    return MizzenError(replace(diagnostic, origin=origin, message=f"{name}: {diagnostic.message}"))


def _origin(program: Program, instruction: Instruction) -> Origin:
    offset = instruction.offset_words
    origin = program.origins.get(4 * offset)
    return Origin(command=offset) if origin is None else replace(origin, command=offset)


def _branches(origin: Origin) -> Exception:
    return fail(
        "E677",
        "OP_BRANCH: a stream must have no branches to be checked for hazards",
        origin=origin,
        help="no compiler makes such a stream; check what made it",
    )
