"""The rows of machines: microblock, banks and granules of each core."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.operations import Shape
from mizzen.targets.ethos_u.machine.commands_values import AccFormat

BANK_BYTES = 1024
OUTPUT_BANKS = 2
TABLE_BANKS = 2
BUFFERS = 2
"""Blocks of an input, and of accumulators, that are in the buffer at once."""
TABLE_SLOTS, SLOT_BYTES = 8, 256
"""Lookup tables: eight slots at the very end of a core's buffer."""
KEEPS_TABLES_ABOVE_BANKS = 16
"""Up to so many banks, an operation without a table has its accumulators where tables were."""
LARGEST_BLOCK: Shape = (32, 64, 128)


@dataclass(frozen=True, slots=True)
class Core:
    """A row: the buffer of one core, and the banks by which its parts are given out.

    microblock           height, width, depth of the output that is computed at once
    banks                of 1 KiB
    ifm8, ifm16, ifm32   of an input, by bits of an element
    elementwise          of an input of 8 or 16 bits of an elementwise operation
    acc16, acc32, acc40  of accumulators, by bits
    """

    microblock: Shape
    banks: int
    ifm8: int
    ifm16: int
    ifm32: int
    elementwise: int
    acc16: int
    acc32: int
    acc40: int

    @property
    def keeps_tables(self) -> bool:
        """Whether tables outlive operations without one."""
        return self.banks > KEEPS_TABLES_ABOVE_BANKS

    @property
    def table_start_bytes(self) -> int:
        """Where slot 0 of the tables lies in the buffer."""
        return self.banks * BANK_BYTES - TABLE_SLOTS * SLOT_BYTES

    def accumulators(self, format_: AccFormat) -> tuple[int, int]:
        """Return bits of an accumulator, and their granule in banks."""
        match format_:
            case AccFormat.F16:
                return 16, self.acc16
            case AccFormat.I32:
                return 32, self.acc32
            case AccFormat.I40:
                return 40, self.acc40


CORES: dict[str, Core] = {
    #                    microblock banks ifm8 16 32 ew acc16 32 40
    "ethos-u55-32": Core((1, 1, 4), 16, 2, 2, 4, 2, 4, 4, 4),
    "ethos-u55-64": Core((1, 1, 8), 16, 2, 2, 4, 2, 4, 4, 8),
    "ethos-u55-128": Core((1, 2, 8), 24, 4, 4, 8, 4, 4, 8, 12),
    "ethos-u55-256": Core((2, 2, 8), 48, 8, 8, 16, 8, 8, 16, 20),
    "ethos-u65-256": Core((2, 2, 8), 48, 8, 8, 16, 8, 8, 16, 20),
    "ethos-u65-512": Core((2, 2, 8), 48, 8, 8, 16, 8, 8, 16, 20),
}
"""Ref: Vela 5.2.0, architecture_features.py. Both cores of U65-512 compute the same rows and
columns, so that each needs what one core would."""
