"""The eight regions of a command stream: their base pointers, and what must fit in them.

Every address of a stream counts from the base pointer of a region, which a runtime gives the
driver.

Ref: Arm Ethos-U core driver, `ethosu*_interface.h` (registers BASEP0 to BASEP7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress

REGION_COUNT = 8
"""Base pointers of every product."""

FIRST_OF_TENSORS = 3
"""The first region that can be for a tensor alone; those before are shared memories."""


def base_pointers(inputs: int, outputs: int) -> tuple[str, ...]:
    """Say what each base pointer is for a TFLite operator of so many real inputs and outputs.

    A runtime passes the operator's tensors after the payload in their order, as many as there are
    regions. Streams address inputs and outputs through the scratch region, where they lie.
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
