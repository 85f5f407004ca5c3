"""The registers that SET commands leave behind, as numbers, names and places."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from mizzen.diagnostics import Origin, fail
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.hazards.blocks import Shape
from mizzen.targets.ethos_u.hazards.maps import Kind, Map, MemoryBlock


class Registers:
    """Values by command; what was never set is an error with the place of who asks for it."""

    def __init__(self) -> None:
        self._fields: dict[str, Mapping[str, int]] = {}
        self._reader = ("", Origin())

    def write(self, instruction: Instruction) -> None:
        """Keep what a SET command says."""
        self._fields[instruction.name] = instruction.values

    def read_for(self, name: str, origin: Origin) -> None:
        """Say which operation asks from here on."""
        self._reader = name, origin

    def fields(self, name: str) -> Mapping[str, int]:
        """Return the fields of a register; E611 if no command has set it."""
        found = self._fields.get(name)
        if found is None:
            operation, origin = self._reader
            raise fail(
                "E611",
                f"{operation}: the operation needs {name}, which no command has set",
                origin=origin,
                help="the command stream is damaged or was made for another NPU; compile it again",
            )
        return found

    def number(self, name: str) -> int:
        """Return the value of a register with one field."""
        return int(next(iter(self.fields(name).values())))

    def choice(self, name: str, field: str) -> str:
        """Return the member of an enumeration by name."""
        value = self.fields(name)[field]
        return value.name if isinstance(value, Enum) else str(value)

    def has(self, name: str) -> bool:
        """Whether some command has set a register."""
        return name in self._fields

    def region(self, name: str) -> MemoryBlock:
        """Return the region that a register names."""
        return MemoryBlock(Kind.REGION, int(self.fields(name)["region"]))

    def element_bytes(self, prefix: str) -> int:
        """Return the size of an element of a feature map."""
        return int(self.choice(f"SET_{prefix}_PRECISION", "activation_precision")[1:]) // 8

    def block(self) -> Shape:
        """Return height, width and depth of an OFM block."""
        return self._shape("SET_OFM_BLK_{}_M1")

    def output_shape(self) -> Shape:
        """Return height, width and depth of the OFM before it is turned."""
        return self._shape("SET_OFM_{}_M1")

    def _shape(self, name: str) -> Shape:
        height, width, depth = (
            self.number(name.format(axis)) for axis in ("HEIGHT", "WIDTH", "DEPTH")
        )
        return height, width, depth

    def map(self, prefix: str, place: MemoryBlock, shape: Shape, *, stacked: bool) -> Map:
        """Return the feature map of registers `SET_<prefix>_*`. E613 if it has no elements."""
        if min(shape) < 1:
            operation, origin = self._reader
            size = " x ".join(str(extent) for extent in shape)
            raise fail(
                "E613",
                f"{operation}: {prefix} must have a positive size, not {size}",
                origin=origin,
                help="the command stream is damaged or was made for another NPU; compile it again",
            )
        bases = [self.number(f"SET_{prefix}_BASE{tile}") for tile in range(4)]
        layout = self.choice(f"SET_{prefix}_PRECISION", "activation_format")
        return Map(
            place=place,
            shape=shape,
            element_bytes=self.element_bytes(prefix),
            bases=(bases[0], bases[1], bases[2], bases[3]),
            height_0=self.number(f"SET_{prefix}_HEIGHT0_M1"),
            height_1=self.number(f"SET_{prefix}_HEIGHT1_M1"),
            width_0=self.number(f"SET_{prefix}_WIDTH0_M1"),
            stride_y=self.number(f"SET_{prefix}_STRIDE_Y"),
            stride_x=self.number(f"SET_{prefix}_STRIDE_X"),
            stride_c=self.number(f"SET_{prefix}_STRIDE_C"),
            bricks=layout == "NHCWB16",
            stacked=stacked,
        )
