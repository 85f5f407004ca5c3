"""What a part must be told before its own commands: registers, and lookup tables.

The NPU may be reset between two starts, and a driver does so. Registers that were set before a part
are set again if one of its operations is to see them; of a register that the part sets itself
before, nothing need be said. Lookup tables are in the NPU's own memory, and are brought again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.isa import Instruction, Kind
from mizzen.targets.ethos_u.machine.commands import Arch, instruction_set

TRANSFER = "OP_DMA_START"
OF_TRANSFERS = "SET_DMA0"
"""How the names of a transfer's registers start; all others are of kernel operations."""


def in_force(before: Sequence[Instruction]) -> dict[str, Instruction]:
    """Return the last setting of each register, by its name."""
    return {each.name: each for each in before if each.command.kind is Kind.SETTING}


def replayed(before: Sequence[Instruction], part: Sequence[Instruction]) -> Iterator[Instruction]:
    """Return the settings of before a part that its operations see."""
    own: set[str] = set()
    waiting = in_force(before)
    for each in part:
        if each.command.kind is Kind.SETTING:
            own.add(each.name)
        elif each.command.kind is Kind.OPERATION:
            seen = [name for name in waiting if _is_of(name, each)]
            settings = [waiting.pop(name) for name in seen]
            yield from (setting for setting in settings if setting.name not in own)


def reloaded(stream: Sequence[Instruction], at: Sequence[int], arch: Arch) -> list[Instruction]:
    """Return commands that do some transfers of the stream again, and wait for them.

    at  places of the transfers in the stream
    """
    again: list[Instruction] = []
    for place in at:
        settings = in_force(stream[:place])
        again += [setting for name, setting in settings.items() if name.startswith(OF_TRANSFERS)]
        again.append(stream[place])
    return [*again, wait_for_transfers(arch)] if again else []


def wait_for_transfers(arch: Arch) -> Instruction:
    """Return the command that waits until no transfer is outstanding."""
    return instruction_set(arch)["OP_DMA_WAIT"](k=0)


def _is_of(setting: str, operation: Instruction) -> bool:
    """Whether an operation reads registers of the kind of a setting."""
    return setting.startswith(OF_TRANSFERS) == (operation.name == TRANSFER)
