"""The registers that SET commands leave behind, as numbers, names and places."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from mizzen.diagnostics import Origin, fail
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.hazards.blocks import Shape
from mizzen.targets.ethos_u.judge.hazards.maps import Map, MemoryBlock, region_block

DAMAGED = "the command stream is damaged or was made for another NPU; compile it again"
MOST_BITS = 32
"""Of an element: no operation takes or gives wider ones."""


class Registers:
    """Values by command; what was never set is an error with the place of who asks for it."""

    def __init__(self) -> None:
        self._fields: dict[str, Mapping[str, int]] = {}
        self._numbers: dict[str, int] = {}
        self._reader = ("", Origin())

    def write(self, instruction: Instruction) -> None:
        """Keep what a SET command says."""
        values, name = instruction.values, instruction.command.name
        self._fields[name] = values
        self._numbers[name] = next(iter(values.values()), 0)

    def read_for(self, name: str, origin: Origin) -> None:
        """Say which operation asks from here on."""
        self._reader = name, origin

    def fields(self, name: str) -> Mapping[str, int]:
        """Return the fields of a register; E611 if no command has set it."""
        fields = self._fields.get(name)
        if fields is None:
            operation, origin = self._reader
            raise fail(
                "E611",
                f"{operation}: the operation needs {name}, which no command has set",
                origin=origin,
                help=DAMAGED,
            )
        return fields

    def _fault(self, must: str) -> Exception:
        """Return what is said of a feature map that there cannot be: E613."""
        operation, origin = self._reader
        return fail("E613", f"{operation}: {must}", origin=origin, help=DAMAGED)

    def number(self, name: str) -> int:
        """Return the value of a register with one field."""
        number = self._numbers.get(name)
        return next(iter(self.fields(name).values())) if number is None else number

    def choice(self, name: str, field: str) -> str:
        """Return the member of an enumeration by name."""
        value = self.fields(name)[field]
        return value.name if isinstance(value, Enum) else str(value)

    def has(self, name: str) -> bool:
        """Whether some command has set a register."""
        return name in self._fields

    def region(self, name: str) -> MemoryBlock:
        """Return the region that a register names."""
        return region_block(self.fields(name)["region"])

    def element_bytes(self, prefix: str) -> int:
        """Return the size of an element of a feature map. E613 beyond 32 bits."""
        register = f"SET_{prefix}_PRECISION"
        bits = int(self.choice(register, "activation_precision")[1:])
        if bits > MOST_BITS:
            raise self._fault(
                f"{register}: elements must have at most {MOST_BITS} bits, not {bits}"
            )
        return bits // 8

    def block(self) -> Shape:
        """Return height, width and depth of an OFM block."""
        number = self.number
        return (
            number("SET_OFM_BLK_HEIGHT_M1"),
            number("SET_OFM_BLK_WIDTH_M1"),
            number("SET_OFM_BLK_DEPTH_M1"),
        )

    def output_shape(self) -> Shape:
        """Return height, width and depth of the OFM before it is turned."""
        number = self.number
        return number("SET_OFM_HEIGHT_M1"), number("SET_OFM_WIDTH_M1"), number("SET_OFM_DEPTH_M1")

    def map(self, prefix: str, place: MemoryBlock, shape: Shape, *, stacked: bool) -> Map:
        """Return the feature map of registers `SET_<prefix>_*`. E613 if it has no elements."""
        if min(shape) < 1:
            size = " x ".join(str(extent) for extent in shape)
            raise self._fault(f"{prefix} must have a positive size, not {size}")
        number = self.number
        layout = self.choice(f"SET_{prefix}_PRECISION", "activation_format")
        return Map(
            place=place,
            shape=shape,
            element_bytes=self.element_bytes(prefix),
            bases=(
                number(f"SET_{prefix}_BASE0"),
                number(f"SET_{prefix}_BASE1"),
                number(f"SET_{prefix}_BASE2"),
                number(f"SET_{prefix}_BASE3"),
            ),
            height_0=number(f"SET_{prefix}_HEIGHT0_M1"),
            height_1=number(f"SET_{prefix}_HEIGHT1_M1"),
            width_0=number(f"SET_{prefix}_WIDTH0_M1"),
            stride_y=number(f"SET_{prefix}_STRIDE_Y"),
            stride_x=number(f"SET_{prefix}_STRIDE_X"),
            stride_c=number(f"SET_{prefix}_STRIDE_C"),
            bricks=layout == "NHCWB16",
            stacked=stacked,
        )
