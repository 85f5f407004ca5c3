"""The eight regions of a command stream: their base pointers, and what must fit in them.

Every address of a stream counts from the base pointer of a region, which a runtime gives the
driver. Vela's ``--separate-io-regions`` puts all inputs into one region and all outputs into
another; else both lie in the scratch memory.

Ref: Arm Ethos-U core driver, `ethosu*_interface.h` (registers BASEP0 to BASEP7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mizzen.diagnostics import fail
from mizzen.isa import Instruction, Kind
from mizzen.targets.ethos_u.machine.commands_values import DmaRegionMode, Storage
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress

REGION_COUNT = 8
"""Base pointers of every product."""

FIRST_OF_TENSORS = 3
"""The first region that can be for a tensor alone; those before are shared memories."""


INPUTS_REGION, OUTPUTS_REGION = 3, 4
"""Regions of all inputs and of all outputs, where Vela gives them some of their own."""


class OutsideMemory:
    """The region registers whose numbers are none of a region, as far as a stream has been read.

    They number a buffer of a chain, or memory inside the NPU.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def note(self, instruction: Instruction) -> None:
        """Take notice of the next command."""
        name, values = instruction.name, instruction.values
        if name.endswith("_PRECISION"):
            storage = values.get("activation_storage", Storage.TILE2X2)
            self._set(name.replace("_PRECISION", "_REGION"), storage >= Storage.CHAINED)
        elif "region_mode" in values:
            self._set(name, values["region_mode"] == DmaRegionMode.INTERNAL)

    def _set(self, name: str, outside: bool) -> None:
        (self._names.add if outside else self._names.discard)(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def has_tensor_regions(program: Program) -> bool:
    """Whether tensors of a program have regions of their own."""
    return any(region >= FIRST_OF_TENSORS for region in program.region_bytes)


def addressed_regions(instructions: Iterable[Instruction]) -> frozenset[int]:
    """Return the regions of memory that the operations of a stream are told to use.

    Registers keep their values, so that a region that one operation needed counts for later ones.
    """
    regions: dict[str, int] = {}
    addressed: set[int] = set()
    outside = OutsideMemory()
    for instruction in instructions:
        outside.note(instruction)
        if instruction.command.kind is Kind.OPERATION:
            addressed.update(held for name, held in regions.items() if name not in outside)
        elif instruction.name.endswith("_REGION"):
            regions[instruction.name] = instruction.values["region"]
    return frozenset(addressed)


def base_pointers(inputs: int, outputs: int) -> tuple[str, ...]:
    """Say what each base pointer is for a TFLite operator of so many real inputs and outputs.

    A runtime passes the operator's tensors after the payload in their order, as many as there are
    regions. Streams address inputs and outputs through the scratch region, where they lie, or,
    with Vela's ``--separate-io-regions``, through `INPUTS_REGION` and `OUTPUTS_REGION`.
    """
    roles = ["read-only data", "scratch", "fast scratch"]
    roles += [f"input {index}" for index in range(inputs)]
    roles += [f"output {index}" for index in range(outputs)]
    return tuple(roles[:REGION_COUNT])


def require_region(region: int) -> int:
    """Return `region` back if it is one; E540 if not."""
    if not 0 <= region < REGION_COUNT:
        raise fail("E540", f"a region must be in 0..{REGION_COUNT - 1}, not {region}")
    return region


def with_regions_of(
    placements: Sequence[TensorAddress], region_bytes: Mapping[int, int]
) -> dict[int, int]:
    """Return sizes of regions, with those that only tensors have: each is as long as its tensors.

    Vela's option ``--separate-io-regions`` gives inputs and outputs such regions.
    """
    sizes = dict(region_bytes)
    own = [each for each in placements if each.region >= FIRST_OF_TENSORS]
    for tensor in own:
        if tensor.region not in region_bytes:
            sizes[tensor.region] = max(
                sizes.get(tensor.region, 0), tensor.offset + tensor.size_bytes
            )
    return sizes


def require_memory(program: Program) -> None:
    """Check that constants, inputs and outputs lie inside the regions of a program.

    E540 for a region that does not exist or has no size, E541 for contents beyond its end.
    """
    for region, contents in program.constants.items():
        _require_inside(program, region, 0, contents.nbytes, "constants")
    _require_placements(program, program.inputs, "input")
    _require_placements(program, program.outputs, "output")


def _require_placements(program: Program, placements: Sequence[TensorAddress], word: str) -> None:
    for placement in placements:
        what = f'{word} "{placement.name}"'
        _require_inside(program, placement.region, placement.offset, placement.size_bytes, what)


def _require_inside(program: Program, region: int, offset: int, size: int, what: str) -> None:
    limit = program.region_bytes.get(require_region(region))
    if limit is None:
        raise fail("E540", f"{what} lies in region {region}, which the program does not have")
    if offset < 0 or offset + size > limit:
        message = (
            f"{what} must lie inside the {limit} bytes of region {region}, "
            f"not at {offset}..{offset + size}"
        )
        raise fail("E541", message)
